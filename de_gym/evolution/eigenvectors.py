"""Coordinates along the eigenvectors of a covariance, with sums in a fixed order so that no library changes a bit."""

from __future__ import annotations

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.machine.compiling import shared
from de_gym.machine.jacobi import find_eigenvectors


@shared
def learn_eigenvectors(positions: FloatArray, rows: IntArray) -> FloatArray:
    """Return an orthonormal basis (D, D), in columns, of eigenvectors of the covariance of the given rows.

    NOTE: CoBiDE's authors add a multiple of the identity to an ill-conditioned covariance, which changes no
    eigenvector and is left out.
    """
    num_rows, dimension = rows.shape[0], positions.shape[1]
    chosen = np.empty((num_rows, dimension))
    for j in range(dimension):
        total = 0.0
        for place in range(num_rows):
            total += positions[rows[place], j]
        for place in range(num_rows):
            chosen[place, j] = positions[rows[place], j] - total / num_rows
    covariance = np.zeros((dimension, dimension))
    for place in range(num_rows):
        for j in range(dimension):
            for k in range(dimension):
                covariance[j, k] += chosen[place, j] * chosen[place, k]
    return find_eigenvectors(covariance)[0]


@shared
def rotate_rows(points: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return ``points @ matrix``."""
    rotated = np.zeros((points.shape[0], matrix.shape[1]))
    for i in range(points.shape[0]):
        for k in range(points.shape[1]):
            factor = points[i, k]
            for j in range(matrix.shape[1]):
                rotated[i, j] += factor * matrix[k, j]
    return rotated
