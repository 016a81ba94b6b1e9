"""The compiled part of a step: breed, evaluate, select and summarise R runs, a few at a time, in place."""

from __future__ import annotations

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.compiling import compiled, inlined
from de_gym.envs.observations import fitness_histogram, mean_past_histogram, normalize_fitness, push_histogram
from de_gym.evolution import KeyArray, Workspace, breed_all, make_rows, make_workspace, select_better
from de_gym.problems.kernel import evaluate_programs

# Runs advanced together: few, so that they stay in the processor's inner caches from breeding to selection, and
# enough that the code of each of these steps is not fetched anew for every run.
_RUNS_AT_ONCE = 16


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
    parents, trials = make_rows(num_runs * size, dimension), make_rows(num_runs * size, dimension)
    copy_rows(positions, parents)
    workspace = make_workspace(size, dimension, repair)
    breed_all(parents, actions, num_pbest, keys, generation, lower, upper, repair, workspace, trials)
    return trials[: positions.size].reshape(positions.shape)


@inlined
def copy_rows(positions: FloatArray, rows: FloatArray) -> None:
    """Copy positions (R, N, D) to the front of a flat array."""
    numbers = positions.reshape(-1)
    for index in range(numbers.shape[0]):
        rows[index] = numbers[index]


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
    parents: FloatArray,
    trials: FloatArray,
    trial_fitness: FloatArray,
    workspace: Workspace,
) -> None:
    """Turn the arrays of a ``RunState`` into those one generation later; see ``select_better``."""
    push_histogram(history, generation, histogram, has_window)
    select_better(parents, trials, trial_fitness, positions, fitness, num_successes, workspace)
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
        positions.copy().reshape(-1),
        trials.reshape(-1),
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
    num_at_once = min(num_runs, _RUNS_AT_ONCE)
    parents, trials = make_rows(num_at_once * size, dimension), make_rows(num_at_once * size, dimension)
    values = np.empty((num_at_once, size))
    workspace = make_workspace(size, dimension, repair)
    for first in range(0, num_runs, _RUNS_AT_ONCE):
        end = min(first + _RUNS_AT_ONCE, num_runs)
        copy_rows(positions[first:end], parents)
        breed_all(
            parents,
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
            parents,
            trials,
            point_values,
            workspace,
        )
