"""Random numbers by position: draws that few trials need, without a stream that all would have to fill.

A number is SplitMix64 of a base and its position, so that none depends on whether another was drawn. The base belongs
to a run, a generation and a purpose; it is hashed apart from the seeds of ``machine/streams.py``.
"""

from __future__ import annotations

import math

import numpy as np

from de_gym.machine.compiling import inlined, shared
from de_gym.machine.lanes import larger_of, smaller_of, stay_apart
from de_gym.machine.streams import split_mix

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SHIFT_11 = np.uint64(11)
_STEP = 2.0**-53

# No loop is endless: after this many draws, far more than any control needs, a number is taken without.
MAX_REDRAWS = 100


@inlined
def find_base(key: np.uint64, generation: int, purpose: int) -> np.uint64:
    """Return the base of the numbers for one purpose, any integer from 0, in one generation of a run."""
    counter = split_mix(key + _GOLDEN * np.uint64(generation + 1))
    return split_mix(counter - _GOLDEN * np.uint64(purpose + 1))


@inlined
def uniform_at(base: np.uint64, position: int) -> float:
    """Return a uniform in [0, 1), a multiple of 2^-53."""
    bits = split_mix(base + _GOLDEN * np.uint64(position + 1))
    return np.float64(bits >> _SHIFT_11) * _STEP


@inlined
def normal_at(base: np.uint64, position: int) -> float:
    """Return a standard normal, from the uniforms at twice the position and at the next."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform_at(base, 2 * position)))
    return radius * math.cos(2.0 * math.pi * uniform_at(base, 2 * position + 1))


@inlined
def cauchy_at(base: np.uint64, position: int) -> float:
    """Return a standard Cauchy number."""
    return math.tan(math.pi * (uniform_at(base, position) - 0.5))


@shared
def redraw_normal(base: np.uint64, index: int, mean: float, spread: float) -> float:
    """Return a normal number in [0, 1] for trial ``index``, drawn until it lies there."""
    stay_apart()
    for attempt in range(MAX_REDRAWS):
        number = mean + spread * normal_at(base, index * MAX_REDRAWS + attempt)
        if 0.0 <= number <= 1.0:
            return number
    return smaller_of(larger_of(mean, 0.0), 1.0)


@shared
def redraw_cauchy(base: np.uint64, index: int, mean: float, spread: float) -> float:
    """Return a Cauchy number in (0, 1] for trial ``index``: drawn until it is positive, then at most 1."""
    stay_apart()
    for attempt in range(MAX_REDRAWS):
        number = mean + spread * cauchy_at(base, index * MAX_REDRAWS + attempt)
        if number > 0.0:
            return smaller_of(number, 1.0)
    return mean
