"""Eigenvectors of a covariance by Jacobi's rotations, in a fixed order: libraries have another order on another CPU."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from de_gym.arrays import FloatArray
from de_gym.machine.compiling import inlined, shared
from de_gym.machine.lanes import pointer_to

if TYPE_CHECKING:
    from de_gym.machine.ordering import Numbers

# Rotations converge quadratically; only rounding errors of a singular matrix would need more.
_MAX_SWEEPS = 12
# A correlation that counts as zero; it changes the eigenvalues by its square only.
_NEGLIGIBLE = 1e-9


@shared
def find_eigenvectors(covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvectors (D, D), in columns and in no particular order, and the eigenvalues (D,)."""
    matrix, axes = covariance.copy(), np.eye(covariance.shape[0])
    for _ in range(_MAX_SWEEPS):
        if not sweep(pointer_to(matrix), pointer_to(axes), matrix.shape[0], _NEGLIGIBLE):
            break
    values = np.empty(matrix.shape[0])
    for j in range(matrix.shape[0]):
        values[j] = matrix[j, j]
    return np.ascontiguousarray(axes.T), values


@inlined
def sweep(matrix: Numbers, axes: Numbers, dimension: int, negligible: float) -> bool:
    """Rotate every pair of axes, one per row, so that their covariance vanishes; return whether any was turned.

    Args:
        matrix: Covariance along the axes, shape (D, D), its numbers one after another; overwritten.
        axes: The same of the axes; overwritten.
        dimension: Number of axes D.
        negligible: A correlation that is left as it is.
    """
    has_turned = False
    for p in range(dimension - 1):
        for q in range(p + 1, dimension):
            row_p, row_q = p * dimension, q * dimension
            variance_p, variance_q, covariance = matrix[row_p + p], matrix[row_q + q], matrix[row_p + q]
            if abs(covariance) > negligible * math.sqrt(variance_p * variance_q):
                has_turned = True
                ratio = (variance_q - variance_p) / (2.0 * covariance)
                tangent = math.copysign(1.0, ratio) / (abs(ratio) + math.sqrt(ratio * ratio + 1.0))
                cosine = 1.0 / math.sqrt(tangent * tangent + 1.0)
                _rotate(matrix, row_p, row_q, 1, dimension, cosine, tangent * cosine)
                _rotate(matrix, p, q, dimension, dimension, cosine, tangent * cosine)
                _rotate(axes, row_p, row_q, 1, dimension, cosine, tangent * cosine)
    return has_turned


@inlined
def _rotate(matrix: Numbers, p: int, q: int, step: int, count: int, cosine: float, sine: float) -> None:
    """Rotate two rows, or columns, that begin at p and q."""
    for j in range(0, count * step, step):
        one, other = matrix[p + j], matrix[q + j]
        matrix[p + j], matrix[q + j] = cosine * one - sine * other, sine * one + cosine * other
