"""jSO: Brest, Maucec and Boskovic, Single Objective Real-Parameter Optimization: Algorithm jSO (CEC 2017).

The algorithm is that of the distributed program, whose results are the published ones. It differs from the
paper in that memory entries are averaged with their old value, a negative remembered CR means CR = 0, p-best
is never the individual itself in the first half, and the number of p-best candidates changes only when the
population shrinks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.baselines.base import check_at_least, check_fraction
from de_gym.baselines.jso_steps import (
    drop_worst,
    propose_trials,
    remember_successes,
    sample_parameters,
    select_and_archive,
)
from de_gym.baselines.population_based import PopulationOptimizer, PopulationState
from de_gym.evolution import draw_normals, draw_uniforms

# Pairs (until which fraction of the budget, value): the first whose time has not passed applies, else the last.
Schedule = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class JSOSettings:
    """Constants of jSO; the defaults are the distributed program's, ``lde_paper`` gives the LDE paper's.

    Attributes:
        population_size: Initial N; None for round(25 ln(n) sqrt(n)).
        min_population_size: N at the end of the budget.
        memory_size: H, of which the last entry always reads (``fixed_mean``, ``fixed_mean``).
        initial_scale_factor: First mean F of the memory.
        initial_crossover_rate: First mean CR of the memory.
        fixed_mean: Mean F and CR of the last memory entry.
        spread: Scale of the normal and the Cauchy distribution.
        max_archive_size: Capacity of the archive where it is smaller than N; None for N.
        max_pbest_fraction: p at the start.
        min_pbest_fraction: p at the end.
        min_pbest: Smallest number of p-best candidates after the first reduction.
        other_pbest_until: Fraction of the budget during which p-best is never the individual itself.
        crossover_rate_floors: Smallest CR over time.
        scale_factor_ceilings: Largest F over time.
        pbest_weights: Factor of F in front of the difference to p-best over time.
    """

    population_size: int | None = None
    min_population_size: int = 4
    memory_size: int = 5
    initial_scale_factor: float = 0.3
    initial_crossover_rate: float = 0.8
    fixed_mean: float = 0.9
    spread: float = 0.1
    max_archive_size: int | None = None
    max_pbest_fraction: float = 0.25
    min_pbest_fraction: float = 0.125
    min_pbest: int = 2
    other_pbest_until: float = 0.5
    crossover_rate_floors: Schedule = ((0.25, 0.7), (0.5, 0.6), (1.0, 0.0))
    scale_factor_ceilings: Schedule = ((0.6, 0.7), (1.0, 1.0))
    pbest_weights: Schedule = ((0.2, 0.7), (0.4, 0.8), (1.0, 1.2))

    def __post_init__(self) -> None:
        check_at_least("population_size", self.population_size, 4)
        check_at_least("min_population_size", self.min_population_size, 4)
        check_at_least("memory_size", self.memory_size, 1)
        check_at_least("max_archive_size", self.max_archive_size, 0)
        check_at_least("min_pbest", self.min_pbest, 2)
        for name in ("max_pbest_fraction", "min_pbest_fraction", "initial_scale_factor", "initial_crossover_rate"):
            check_fraction(name, getattr(self, name))

    @classmethod
    def lde_paper(cls) -> JSOSettings:
        """Return the variant in the LDE paper's table, which its jSO columns fit: mean F 0.5, archive of 20."""
        return cls(initial_scale_factor=0.5, max_archive_size=20)


@dataclass(frozen=True, slots=True)
class JSOState(PopulationState):
    """Populations followed by their archives, and the memory.

    Attributes:
        archive_size: Rows of the archive in use, shape (R,).
        memory_scale_factor: Shape (R, H).
        memory_crossover_rate: Shape (R, H).
        memory_slot: The entry written next, shape (R,).
        num_pbest: Number of p-best candidates, shape (R,).
        archive_uniforms: Numbers that decide which archive members are overwritten, shape (R, N).
    """

    archive_size: IntArray
    memory_scale_factor: FloatArray
    memory_crossover_rate: FloatArray
    memory_slot: IntArray
    num_pbest: IntArray
    archive_uniforms: FloatArray


class JSO(PopulationOptimizer[JSOState]):
    """Success-history DE with a weighted p-best difference and a population that shrinks linearly."""

    name = "jso"
    settings: JSOSettings

    def __init__(self, settings: JSOSettings | None = None) -> None:
        self.settings = settings or JSOSettings()

    def _population_size(self, dimension: int) -> int:
        # The formula is zero at n = 1, where we take the size of n = 2.
        coordinates = max(dimension, 2)
        return self.settings.population_size or int(25.0 * math.log(coordinates) * math.sqrt(coordinates) + 0.5)

    def _capacity(self, population_size: int) -> int:
        limit = self.settings.max_archive_size
        return population_size if limit is None else min(limit, population_size)

    def _initialize(self, positions: FloatArray, fitness: FloatArray) -> JSOState:
        settings, (num_runs, size) = self.settings, fitness.shape
        archive = np.zeros((num_runs, self._capacity(size), self._dimension))
        num_pbest = min(max(int(settings.max_pbest_fraction * size + 0.5), settings.min_pbest), size)
        return JSOState(
            positions=np.concatenate([positions, archive], axis=1),
            fitness=fitness,
            scale_factors=np.empty_like(fitness),
            crossover_rates=np.empty_like(fitness),
            archive_size=np.zeros(num_runs, np.int64),
            memory_scale_factor=np.full((num_runs, settings.memory_size), settings.initial_scale_factor),
            memory_crossover_rate=np.full((num_runs, settings.memory_size), settings.initial_crossover_rate),
            memory_slot=np.zeros(num_runs, np.int64),
            num_pbest=np.full(num_runs, num_pbest),
            archive_uniforms=np.empty_like(fitness),
        )

    def _progress(self) -> float:
        """Return the share of the budget spent; all runs of a batch start together and cost the same."""
        return float(self._evaluations[0]) / self._max_evaluations

    def _propose(self, state: JSOState) -> tuple[JSOState, FloatArray]:
        settings, size, progress = self.settings, state.fitness.shape[1], self._progress()
        uniforms = draw_uniforms(self._rngs, size * (7 + self._dimension))
        normals = draw_normals(self._rngs, size)
        scale_factors, crossover_rates = sample_parameters(
            state.memory_scale_factor,
            state.memory_crossover_rate,
            uniforms,
            normals,
            settings.fixed_mean,
            settings.spread,
            _scheduled(settings.scale_factor_ceilings, progress),
            _scheduled(settings.crossover_rate_floors, progress),
        )
        trials = propose_trials(
            state.positions,
            state.fitness,
            state.archive_size,
            scale_factors,
            crossover_rates,
            _scheduled(settings.pbest_weights, progress),
            state.num_pbest,
            progress < settings.other_pbest_until,
            uniforms,
            self._lower,
            self._upper,
        )
        proposed = replace(
            state,
            scale_factors=scale_factors,
            crossover_rates=crossover_rates,
            archive_uniforms=np.ascontiguousarray(uniforms[:, -size:]),
        )
        return proposed, trials

    def _select(self, state: JSOState, trials: FloatArray, fitness: FloatArray) -> JSOState:
        positions, next_fitness, archive_size = select_and_archive(
            state.positions, state.fitness, state.archive_size, trials, fitness, state.archive_uniforms
        )
        memory_scale_factor, memory_crossover_rate, memory_slot = remember_successes(
            state.fitness,
            fitness,
            state.scale_factors,
            state.crossover_rates,
            state.memory_scale_factor,
            state.memory_crossover_rate,
            state.memory_slot,
        )
        selected = replace(
            state,
            positions=positions,
            fitness=next_fitness,
            archive_size=archive_size,
            memory_scale_factor=memory_scale_factor,
            memory_crossover_rate=memory_crossover_rate,
            memory_slot=memory_slot,
        )
        return self._reduce(selected)

    def _reduce(self, state: JSOState) -> JSOState:
        """Return the state with as many of the worst individuals deleted as the linear plan demands."""
        settings, size, progress = self.settings, state.fitness.shape[1], self._progress()
        initial = self._population_size(self._dimension)
        planned = int(initial + (settings.min_population_size - initial) * progress + 0.5)
        next_size = max(planned, settings.min_population_size)
        if next_size >= size:
            return state
        positions, fitness = drop_worst(state.positions, state.fitness, next_size, self._capacity(next_size))
        decline = settings.min_pbest_fraction - settings.max_pbest_fraction
        num_pbest = int(next_size * (settings.max_pbest_fraction + decline * progress) + 0.5)
        return replace(
            state,
            positions=positions,
            fitness=fitness,
            archive_size=np.minimum(state.archive_size, self._capacity(next_size)),
            num_pbest=np.full(len(fitness), min(max(num_pbest, settings.min_pbest), next_size)),
        )


def _scheduled(schedule: Schedule, progress: float) -> float:
    """Return the value of the first entry whose time has not passed, or of the last."""
    return next((value for until, value in schedule if progress < until), schedule[-1][1])
