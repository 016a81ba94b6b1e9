"""One-to-one selection of R runs in place: trials replace parents, beaten parents retire, the worst may be dropped."""

from __future__ import annotations

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.evolution.archive import RANDOM_LEAVING, archive_limit, copy_row, leave_at_random, retire
from de_gym.evolution.populations import PlanRecords, RunRecords
from de_gym.machine.compiling import compiled, inlined, shared
from de_gym.machine.ordering import is_better, is_not_worse, rank_by_fitness

# Up to this many changed values insertion into the old order is faster than sorting anew.
_MANY_CHANGES = 100


@compiled
def replace_parents(
    runs: RunRecords,
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
        limit, count = archive_limit(size, archive_fraction, max_archive_size), runs[run]["archive_size"]
        rows, leaving = positions[run], uniforms[run, first_uniform * size :]
        num_replaced = 0
        for i in range(size):
            value, parent = values[begin + i], fitness[run, i]
            improvements[run, i] = 0.0 if value == parent else parent - value
            parent_fitness[run, i], origins[run, i] = parent, i
            if is_better(value, parent) or (not strictly and is_not_worse(value, parent)):
                if is_better(value, parent):
                    count = retire(rows, i, capacity, count, limit, archive_rule, leaving)
                copy_row(points, begin + i, rows, i)
                fitness[run, i] = value
                num_replaced += 1
        if archive_rule == RANDOM_LEAVING:
            count = leave_at_random(rows, capacity, count, limit, leaving)
        runs[run]["archive_size"] = count
        _restore_order(order[run, :size], fitness[run, :size], num_replaced)


@shared
def _restore_order(order: IntArray, fitness: FloatArray, num_changed: int) -> None:
    """Sort ``order`` (N,) by fitness, equals by row, after some of the values have changed."""
    if num_changed > _MANY_CHANGES:
        order[:] = rank_by_fitness(fitness)
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
    runs: RunRecords,
    positions: FloatArray,
    fitness: FloatArray,
    order: IntArray,
    improvements: FloatArray,
    parent_fitness: FloatArray,
    origins: IntArray,
    plans: PlanRecords,
    archive_fraction: float,
    max_archive_size: int,
) -> None:
    """Reduce runs to their best ``next_size`` individuals, in place, where they have more.

    The others keep their order; among equals the first goes first. The archive loses its tail.
    """
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
        limit = archive_limit(next_size, archive_fraction, max_archive_size)
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
