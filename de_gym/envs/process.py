"""The Markov decision process of R runs: start, breed, absorb, observe, end; pure functions of a frozen state.

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
from de_gym.envs.observations import (
    OBSERVATION_PARTS,
    Features,
    HistogramHistory,
    fitness_histogram,
    normalize_fitness,
    push_histogram,
)
from de_gym.envs.pbest import num_pbest
from de_gym.envs.rewards import REWARDS
from de_gym.envs.settings import EnvSettings
from de_gym.evolution import (
    BOUND_REPAIRS,
    KeyArray,
    Population,
    breed_all,
    initialize,
    num_uniforms,
    select_better,
)
from de_gym.problems import ProblemBatch


@dataclass(frozen=True, slots=True)
class RunState:
    """Everything that R runs remember from one generation to the next; their future follows from it and the actions.

    Attributes:
        population: The populations.
        history: Histograms of the generations before the current one.
        normalized_fitness: Fitness scaled to [0, 1], shape (R, N).
        histogram: Histogram of the current generation, shape (R, b).
        best_error: Error of the best individual, never negative, shape (R,).
        initial_error: The best error of the initial population, shape (R,).
        reference: Value that counts as error 0, shape (R,).
        has_optimum: Whether ``reference`` is a known minimum or bound, shape (R,).
        keys: What each run's random numbers follow from, shape (R,).
    """

    population: Population
    history: HistogramHistory
    normalized_fitness: FloatArray
    histogram: FloatArray
    best_error: FloatArray
    initial_error: FloatArray
    reference: FloatArray
    has_optimum: BoolArray
    keys: KeyArray


@compiled
def _summarize(fitness: FloatArray, reference: FloatArray, num_bins: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the scaled fitness (R, N), its histogram (R, b) and the best error (R,) of sorted fitness (R, N)."""
    normalized = normalize_fitness(fitness)
    return normalized, fitness_histogram(normalized, num_bins), np.maximum(fitness[:, 0] - reference, 0.0)


@compiled
def _select_and_summarize(
    positions: FloatArray,
    fitness: FloatArray,
    trials: FloatArray,
    trial_fitness: FloatArray,
    reference: FloatArray,
    rows: FloatArray,
    num_rows: IntArray,
    histogram: FloatArray,
    windowed: bool,
) -> tuple[tuple[FloatArray, FloatArray, IntArray], tuple[FloatArray, FloatArray, FloatArray], FloatArray]:
    """Do all of ``absorb`` in one compiled call: a call from Python costs as much as the work on one run."""
    selected = select_better(positions, fitness, trials, trial_fitness)
    summary = _summarize(selected[1], reference, histogram.shape[1])
    return selected, summary, push_histogram(rows, num_rows, histogram, windowed)


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
    population = initialize(positions, fitness)
    reference = _find_reference(population.fitness, optimum)
    normalized, histogram, best_error = _summarize(population.fitness, reference, settings.num_bins)
    return RunState(
        population=population,
        history=HistogramHistory.empty(len(positions), settings.num_bins, settings.history_window),
        normalized_fitness=normalized,
        histogram=histogram,
        best_error=best_error,
        initial_error=best_error,
        reference=reference,
        has_optimum=np.isfinite(optimum),
        keys=keys,
    )


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
    population, size = state.population, settings.population_size
    return breed_all(
        population.positions,
        actions,
        num_pbest(settings.pbest, population.evaluations, settings.max_evaluations, size),
        state.keys,
        population.generation,
        lower,
        upper,
        BOUND_REPAIRS[settings.bound_repair],
        num_uniforms(size, population.positions.shape[2], settings.bound_repair),
    )


def absorb(state: RunState, trials: FloatArray, trial_fitness: FloatArray) -> RunState:
    """Return the state one generation later, given the trials (R, N, D) and their values (R, N)."""
    before, history = state.population, state.history
    (positions, fitness, num_successes), (normalized, histogram, best_error), rows = _select_and_summarize(
        before.positions,
        before.fitness,
        trials,
        trial_fitness,
        state.reference,
        history.rows,
        history.num_rows,
        state.histogram,
        history.windowed,
    )
    return RunState(
        population=Population(
            positions=positions,
            fitness=fitness,
            evaluations=before.evaluations + fitness.shape[1],
            generation=before.generation + 1,
            num_successes=num_successes,
        ),
        history=HistogramHistory(rows, history.num_rows + 1, history.windowed),
        normalized_fitness=normalized,
        histogram=histogram,
        best_error=best_error,
        initial_error=state.initial_error,
        reference=state.reference,
        has_optimum=state.has_optimum,
        keys=state.keys,
    )


def advance(
    state: RunState, problems: ProblemBatch, actions: FloatArray, settings: EnvSettings
) -> tuple[RunState, FloatArray]:
    """Return the state one generation later and the rewards (R,); arguments as in ``breed``."""
    trials = breed(state, actions, settings, problems.lower, problems.upper)
    following = absorb(state, trials, problems.evaluate(trials))
    return following, REWARDS[settings.reward](state.best_error, following.best_error, state.initial_error)


def observe(state: RunState, settings: EnvSettings) -> Float32Array:
    """Return the observations, a fresh array of shape (R, O)."""
    histogram, mean_past, scale = state.histogram, state.history.mean(), bin_scale(settings)
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


def find_endings(state: RunState, settings: EnvSettings) -> tuple[BoolArray, BoolArray]:
    """Return which runs have terminated and which have been truncated, both of shape (R,).

    A run has terminated when it is solved, or when its budget does not pay for another generation. It is truncated
    when it reaches the generation limit without having terminated.
    """
    population = state.population
    last_affordable = settings.max_evaluations - settings.population_size
    last_generation = _NO_LIMIT if settings.max_generations is None else settings.max_generations
    return _find_endings(
        state.best_error,
        state.has_optimum,
        population.evaluations,
        population.generation,
        settings.target_error,
        last_affordable,
        last_generation,
    )


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
) -> tuple[BoolArray, BoolArray]:
    terminated, truncated = np.empty_like(has_optimum), np.empty_like(has_optimum)
    for run in range(len(best_error)):
        solved = has_optimum[run] and best_error[run] < target_error
        terminated[run] = solved or evaluations[run] > last_affordable
        truncated[run] = generation[run] >= last_generation and not terminated[run]
    return terminated, truncated


def take_runs(state: RunState, runs: IntArray) -> RunState:
    """Return the state of the given runs only."""
    return _map_arrays(lambda array: array[runs], state)


def put_runs(state: RunState, runs: IntArray, replacement: RunState) -> RunState:
    """Return the state with the given runs replaced, all others untouched."""

    def put(array: NDArray[Any], part: NDArray[Any]) -> NDArray[Any]:
        merged = array.copy()
        merged[runs] = part
        return merged

    return _map_arrays(put, state, replacement)


Nested = TypeVar("Nested", RunState, Population, HistogramHistory)


def _map_arrays(function: Callable[..., NDArray[Any]], *states: Nested) -> Nested:
    """Return a dataclass like ``states`` with ``function`` applied to its arrays, field by field, to any depth."""
    changed: dict[str, Any] = {}
    for field in fields(states[0]):
        values = [getattr(state, field.name) for state in states]
        if isinstance(values[0], np.ndarray):
            changed[field.name] = function(*values)
        elif isinstance(values[0], Population | HistogramHistory):
            changed[field.name] = _map_arrays(function, *values)
    return replace(states[0], **changed)
