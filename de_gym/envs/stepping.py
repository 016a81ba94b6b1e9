"""The compiled part of a step: breed, evaluate, select, summarise and judge R runs.

``advance_runs`` takes the arrays of a ``RunState`` one by one, because numba unpacks separate arrays faster than a
tuple of them; where problems are Python functions, that no longer matters.
"""

from __future__ import annotations

import numpy as np

from de_gym.arrays import BoolArray, Float32Array, FloatArray, IntArray, RunArray
from de_gym.envs.features import (
    View,
    fitness_histogram,
    mean_past_histogram,
    normalize_fitness,
    push_histogram,
    write_observations,
)
from de_gym.envs.process import (
    BEST_ERROR,
    BEST_FITNESS,
    EVALUATIONS,
    GENERATION,
    MEAN_CROSSOVER_RATE,
    MEAN_SCALE_FACTOR,
    judge_runs,
)
from de_gym.envs.shells import num_pbest, shrink
from de_gym.envs.state import RunState
from de_gym.machine.compiling import compiled, inlined
from de_gym.machine.ranked_generations import advance_by_rank, breed_by_rank, select_by_rank


@compiled
def summarize(state: RunState, normalized: FloatArray) -> None:
    """Derive histogram, best error and the scaled fitness (R, C) from the sorted fitness of R runs."""
    normalize_fitness(state.fitness, normalized)
    fitness_histogram(state.runs, normalized, state.histogram)
    _find_errors(state.runs, state.fitness)


@inlined
def _find_errors(runs: RunArray, fitness: FloatArray) -> None:
    """Write the error of the best individual of R runs."""
    for run in range(len(runs)):
        runs[run].best_error = max(fitness[run, 0] - runs[run].reference, 0.0)


@compiled
def observe_runs(state: RunState, codes: RunArray, parts: IntArray, observations: Float32Array) -> None:
    """Write the observations (R, O)."""
    normalized = np.empty(state.fitness.shape)
    normalize_fitness(state.fitness, normalized)
    _observe(state, normalized, codes, parts, observations)


@inlined
def _observe(
    state: RunState, normalized: FloatArray, codes: RunArray, parts: IntArray, observations: Float32Array
) -> None:
    """Write the observations (R, O), given the scaled fitness (R, C)."""
    mean_past = np.empty(state.histogram.shape)
    mean_past_histogram(state.runs, state.history, codes[0].has_window, mean_past)
    write_observations(parts, View(normalized, state.histogram, mean_past, codes[0].bin_scale), observations)


@inlined
def _count_pbest(runs: RunArray, codes: RunArray) -> IntArray:
    """Return how many individuals of each run lead, shape (R,)."""
    counts, settings = np.empty(len(runs), np.int64), codes[0]
    for run in range(len(runs)):
        share_spent = runs[run].evaluations / settings.max_evaluations
        counts[run] = num_pbest(settings.pbest_schedule, settings.pbest_constant, share_spent, runs[run].size)
    return counts


@inlined
def _finish_generation(state: RunState, codes: RunArray, normalized: FloatArray) -> None:
    """Count a generation whose trials have competed, and write the scaled fitness (R, C)."""
    runs = state.runs
    push_histogram(runs, state.history, state.histogram, codes[0].has_window)
    for run in range(len(runs)):
        runs[run].evaluations += runs[run].num_trials
        runs[run].generation += 1
    shrink(runs, state.fitness, codes[0].final_size, codes[0].max_evaluations)
    summarize(state, normalized)


@compiled
def breed_runs(
    state: RunState, actions: FloatArray, lower: FloatArray, upper: FloatArray, codes: RunArray
) -> tuple[FloatArray, IntArray]:
    """Return the trials of one generation, shape (T, D), and where each run's begin, shape (R + 1,)."""
    runs, total = state.runs, 0
    for run in range(len(runs)):
        total += runs[run].size
    trials, starts = np.empty((total, state.positions.shape[2])), np.empty(len(runs) + 1, np.int64)
    plan = actions, _count_pbest(runs, codes), lower, upper, codes[0].bound_repair
    breed_by_rank(runs, state.positions, state.order, *plan, starts, trials)
    return trials, starts


@compiled
def select_runs(
    state: RunState, starts: IntArray, trials: FloatArray, trial_fitness: FloatArray, codes: RunArray
) -> None:
    """Turn the state into that of one generation later, given the trials (T, D) and their values (T,)."""
    select_by_rank(state.runs, state.positions, state.order, state.fitness, starts, trials, trial_fitness)
    _finish_generation(state, codes, np.empty(state.fitness.shape))


@inlined
def _mean(numbers: FloatArray) -> float:
    """Return the mean, by four sums side by side: an addition has to wait for the one before it."""
    first = second = third = fourth = 0.0
    rest = len(numbers) % 4
    for index in range(rest):
        first += numbers[index]
    for index in range(rest, len(numbers), 4):
        first += numbers[index]
        second += numbers[index + 1]
        third += numbers[index + 2]
        fourth += numbers[index + 3]
    return (first + second + third + fourth) / len(numbers)


@compiled
def average_actions(runs: RunArray, actions: FloatArray, figures: FloatArray) -> None:
    """Write the means of F and CR of the living individuals of each run to ``figures``, given actions (R, 2C)."""
    for run in range(actions.shape[0]):
        half, size = actions.shape[1] // 2, runs[run].size
        figures[MEAN_SCALE_FACTOR, run] = _mean(actions[run, :size])
        figures[MEAN_CROSSOVER_RATE, run] = _mean(actions[run, half : half + size])


@compiled
def describe_runs(state: RunState, figures: FloatArray, counts: IntArray, best_positions: FloatArray) -> None:
    """Write what an ``Outcome`` says of the state."""
    runs, fitness, positions, order = state.runs, state.fitness, state.positions, state.order
    for run in range(len(runs)):
        figures[BEST_ERROR, run], figures[BEST_FITNESS, run] = runs[run].best_error, fitness[run, 0]
        counts[EVALUATIONS, run], counts[GENERATION, run] = runs[run].evaluations, runs[run].generation
        best = order[run, 0]
        for j in range(best_positions.shape[1]):
            best_positions[run, j] = positions[run, best, j]


@compiled
def advance_runs(
    runs: RunArray,
    positions: FloatArray,
    order: IntArray,
    fitness: FloatArray,
    history: FloatArray,
    histogram: FloatArray,
    actions: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    entries: IntArray,
    instructions: IntArray,
    data: FloatArray,
    codes: RunArray,
    parts: IntArray,
    figures: FloatArray,
    counts: IntArray,
    flags: BoolArray,
    best_positions: FloatArray,
    observations: Float32Array,
) -> tuple[int, int]:
    """Do a whole generation where the problems of all runs are compiled, and write the arrays of an ``Outcome``.

    Returns:
        What ``judge_runs`` returns.
    """
    state = RunState(runs, positions, order, fitness, history, histogram)
    error_before, normalized = np.empty(len(runs)), np.empty(fitness.shape)
    for run in range(len(runs)):
        error_before[run] = runs[run].best_error
    average_actions(runs, actions, figures)
    plan = actions, _count_pbest(runs, codes), lower, upper, codes[0].bound_repair
    advance_by_rank(runs, positions, order, fitness, *plan, entries, instructions, data)
    _finish_generation(state, codes, normalized)
    _observe(state, normalized, codes, parts, observations)
    describe_runs(state, figures, counts, best_positions)
    return judge_runs(runs, fitness[:, 0], error_before, codes, figures, flags)
