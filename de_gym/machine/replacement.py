"""One-to-one selection of R runs in place: trials replace parents, beaten parents retire, the worst may be dropped.

The archive of beaten parents are the rows of a population's ``positions`` from its capacity on.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from de_gym.arrays import FloatArray, IntArray, RunArray
from de_gym.machine.compiling import compiled, inlined, shared
from de_gym.machine.ordering import is_better, is_not_worse, write_order

# Up to this many changed values insertion into the old order is faster than sorting anew.
_MANY_CHANGES = 100

# What happens when the archive is full; the numbers are what the compiled code switches on.
ARCHIVE_RULES = MappingProxyType({"overwrite": 0, "random-leaving": 1})
_RANDOM_LEAVING = ARCHIVE_RULES["random-leaving"]


@compiled
def replace_parents(
    runs: RunArray,
    positions: FloatArray,
    fitness: FloatArray,
    order: IntArray,
    improvements: FloatArray,
    parent_fitness: FloatArray,
    origins: IntArray,
    points: FloatArray,
    starts: IntArray,
    values: FloatArray,
    uniforms: FloatArray,
    first_uniform: int,
    strictly: bool,
    archive_rule: int,
    archive_fraction: float,
    max_archive_size: int,
) -> None:
    """Turn the populations of R runs into the next ones; arrays as in ``Population`` and ``Trials``.

    A trial replaces its parent where it is better, or also where it is equal unless ``strictly``. Parents that are
    strictly beaten go to the archive, in the order of the population. The ``uniforms`` of a run of N trials, from
    N ``first_uniform`` on, decide who leaves a full archive.
    """
    capacity = order.shape[1]
    for run in range(runs.shape[0]):
        begin, size = starts[run], starts[run + 1] - starts[run]
        limit, count = _archive_limit(size, archive_fraction, max_archive_size), runs[run]["archive_size"]
        rows, leaving = positions[run], uniforms[run, first_uniform * size :]
        num_replaced = 0
        for i in range(size):
            value, parent = values[begin + i], fitness[run, i]
            improvements[run, i] = 0.0 if value == parent else parent - value
            parent_fitness[run, i], origins[run, i] = parent, i
            if is_better(value, parent) or (not strictly and is_not_worse(value, parent)):
                if is_better(value, parent):
                    count = _retire(rows, i, capacity, count, limit, archive_rule, leaving)
                copy_row(points, begin + i, rows, i)
                fitness[run, i] = value
                num_replaced += 1
        if archive_rule == _RANDOM_LEAVING:
            count = _leave_at_random(rows, capacity, count, limit, leaving)
        runs[run]["archive_size"] = count
        _restore_order(order[run, :size], fitness[run, :size], num_replaced)


@shared
def _restore_order(order: IntArray, fitness: FloatArray, num_changed: int) -> None:
    """Sort ``order`` (N,) by fitness, equals by row, after some of the values have changed."""
    if num_changed > _MANY_CHANGES:
        write_order(fitness, order)
        return
    for place in range(1, order.shape[0]):
        row, slot = order[place], place
        while slot > 0 and _precedes(fitness, row, order[slot - 1]):
            order[slot] = order[slot - 1]
            slot -= 1
        order[slot] = row


@inlined
def _precedes(fitness: FloatArray, row: int, other: int) -> bool:
    return is_better(fitness[row], fitness[other]) or (fitness[row] == fitness[other] and row < other)


@compiled
def drop_worst(
    runs: RunArray,
    positions: FloatArray,
    fitness: FloatArray,
    order: IntArray,
    improvements: FloatArray,
    parent_fitness: FloatArray,
    origins: IntArray,
    plans: RunArray,
    smallest_size: int,
    archive_fraction: float,
    max_archive_size: int,
) -> None:
    """Reduce runs to their best ``next_size`` individuals, in place, where they have more.

    The others keep their order; among equals the first goes first. The archive loses its tail.
    """
    for run in range(runs.shape[0]):
        if plans[run]["next_size"] < smallest_size:
            raise ValueError("A controller chose a `next_size` that leaves fewer individuals than a trial is made of.")
    for run in range(runs.shape[0]):
        size, next_size = runs[run]["size"], plans[run]["next_size"]
        if next_size >= size:
            continue
        next_rows = _rows_without_worst(order[run, :size], fitness[run, :size], next_size)
        rows, place = positions[run], 0
        for rank in range(size):
            row = next_rows[order[run, rank]]
            order[run, place] = row
            place += row >= 0
        for row in range(size):
            target = next_rows[row]
            if 0 <= target < row:
                copy_row(rows, row, rows, target)
                fitness[run, target], origins[run, target] = fitness[run, row], origins[run, row]
        fitness[run, next_size:size] = np.inf
        runs[run]["size"] = next_size
        limit = _archive_limit(next_size, archive_fraction, max_archive_size)
        runs[run]["archive_size"] = min(runs[run]["archive_size"], limit)


@shared
def _rows_without_worst(order: IntArray, fitness: FloatArray, next_size: int) -> IntArray:
    """Return the next row of every individual, -1 for those dropped, shape (N,)."""
    size = order.shape[0]
    next_rows = np.zeros(size, np.int64)
    end, num_dropped = size, size - next_size
    while num_dropped > 0:
        begin = end - 1
        while begin > 0 and fitness[order[begin - 1]] == fitness[order[begin]]:
            begin -= 1
        num_equal = min(num_dropped, end - begin)
        next_rows[order[begin : begin + num_equal]] = -1
        end, num_dropped = begin, num_dropped - num_equal
    row = 0
    for i in range(size):
        if next_rows[i] == 0:
            next_rows[i] = row
            row += 1
    return next_rows


@inlined
def copy_row(source: FloatArray, source_row: int, target: FloatArray, target_row: int) -> None:
    """Copy one row; a loop, because the assignment of slices costs more than a short row, and seconds to compile."""
    for j in range(source.shape[1]):
        target[target_row, j] = source[source_row, j]


@shared
def copy_rows(source: FloatArray, target: FloatArray) -> None:
    """Copy all rows."""
    for row in range(source.shape[0]):
        copy_row(source, row, target, row)


@inlined
def _retire(
    positions: FloatArray, row: int, first: int, count: int, limit: int, rule: int, uniforms: FloatArray
) -> int:
    """Copy the individual in ``row`` to the archive that begins at row ``first``; return the number of its members.

    A full archive overwrites a member at random, or grows for the time being until ``_leave_at_random``.
    """
    if limit == 0:
        return 0
    slot = count if rule == _RANDOM_LEAVING or count < limit else int(uniforms[row] * limit)
    copy_row(positions, row, positions, first + slot)
    return count + 1 if rule == _RANDOM_LEAVING else min(count + 1, limit)


@inlined
def _archive_limit(size: int, fraction: float, max_size: int) -> int:
    """Return how many members the archive of a population may have."""
    return min(int(fraction * size), max_size)


@inlined
def _leave_at_random(positions: FloatArray, first: int, count: int, limit: int, uniforms: FloatArray) -> int:
    """Have members leave, old and new alike, until ``limit`` of ``count`` remain; return how many there are."""
    while count > limit:
        leaving = int(uniforms[count - limit - 1] * count)
        count -= 1
        copy_row(positions, first + count, positions, first + leaving)
    return count
