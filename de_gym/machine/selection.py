"""Selection: trials replace parents where they are not worse, for R runs at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from de_gym.arrays import FloatArray, IntArray, RunArray
from de_gym.machine.compiling import compiled, inlined
from de_gym.machine.lanes import ROW_WIDTH, load_from, pointer_to, smaller_of, store_from
from de_gym.machine.ordering import INSERTION_LIMIT, is_better, is_not_worse, rank_by_fitness
from de_gym.machine.streams import later_uniform

if TYPE_CHECKING:
    from de_gym.machine.lanes import Pointer


@compiled
def select_by_rank(
    runs: RunArray,
    positions: FloatArray,
    order: IntArray,
    fitness: FloatArray,
    starts: IntArray,
    trials: FloatArray,
    trial_fitness: FloatArray,
) -> None:
    """Turn R populations into the next ones, in place: a trial replaces its parent where it is not worse.

    Parents stay in their rows; only the order changes. That spares most of the copying. Where there is an archive,
    parents that are strictly beaten go there, each on a slot at random once it is full.

    Args:
        runs: Scalars of the runs, whose successes and archive sizes are updated, shape (R,).
        positions: Rows of the population, then of the archive, shape (R, C + A, D).
        order: Row of the individual of each rank, best first before and after, shape (R, C).
        fitness: Values by rank, shape (R, C).
        starts: First trial of each run, shape (R + 1,).
        trials: The trials by rank, shape (T, D).
        trial_fitness: Their values, shape (T,).
    """
    num_rows, dimension = positions.shape[1:]
    capacity = order.shape[1]
    num_archived = num_rows - capacity
    better = np.empty(capacity, np.int64)
    source, target = pointer_to(trials), pointer_to(positions)
    values, offered, rows = pointer_to(fitness), pointer_to(trial_fitness), pointer_to(order)
    for run in range(len(runs)):
        # Taken anew for every run: an array may be freed after its last mention, whoever holds its address.
        winners, num_better, first, start = pointer_to(better), 0, run * capacity, starts[run]
        size = starts[run + 1] - start
        for rank in range(size):
            # Written for all and kept for some: a branch would be mispredicted as often as it is taken.
            winners[num_better] = rank
            num_better += is_not_worse(offered[start + rank], values[first + rank])
        for index in range(num_better):
            rank = winners[index]
            at, value, slot = first + rank, offered[start + rank], first + rank
            row = rows[at]
            place = (run * num_rows + row) * dimension
            if num_archived > 0 and is_better(value, values[at]):
                retired = _archive_slot(runs, run, rank, min(num_archived, size))
                copy_row(target, place, target, (run * num_rows + capacity + retired) * dimension, dimension)
            copy_row(source, (start + rank) * dimension, target, place, dimension)
            # Insertion keeps equals in their order. Parents that survive need none: those before got no worse.
            while size <= INSERTION_LIMIT and slot > first and is_better(value, values[slot - 1]):
                values[slot], rows[slot] = values[slot - 1], rows[slot - 1]
                slot -= 1
            values[slot], rows[slot] = value, row
        if size > INSERTION_LIMIT:
            _sort(order[run, :size], fitness[run, :size])
        runs[run].num_trials, runs[run].num_successes = size, num_better


@inlined
def _archive_slot(runs: RunArray, run: int, rank: int, num_slots: int) -> int:
    """Return the slot of the archive that takes the beaten parent of this rank."""
    count: int = runs[run].archive_size
    if count < num_slots:
        runs[run].archive_size = count + 1
        return count
    return int(later_uniform(runs[run].key, runs[run].generation, rank) * num_slots)


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
        j = smaller_of(block, length - ROW_WIDTH)
        store_from(target, target_start + j, load_from(source, source_start + j))
