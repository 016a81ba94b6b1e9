"""What a controller sees of a run of the two-population shell: numbers without units, for any size and budget."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from de_gym.arrays import Float32Array, FloatArray
from de_gym.evolution.top_and_front import MAIN, MEMORY_SIZE, Run, RunPlaces, TwoPopulations, locate_run
from de_gym.machine.compiling import inlined, shared


class Feature(NamedTuple):
    """One number of an observation, always within ``-LARGEST_FEATURE`` and ``LARGEST_FEATURE``.

    Attributes:
        name: What it is called.
        meaning: How it is computed.
    """

    name: str
    meaning: str


FEATURES = (
    Feature("spent", "share of the budget spent"),
    Feature("success_rate", "successes per individual in the last generation; 0.5 before the first"),
    Feature("recent_success_rate", "its moving average that keeps 0.9"),
    Feature("lasting_success_rate", "its moving average that keeps 0.98"),
    Feature("diversity", "log10 of front's standard deviation in the box, against the start, over 4"),
    Feature("spread", "log10 of top's median minus best value, against the start, over 4"),
    Feature("stagnation", "log10 of 1 + generations without a new best value"),
    Feature("crossover_memory", "mean of the main memory of crossover rates"),
    Feature("front_to_top", "log10 of front's median minus best value, against top's"),
    Feature("dimension", "log10 of the dimension over 10"),
    Feature("budget", "log10 of the budget over 10^4 times the dimension"),
)

LARGEST_FEATURE = 3.0

# Populations contract by a dozen powers of ten.
_POWERS_PER_UNIT = 4.0

# Stands for zero where a logarithm is taken.
_TINY = 1e-300


@shared
def observe_run(
    index: int, state: TwoPopulations, lower: FloatArray, upper: FloatArray, features: Float32Array
) -> None:
    """Write the features (R, K) of run ``index``."""
    run, places, dimension = state.runs[index], locate_run(index, state), lower.shape[1]
    top_spread, front_spread = find_top_spread(run, places), find_front_spread(run, places)
    memory = 0.0
    for slot in range(MEMORY_SIZE):
        memory += places.memory[MAIN * MEMORY_SIZE + slot] / MEMORY_SIZE
    _write(features, index, 0, run.evaluations / run.max_evaluations)
    _write(features, index, 1, run.success_rate)
    _write(features, index, 2, run.recent_success_rate)
    _write(features, index, 3, run.lasting_success_rate)
    diversity = find_diversity(index, run, places, lower, upper)
    _write(features, index, 4, _log_ratio(diversity, run.initial_diversity) / _POWERS_PER_UNIT)
    _write(features, index, 5, _log_ratio(top_spread, run.initial_spread) / _POWERS_PER_UNIT)
    _write(features, index, 6, math.log10(1.0 + run.stagnation))
    _write(features, index, 7, memory)
    _write(features, index, 8, _log_ratio(front_spread, top_spread))
    _write(features, index, 9, math.log10(dimension / 10.0))
    _write(features, index, 10, math.log10(run.max_evaluations / (1e4 * dimension)))


@inlined
def _write(features: Float32Array, index: int, feature: int, value: float) -> None:
    features[index, feature] = min(max(value, -LARGEST_FEATURE), LARGEST_FEATURE)


@inlined
def _log_ratio(number: float, other: float) -> float:
    """Return log10 of the ratio of two numbers that are not negative; 0 where neither says anything."""
    if not (math.isfinite(number) and math.isfinite(other)):
        return 0.0
    return math.log10(max(number, _TINY)) - math.log10(max(other, _TINY))


@inlined
def find_diversity(index: int, run: Run, places: RunPlaces, lower: FloatArray, upper: FloatArray) -> float:
    """Return the standard deviation of front's coordinates in units of the box, root mean square over coordinates."""
    size, dimension, total = run.size, places.dimension, 0.0
    sums, squares = np.zeros(dimension), np.zeros(dimension)
    # Offsets from one individual: squares of the coordinates themselves would cancel.
    origin = places.front_rows[0] * dimension
    for slot in range(size):
        row = places.front_rows[slot] * dimension
        for j in range(dimension):
            offset = places.front[row + j] - places.front[origin + j]
            sums[j] += offset
            squares[j] += offset * offset
    for j in range(dimension):
        variance = max(squares[j] / size - (sums[j] / size) ** 2, 0.0)
        total += variance / (upper[index, j] - lower[index, j]) ** 2
    return math.sqrt(total / dimension)


@inlined
def find_top_spread(run: Run, places: RunPlaces) -> float:
    """Return top's median value minus its best."""
    return places.top_fitness[run.size // 2] - places.top_fitness[0]


@inlined
def find_front_spread(run: Run, places: RunPlaces) -> float:
    """Return front's median value minus its best."""
    ranking, fitness = places.ranking, places.front_fitness
    return fitness[ranking[run.size // 2]] - fitness[ranking[0]]
