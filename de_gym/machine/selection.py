"""Selection: trials replace parents where they are not worse, for R runs at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.machine.compiling import compiled, inlined
from de_gym.machine.lanes import ROW_WIDTH, load_from, pointer_to, store_from
from de_gym.machine.ordering import INSERTION_LIMIT, is_better, is_not_worse, rank_by_fitness

if TYPE_CHECKING:
    from de_gym.machine.lanes import Pointer


@compiled
def select_better(
    positions: FloatArray,
    order: IntArray,
    fitness: FloatArray,
    trials: FloatArray,
    trial_fitness: FloatArray,
    num_successes: IntArray,
) -> None:
    """Turn R populations into the next ones, in place: a trial replaces its parent where it is not worse.

    Parents stay in their rows; only the order changes. That spares most of the copying.

    Args:
        positions: Shape (R, N, D).
        order: Row of the individual of each rank, best first before and after, shape (R, N).
        fitness: Values by rank, shape (R, N).
        trials: The trial of each rank, shape (R, N, D).
        trial_fitness: Their values, shape (R, N).
        num_successes: Receives the number of parents replaced in each run, shape (R,).
    """
    num_runs, size, dimension = positions.shape
    better = np.empty(size, np.int64)
    source, target = pointer_to(trials), pointer_to(positions)
    values, offered, rows = pointer_to(fitness), pointer_to(trial_fitness), pointer_to(order)
    for run in range(num_runs):
        # Taken anew for every run: an array may be freed after its last mention, whoever holds its address.
        winners, num_better, first = pointer_to(better), 0, run * size
        for at in range(first, first + size):
            # Written for all and kept for some: a branch would be mispredicted as often as it is taken.
            winners[num_better] = at
            num_better += is_not_worse(offered[at], values[at])
        for index in range(num_better):
            at = winners[index]
            value, row, slot = offered[at], rows[at], at
            copy_row(source, at * dimension, target, (first + row) * dimension, dimension)
            # Insertion keeps equals in their order. Parents that survive need none: those before got no worse.
            while size <= INSERTION_LIMIT and slot > first and is_better(value, values[slot - 1]):
                values[slot], rows[slot] = values[slot - 1], rows[slot - 1]
                slot -= 1
            values[slot], rows[slot] = value, row
        if size > INSERTION_LIMIT:
            _sort(order[run], fitness[run])
        num_successes[run] = num_better


@compiled
def _sort(order: IntArray, fitness: FloatArray) -> None:
    """Sort one run's ``order`` (N,) and ``fitness`` (N,) by the latter."""
    ranks = rank_by_fitness(fitness)
    order[:], fitness[:] = order[ranks], fitness[ranks]


@inlined
def copy_row(source: Pointer[float], source_start: int, target: Pointer[float], target_start: int, length: int) -> None:
    """Copy one row, its last numbers by a block that overlaps the one before."""
    if length < ROW_WIDTH:
        for j in range(length):
            target[target_start + j] = source[source_start + j]
    for block in range(0, length if length >= ROW_WIDTH else 0, ROW_WIDTH):
        j = min(block, length - ROW_WIDTH)
        store_from(target, target_start + j, load_from(source, source_start + j))
