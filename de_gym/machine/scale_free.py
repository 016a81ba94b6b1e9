"""Features of a run that have no units: what observations of adaptive algorithms are made of."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from de_gym.machine.compiling import inlined
from de_gym.machine.lanes import WIDTH, choose, lane_of, larger_of, load_wide, pointer_to, smaller_of, spread

if TYPE_CHECKING:
    from de_gym.arrays import Float32Array, FloatArray
    from de_gym.machine.lanes import Pointer
    from de_gym.machine.ordering import Indices, Numbers

    Features: TypeAlias = Float32Array | Pointer[np.float32]


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
def write_feature(features: Features, feature: int, value: float) -> None:
    """Write one of a run's features (K,), clipped to the largest number."""
    features[feature] = np.float32(smaller_of(larger_of(value, -LARGEST_FEATURE), LARGEST_FEATURE))


@inlined
def log_ratio(number: float, other: float) -> float:
    """Return log10 of the ratio of two numbers that are not negative; 0 where neither says anything."""
    if not (math.isfinite(number) and math.isfinite(other)):
        return 0.0
    return math.log10(larger_of(number, _TINY)) - math.log10(larger_of(other, _TINY))


@inlined
def write_progress(features: Features, spent: float, run: Any, diversity: float, spread: float) -> None:
    """Write the first seven features of a run, which all adaptive algorithms share.

    Args:
        features: Receives them, shape (K,).
        spent: Share of its budget spent.
        run: Its success rates, its stagnation, and diversity and spread of the initial population.
        diversity: How far its individuals lie apart.
        spread: How far their values do.
    """
    write_feature(features, 0, spent)
    write_feature(features, 1, run.success_rate)
    write_feature(features, 2, run.recent_success_rate)
    write_feature(features, 3, run.lasting_success_rate)
    write_feature(features, 4, log_ratio(diversity, run.initial_diversity) / _POWERS_PER_UNIT)
    write_feature(features, 5, log_ratio(spread, run.initial_spread) / _POWERS_PER_UNIT)
    write_feature(features, 6, math.log10(1.0 + run.stagnation))


@inlined
def write_task(features: Features, first: int, dimension: int, max_evaluations: int) -> None:
    """Write the last two features, which say what the run was given, from position ``first`` on."""
    write_feature(features, first, math.log10(dimension / 10.0))
    write_feature(features, first + 1, math.log10(max_evaluations / (1e4 * dimension)))


@inlined
def average_success_rate(run: Any) -> None:
    """Move the averages of a run's success rate towards that of its last generation."""
    run.recent_success_rate += (1.0 - _KEPT_RECENTLY) * (run.success_rate - run.recent_success_rate)
    run.lasting_success_rate += (1.0 - _KEPT_LASTINGLY) * (run.success_rate - run.lasting_success_rate)


@inlined
def find_diversity(size: int, points: FloatArray, rows: Indices, lower: FloatArray, upper: FloatArray) -> float:
    """Return the standard deviation of coordinates in units of the box, root mean square over coordinates.

    Args:
        size: Number of individuals N.
        points: All rows of coordinates, one after another.
        rows: Row of each individual.
        lower: Lower bounds, shape (D,).
        upper: Upper bounds, shape (D,).
    """
    return measure_diversity(size, len(lower), pointer_to(points), rows, pointer_to(lower), pointer_to(upper))


@inlined
def measure_diversity(
    size: int, dimension: int, points: Pointer[float], rows: Indices, low: Pointer[float], high: Pointer[float]
) -> float:
    """Return what ``find_diversity`` does, given where the numbers begin."""
    total, num_blocks = 0.0, -(-dimension // WIDTH) if dimension >= WIDTH else 0
    for block in range(num_blocks):
        # The last block overlaps the one before, so that nothing behind the row is touched.
        first = smaller_of(block * WIDTH, dimension - WIDTH)
        origin = load_wide(points, rows[0] * dimension + first)
        sums, squares = spread(0.0), spread(0.0)
        for slot in range(size):
            offset = load_wide(points, rows[slot] * dimension + first) - origin
            sums, squares = sums + offset, squares + offset * offset
        mean, width = sums / float(size), load_wide(high, first) - load_wide(low, first)
        variance = squares / float(size) - mean * mean
        shares = choose(variance > 0.0, variance, 0.0) / (width * width)
        for j in range(block * WIDTH - first, WIDTH):
            total += lane_of(shares, j)
    for j in range(dimension if num_blocks == 0 else 0):
        # Offsets from one individual: squares of the coordinates themselves would cancel.
        origin_of_one, sum_of_one, square_of_one = points[rows[0] * dimension + j], 0.0, 0.0
        for slot in range(size):
            difference = points[rows[slot] * dimension + j] - origin_of_one
            sum_of_one += difference
            square_of_one += difference * difference
        mean_of_one, width_of_one = sum_of_one / size, high[j] - low[j]
        variance_of_one = larger_of(square_of_one / size - mean_of_one * mean_of_one, 0.0)
        total += variance_of_one / (width_of_one * width_of_one)
    return math.sqrt(total / dimension)


@inlined
def find_spread(size: int, fitness: Numbers, ranking: Indices) -> float:
    """Return the median value minus the best, given which value has which rank."""
    return fitness[ranking[size // 2]] - fitness[ranking[0]]
