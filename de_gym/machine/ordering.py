"""The one comparison of two individuals, and the ranking that follows from it."""

from __future__ import annotations

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.machine.compiling import compiled, inlined

# Up to this size insertion is the faster of two stable sorts, the more so on populations that are nearly sorted.
INSERTION_LIMIT = 128


@inlined
def is_better(value: float, other: float) -> bool:
    """Return whether an individual of this value is strictly preferred to the other."""
    return value < other


@inlined
def is_not_worse(value: float, other: float) -> bool:
    """Return whether a trial of this value may take the place of the other."""
    return value <= other


@compiled
def rank_by_fitness(fitness: FloatArray) -> IntArray:
    """Return the order that sorts ``fitness`` (N,) best first; equals keep their order."""
    size = fitness.shape[0]
    if size > INSERTION_LIMIT:
        return np.argsort(fitness, kind="mergesort")
    order, ranked = np.empty(size, np.int64), np.empty(size)
    for individual in range(size):
        value, slot = fitness[individual], individual
        while slot > 0 and ranked[slot - 1] > value:
            ranked[slot], order[slot] = ranked[slot - 1], order[slot - 1]
            slot -= 1
        ranked[slot], order[slot] = value, individual
    return order
