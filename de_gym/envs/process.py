"""The Markov decision process of R runs: start, breed, absorb, advance, observe; functions of a ``RunState``.

The environments and the controlled optimiser are thin shells on these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from de_gym.arrays import BoolArray, Float32Array, FloatArray, IntArray
from de_gym.envs.observations import OBSERVATION_PARTS, empty_history
from de_gym.envs.run_state import RunState
from de_gym.envs.settings import EnvSettings
from de_gym.envs.stepping import (
    NUM_FIGURES,
    absorb_runs,
    advance_runs,
    average_actions,
    breed_runs,
    describe_runs,
    judge_runs,
    observe_runs,
    summarize,
)
from de_gym.evolution import KeyArray
from de_gym.machine.compiling import compiled
from de_gym.problems import ProblemBatch


class Outcome(NamedTuple):
    """What a generation of R runs gave, in arrays of its own whose rows are named in ``stepping``.

    Attributes:
        figures: Rewards, success rates, mean F, mean CR; error and value of the best individual, shape (6, R).
        counts: Evaluations and generations so far, shape (2, R).
        flags: Whether terminated, whether truncated, shape (2, R).
        best_positions: Shape (R, D).
        observations: Shape (R, O).
        num_ended: Number of runs that were terminated or truncated.
    """

    figures: FloatArray
    counts: IntArray
    flags: BoolArray
    best_positions: FloatArray
    observations: Float32Array
    num_ended: int


def start(
    positions: FloatArray, fitness: FloatArray, optimum: FloatArray, keys: KeyArray, settings: EnvSettings
) -> RunState:
    """Return the state of R runs at generation 0.

    Where no minimum is known, errors count from as far below the best initial value as the worst initial value
    lies above it: rewards then measure improvement against the first population's spread.

    Args:
        positions: Initial positions, shape (R, N, D).
        fitness: Their values, shape (R, N).
        optimum: Minimum of each run's problem, NaN where unknown, shape (R,).
        keys: What each run's random numbers follow from, shape (R,).
        settings: The decision process.
    """
    num_runs, size, _ = positions.shape
    order = np.argsort(fitness, axis=1, kind="stable")
    sorted_fitness = np.take_along_axis(fitness, order, axis=1)
    state = RunState(
        positions=np.array(positions, dtype=np.float64, order="C"),
        order=order,
        fitness=sorted_fitness,
        evaluations=np.full(num_runs, size, np.int64),
        generation=np.zeros(num_runs, np.int64),
        num_successes=np.zeros(num_runs, np.int64),
        history=empty_history(num_runs, settings.num_bins, settings.history_window),
        histogram=np.empty((num_runs, settings.num_bins)),
        best_error=np.empty(num_runs),
        initial_error=np.empty(num_runs),
        reference=_find_reference(sorted_fitness, optimum),
        has_optimum=np.isfinite(optimum),
        keys=keys,
    )
    summarize(state.fitness, state.histogram, state.best_error, state.reference, np.empty(fitness.shape))
    state.initial_error[:] = state.best_error
    return state


@compiled
def _find_reference(fitness: FloatArray, optimum: FloatArray) -> FloatArray:
    """Return the value that counts as error 0 in each run, shape (R,), given sorted initial fitness (R, N)."""
    reference = np.empty_like(optimum)
    for run in range(len(optimum)):
        best = worst = fitness[run, 0]
        for value in fitness[run]:
            if np.isfinite(value):
                worst = value
        if np.isfinite(optimum[run]):
            reference[run] = optimum[run]
        elif not np.isfinite(best):
            reference[run] = 0.0
        else:
            # Any positive gap will do where the population is flat; huge values must not overflow.
            gap = worst - best if worst > best else 1.0
            reference[run] = max(best - gap, -np.finfo(np.float64).max)
    return reference


def breed(
    state: RunState, actions: FloatArray, settings: EnvSettings, lower: FloatArray, upper: FloatArray
) -> FloatArray:
    """Return the trials of one generation, shape (R, N, D).

    Args:
        state: R runs.
        actions: In [0, 1], shape (R, 2N): scale factors by rank, then crossover rates by rank.
        settings: The decision process.
        lower: Lower bounds of each run's problem, shape (R, D).
        upper: Upper bounds of each run's problem, shape (R, D).
    """
    codes = settings.codes
    schedule = codes.pbest_schedule, codes.pbest_constant, codes.max_evaluations
    return breed_runs(state, actions, lower, upper, codes.bound_repair, *schedule)


def absorb(state: RunState, trials: FloatArray, trial_fitness: FloatArray, settings: EnvSettings) -> None:
    """Turn the state into that of one generation later, given the trials (R, N, D) and their values (R, N)."""
    absorb_runs(
        state,
        np.ascontiguousarray(trials, dtype=np.float64),
        np.ascontiguousarray(trial_fitness, dtype=np.float64),
        settings.codes.has_window,
    )


def advance(state: RunState, problems: ProblemBatch, actions: FloatArray, settings: EnvSettings) -> Outcome:
    """Turn the state into that of one generation later, by actions (R, 2N) in [0, 1]."""
    programs = problems.programs
    if programs is None:
        return _advance_apart(state, problems, actions, settings)
    num_runs, _, dimension = state.positions.shape
    arrays = (
        np.empty((NUM_FIGURES, num_runs)),
        np.empty((2, num_runs), np.int64),
        np.empty((2, num_runs), np.bool_),
        np.empty((num_runs, dimension)),
        np.empty((num_runs, settings.observation_size), np.float32),
    )
    arguments: list[Any] = [*state, actions, problems.lower, problems.upper, *programs, *settings.codes, *arrays]
    return Outcome(*arrays, advance_runs(*arguments))


def _advance_apart(state: RunState, problems: ProblemBatch, actions: FloatArray, settings: EnvSettings) -> Outcome:
    """Do what ``advance_runs`` does, step by step, where some problem is a Python function."""
    codes, error_before = settings.codes, state.best_error.copy()
    trials = breed(state, actions, settings, problems.lower, problems.upper)
    absorb(state, trials, problems.evaluate(trials), settings)
    outcome = describe(state, settings)
    average_actions(actions, outcome.figures)
    limits = codes.max_evaluations, codes.max_generations, codes.target_error
    num_ended = judge_runs(state, error_before, codes.reward, *limits, outcome.figures, outcome.flags)
    return outcome._replace(num_ended=num_ended)


def describe(state: RunState, settings: EnvSettings) -> Outcome:
    """Return the outcome of having done nothing: a description of the state, and zeros."""
    num_runs, _, dimension = state.positions.shape
    figures, flags = np.zeros((NUM_FIGURES, num_runs)), np.zeros((2, num_runs), np.bool_)
    counts, best_positions = np.empty((2, num_runs), np.int64), np.empty((num_runs, dimension))
    describe_runs(state, figures, counts, best_positions)
    return Outcome(figures, counts, flags, best_positions, observe(state, settings), 0)


def observe(state: RunState, settings: EnvSettings) -> Float32Array:
    """Return the observations, a fresh array of shape (R, O)."""
    codes = settings.codes
    observations = np.empty((len(state.keys), settings.observation_size), np.float32)
    observe_runs(state, codes.has_window, codes.parts, codes.bin_scale, observations)
    return observations


def observation_high(settings: EnvSettings) -> Float32Array:
    """Return the upper bound of every entry of an observation, shape (O,)."""
    highs = []
    for name in settings.observation:
        part = OBSERVATION_PARTS[name]
        size = part.size(settings.population_size, settings.num_bins)
        highs.append(np.full(size, part.high(settings.codes.bin_scale), np.float32))
    return np.concatenate(highs)
