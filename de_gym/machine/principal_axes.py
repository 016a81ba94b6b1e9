"""The axes along which a population is spread, and crossover along them.

Covariance and axes are computed by plain loops in a fixed order: those of a linear algebra library may give other
bits on another machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.machine.compiling import inlined, shared
from de_gym.machine.jacobi import sweep

if TYPE_CHECKING:
    from de_gym.machine.lanes import Pointer

# Any orthonormal basis will do for crossover, and axes move slowly: a few sweeps from the last ones are enough.
_MAX_SWEEPS = 3
# Covariances that count as zero beside the variances of their coordinates.
_NEGLIGIBLE = 1e-6


@shared
def turn_axes(basis: FloatArray, positions: FloatArray, rows: IntArray, lower: FloatArray, upper: FloatArray) -> None:
    """Turn the axes (D, D), one per row, towards the principal ones of some individuals, in units of the box.

    Args:
        basis: Overwritten; orthonormal before and after.
        positions: Shape (C, D).
        rows: Rows of the individuals, shape (K,).
        lower: Lower bounds, shape (D,).
        upper: Upper bounds, shape (D,).
    """
    covariance = _find_covariance(basis, positions, rows, lower, upper)
    for _ in range(_MAX_SWEEPS):
        if not sweep(covariance, basis, _NEGLIGIBLE):
            return


@inlined
def _find_covariance(
    basis: FloatArray, positions: FloatArray, rows: IntArray, lower: FloatArray, upper: FloatArray
) -> FloatArray:
    """Return the covariance of the individuals' coordinates along the axes of the basis, shape (D, D)."""
    dimension, count = basis.shape[0], len(rows)
    scaled, along, mean = np.empty(dimension), np.empty((count, dimension)), np.zeros(dimension)
    for k in range(count):
        for j in range(dimension):
            scaled[j] = (positions[rows[k], j] - lower[j]) / (upper[j] - lower[j])
        for axis in range(dimension):
            coordinate = 0.0
            for j in range(dimension):
                coordinate += basis[axis, j] * scaled[j]
            along[k, axis] = coordinate
            mean[axis] += coordinate / count
    covariance = np.zeros((dimension, dimension))
    for k in range(count):
        for axis in range(dimension):
            offset = along[k, axis] - mean[axis]
            for other in range(dimension):
                covariance[axis, other] += offset * (along[k, other] - mean[other])
    return covariance


@inlined
def cross_along_axes(
    move: Pointer[float], axes: Pointer[float], dimension: int, uniforms: Pointer[float], drawn: int, rate: float
) -> None:
    """Write those parts of a move that lie along the axes whose uniform does not exceed the rate.

    Args:
        move: The move, followed by as much memory that receives its parts.
        axes: One axis per row, shape (D, D).
        dimension: Number of coordinates D.
        uniforms: The uniform of the first axis is ``uniforms[drawn]``.
        drawn: See there.
        rate: Crossover rate.
    """
    for j in range(dimension):
        move[dimension + j] = 0.0
    for axis in range(dimension):
        if uniforms[drawn + axis] <= rate:
            length = 0.0
            for j in range(dimension):
                length += axes[axis * dimension + j] * move[j]
            for j in range(dimension):
                move[dimension + j] += length * axes[axis * dimension + j]
