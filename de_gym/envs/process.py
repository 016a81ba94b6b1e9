"""The Markov decision process of R runs: start, breed, absorb, observe, end; functions of a ``RunState``.

The environments and the controlled optimiser are thin shells on these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from de_gym.arrays import BoolArray, Float32Array, FloatArray, IntArray
from de_gym.compiling import compiled
from de_gym.envs.observations import OBSERVATION_PARTS, Features, empty_history
from de_gym.envs.pbest import num_pbest
from de_gym.envs.rewards import REWARDS
from de_gym.envs.settings import EnvSettings
from de_gym.envs.stepping import absorb_all, advance_runs, breed_runs, summarize
from de_gym.evolution import BOUND_REPAIRS, KeyArray, Population, initialize
from de_gym.problems import ProblemBatch


@dataclass(frozen=True, slots=True)
class RunState:
    """Everything that R runs remember from one generation to the next; their future follows from it and the actions.

    ``absorb``, ``advance`` and ``put_runs`` overwrite its arrays: writing the next generation to fresh memory would
    cost as much as computing it. Whoever hands an array on hands on a copy.

    Attributes:
        population: The populations.
        history: Histograms of the generations before the current one, as ``empty_history`` says.
        normalized_fitness: Fitness scaled to [0, 1], shape (R, N).
        histogram: Histogram of the current generation, shape (R, b).
        mean_past_histogram: Mean of the histograms before it, shape (R, b).
        best_error: Error of the best individual, never negative, shape (R,).
        initial_error: The best error of the initial population, shape (R,).
        reference: Value that counts as error 0, shape (R,).
        has_optimum: Whether ``reference`` is a known minimum or bound, shape (R,).
        keys: What each run's random numbers follow from, shape (R,).
    """

    population: Population
    history: FloatArray
    normalized_fitness: FloatArray
    histogram: FloatArray
    mean_past_histogram: FloatArray
    best_error: FloatArray
    initial_error: FloatArray
    reference: FloatArray
    has_optimum: BoolArray
    keys: KeyArray


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
    population, num_runs = initialize(positions, fitness), len(positions)
    state = RunState(
        population=population,
        history=empty_history(num_runs, settings.num_bins, settings.history_window),
        normalized_fitness=np.empty(fitness.shape),
        histogram=np.empty((num_runs, settings.num_bins)),
        mean_past_histogram=np.empty((num_runs, settings.num_bins)),
        best_error=np.empty(num_runs),
        initial_error=np.empty(num_runs),
        reference=_find_reference(population.fitness, optimum),
        has_optimum=np.isfinite(optimum),
        keys=keys,
    )
    summarize(
        population.fitness,
        state.reference,
        population.generation,
        state.history,
        settings.history_window is not None,
        state.normalized_fitness,
        state.histogram,
        state.mean_past_histogram,
        state.best_error,
    )
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
    population = state.population
    return breed_runs(
        population.positions,
        actions,
        _num_pbest(state, settings),
        state.keys,
        population.generation,
        lower,
        upper,
        BOUND_REPAIRS[settings.bound_repair],
    )


def absorb(state: RunState, trials: FloatArray, trial_fitness: FloatArray, settings: EnvSettings) -> None:
    """Turn the state into that of one generation later, given the trials (R, N, D) and their values (R, N)."""
    absorb_all(
        *_overwritten(state, settings),
        np.ascontiguousarray(trials, dtype=np.float64),
        np.ascontiguousarray(trial_fitness, dtype=np.float64),
    )


def advance(state: RunState, problems: ProblemBatch, actions: FloatArray, settings: EnvSettings) -> FloatArray:
    """Turn the state into that of one generation later and return the rewards (R,); arguments as in ``breed``."""
    error_before = state.best_error.copy()
    programs = problems.programs
    if programs is None:
        trials = breed(state, actions, settings, problems.lower, problems.upper)
        absorb(state, trials, problems.evaluate(trials), settings)
    else:
        advance_runs(
            *_overwritten(state, settings),
            actions,
            _num_pbest(state, settings),
            state.keys,
            problems.lower,
            problems.upper,
            BOUND_REPAIRS[settings.bound_repair],
            *programs,
        )
    return REWARDS[settings.reward](error_before, state.best_error, state.initial_error)


def _num_pbest(state: RunState, settings: EnvSettings) -> IntArray:
    evaluations, size = state.population.evaluations, settings.population_size
    return num_pbest(settings.pbest, evaluations, settings.max_evaluations, size)


def _overwritten(state: RunState, settings: EnvSettings) -> tuple[Any, ...]:
    """Return the leading arguments of ``absorb_all`` and ``advance_runs``: what a generation changes."""
    population = state.population
    return (
        population.positions,
        population.fitness,
        population.evaluations,
        population.generation,
        population.num_successes,
        state.history,
        settings.history_window is not None,
        state.normalized_fitness,
        state.histogram,
        state.mean_past_histogram,
        state.best_error,
        state.reference,
    )


def observe(state: RunState, settings: EnvSettings) -> Float32Array:
    """Return the observations, a fresh array of shape (R, O)."""
    histogram, mean_past, scale = state.histogram, state.mean_past_histogram, bin_scale(settings)
    if scale != 1.0:
        histogram, mean_past = histogram * scale, mean_past * scale
    features = Features(state.normalized_fitness, histogram, mean_past)
    parts = [OBSERVATION_PARTS[name].compute(features) for name in settings.observation]
    return np.concatenate(parts, axis=1, dtype=np.float32)


def bin_scale(settings: EnvSettings) -> float:
    """Return what one full bin counts: 1 as a fraction, N as a count."""
    return float(settings.population_size) if settings.histogram == "counts" else 1.0


def observation_high(settings: EnvSettings) -> Float32Array:
    """Return the upper bound of every entry of an observation, shape (O,)."""
    highs = []
    for name in settings.observation:
        part = OBSERVATION_PARTS[name]
        size = part.size(settings.population_size, settings.num_bins)
        highs.append(np.full(size, part.high(bin_scale(settings)), np.float32))
    return np.concatenate(highs)


def find_endings(state: RunState, settings: EnvSettings) -> BoolArray:
    """Return which runs have terminated, and which have been truncated, shape (2, R).

    A run has terminated when it is solved, or when its budget does not pay for another generation. It is truncated
    when it reaches the generation limit without having terminated.
    """
    population = state.population
    last_affordable = settings.max_evaluations - settings.population_size
    last_generation = _NO_LIMIT if settings.max_generations is None else settings.max_generations
    endings = np.empty((2, len(state.keys)), np.bool_)
    _find_endings(
        state.best_error,
        state.has_optimum,
        population.evaluations,
        population.generation,
        settings.target_error,
        last_affordable,
        last_generation,
        endings,
    )
    return endings


_NO_LIMIT = np.iinfo(np.int64).max


@compiled
def _find_endings(
    best_error: FloatArray,
    has_optimum: BoolArray,
    evaluations: IntArray,
    generation: IntArray,
    target_error: float,
    last_affordable: int,
    last_generation: int,
    endings: BoolArray,
) -> None:
    for run in range(len(best_error)):
        solved = has_optimum[run] and best_error[run] < target_error
        endings[0, run] = solved or evaluations[run] > last_affordable
        endings[1, run] = generation[run] >= last_generation and not endings[0, run]


def take_runs(state: RunState, runs: IntArray) -> RunState:
    """Return the state of the given runs only."""
    return _map_arrays(lambda array: array[runs], state)


def put_runs(state: RunState, runs: IntArray, replacement: RunState) -> None:
    """Replace the given runs of the state and leave all others untouched."""

    def put(array: NDArray[Any], part: NDArray[Any]) -> NDArray[Any]:
        array[runs] = part
        return array

    _map_arrays(put, state, replacement)


Nested = TypeVar("Nested", RunState, Population)


def _map_arrays(function: Callable[..., NDArray[Any]], *states: Nested) -> Nested:
    """Return a dataclass like ``states`` with ``function`` applied to its arrays, field by field."""
    changed: dict[str, Any] = {}
    for field in fields(states[0]):
        values = [getattr(state, field.name) for state in states]
        if isinstance(values[0], np.ndarray):
            changed[field.name] = function(*values)
        elif isinstance(values[0], Population):
            changed[field.name] = _map_arrays(function, *values)
    return replace(states[0], **changed)
