"""Coordinates along the eigenvectors of a covariance, with sums in a fixed order so that no library changes a bit."""

from __future__ import annotations

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.machine.compiling import compiled
from de_gym.machine.jacobi import find_eigenvectors


@compiled
def learn_eigenvectors(positions: FloatArray, rows: IntArray) -> FloatArray:
    """Return an orthonormal basis (D, D), in columns, of eigenvectors of the covariance of the given rows.

    NOTE: CoBiDE's authors add a multiple of the identity to an ill-conditioned covariance, which changes no
    eigenvector and is left out.
    """
    chosen = positions[rows]
    dimension = chosen.shape[1]
    for j in range(dimension):
        chosen[:, j] -= chosen[:, j].mean()
    covariance = np.zeros((dimension, dimension))
    for row in range(chosen.shape[0]):
        for j in range(dimension):
            covariance[j] += chosen[row, j] * chosen[row]
    return find_eigenvectors(covariance)[0]


@compiled
def rotate_rows(points: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return ``points @ matrix``."""
    rotated = np.zeros((points.shape[0], matrix.shape[1]))
    for i in range(points.shape[0]):
        for k in range(points.shape[1]):
            factor = points[i, k]
            for j in range(matrix.shape[1]):
                rotated[i, j] += factor * matrix[k, j]
    return rotated
