"""Initial populations: points inside the box."""

from __future__ import annotations

from de_gym.arrays import FloatArray


def scale_to_bounds(uniforms: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return points (R, N, D), uniform in each run's box, from uniforms (R, N, D) and bounds (R, D)."""
    low, high = lower[:, None, :], upper[:, None, :]
    return low + uniforms * (high - low)
