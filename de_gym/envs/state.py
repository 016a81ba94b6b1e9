"""RunState: the memory of R runs whose individuals are addressed by rank, shared by Python and compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from de_gym.arrays import FloatArray, IntArray, RunArray

RUN = np.dtype(
    [
        ("key", "u8"),  # what the run's random numbers follow from
        ("generation", "i8"),  # generations since the initial population
        ("evaluations", "i8"),  # points evaluated so far
        ("size", "i8"),  # individuals alive
        ("archive_size", "i8"),  # rows of the archive in use
        ("num_trials", "i8"),  # trials of the last generation
        ("num_successes", "i8"),  # those that replaced their parent
        ("best_error", "f8"),  # error of the best individual, never negative
        ("initial_error", "f8"),  # the best error of the initial population
        ("reference", "f8"),  # value that counts as error 0
        ("has_optimum", "?"),  # whether the reference is a known minimum or bound
    ],
    align=True,
)


class RunState(NamedTuple):
    """Everything that R runs remember from one generation to the next; their future follows from it and the actions.

    A generation overwrites the arrays: writing it to fresh memory would cost as much as computing it. Whoever hands
    an array on hands on a copy. A population has a fixed capacity C; how many individuals live is a run's ``size``.

    Attributes:
        runs: Scalars of every run, a record of ``RUN`` each, shape (R,).
        positions: Rows of the population, then of the archive, shape (R, C + A, D). Individuals stay in their rows.
        order: Row of the individual of each rank, best first, shape (R, C).
        fitness: Objective values by rank, ascending, infinite beyond the live ones, shape (R, C).
        history: Histograms of the generations before the current one, as ``empty_history`` says.
        histogram: Histogram of the current generation, shape (R, b).
    """

    runs: RunArray
    positions: FloatArray
    order: IntArray
    fitness: FloatArray
    history: FloatArray
    histogram: FloatArray


def ranked_positions(state: RunState) -> FloatArray:
    """Return the positions (R, N, D) best first, a copy; N is the largest number of individuals alive in a run."""
    alive = state.order[:, : state.runs["size"].max(), None]
    return np.take_along_axis(state.positions, alive, axis=1)
