"""The compiled part of a step: breed, evaluate, select, summarise and judge R runs.

``advance_runs`` takes the arrays of a ``RunState`` one by one, because numba unpacks separate arrays faster than a
tuple of them; where problems are Python functions, that no longer matters.
"""

from __future__ import annotations

import numpy as np

from de_gym.arrays import BoolArray, Float32Array, FloatArray, IntArray
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
from de_gym.evolution import KeyArray, Workspace, breed_all, make_workspace, select_better
from de_gym.machine.compiling import compiled, inlined
from de_gym.machine.kernel import evaluate_programs

# Runs advanced together: few, so that they stay in the processor's inner caches from breeding to selection, and
# enough that the code of each of these steps is not fetched anew for every run.
_RUNS_AT_ONCE = 16

# Rows of the figures of an ``Outcome``: four of a generation, two of the state it led to; then of its counts and flags.
REWARD, SUCCESS_RATE, MEAN_SCALE_FACTOR, MEAN_CROSSOVER_RATE, BEST_ERROR, BEST_FITNESS = range(6)
NUM_FIGURES = 6
EVALUATIONS, GENERATION = range(2)
TERMINATED, TRUNCATED = range(2)


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
    workspace: Workspace,
    trials: FloatArray,
) -> None:
    """Write the trials (R, N, D)."""
    num_runs, size = state.fitness.shape
    counts = np.empty(num_runs, np.int64)
    for run in range(num_runs):
        counts[run] = num_pbest(pbest_schedule, pbest_constant, state.evaluations[run] / max_evaluations, size)
    parents, time = (state.positions, state.order), (state.keys, state.generation)
    breed_all(*parents, actions, counts, *time, lower, upper, repair, workspace, trials)


@inlined
def _absorb(
    state: RunState,
    trials: FloatArray,
    trial_fitness: FloatArray,
    has_window: bool,
    normalized: FloatArray,
) -> None:
    """Turn the state into that of one generation later; arguments as in ``select_better`` and ``summarize``."""
    push_histogram(state.history, state.generation, state.histogram, has_window)
    select_better(state.positions, state.order, state.fitness, trials, trial_fitness, state.num_successes)
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
    _, size, dimension = state.positions.shape
    trials, workspace = np.empty(state.positions.shape), make_workspace(size, dimension, repair)
    schedule = pbest_schedule, pbest_constant, max_evaluations
    _breed(state, actions, lower, upper, repair, *schedule, workspace, trials)
    return trials


@compiled
def absorb_runs(state: RunState, trials: FloatArray, trial_fitness: FloatArray, has_window: bool) -> None:
    """Turn the state into that of one generation later, given the trials (R, N, D) and their values (R, N)."""
    _absorb(state, trials, trial_fitness, has_window, np.empty(state.fitness.shape))


@compiled
def clip_actions(actions: FloatArray | Float32Array, clipped: FloatArray) -> bool:
    """Write actions clipped to [0, 1] to ``clipped``, both flat, and return whether all of them are numbers."""
    are_numbers = True
    for index in range(clipped.shape[0]):
        action = np.float64(actions[index])
        are_numbers &= action == action
        raised = action if action > 0.0 else 0.0
        clipped[index] = raised if raised < 1.0 else 1.0
    return are_numbers


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
def average_actions(actions: FloatArray, figures: FloatArray) -> None:
    """Write the means of F and CR of each run to ``figures``, given actions (R, 2N)."""
    for run in range(actions.shape[0]):
        half = actions.shape[1] // 2
        figures[MEAN_SCALE_FACTOR, run] = _mean(actions[run, :half])
        figures[MEAN_CROSSOVER_RATE, run] = _mean(actions[run, half:])


@compiled
def describe_runs(state: RunState, figures: FloatArray, counts: IntArray, best_positions: FloatArray) -> None:
    """Write what an ``Outcome`` says of the state."""
    for run in range(len(state.generation)):
        figures[BEST_ERROR, run], figures[BEST_FITNESS, run] = state.best_error[run], state.fitness[run, 0]
        counts[EVALUATIONS, run], counts[GENERATION, run] = state.evaluations[run], state.generation[run]
        for j in range(best_positions.shape[1]):
            best_positions[run, j] = state.positions[run, state.order[run, 0], j]


@compiled
def judge_runs(
    state: RunState,
    error_before: FloatArray,
    reward_kind: int,
    max_evaluations: int,
    max_generations: int,
    target_error: float,
    figures: FloatArray,
    flags: BoolArray,
) -> int:
    """Write reward and success rate of the last generation, and which runs it terminated and truncated.

    A run has terminated when it is solved, or when its budget does not pay for another generation. It is truncated
    when it reaches the generation limit without having terminated.

    Returns:
        The number of runs that ended.
    """
    num_runs, size = state.fitness.shape
    num_ended = 0
    for run in range(num_runs):
        error = state.best_error[run]
        figures[REWARD, run] = reward(reward_kind, error_before[run], error, state.initial_error[run])
        figures[SUCCESS_RATE, run] = state.num_successes[run] / size
        is_solved = state.has_optimum[run] and error < target_error
        has_terminated = is_solved or state.evaluations[run] + size > max_evaluations
        has_ended = has_terminated or state.generation[run] >= max_generations
        flags[TERMINATED, run], flags[TRUNCATED, run] = has_terminated, has_ended and not has_terminated
        num_ended += has_ended
    return num_ended


@compiled
def advance_runs(
    positions: FloatArray,
    order: IntArray,
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
    counts: IntArray,
    flags: BoolArray,
    best_positions: FloatArray,
    observations: Float32Array,
) -> int:
    """Do a whole generation where the problems of all runs are compiled, and write the arrays of an ``Outcome``.

    Returns:
        The number of runs that ended.
    """
    state = RunState(
        positions,
        order,
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
    bred = np.empty((num_at_once, size, dimension))
    values, scaled = np.empty((num_at_once, size)), np.empty((num_at_once, size))
    starts = np.arange(num_at_once + 1) * size
    workspace = make_workspace(size, dimension, repair)
    schedule = pbest_schedule, pbest_constant, max_evaluations
    error_before = best_error.copy()
    for first in range(0, num_runs, num_at_once):
        end = min(first + num_at_once, num_runs)
        part, low, high = slice_runs(state, first, end), lower[first:end], upper[first:end]
        trials, normalized = bred[: end - first], scaled[: end - first]
        average_actions(actions[first:end], figures[:, first:end])
        _breed(part, actions[first:end], low, high, repair, *schedule, workspace, trials)
        rows, fitness_of_rows = trials.reshape(-1, dimension), values.reshape(-1)
        evaluate_programs(rows, starts[: end - first + 1], entries[first:end], instructions, data, fitness_of_rows)
        _absorb(part, trials, values, has_window, normalized)
        _observe(part, normalized, has_window, parts, bin_scale, observations[first:end])
        describe_runs(part, figures[:, first:end], counts[:, first:end], best_positions[first:end])
    limits = max_evaluations, max_generations, target_error
    return judge_runs(state, error_before, reward_kind, *limits, figures, flags)
