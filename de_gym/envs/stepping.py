"""The compiled part of a step: breed, evaluate, select and summarise R runs, a few at a time, in place."""

from __future__ import annotations

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.compiling import compiled
from de_gym.envs.observations import fitness_histogram, mean_past_histogram, normalize_fitness, push_histogram
from de_gym.evolution import KeyArray, Workspace, breed_all, make_trials, make_workspace, select_better
from de_gym.problems.kernel import evaluate_programs

# Runs advanced together: few, so that they stay in the processor's first caches from breeding to selection, and
# enough that runs of one function fill the blocks of points that the kernel evaluates at once.
_RUNS_AT_ONCE = 4


@compiled
def summarize(
    fitness: FloatArray,
    reference: FloatArray,
    generation: IntArray,
    history: FloatArray,
    has_window: bool,
    normalized: FloatArray,
    histogram: FloatArray,
    mean_past: FloatArray,
    best_error: FloatArray,
) -> None:
    """Write what ``RunState`` derives from sorted fitness (R, N) and past histograms to the last four arguments."""
    normalize_fitness(fitness, normalized)
    fitness_histogram(normalized, histogram)
    mean_past_histogram(history, generation, has_window, mean_past)
    for run in range(len(reference)):
        best_error[run] = max(fitness[run, 0] - reference[run], 0.0)


@compiled
def breed_runs(
    positions: FloatArray,
    actions: FloatArray,
    num_pbest: IntArray,
    keys: KeyArray,
    generation: IntArray,
    lower: FloatArray,
    upper: FloatArray,
    repair: int,
) -> FloatArray:
    """Return the trials of ``breed_all``, shape (R, N, D)."""
    num_runs, size, dimension = positions.shape
    trials = make_trials(num_runs, size, dimension)
    workspace = make_workspace(size, dimension, repair)
    breed_all(positions, actions, num_pbest, keys, generation, lower, upper, repair, workspace, trials)
    return trials[: num_runs * size * dimension].reshape(num_runs, size, dimension)


@compiled
def absorb_runs(
    positions: FloatArray,
    fitness: FloatArray,
    evaluations: IntArray,
    generation: IntArray,
    num_successes: IntArray,
    history: FloatArray,
    has_window: bool,
    normalized: FloatArray,
    histogram: FloatArray,
    mean_past: FloatArray,
    best_error: FloatArray,
    reference: FloatArray,
    trials: FloatArray,
    trial_fitness: FloatArray,
    workspace: Workspace,
) -> None:
    """Turn the arrays of a ``RunState`` into those one generation later."""
    push_histogram(history, generation, histogram, has_window)
    select_better(positions, fitness, trials, trial_fitness, num_successes, workspace)
    for run in range(len(generation)):
        evaluations[run] += fitness.shape[1]
        generation[run] += 1
    summarize(fitness, reference, generation, history, has_window, normalized, histogram, mean_past, best_error)


@compiled
def absorb_all(
    positions: FloatArray,
    fitness: FloatArray,
    evaluations: IntArray,
    generation: IntArray,
    num_successes: IntArray,
    history: FloatArray,
    has_window: bool,
    normalized: FloatArray,
    histogram: FloatArray,
    mean_past: FloatArray,
    best_error: FloatArray,
    reference: FloatArray,
    trials: FloatArray,
    trial_fitness: FloatArray,
) -> None:
    """Do ``absorb_runs`` for a whole batch."""
    absorb_runs(
        positions,
        fitness,
        evaluations,
        generation,
        num_successes,
        history,
        has_window,
        normalized,
        histogram,
        mean_past,
        best_error,
        reference,
        trials,
        trial_fitness,
        make_workspace(positions.shape[1], positions.shape[2], 0),
    )


@compiled
def advance_runs(
    positions: FloatArray,
    fitness: FloatArray,
    evaluations: IntArray,
    generation: IntArray,
    num_successes: IntArray,
    history: FloatArray,
    has_window: bool,
    normalized: FloatArray,
    histogram: FloatArray,
    mean_past: FloatArray,
    best_error: FloatArray,
    reference: FloatArray,
    actions: FloatArray,
    num_pbest: IntArray,
    keys: KeyArray,
    lower: FloatArray,
    upper: FloatArray,
    repair: int,
    entries: IntArray,
    instructions: IntArray,
    data: FloatArray,
) -> None:
    """Breed, evaluate and absorb where the problems of all runs are compiled."""
    num_runs, size, dimension = positions.shape
    trials = make_trials(_RUNS_AT_ONCE, size, dimension)
    values = np.empty((_RUNS_AT_ONCE, size))
    workspace = make_workspace(size, dimension, repair)
    for first in range(0, num_runs, _RUNS_AT_ONCE):
        end = min(first + _RUNS_AT_ONCE, num_runs)
        breed_all(
            positions[first:end],
            actions[first:end],
            num_pbest[first:end],
            keys[first:end],
            generation[first:end],
            lower[first:end],
            upper[first:end],
            repair,
            workspace,
            trials,
        )
        points = trials[: (end - first) * size * dimension].reshape(end - first, size, dimension)
        point_values = values[: end - first]
        evaluate_programs(points, entries[first:end], instructions, data, point_values)
        absorb_runs(
            positions[first:end],
            fitness[first:end],
            evaluations[first:end],
            generation[first:end],
            num_successes[first:end],
            history[first:end],
            has_window,
            normalized[first:end],
            histogram[first:end],
            mean_past[first:end],
            best_error[first:end],
            reference[first:end],
            points,
            point_values,
            workspace,
        )
