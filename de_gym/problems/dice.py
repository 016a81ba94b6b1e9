"""Dice: random numbers that are the same bits on every machine, for problems that are fixed by a few integers.

numpy promises the same integers for a seed, but neither the same normals from version to version nor the same last bit
of a matrix product from one linear algebra library to another. So everything here is made of uniform doubles, by
additions, multiplications, divisions and square roots in a fixed order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.machine.compiling import compiled

_UNIFORMS_PER_NORMAL = 12


class Dice:
    """A stream of random choices that follows from a few non-negative integers."""

    def __init__(self, *key: int) -> None:
        self._rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))

    def uniform(self, low: float, high: float) -> float:
        """Return a number between ``low`` and ``high``."""
        return low + (high - low) * float(self._rng.random())

    def uniforms(self, low: float, high: float, shape: int | tuple[int, ...]) -> FloatArray:
        """Return an array of them."""
        return low + (high - low) * self._rng.random(shape)

    def integer(self, lowest: int, highest: int) -> int:
        """Return an integer from ``lowest`` to ``highest``, both included."""
        return lowest + math.floor(float(self._rng.random()) * (highest - lowest + 1))

    def happens(self, probability: float) -> bool:
        """Return True with this probability."""
        return bool(self._rng.random() < probability)

    def pick(self, choices: Sequence[str]) -> str:
        """Return one of ``choices``, each as likely."""
        return choices[self.integer(0, len(choices) - 1)]

    def pick_by_share(self, shares: Mapping[str, float]) -> str:
        """Return one of the names, each with the share of its own; the shares sum to 1."""
        left = float(self._rng.random())
        for name, share in shares.items():
            left -= share
            if left < 0.0:
                return name
        return name

    def order(self, length: int) -> IntArray:
        """Return the numbers from 0 to ``length - 1`` in random order."""
        return np.argsort(self._rng.random(length), kind="stable")

    def rotation(self, dimension: int) -> FloatArray:
        """Return a random orthogonal matrix, shape (D, D), no direction of whose rows is preferred.

        It is the orthogonal factor of a matrix of normals, each the sum of twelve uniforms.
        """
        uniforms = self._rng.random((_UNIFORMS_PER_NORMAL, dimension, dimension))
        rows = np.full((dimension, dimension), -_UNIFORMS_PER_NORMAL / 2.0)
        for layer in uniforms:
            rows += layer
        orthonormalize(rows)
        return rows


@compiled
def orthonormalize(rows: FloatArray) -> None:
    """Make the rows of a matrix orthogonal and of length 1, each by what the ones before it leave of it."""
    for row in range(len(rows)):
        # Once more than in exact arithmetic, because the first time leaves rounding errors of the size of the loss.
        for _ in range(2):
            for other in range(row):
                product = 0.0
                for j in range(rows.shape[1]):
                    product += rows[row, j] * rows[other, j]
                for j in range(rows.shape[1]):
                    rows[row, j] -= product * rows[other, j]
        square = 0.0
        for j in range(rows.shape[1]):
            square += rows[row, j] * rows[row, j]
        length = math.sqrt(square)
        for j in range(rows.shape[1]):
            rows[row, j] /= length
