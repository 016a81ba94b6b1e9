"""Populations of R runs: a capacity that never changes, a live size per run; and the points that runs ask for."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from de_gym.arrays import FloatArray, IntArray
from de_gym.machine.compiling import compiled
from de_gym.machine.ordering import write_order
from de_gym.machine.replacement import copy_row

# What there is one number of per run. ``size`` is also the number of points of the run's next generation.
RUN = np.dtype(
    [("size", "i8"), ("archive_size", "i8"), ("evaluations", "i8"), ("max_evaluations", "i8"), ("best_fitness", "f8")],
    align=True,
)
# What a controller sets once per run, for shells that have it: the number of leading individuals that count as p-best,
# whether an individual is never its own p-best, and how many individuals go on after the generation.
PLAN = np.dtype([("num_pbest", "i8"), ("other_pbest", "?"), ("next_size", "i8")], align=True)
RunRecords: TypeAlias = NDArray[np.void]
PlanRecords: TypeAlias = NDArray[np.void]


class Trials(NamedTuple):
    """Points that the runs want to have evaluated; a run may ask for none.

    Attributes:
        points: Points of all runs one after another, shape (T, D).
        starts: Run r owns the points ``starts[r]`` to ``starts[r + 1]``, shape (R + 1,).
    """

    points: FloatArray
    starts: IntArray


class Population(NamedTuple):
    """R populations, changed in place from generation to generation; all arrays have the runs as first axis.

    Attributes:
        runs: Sizes, counters and best values, of type ``RUN``, shape (R,).
        positions: Individuals in the first ``size`` rows, the archive from row C on, shape (R, C + A, D).
        fitness: Shape (R, C), infinite beyond ``size``.
        order: Rows of the individuals, best first, equals by row, shape (R, C).
        improvements: Value of each parent minus that of its last trial: positive for a better trial, zero for an
            equal one, negative for a worse one or none yet, shape (R, C).
        parent_fitness: Fitness of the parents of the last trials, shape (R, C).
        origins: Row that each individual had among the parents of the last trials, shape (R, C).
    """

    runs: RunRecords
    positions: FloatArray
    fitness: FloatArray
    order: IntArray
    improvements: FloatArray
    parent_fitness: FloatArray
    origins: IntArray

    @property
    def capacity(self) -> int:
        """Largest number of individuals, C."""
        return int(self.order.shape[1])


def make_population(runs: RunRecords, capacity: int, archive_rows: int, dimension: int) -> Population:
    """Return populations that still have no individuals."""
    shape = (len(runs), capacity)
    rows = np.tile(np.arange(capacity), (len(runs), 1))
    return Population(
        runs=runs,
        positions=np.zeros((len(runs), capacity + archive_rows, dimension)),
        fitness=np.full(shape, np.inf),
        order=rows,
        improvements=np.full(shape, -1.0),
        parent_fitness=np.full(shape, np.nan),
        origins=rows.copy(),
    )


@compiled
def settle(positions: FloatArray, fitness: FloatArray, order: IntArray, trials: Trials, values: FloatArray) -> None:
    """Make the evaluated ``trials`` the individuals of all runs, in place."""
    for run in range(fitness.shape[0]):
        begin, size = trials.starts[run], trials.starts[run + 1] - trials.starts[run]
        for i in range(size):
            copy_row(trials.points, begin + i, positions[run], i)
            fitness[run, i] = values[begin + i]
        write_order(fitness[run, :size], order[run, :size])
