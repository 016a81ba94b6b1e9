"""Features of a run that have no units: what observations of adaptive algorithms are made of."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from de_gym.arrays import Float32Array, FloatArray
from de_gym.machine.compiling import inlined

if TYPE_CHECKING:
    from de_gym.arrays import IntArray
    from de_gym.machine.lanes import Pointer

    # Anything with numbers one after another: a flat array, or an address.
    Numbers: TypeAlias = FloatArray | Pointer[float]
    Indices: TypeAlias = IntArray | Pointer[int]


class Feature(NamedTuple):
    """One number of an observation, always within ``-LARGEST_FEATURE`` and ``LARGEST_FEATURE``.

    Attributes:
        name: What it is called.
        meaning: How it is computed.
    """

    name: str
    meaning: str


LARGEST_FEATURE = 3.0

# Populations contract by a dozen powers of ten.
_POWERS_PER_UNIT = 4.0

# What the moving averages of the success rate keep of their last value.
_KEPT_RECENTLY, _KEPT_LASTINGLY = 0.9, 0.98
# The success rate before the first generation.
FIRST_SUCCESS_RATE = 0.5

# Stands for zero where a logarithm is taken.
_TINY = 1e-300


@inlined
def write_feature(features: Float32Array, index: int, feature: int, value: float) -> None:
    """Write a number of run ``index``, clipped to the largest one."""
    features[index, feature] = min(max(value, -LARGEST_FEATURE), LARGEST_FEATURE)


@inlined
def log_ratio(number: float, other: float) -> float:
    """Return log10 of the ratio of two numbers that are not negative; 0 where neither says anything."""
    if not (math.isfinite(number) and math.isfinite(other)):
        return 0.0
    return math.log10(max(number, _TINY)) - math.log10(max(other, _TINY))


@inlined
def write_progress(features: Float32Array, index: int, spent: float, run: Any, diversity: float, spread: float) -> None:
    """Write the first seven features of run ``index``, which all adaptive algorithms share.

    Args:
        features: Receives them, shape (R, K).
        index: Which run.
        spent: Share of its budget spent.
        run: Its success rates, its stagnation, and diversity and spread of the initial population.
        diversity: How far its individuals lie apart.
        spread: How far their values do.
    """
    write_feature(features, index, 0, spent)
    write_feature(features, index, 1, run.success_rate)
    write_feature(features, index, 2, run.recent_success_rate)
    write_feature(features, index, 3, run.lasting_success_rate)
    write_feature(features, index, 4, log_ratio(diversity, run.initial_diversity) / _POWERS_PER_UNIT)
    write_feature(features, index, 5, log_ratio(spread, run.initial_spread) / _POWERS_PER_UNIT)
    write_feature(features, index, 6, math.log10(1.0 + run.stagnation))


@inlined
def write_task(features: Float32Array, index: int, first: int, dimension: int, max_evaluations: int) -> None:
    """Write the last two features, which say what the run was given, from position ``first`` on."""
    write_feature(features, index, first, math.log10(dimension / 10.0))
    write_feature(features, index, first + 1, math.log10(max_evaluations / (1e4 * dimension)))


@inlined
def average_success_rate(run: Any) -> None:
    """Move the averages of a run's success rate towards that of its last generation."""
    run.recent_success_rate += (1.0 - _KEPT_RECENTLY) * (run.success_rate - run.recent_success_rate)
    run.lasting_success_rate += (1.0 - _KEPT_LASTINGLY) * (run.success_rate - run.lasting_success_rate)


@inlined
def find_diversity(size: int, points: Numbers, rows: Indices, lower: FloatArray, upper: FloatArray) -> float:
    """Return the standard deviation of coordinates in units of the box, root mean square over coordinates.

    Args:
        size: Number of individuals N.
        points: All rows of coordinates, one after another.
        rows: Row of each individual.
        lower: Lower bounds, shape (D,).
        upper: Upper bounds, shape (D,).
    """
    dimension, total = len(lower), 0.0
    sums, squares = np.zeros(dimension), np.zeros(dimension)
    # Offsets from one individual: squares of the coordinates themselves would cancel.
    origin = rows[0] * dimension
    for slot in range(size):
        row = rows[slot] * dimension
        for j in range(dimension):
            offset = points[row + j] - points[origin + j]
            sums[j] += offset
            squares[j] += offset * offset
    for j in range(dimension):
        variance = max(squares[j] / size - (sums[j] / size) ** 2, 0.0)
        total += variance / (upper[j] - lower[j]) ** 2
    return math.sqrt(total / dimension)


@inlined
def find_spread(size: int, fitness: Numbers, ranking: Indices) -> float:
    """Return the median value minus the best, given which value has which rank."""
    return fitness[ranking[size // 2]] - fitness[ranking[0]]
