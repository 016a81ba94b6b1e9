"""The one comparison of two individuals, and the ranking that follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.machine.compiling import inlined, shared
from de_gym.machine.lanes import smaller_of

if TYPE_CHECKING:
    from de_gym.machine.lanes import Pointer

    # Numbers one after another: a flat array, or an address.
    Numbers: TypeAlias = FloatArray | Pointer[float]
    Indices: TypeAlias = IntArray | Pointer[int]

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
    order = np.empty(fitness.shape[0], np.int64)
    write_order(fitness, order)
    return order


@shared
def write_order(fitness: FloatArray, order: IntArray) -> None:
    """Write the order that sorts ``fitness`` (N,) best first; equals keep their order."""
    size = fitness.shape[0]
    rank_numbers(fitness, size, order, np.empty(size, np.int64), np.empty(size))


@shared
def rank_numbers(numbers: Numbers, size: int, order: Indices, memory: Indices, ranked: Numbers) -> None:
    """Write the order of the first ``size`` numbers; ``memory`` and ``ranked`` are as long, and overwritten."""
    for individual in range(size):
        value, slot, first = numbers[individual], individual, individual - individual % INSERTION_LIMIT
        while slot > first and ranked[slot - 1] > value:
            ranked[slot], order[slot] = ranked[slot - 1], order[slot - 1]
            slot -= 1
        ranked[slot], order[slot] = value, individual
    width = INSERTION_LIMIT
    while width < size:
        _merge_neighbours(numbers, size, order, width, memory)
        for rank in range(size):
            order[rank] = memory[rank]
        width *= 2


@shared
def _merge_neighbours(numbers: Numbers, size: int, order: Indices, width: int, merged: Indices) -> None:
    """Write the order after each two neighbouring pieces of ``width``, sorted ones, have become one."""
    for first in range(0, size, 2 * width):
        middle, end = smaller_of(first + width, size), smaller_of(first + 2 * width, size)
        left, right = first, middle
        for rank in range(first, end):
            if left < middle and (right == end or not numbers[order[right]] < numbers[order[left]]):
                merged[rank] = order[left]
                left += 1
            else:
                merged[rank] = order[right]
                right += 1
