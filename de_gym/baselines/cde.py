"""cDE: Tvrdik, Competitive Differential Evolution (2006), the variant with 18 competing settings.

cDE-PCM is its parameter control alone, on one strategy, as in Tanabe and Fukunaga, Reviewing and Benchmarking
Parameter Control Methods in Differential Evolution (2020).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.baselines.base import check_at_least
from de_gym.baselines.population_based import PopulationOptimizer, PopulationState
from de_gym.baselines.steps import select_not_worse
from de_gym.evolution import draw_uniforms
from de_gym.evolution.operators import (
    cross_binomial,
    force_when_empty,
    mutate_from_base,
    repair_midpoint,
    repair_reflect,
)
from de_gym.machine.compiling import compiled
from de_gym.machine.picks import pick_distinct, pick_leading
from de_gym.registry import lookup

# What the compiled code switches on.
STRATEGIES = {"rand/1": 0, "best/1": 1, "best/2": 2}
# Below this dimension cDE-PCM is what the LDE paper ran at n = 10, from it on what it ran at n = 30.
_HIGH_DIMENSION = 20


@dataclass(frozen=True, slots=True)
class CDESettings:
    """Constants of cDE and cDE-PCM as in the LDE paper; None leaves a choice to the class and the dimension.

    Attributes:
        population_size: N; None for max(20, 2 n) in cDE and 5 n in cDE-PCM.
        strategies: Names out of ``STRATEGIES``; None for rand/1 and best/2 in cDE, and in cDE-PCM for rand/1 at
            low and best/1 at high dimension.
        scale_factors: F that compete.
        crossover_rates: CR that compete, with every strategy and every F.
        initial_count: n0, the successes each setting is credited with after a reset.
        reset_probability: delta; when a setting's probability falls below, all counts start anew.
        reflect: Whether points are mirrored at the bounds and a coordinate is forced only where crossover takes
            none, as Tvrdik does, or repaired to the midpoint with a coordinate always forced. None for the
            former in cDE, and in cDE-PCM for the former at low and the latter at high dimension, which fit the
            published numbers best.
    """

    population_size: int | None = None
    strategies: tuple[str, ...] | None = None
    scale_factors: tuple[float, ...] = (0.5, 0.8, 1.0)
    crossover_rates: tuple[float, ...] = (0.0, 0.5, 1.0)
    initial_count: float = 2.0
    reset_probability: float = 1.0 / 45.0
    reflect: bool | None = None

    def __post_init__(self) -> None:
        check_at_least("population_size", self.population_size, 5)
        for strategy in self.strategies or ():
            lookup("strategy", strategy, STRATEGIES)


@dataclass(frozen=True, slots=True)
class CDEState(PopulationState):
    """Populations and the competition.

    Attributes:
        counts: Successes of each of the H settings since the last reset, shape (R, H).
        chosen: Setting that made each of the last trials, shape (R, N).
    """

    counts: IntArray
    chosen: IntArray


class CDE(PopulationOptimizer[CDEState]):
    """DE whose individuals draw strategy, F and CR with probabilities that grow with success."""

    name = "cde"
    settings: CDESettings

    def __init__(self, settings: CDESettings | None = None) -> None:
        self.settings = settings or CDESettings()

    def _population_size(self, dimension: int) -> int:
        return self.settings.population_size or max(20, 2 * dimension)

    def _strategies(self) -> tuple[str, ...]:
        return self.settings.strategies or ("rand/1", "best/2")

    def _reflects(self) -> bool:
        return True if self.settings.reflect is None else self.settings.reflect

    def _start(self) -> None:
        super()._start()
        codes = [STRATEGIES[strategy] for strategy in self._strategies()]
        grid = np.meshgrid(codes, self.settings.scale_factors, self.settings.crossover_rates, indexing="ij")
        self._pool_strategies = np.ascontiguousarray(grid[0].ravel(), dtype=np.int64)
        self._pool_scale_factors = np.ascontiguousarray(grid[1].ravel(), dtype=np.float64)
        self._pool_crossover_rates = np.ascontiguousarray(grid[2].ravel(), dtype=np.float64)

    def _initialize(self, positions: FloatArray, fitness: FloatArray) -> CDEState:
        return CDEState(
            positions=positions,
            fitness=fitness,
            scale_factors=np.empty_like(fitness),
            crossover_rates=np.empty_like(fitness),
            counts=np.zeros((len(fitness), len(self._pool_strategies)), np.int64),
            chosen=np.zeros(fitness.shape, np.int64),
        )

    def _propose(self, state: CDEState) -> tuple[CDEState, FloatArray]:
        size = state.fitness.shape[1]
        uniforms = draw_uniforms(self._rngs, size * (6 + self._dimension))
        counts = reset_counts(state.counts, self.settings.initial_count, self.settings.reset_probability)
        chosen = choose_settings(counts, self.settings.initial_count, uniforms, size)
        scale_factors, crossover_rates = self._pool_scale_factors[chosen], self._pool_crossover_rates[chosen]
        trials = _propose_trials(
            state.positions,
            state.fitness,
            self._pool_strategies[chosen],
            scale_factors,
            crossover_rates,
            self._reflects(),
            uniforms,
            self._lower,
            self._upper,
        )
        proposed = replace(
            state, counts=counts, chosen=chosen, scale_factors=scale_factors, crossover_rates=crossover_rates
        )
        return proposed, trials

    def _select(self, state: CDEState, trials: FloatArray, fitness: FloatArray) -> CDEState:
        positions, next_fitness, replaced = select_not_worse(state.positions, state.fitness, trials, fitness)
        counts = state.counts.copy()
        runs, individuals = np.nonzero(replaced)
        np.add.at(counts, (runs, state.chosen[runs, individuals]), 1)
        return replace(state, positions=positions, fitness=next_fitness, counts=counts)


class CDEPCM(CDE):
    """cDE's parameter control on one strategy.

    NOTE: the published account does not say how bounds and crossover were handled; at n = 30 no variant tried
    fits every published number.
    """

    name = "cde-pcm"

    def _population_size(self, dimension: int) -> int:
        return self.settings.population_size or 5 * dimension

    def _strategies(self) -> tuple[str, ...]:
        return self.settings.strategies or (("rand/1",) if self._dimension < _HIGH_DIMENSION else ("best/1",))

    def _reflects(self) -> bool:
        return self._dimension < _HIGH_DIMENSION if self.settings.reflect is None else self.settings.reflect


@compiled
def reset_counts(counts: IntArray, initial_count: float, reset_probability: float) -> IntArray:
    """Return the counts (R, H), all zero in runs where a setting has become too improbable."""
    kept = counts.copy()
    for run in range(counts.shape[0]):
        total = counts[run].sum() + initial_count * counts.shape[1]
        if (counts[run].min() + initial_count) / total < reset_probability:
            kept[run] = 0
    return kept


@compiled
def choose_settings(counts: IntArray, initial_count: float, uniforms: FloatArray, size: int) -> IntArray:
    """Return each individual's setting, shape (R, N), drawn in proportion to count + initial count.

    The ``uniforms`` of each run begin with the N numbers that decide.
    """
    num_runs, num_settings = counts.shape
    chosen = np.empty((num_runs, size), np.int64)
    for run in range(num_runs):
        shares = np.cumsum(counts[run] + initial_count)
        for i in range(size):
            drawn = np.searchsorted(shares, uniforms[run, i] * shares[-1], side="right")
            chosen[run, i] = min(drawn, num_settings - 1)
    return chosen


@compiled
def _competing_donors(
    positions: FloatArray, best: int, strategies: IntArray, scale_factors: FloatArray, uniforms: FloatArray
) -> FloatArray:
    """Return one run's donors, each by its own strategy; ``uniforms`` has shape (4 N,)."""
    size = positions.shape[0]
    picked = pick_distinct(uniforms.reshape(4, size), size)
    base, plus, minus = np.empty(size, np.int64), np.empty((2, size), np.int64), np.empty((2, size), np.int64)
    for i in range(size):
        first, second, third, fourth = picked[:, i]
        # A strategy with one difference gets a second one of an individual with itself, which is exactly zero.
        if strategies[i] == 0:
            base[i], plus[0, i], minus[0, i], plus[1, i], minus[1, i] = first, second, third, fourth, fourth
        elif strategies[i] == 1:
            base[i], plus[0, i], minus[0, i], plus[1, i], minus[1, i] = best, first, second, fourth, fourth
        else:
            base[i], plus[0, i], minus[0, i], plus[1, i], minus[1, i] = best, first, third, second, fourth
    return mutate_from_base(positions, scale_factors, base, plus, minus)


@compiled
def _propose_trials(
    positions: FloatArray,
    fitness: FloatArray,
    strategies: IntArray,
    scale_factors: FloatArray,
    crossover_rates: FloatArray,
    reflect: bool,
    uniforms: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> FloatArray:
    """Return trials (R, N, D); ``uniforms`` have N (5 + D) per run after the first N."""
    num_runs, size, dimension = positions.shape
    trials = np.empty_like(positions)
    for run in range(num_runs):
        row, parents, rates = uniforms[run, size:], positions[run], crossover_rates[run]
        best = int(np.argmin(fitness[run]))
        donors = _competing_donors(parents, best, strategies[run], scale_factors[run], row[: 4 * size])
        crossing = row[5 * size :].reshape(size, dimension)
        if reflect:
            forced = force_when_empty(crossing, rates, row[4 * size : 5 * size])
            crossed = cross_binomial(parents, donors, rates, crossing, forced)
            trials[run] = repair_reflect(crossed, lower[run], upper[run])
        else:
            forced = pick_leading(row[4 * size : 5 * size], dimension)
            crossed = cross_binomial(parents, donors, rates, crossing, forced)
            trials[run] = repair_midpoint(crossed, parents, lower[run], upper[run])
    return trials
