"""Eigenvectors of a covariance by Jacobi's rotations, in a fixed order: libraries have another order on another CPU."""

from __future__ import annotations

import math

import numpy as np

from de_gym.arrays import FloatArray
from de_gym.machine.compiling import inlined, shared

# Rotations converge quadratically; only rounding errors of a singular matrix would need more.
_MAX_SWEEPS = 12
# A correlation that counts as zero; it changes the eigenvalues by its square only.
_NEGLIGIBLE = 1e-9


@shared
def find_eigenvectors(covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvectors (D, D), in columns and in no particular order, and the eigenvalues (D,)."""
    matrix, axes = covariance.copy(), np.eye(covariance.shape[0])
    for _ in range(_MAX_SWEEPS):
        if not sweep(matrix, axes, _NEGLIGIBLE):
            break
    values = np.empty(matrix.shape[0])
    for j in range(matrix.shape[0]):
        values[j] = matrix[j, j]
    return np.ascontiguousarray(axes.T), values


@inlined
def sweep(matrix: FloatArray, axes: FloatArray, negligible: float) -> bool:
    """Rotate every pair of axes, one per row, so that their covariance vanishes; return whether any was turned.

    Args:
        matrix: Covariance along the axes, shape (D, D); overwritten.
        axes: Shape (D, D); overwritten.
        negligible: A correlation that is left as it is.
    """
    dimension, has_turned = matrix.shape[0], False
    for p in range(dimension - 1):
        for q in range(p + 1, dimension):
            limit = negligible * math.sqrt(matrix[p, p] * matrix[q, q])
            if abs(matrix[p, q]) > limit:
                has_turned = True
                ratio = (matrix[q, q] - matrix[p, p]) / (2.0 * matrix[p, q])
                tangent = math.copysign(1.0, ratio) / (abs(ratio) + math.sqrt(ratio * ratio + 1.0))
                cosine = 1.0 / math.sqrt(tangent * tangent + 1.0)
                _rotate_rows(matrix, p, q, cosine, tangent * cosine)
                _rotate_rows(matrix.T, p, q, cosine, tangent * cosine)
                _rotate_rows(axes, p, q, cosine, tangent * cosine)
    return has_turned


@inlined
def _rotate_rows(matrix: FloatArray, p: int, q: int, cosine: float, sine: float) -> None:
    for j in range(matrix.shape[1]):
        one, other = matrix[p, j], matrix[q, j]
        matrix[p, j], matrix[q, j] = cosine * one - sine * other, sine * one + cosine * other
