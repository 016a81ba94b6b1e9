"""The Markov decision process of R runs: start, breed, absorb, observe, end; pure functions of a frozen state.

The environments and the controlled optimiser are thin shells on these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
)
from de_gym.envs.pbest import num_pbest
from de_gym.envs.rewards import REWARDS
from de_gym.envs.settings import EnvSettings
from de_gym.evolution import BOUND_REPAIRS, Population, draw_uniforms, initialize, num_uniforms, propose_trials, survive
from de_gym.problems import ProblemBatch


@dataclass(frozen=True, slots=True)
class RunState:
    """Everything R runs remember from one generation to the next, random generators aside.

    Attributes:
        population: The populations.
        history: Histograms of the generations before the current one.
        normalized_fitness: Fitness scaled to [0, 1], shape (R, N).
        histogram: Histogram of the current generation, shape (R, b).
        best_error: Error of the best individual, never negative, shape (R,).
        initial_error: The best error of the initial population, shape (R,).
        reference: Value that counts as error 0, shape (R,).
        has_optimum: Whether ``reference`` is a known minimum or bound, shape (R,).
    """

    population: Population
    history: HistogramHistory
    normalized_fitness: FloatArray
    histogram: FloatArray
    best_error: FloatArray
    initial_error: FloatArray
    reference: FloatArray
    has_optimum: BoolArray


@compiled
def _summarize(fitness: FloatArray, reference: FloatArray, num_bins: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the scaled fitness (R, N), its histogram (R, b) and the best error (R,) of sorted fitness (R, N)."""
    normalized = normalize_fitness(fitness)
    return normalized, fitness_histogram(normalized, num_bins), np.maximum(fitness[:, 0] - reference, 0.0)


def start(positions: FloatArray, fitness: FloatArray, optimum: FloatArray, settings: EnvSettings) -> RunState:
    """Return the state of R runs at generation 0.

    Where no minimum is known, errors count from as far below the best initial value as the worst initial value
    lies above it: rewards then measure improvement against the first population's spread.

    Args:
        positions: Initial positions, shape (R, N, D).
        fitness: Their values, shape (R, N).
        optimum: Minimum of each run's problem, NaN where unknown, shape (R,).
        settings: The decision process.
    """
    population = initialize(positions, fitness)
    best, worst = population.fitness[:, 0], _worst_finite(population.fitness)
    has_optimum = np.isfinite(optimum)
    # Worst and best are equal where a population is flat; any positive gap will do then.
    gap = np.where(worst > best, worst - best, 1.0)
    reference = np.where(has_optimum, optimum, np.where(np.isfinite(best), best - gap, 0.0))
    normalized, histogram, best_error = _summarize(population.fitness, reference, settings.num_bins)
    return RunState(
        population=population,
        history=HistogramHistory.empty(len(positions), settings.num_bins, settings.history_window),
        normalized_fitness=normalized,
        histogram=histogram,
        best_error=best_error,
        initial_error=best_error,
        reference=reference,
        has_optimum=has_optimum,
    )


def _worst_finite(fitness: FloatArray) -> FloatArray:
    """Return the largest finite value of each run, or its best value where none is finite."""
    finite: FloatArray = np.where(np.isfinite(fitness), fitness, fitness[:, :1])
    return np.asarray(finite.max(axis=1))


def breed(
    state: RunState,
    actions: FloatArray,
    rngs: Sequence[np.random.Generator],
    settings: EnvSettings,
    bounds: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """Return the trials of one generation, shape (R, N, D).

    Args:
        state: R runs.
        actions: In [0, 1], shape (R, 2N): scale factors by rank, then crossover rates by rank.
        rngs: One generator per run.
        settings: The decision process.
        bounds: Lower and upper bounds of each run's problem, both of shape (R, D).
    """
    population, size = state.population, settings.population_size
    progress = population.evaluations / settings.max_evaluations
    return propose_trials(
        population.positions,
        np.ascontiguousarray(actions[:, :size]),
        np.ascontiguousarray(actions[:, size:]),
        num_pbest(settings.pbest, progress, size),
        draw_uniforms(rngs, num_uniforms(size, population.positions.shape[2], settings.bound_repair)),
        *bounds,
        BOUND_REPAIRS[settings.bound_repair],
    )


def absorb(state: RunState, trials: FloatArray, trial_fitness: FloatArray, settings: EnvSettings) -> RunState:
    """Return the state one generation later, given the trials (R, N, D) and their values (R, N)."""
    population = survive(state.population, trials, trial_fitness)
    normalized, histogram, best_error = _summarize(population.fitness, state.reference, settings.num_bins)
    return RunState(
        population=population,
        history=state.history.push(state.histogram),
        normalized_fitness=normalized,
        histogram=histogram,
        best_error=best_error,
        initial_error=state.initial_error,
        reference=state.reference,
        has_optimum=state.has_optimum,
    )


def advance(
    state: RunState,
    problems: ProblemBatch,
    actions: FloatArray,
    rngs: Sequence[np.random.Generator],
    settings: EnvSettings,
) -> tuple[RunState, FloatArray]:
    """Return the state one generation later and the rewards (R,); arguments as in ``breed``."""
    trials = breed(state, actions, rngs, settings, (problems.lower, problems.upper))
    following = absorb(state, trials, problems.evaluate(trials), settings)
    return following, REWARDS[settings.reward](state.best_error, following.best_error, state.initial_error)


def observe(state: RunState, settings: EnvSettings) -> Float32Array:
    """Return the observations, a fresh array of shape (R, O)."""
    features = Features(
        normalized_fitness=state.normalized_fitness,
        histogram=state.histogram,
        mean_past_histogram=state.history.mean(),
        bin_scale=bin_scale(settings),
    )
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


def has_terminated(state: RunState, settings: EnvSettings) -> BoolArray:
    """Return which runs are over: solved, or without the budget for one more generation; shape (R,)."""
    solved = state.has_optimum & (state.best_error < settings.target_error)
    spent = state.population.evaluations + settings.population_size > settings.max_evaluations
    return solved | spent


def has_truncated(state: RunState, settings: EnvSettings) -> BoolArray:
    """Return which runs reached the generation limit; shape (R,)."""
    if settings.max_generations is None:
        return np.zeros(len(state.reference), np.bool_)
    return state.population.generation >= settings.max_generations


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
