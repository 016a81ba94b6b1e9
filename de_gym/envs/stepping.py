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
from de_gym.machine.breeding import Workspace, breed_by_rank, make_workspace
from de_gym.machine.compiling import compiled, inlined
from de_gym.machine.kernel import evaluate_programs
from de_gym.machine.selection import select_by_rank

# Runs advanced together: few, so that they stay in the processor's inner caches from breeding to selection, and
# enough that the code of each of these steps is not fetched anew for every run.
_RUNS_AT_ONCE = 16


@compiled
def summarize(state: RunState, normalized: FloatArray) -> None:
    """Derive histogram, best error and the scaled fitness (R, C) from the sorted fitness of R runs."""
    normalize_fitness(state.fitness, normalized)
    fitness_histogram(state.runs, normalized, state.histogram)
    for run in range(len(state.runs)):
        state.runs[run].best_error = max(state.fitness[run, 0] - state.runs[run].reference, 0.0)


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
def _breed(
    state: RunState,
    actions: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    codes: RunArray,
    workspace: Workspace,
    starts: IntArray,
    trials: FloatArray,
) -> None:
    """Write the trials (T, D) and where each run's begin."""
    runs, settings = state.runs, codes[0]
    counts = np.empty(len(runs), np.int64)
    for run in range(len(runs)):
        share_spent = runs[run].evaluations / settings.max_evaluations
        counts[run] = num_pbest(settings.pbest_schedule, settings.pbest_constant, share_spent, runs[run].size)
    parents, repair = (state.runs, state.positions, state.order), settings.bound_repair
    breed_by_rank(*parents, actions, counts, lower, upper, repair, workspace, starts, trials)


@inlined
def _select(
    state: RunState,
    starts: IntArray,
    trials: FloatArray,
    trial_fitness: FloatArray,
    codes: RunArray,
    normalized: FloatArray,
) -> None:
    """Turn the state into that of one generation later, and write the scaled fitness (R, C)."""
    push_histogram(state.runs, state.history, state.histogram, codes[0].has_window)
    select_by_rank(state.runs, state.positions, state.order, state.fitness, starts, trials, trial_fitness)
    for run in range(len(state.runs)):
        state.runs[run].evaluations += starts[run + 1] - starts[run]
        state.runs[run].generation += 1
    shrink(state.runs, state.fitness, codes[0].final_size, codes[0].max_evaluations)
    summarize(state, normalized)


@compiled
def breed_runs(
    state: RunState, actions: FloatArray, lower: FloatArray, upper: FloatArray, codes: RunArray
) -> tuple[FloatArray, IntArray]:
    """Return the trials of one generation, shape (T, D), and where each run's begin, shape (R + 1,)."""
    num_runs, capacity = state.order.shape
    dimension, total = state.positions.shape[2], 0
    for run in range(num_runs):
        total += state.runs[run].size
    trials, starts = np.empty((total, dimension)), np.empty(num_runs + 1, np.int64)
    workspace = make_workspace(capacity, dimension, codes[0].bound_repair)
    _breed(state, actions, lower, upper, codes, workspace, starts, trials)
    return trials, starts


@compiled
def select_runs(
    state: RunState, starts: IntArray, trials: FloatArray, trial_fitness: FloatArray, codes: RunArray
) -> None:
    """Turn the state into that of one generation later, given the trials (T, D) and their values (T,)."""
    _select(state, starts, trials, trial_fitness, codes, np.empty(state.fitness.shape))


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
    for run in range(len(state.runs)):
        figures[BEST_ERROR, run], figures[BEST_FITNESS, run] = state.runs[run].best_error, state.fitness[run, 0]
        counts[EVALUATIONS, run], counts[GENERATION, run] = state.runs[run].evaluations, state.runs[run].generation
        for j in range(best_positions.shape[1]):
            best_positions[run, j] = state.positions[run, state.order[run, 0], j]


@inlined
def _slice_runs(state: RunState, first: int, end: int) -> RunState:
    """Return the runs from ``first`` up to ``end``, which share their memory with the state."""
    return RunState(
        state.runs[first:end],
        state.positions[first:end],
        state.order[first:end],
        state.fitness[first:end],
        state.history[first:end],
        state.histogram[first:end],
    )


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
    (num_runs, capacity), dimension = order.shape, positions.shape[2]
    num_at_once = min(num_runs, _RUNS_AT_ONCE)
    trials, values = np.empty((num_at_once * capacity, dimension)), np.empty(num_at_once * capacity)
    points, fitness_of_points = trials.reshape(1, -1, dimension), values.reshape(1, -1)
    scaled, all_starts = np.empty((num_at_once, capacity)), np.empty(num_at_once + 1, np.int64)
    workspace = make_workspace(capacity, dimension, codes[0].bound_repair)
    error_before = np.empty(num_runs)
    for run in range(num_runs):
        error_before[run] = runs[run].best_error
    for first in range(0, num_runs, num_at_once):
        end = min(first + num_at_once, num_runs)
        part, low, high = _slice_runs(state, first, end), lower[first:end], upper[first:end]
        starts, normalized = all_starts[: end - first + 1], scaled[: end - first]
        average_actions(part.runs, actions[first:end], figures[:, first:end])
        _breed(part, actions[first:end], low, high, codes, workspace, starts, trials)
        # With three axes, because the kernel is compiled anew for each number of them.
        evaluate_programs(points, starts, entries[first:end], instructions, data, fitness_of_points)
        _select(part, starts, trials, values, codes, normalized)
        _observe(part, normalized, codes, parts, observations[first:end])
        describe_runs(part, figures[:, first:end], counts[:, first:end], best_positions[first:end])
    return judge_runs(runs, fitness[:, 0], error_before, codes, figures, flags)
