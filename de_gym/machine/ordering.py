"""The one comparison of two individuals, and the ranking that follows from it."""

from __future__ import annotations

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.machine.compiling import inlined, shared

# Up to this size insertion is the fastest stable sort, the more so on populations that are nearly sorted; larger
# ones are merged from pieces of it. numpy's sort would take longer to compile than everything around it.
INSERTION_LIMIT = 128


@inlined
def is_better(value: float, other: float) -> bool:
    """Return whether an individual of this value is strictly preferred to the other."""
    return value < other


@inlined
def is_not_worse(value: float, other: float) -> bool:
    """Return whether a trial of this value may take the place of the other."""
    return value <= other


@shared
def rank_by_fitness(fitness: FloatArray) -> IntArray:
    """Return the order that sorts ``fitness`` (N,) best first; equals keep their order."""
    size = fitness.shape[0]
    order, ranked = np.empty(size, np.int64), np.empty(size)
    for individual in range(size):
        value, slot, first = fitness[individual], individual, individual - individual % INSERTION_LIMIT
        while slot > first and ranked[slot - 1] > value:
            ranked[slot], order[slot] = ranked[slot - 1], order[slot - 1]
            slot -= 1
        ranked[slot], order[slot] = value, individual
    width = INSERTION_LIMIT
    while width < size:
        order = _merge_neighbours(fitness, order, width)
        width *= 2
    return order


@shared
def _merge_neighbours(fitness: FloatArray, order: IntArray, width: int) -> IntArray:
    """Return the order after each two neighbouring pieces of ``width``, sorted ones, have become one."""
    size = order.shape[0]
    merged = np.empty(size, np.int64)
    for first in range(0, size, 2 * width):
        middle, end = min(first + width, size), min(first + 2 * width, size)
        left, right = first, middle
        for rank in range(first, end):
            if left < middle and (right == end or not fitness[order[right]] < fitness[order[left]]):
                merged[rank] = order[left]
                left += 1
            else:
                merged[rank] = order[right]
                right += 1
    return merged
