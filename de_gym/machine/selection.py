"""Selection in a population addressed by rank: trials replace parents where they are not worse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from de_gym.machine.compiling import inlined, shared
from de_gym.machine.lanes import ROW_WIDTH, hold, load_from, moved, pointer_to, smaller_of, store_from
from de_gym.machine.ordering import INSERTION_LIMIT, is_better, is_not_worse, rank_numbers
from de_gym.machine.streams import later_uniform

if TYPE_CHECKING:
    from de_gym.machine.lanes import Pointer


class RankedPlaces(NamedTuple):
    """Where the arrays of R populations begin whose individuals are addressed by rank, or those of one of them.

    Attributes:
        capacity: Individuals that there is room for, C.
        num_rows: Rows of the population and of the archive, C + A.
        dimension: Number of coordinates, D.
        positions: Rows of the population, then of the archive, shape (R, C + A, D).
        order: Row of the individual of each rank, best first, shape (R, C).
        fitness: Values by rank, shape (R, C).
    """

    capacity: int
    num_rows: int
    dimension: int
    positions: Pointer[float]
    order: Pointer[int]
    fitness: Pointer[float]


@inlined
def find_population(index: int, places: RankedPlaces) -> RankedPlaces:
    """Return where the numbers of run ``index`` begin."""
    capacity, num_rows, dimension = places.capacity, places.num_rows, places.dimension
    return RankedPlaces(
        capacity,
        num_rows,
        dimension,
        moved(places.positions, index * num_rows * dimension),
        moved(places.order, index * capacity),
        moved(places.fitness, index * capacity),
    )


@shared
def select_ranked(
    run: Any,
    size: int,
    places: RankedPlaces,
    trials: Pointer[float],
    trial_fitness: Pointer[float],
    winners: Pointer[int],
) -> None:
    """Turn one run's population into the next one, in place: a trial replaces its parent where it is not worse.

    Parents stay in their rows; only the order changes. That spares most of the copying. Where there is an archive,
    parents that are strictly beaten go there, each on a slot at random once it is full.

    Args:
        run: Scalars of the run, whose successes and archive size are updated.
        size: Number of trials and of individuals alive, N.
        places: The run's population, best first before and after.
        trials: The trials by rank, shape (N, D).
        trial_fitness: Their values, shape (N,).
        winners: Memory to work in, shape (N,).
    """
    dimension, values, rows = places.dimension, places.fitness, places.order
    num_archived, num_better = places.num_rows - places.capacity, 0
    for rank in range(size):
        # Written for all and kept for some: a branch would be mispredicted as often as it is taken.
        winners[num_better] = rank
        num_better += is_not_worse(trial_fitness[rank], values[rank])
    for index in range(num_better):
        rank = winners[index]
        row, value, slot = rows[rank], trial_fitness[rank], rank
        if num_archived > 0 and is_better(value, values[rank]):
            retired = places.capacity + _archive_slot(run, rank, smaller_of(num_archived, size))
            copy_row(places.positions, row * dimension, places.positions, retired * dimension, dimension)
        copy_row(trials, rank * dimension, places.positions, row * dimension, dimension)
        # Insertion keeps equals in their order. Parents that survive need none: those before got no worse.
        while size <= INSERTION_LIMIT and slot > 0 and is_better(value, values[slot - 1]):
            values[slot], rows[slot] = values[slot - 1], rows[slot - 1]
            slot -= 1
        values[slot], rows[slot] = value, row
    if size > INSERTION_LIMIT:
        _sort(rows, values, size)
    run.num_trials, run.num_successes = size, num_better


@inlined
def _archive_slot(run: Any, rank: int, num_slots: int) -> int:
    """Return the slot of the archive that takes the beaten parent of this rank."""
    count: int = run.archive_size
    if count < num_slots:
        run.archive_size = count + 1
        return count
    return int(later_uniform(run.key, run.generation, rank) * num_slots)


@shared
def _sort(order: Pointer[int], fitness: Pointer[float], size: int) -> None:
    """Sort one run's ``order`` (N,) and ``fitness`` (N,) by the latter; equals keep their order."""
    integers, numbers = np.empty((2, size), np.int64), np.empty(size)
    ranks, rows, values = pointer_to(integers), moved(pointer_to(integers), size), pointer_to(numbers)
    rank_numbers(fitness, size, ranks, rows, values)
    for rank in range(size):
        rows[rank], values[rank] = order[ranks[rank]], fitness[ranks[rank]]
    for rank in range(size):
        order[rank], fitness[rank] = rows[rank], values[rank]
    hold((integers, numbers))


@inlined
def copy_row(source: Pointer[float], source_start: int, target: Pointer[float], target_start: int, length: int) -> None:
    """Copy one row, its last numbers by a block that overlaps the one before."""
    if length < ROW_WIDTH:
        for j in range(length):
            target[target_start + j] = source[source_start + j]
    for block in range(0, length if length >= ROW_WIDTH else 0, ROW_WIDTH):
        j = smaller_of(block, length - ROW_WIDTH)
        store_from(target, target_start + j, load_from(source, source_start + j))
