"""What a controller sees of a run of the two-population shell: numbers without units, for any size and budget."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from de_gym.arrays import Float32Array, FloatArray
from de_gym.evolution.top_and_front import FRONT, MAIN, TOP, TwoPopulations
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
    """Write the features (K,) of run ``index``."""
    run, dimension = state.runs[index], lower.shape[1]
    diversity = find_diversity(index, state, lower[index], upper[index])
    top_spread, front_spread = find_top_spread(index, state), find_front_spread(index, state)
    features[0] = run.evaluations / run.max_evaluations
    features[1] = run.success_rate
    features[2] = run.recent_success_rate
    features[3] = run.lasting_success_rate
    features[4] = _log_ratio(diversity, run.initial_diversity) / _POWERS_PER_UNIT
    features[5] = _log_ratio(top_spread, run.initial_spread) / _POWERS_PER_UNIT
    features[6] = math.log10(1.0 + run.stagnation)
    features[7] = state.memory[index, MAIN].mean()
    features[8] = _log_ratio(front_spread, top_spread)
    features[9] = math.log10(dimension / 10.0)
    features[10] = math.log10(run.max_evaluations / (1e4 * dimension))
    for k in range(len(features)):
        features[k] = min(max(features[k], np.float32(-LARGEST_FEATURE)), np.float32(LARGEST_FEATURE))


@inlined
def _log_ratio(number: float, other: float) -> float:
    """Return log10 of the ratio of two numbers that are not negative; 0 where neither says anything."""
    if not (math.isfinite(number) and math.isfinite(other)):
        return 0.0
    return math.log10(max(number, _TINY)) - math.log10(max(other, _TINY))


@inlined
def find_diversity(index: int, state: TwoPopulations, lower: FloatArray, upper: FloatArray) -> float:
    """Return the standard deviation of front's coordinates in units of the box, root mean square over coordinates."""
    size, dimension = state.runs[index].size, len(lower)
    rows, positions = state.rows[index, FRONT], state.positions[index, FRONT]
    # Offsets from one individual: squares of the coordinates themselves would cancel.
    origin, sums, squares = positions[rows[0]], np.zeros(dimension), np.zeros(dimension)
    for slot in range(size):
        point = positions[rows[slot]]
        for j in range(dimension):
            offset = point[j] - origin[j]
            sums[j] += offset
            squares[j] += offset * offset
    total = 0.0
    for j in range(dimension):
        variance = max(squares[j] / size - (sums[j] / size) ** 2, 0.0)
        total += variance / (upper[j] - lower[j]) ** 2
    return math.sqrt(total / dimension)


@inlined
def find_top_spread(index: int, state: TwoPopulations) -> float:
    """Return top's median value minus its best."""
    return float(state.fitness[index, TOP, state.runs[index].size // 2] - state.fitness[index, TOP, 0])


@inlined
def find_front_spread(index: int, state: TwoPopulations) -> float:
    """Return front's median value minus its best."""
    ranking, fitness = state.ranking[index], state.fitness[index, FRONT]
    return float(fitness[ranking[state.runs[index].size // 2]] - fitness[ranking[0]])
