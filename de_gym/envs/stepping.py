"""The compiled part of a step: breed, evaluate, select, summarise and judge R runs.

``advance_runs`` takes the arrays of a ``RunState`` one by one, because numba unpacks separate arrays faster than a
tuple of them; where problems are Python functions, that no longer matters.
"""

from __future__ import annotations

import numpy as np

from de_gym.arrays import BoolArray, Float32Array, FloatArray, IntArray
from de_gym.compiling import compiled, inlined
from de_gym.envs.observations import (
    Features,
    fitness_histogram,
    mean_past_histogram,
    normalize_fitness,
    push_histogram,
    write_observations,
)
from de_gym.envs.pbest import num_pbest
from de_gym.envs.rewards import reward
from de_gym.envs.run_state import RunState, slice_runs
from de_gym.evolution import KeyArray, Workspace, breed_all, make_rows, make_workspace, select_better
from de_gym.problems.kernel import evaluate_programs

# Runs advanced together: few, so that they stay in the processor's inner caches from breeding to selection, and
# enough that the code of each of these steps is not fetched anew for every run.
_RUNS_AT_ONCE = 16

# Rows of the figures that describe a generation; of the last two, 1 says yes and 0 no.
REWARD, SUCCESS_RATE, MEAN_SCALE_FACTOR, MEAN_CROSSOVER_RATE, TERMINATED, TRUNCATED = range(6)
NUM_FIGURES = 6


@compiled
def summarize(
    fitness: FloatArray, histogram: FloatArray, best_error: FloatArray, reference: FloatArray, normalized: FloatArray
) -> None:
    """Derive histogram (R, b), best error (R,) and scaled fitness (R, N) from sorted fitness (R, N)."""
    normalize_fitness(fitness, normalized)
    fitness_histogram(normalized, histogram)
    for run in range(len(reference)):
        best_error[run] = max(fitness[run, 0] - reference[run], 0.0)


@compiled
def observe_runs(
    state: RunState, has_window: bool, parts: IntArray, bin_scale: float, observations: Float32Array
) -> None:
    """Write the observations (R, O)."""
    normalized = np.empty(state.fitness.shape)
    normalize_fitness(state.fitness, normalized)
    _observe(state, normalized, has_window, parts, bin_scale, observations)


@inlined
def _observe(
    state: RunState,
    normalized: FloatArray,
    has_window: bool,
    parts: IntArray,
    bin_scale: float,
    observations: Float32Array,
) -> None:
    """Write the observations (R, O), given the scaled fitness (R, N)."""
    mean_past = np.empty(state.histogram.shape)
    mean_past_histogram(state.history, state.generation, has_window, mean_past)
    write_observations(parts, Features(normalized, state.histogram, mean_past, bin_scale), observations)


@inlined
def _breed(
    state: RunState,
    actions: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    repair: int,
    pbest_schedule: int,
    pbest_constant: float,
    max_evaluations: int,
    parents: FloatArray,
    workspace: Workspace,
    trials: FloatArray,
) -> None:
    """Copy the positions to ``parents`` and write the trials, both arrays of ``make_rows``."""
    numbers = state.positions.reshape(-1)
    for index in range(numbers.shape[0]):
        parents[index] = numbers[index]
    num_runs, size = state.fitness.shape
    counts = np.empty(num_runs, np.int64)
    for run in range(num_runs):
        counts[run] = num_pbest(pbest_schedule, pbest_constant, state.evaluations[run] / max_evaluations, size)
    breed_all(parents, actions, counts, state.keys, state.generation, lower, upper, repair, workspace, trials)


@inlined
def _absorb(
    state: RunState,
    parents: FloatArray,
    trials: FloatArray,
    trial_fitness: FloatArray,
    has_window: bool,
    workspace: Workspace,
    normalized: FloatArray,
) -> None:
    """Turn the state into that of one generation later; arguments as in ``select_better`` and ``summarize``."""
    push_histogram(state.history, state.generation, state.histogram, has_window)
    select_better(parents, trials, trial_fitness, state.positions, state.fitness, state.num_successes, workspace)
    for run in range(len(state.generation)):
        state.evaluations[run] += state.fitness.shape[1]
        state.generation[run] += 1
    summarize(state.fitness, state.histogram, state.best_error, state.reference, normalized)


@compiled
def breed_runs(
    state: RunState,
    actions: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    repair: int,
    pbest_schedule: int,
    pbest_constant: float,
    max_evaluations: int,
) -> FloatArray:
    """Return the trials of one generation, shape (R, N, D)."""
    num_runs, size, dimension = shape = state.positions.shape
    parents, trials = make_rows(num_runs * size, dimension), make_rows(num_runs * size, dimension)
    workspace = make_workspace(size, dimension, repair)
    schedule = pbest_schedule, pbest_constant, max_evaluations
    _breed(state, actions, lower, upper, repair, *schedule, parents, workspace, trials)
    return trials[: num_runs * size * dimension].reshape(shape)


@compiled
def absorb_runs(state: RunState, trials: FloatArray, trial_fitness: FloatArray, has_window: bool) -> None:
    """Turn the state into that of one generation later, given the trials (R, N, D) and their values (R, N)."""
    _, size, dimension = state.positions.shape
    parents, workspace = state.positions.copy().reshape(-1), make_workspace(size, dimension, 0)
    normalized = np.empty(state.fitness.shape)
    _absorb(state, parents, trials.reshape(-1), trial_fitness, has_window, workspace, normalized)


@compiled
def has_nan(actions: FloatArray) -> bool:
    """Return whether one of the actions is not a number."""
    found = False
    entries = actions.reshape(-1)
    for index in range(entries.shape[0]):
        found |= entries[index] != entries[index]
    return found


@compiled
def clip_actions(actions: FloatArray, clipped: FloatArray, figures: FloatArray) -> None:
    """Write actions (R, 2N) clipped to [0, 1] to ``clipped``, and the means of F and CR to ``figures``."""
    num_runs, half = actions.shape[0], actions.shape[1] // 2
    for run in range(num_runs):
        for i in range(2 * half):
            clipped[run, i] = min(max(actions[run, i], 0.0), 1.0)
        factor_sum = rate_sum = 0.0
        for i in range(half):
            factor_sum += clipped[run, i]
            rate_sum += clipped[run, half + i]
        figures[MEAN_SCALE_FACTOR, run], figures[MEAN_CROSSOVER_RATE, run] = factor_sum / half, rate_sum / half


@compiled
def judge_runs(
    state: RunState,
    error_before: FloatArray,
    reward_kind: int,
    max_evaluations: int,
    max_generations: int,
    target_error: float,
    figures: FloatArray,
) -> None:
    """Write reward and success rate of the last generation, and which runs it terminated and truncated.

    A run has terminated when it is solved, or when its budget does not pay for another generation. It is truncated
    when it reaches the generation limit without having terminated.
    """
    num_runs, size = state.fitness.shape
    for run in range(num_runs):
        error = state.best_error[run]
        figures[REWARD, run] = reward(reward_kind, error_before[run], error, state.initial_error[run])
        figures[SUCCESS_RATE, run] = state.num_successes[run] / size
        is_solved = state.has_optimum[run] and error < target_error
        has_terminated = is_solved or state.evaluations[run] + size > max_evaluations
        figures[TERMINATED, run] = has_terminated
        figures[TRUNCATED, run] = state.generation[run] >= max_generations and not has_terminated


@compiled
def advance_runs(
    positions: FloatArray,
    fitness: FloatArray,
    evaluations: IntArray,
    generation: IntArray,
    num_successes: IntArray,
    history: FloatArray,
    histogram: FloatArray,
    best_error: FloatArray,
    initial_error: FloatArray,
    reference: FloatArray,
    has_optimum: BoolArray,
    keys: KeyArray,
    actions: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    entries: IntArray,
    instructions: IntArray,
    data: FloatArray,
    repair: int,
    has_window: bool,
    pbest_schedule: int,
    pbest_constant: float,
    reward_kind: int,
    max_evaluations: int,
    max_generations: int,
    target_error: float,
    parts: IntArray,
    bin_scale: float,
    figures: FloatArray,
    observations: Float32Array,
) -> bool:
    """Do a whole generation where the problems of all runs are compiled, and write what ``Outcome`` holds.

    Returns:
        Whether it was done; nothing is when an action is NaN.
    """
    if has_nan(actions):
        return False
    state = RunState(
        positions,
        fitness,
        evaluations,
        generation,
        num_successes,
        history,
        histogram,
        best_error,
        initial_error,
        reference,
        has_optimum,
        keys,
    )
    num_runs, size, dimension = positions.shape
    num_at_once = min(num_runs, _RUNS_AT_ONCE)
    parents, trials = make_rows(num_at_once * size, dimension), make_rows(num_at_once * size, dimension)
    values, scaled = np.empty((num_at_once, size)), np.empty((num_at_once, size))
    clipped = np.empty((num_at_once, 2 * size))
    workspace = make_workspace(size, dimension, repair)
    schedule = pbest_schedule, pbest_constant, max_evaluations
    error_before = best_error.copy()
    for first in range(0, num_runs, num_at_once):
        end = min(first + num_at_once, num_runs)
        part, low, high = slice_runs(state, first, end), lower[first:end], upper[first:end]
        clip_actions(actions[first:end], clipped, figures[:, first:end])
        _breed(part, clipped[: end - first], low, high, repair, *schedule, parents, workspace, trials)
        points = trials[: (end - first) * size * dimension].reshape(end - first, size, dimension)
        evaluate_programs(points, entries[first:end], instructions, data, values)
        normalized = scaled[: end - first]
        _absorb(part, parents, trials, values, has_window, workspace, normalized)
        _observe(part, normalized, has_window, parts, bin_scale, observations[first:end])
    judge_runs(state, error_before, reward_kind, max_evaluations, max_generations, target_error, figures)
    return True
