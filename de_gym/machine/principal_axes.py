"""The axes along which a population is spread, and crossover along them.

Covariance and axes are computed by plain loops in a fixed order: those of a linear algebra library may give other
bits on another machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from de_gym.machine.compiling import inlined, shared
from de_gym.machine.jacobi import sweep

if TYPE_CHECKING:
    from de_gym.machine.lanes import Pointer
    from de_gym.machine.ordering import Indices, Numbers

# Any orthonormal basis will do for crossover, and axes move slowly: a few sweeps from the last ones are enough.
_MAX_SWEEPS = 3
# Covariances that count as zero beside the variances of their coordinates.
_NEGLIGIBLE = 1e-6


@shared
def turn_axes(
    basis: Numbers,
    positions: Numbers,
    rows: Indices,
    count: int,
    dimension: int,
    low: Numbers,
    high: Numbers,
    memory: Numbers,
) -> None:
    """Turn the axes (D, D), one per row, towards the principal ones of some individuals, in units of the box.

    Args:
        basis: Overwritten; orthonormal before and after.
        positions: Shape (C, D).
        rows: Rows of the individuals.
        count: Number of individuals K.
        dimension: Number of coordinates D.
        low: Lower bounds, shape (D,).
        high: Upper bounds, shape (D,).
        memory: To work in, as long as ``turning_size`` says.
    """
    _find_covariance(basis, positions, rows, count, dimension, low, high, memory)
    for _ in range(_MAX_SWEEPS):
        if not sweep(memory, basis, dimension, _NEGLIGIBLE):
            return


@inlined
def turning_size(count: int, dimension: int) -> int:
    """Return how many numbers ``turn_axes`` needs to work in."""
    return (dimension + count + 2) * dimension


@inlined
def _find_covariance(
    basis: Numbers,
    positions: Numbers,
    rows: Indices,
    count: int,
    dimension: int,
    low: Numbers,
    high: Numbers,
    covariance: Numbers,
) -> None:
    """Write the covariance of the individuals' coordinates along the axes of the basis, shape (D, D)."""
    # Behind it: means, one individual in units of the box, and all individuals along the axes.
    mean = dimension * dimension
    scaled, along = mean + dimension, mean + 2 * dimension
    for entry in range(scaled):
        covariance[entry] = 0.0
    for k in range(count):
        row = rows[k] * dimension
        for j in range(dimension):
            covariance[scaled + j] = (positions[row + j] - low[j]) / (high[j] - low[j])
        for axis in range(dimension):
            coordinate = 0.0
            for j in range(dimension):
                coordinate += basis[axis * dimension + j] * covariance[scaled + j]
            covariance[along + k * dimension + axis] = coordinate
            covariance[mean + axis] += coordinate / count
    for k in range(count):
        row = along + k * dimension
        for axis in range(dimension):
            offset = covariance[row + axis] - covariance[mean + axis]
            for other in range(dimension):
                covariance[axis * dimension + other] += offset * (covariance[row + other] - covariance[mean + other])


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
