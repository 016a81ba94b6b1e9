"""Points for whoever asks while the values of a generation are still missing."""

from __future__ import annotations

import numpy as np

from de_gym.arrays import FloatArray
from de_gym.optimizers import Optimizer

# DE/current-to-pbest/1/bin with constants that are no surprise on any problem.
_BEST_FRACTION, _FEWEST_BEST, _LEAST_FACTOR, _MOST_FACTOR, _CROSSOVER_RATE = 0.15, 2, 0.4, 0.9, 0.9
_SMALLEST_POPULATION = 4


def extra_point(optimizer: Optimizer, box: tuple[FloatArray, FloatArray], rng: np.random.Generator) -> FloatArray:
    """Return a trial (d,) bred from the first run's population, or a random point while there is none."""
    lower, upper = box
    population = optimizer.population
    if population is None or len(population[1][0]) < _SMALLEST_POPULATION:
        return rng.uniform(lower, upper)
    positions, fitness = population[0][0], population[1][0]
    num_best = max(_FEWEST_BEST, round(_BEST_FRACTION * len(fitness)))
    parent, first, second = positions[rng.choice(len(fitness), 3, replace=False)]
    leader = positions[rng.choice(np.argsort(fitness, kind="stable")[:num_best])]
    factor = rng.uniform(_LEAST_FACTOR, _MOST_FACTOR)
    donor = parent + factor * (leader - parent) + factor * (first - second)
    donor = np.where(donor < lower, 0.5 * (lower + parent), np.where(donor > upper, 0.5 * (upper + parent), donor))
    crosses = rng.random(len(lower)) < _CROSSOVER_RATE
    crosses[rng.integers(len(lower))] = True
    trial: FloatArray = np.where(crosses, donor, parent)
    return trial
