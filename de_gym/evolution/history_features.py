"""What a controller sees of a run that remembers its successes (jSO): numbers without units, as of two populations."""

from __future__ import annotations

import numpy as np

from de_gym.arrays import Float32Array, FloatArray, IntArray
from de_gym.evolution.populations import Population, RunRecords
from de_gym.machine.compiling import compiled
from de_gym.machine.scale_free import (
    FIRST_SUCCESS_RATE,
    Feature,
    average_success_rate,
    find_diversity,
    find_spread,
    write_feature,
    write_progress,
    write_task,
)

FEATURES = (
    Feature("spent", "share of the budget spent"),
    Feature("success_rate", "trials of the last generation that took their parent's place; 0.5 before the first"),
    Feature("recent_success_rate", "its moving average that keeps 0.9"),
    Feature("lasting_success_rate", "its moving average that keeps 0.98"),
    Feature("diversity", "log10 of the individuals' standard deviation in the box, against the start, over 4"),
    Feature("spread", "log10 of the median minus the best value, against the start, over 4"),
    Feature("stagnation", "log10 of 1 + generations without a new best value"),
    Feature("crossover_memory", "mean of the memory of crossover rates"),
    Feature("scale_factor_memory", "mean of the memory of scale factors"),
    Feature("dimension", "log10 of the dimension over 10"),
    Feature("budget", "log10 of the budget over 10^4 times the dimension"),
)

# What features remember of each run from one generation to the next.
PROGRESS = np.dtype(
    [
        ("generation", "i8"),  # since the initial population
        ("num_trials", "i8"),  # of the last generation
        ("num_successes", "i8"),  # those that took their parent's place
        ("success_rate", "f8"),
        ("recent_success_rate", "f8"),
        ("lasting_success_rate", "f8"),
        ("best_fitness", "f8"),
        ("stagnation", "i8"),  # generations without a new best value
        ("initial_diversity", "f8"),
        ("initial_spread", "f8"),
    ],
    align=True,
)


def begin_progress(population: Population, lower: FloatArray, upper: FloatArray) -> RunRecords:
    """Return the records (R,) of runs whose first individuals were just evaluated, given bounds (R, D)."""
    progress = np.zeros(len(population.runs), PROGRESS)
    for name in ("success_rate", "recent_success_rate", "lasting_success_rate"):
        progress[name] = FIRST_SUCCESS_RATE
    progress["num_trials"] = 1
    _measure(population, lower, upper, progress)
    return progress


@compiled
def _measure(population: Population, lower: FloatArray, upper: FloatArray, progress: RunRecords) -> None:
    """Note what features compare with."""
    for run in range(len(progress)):
        size, order, fitness = population.runs[run].size, population.order[run], population.fitness[run]
        points = population.positions[run].reshape(-1)
        progress[run].initial_diversity = find_diversity(size, points, order, lower[run], upper[run])
        progress[run].initial_spread = find_spread(size, fitness, order)
        progress[run].best_fitness = fitness[order[0]]


@compiled
def note_progress(population: Population, starts: IntArray, progress: RunRecords) -> None:
    """Take note of the generation that the populations have just been through; runs without trials had none.

    Args:
        population: R runs.
        starts: Where the trials of each run began, shape (R + 1,).
        progress: Of type ``PROGRESS``, changed in place, shape (R,).
    """
    for index in range(len(progress)):
        run, size = progress[index], starts[index + 1] - starts[index]
        if size == 0:
            continue
        num_successes = 0
        for i in range(size):
            num_successes += population.improvements[index, i] >= 0.0
        best = population.fitness[index, population.order[index, 0]]
        run.generation += 1
        run.num_trials, run.num_successes, run.success_rate = size, num_successes, num_successes / size
        average_success_rate(run)
        run.stagnation = 0 if best < run.best_fitness else run.stagnation + 1
        run.best_fitness = best


def observe(
    population: Population, memory: FloatArray, progress: RunRecords, lower: FloatArray, upper: FloatArray
) -> Float32Array:
    """Return the ``FEATURES`` of R runs, shape (R, K).

    Args:
        population: R runs.
        memory: Mean F and mean CR of every entry that they remember, shape (R, 2, H).
        progress: Of type ``PROGRESS``, shape (R,).
        lower: Lower bounds, shape (R, D).
        upper: Upper bounds, shape (R, D).
    """
    features = np.empty((len(progress), len(FEATURES)), np.float32)
    _observe(population, memory, progress, lower, upper, features)
    return features


@compiled
def _observe(
    population: Population,
    memory: FloatArray,
    progress: RunRecords,
    lower: FloatArray,
    upper: FloatArray,
    features: Float32Array,
) -> None:
    dimension = lower.shape[1]
    # The last entry is never read.
    num_entries = max(memory.shape[2] - 1, 1)
    for run in range(len(progress)):
        shell_run, noted = population.runs[run], progress[run]
        size, order, points = shell_run.size, population.order[run], population.positions[run].reshape(-1)
        mean_factor, mean_rate = 0.0, 0.0
        for entry in range(num_entries):
            mean_factor += memory[run, 0, entry] / num_entries
            # A negative one stands for a rate of zero.
            mean_rate += max(memory[run, 1, entry], 0.0) / num_entries
        diversity = find_diversity(size, points, order, lower[run], upper[run])
        spread = find_spread(size, population.fitness[run], order)
        write_progress(features[run], shell_run.evaluations / shell_run.max_evaluations, noted, diversity, spread)
        write_feature(features[run], 7, mean_rate)
        write_feature(features[run], 8, mean_factor)
        write_task(features[run], 9, dimension, shell_run.max_evaluations)
