"""Initial populations: points inside the box, and their order."""

from __future__ import annotations

import numpy as np

from de_gym.arrays import FloatArray


def scale_to_bounds(uniforms: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return points (R, N, D), uniform in each run's box, from uniforms (R, N, D) and bounds (R, D)."""
    low, high = lower[:, None, :], upper[:, None, :]
    return low + uniforms * (high - low)


def sort_best_first(positions: FloatArray, fitness: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return copies of positions (R, N, D) and their values (R, N), each run sorted by ascending value."""
    order = np.argsort(fitness, axis=1, kind="stable")
    return np.take_along_axis(positions, order[:, :, None], axis=1), np.take_along_axis(fitness, order, axis=1)
