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
from de_gym.baselines.population_based import PopulationOptimizer, PopulationState
from de_gym.baselines.steps import current_to_pbest_trials, sample_clipped_normal, sample_positive_cauchy
from de_gym.compiling import compiled
from de_gym.evolution import draw_normals, draw_uniforms
from de_gym.evolution.operators import pick_leading, rank_by_fitness

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
        num_pbest = max(int(settings.max_pbest_fraction * size + 0.5), settings.min_pbest)
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
        scale_factors, crossover_rates = _sample_parameters(
            state.memory_scale_factor,
            state.memory_crossover_rate,
            uniforms,
            normals,
            settings.fixed_mean,
            settings.spread,
            _scheduled(settings.scale_factor_ceilings, progress),
            _scheduled(settings.crossover_rate_floors, progress),
        )
        trials = _propose_trials(
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
        positions, next_fitness, archive_size = _select_and_archive(
            state.positions, state.fitness, state.archive_size, trials, fitness, state.archive_uniforms
        )
        memory_scale_factor, memory_crossover_rate, memory_slot = _remember_successes(
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
        positions, fitness = _drop_worst(state.positions, state.fitness, next_size, self._capacity(next_size))
        decline = settings.min_pbest_fraction - settings.max_pbest_fraction
        num_pbest = int(next_size * (settings.max_pbest_fraction + decline * progress) + 0.5)
        return replace(
            state,
            positions=positions,
            fitness=fitness,
            archive_size=np.minimum(state.archive_size, self._capacity(next_size)),
            num_pbest=np.full(len(fitness), max(num_pbest, settings.min_pbest)),
        )


def _scheduled(schedule: Schedule, progress: float) -> float:
    """Return the value of the first entry whose time has not passed, or of the last."""
    return next((value for until, value in schedule if progress < until), schedule[-1][1])


@compiled
def _sample_parameters(
    memory_scale_factor: FloatArray,
    memory_crossover_rate: FloatArray,
    uniforms: FloatArray,
    normals: FloatArray,
    fixed_mean: float,
    spread: float,
    ceiling: float,
    floor: float,
) -> tuple[FloatArray, FloatArray]:
    """Return F (R, N) and CR (R, N) around random memory entries; ``uniforms`` begin with 2 N per run."""
    num_runs, size = normals.shape
    memory_size = memory_scale_factor.shape[1]
    scale_factors, crossover_rates = np.empty_like(normals), np.empty_like(normals)
    for run in range(num_runs):
        slots = pick_leading(uniforms[run, :size], memory_size)
        factor_means, rate_means = np.empty(size), np.empty(size)
        for i in range(size):
            is_fixed = slots[i] == memory_size - 1
            factor_means[i] = fixed_mean if is_fixed else memory_scale_factor[run, slots[i]]
            rate_means[i] = fixed_mean if is_fixed else memory_crossover_rate[run, slots[i]]
        factors = sample_positive_cauchy(uniforms[run, size : 2 * size], factor_means, spread)
        rates = sample_clipped_normal(normals[run], rate_means, spread)
        for i in range(size):
            scale_factors[run, i] = min(factors[i], ceiling)
            rate = rates[i] if rate_means[i] >= 0.0 else 0.0
            crossover_rates[run, i] = max(rate, floor)
    return scale_factors, crossover_rates


@compiled
def pick_other_leading(uniforms: FloatArray, order: IntArray, count: int) -> IntArray:
    """Return for each individual a row among the first ``count`` of ``order`` that is not its own, shape (N,)."""
    size = order.shape[0]
    ranks = np.empty(size, np.int64)
    for rank in range(size):
        ranks[order[rank]] = rank
    picked = np.empty(size, np.int64)
    for i in range(size):
        choices = count - 1 if ranks[i] < count else count
        rank = int(uniforms[i] * choices)
        picked[i] = order[rank + (rank >= ranks[i])]
    return picked


@compiled
def _propose_trials(
    positions: FloatArray,
    fitness: FloatArray,
    archive_size: IntArray,
    scale_factors: FloatArray,
    crossover_rates: FloatArray,
    pbest_weight: float,
    num_pbest: IntArray,
    other_pbest: bool,
    uniforms: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> FloatArray:
    """Return trials (R, N, D); ``uniforms`` have N (4 + D) per run after the first 2 N."""
    (num_runs, size), dimension = fitness.shape, positions.shape[2]
    trials = np.empty((num_runs, size, dimension))
    for run in range(num_runs):
        row, pool = uniforms[run, 2 * size : (6 + dimension) * size], positions[run]
        order = rank_by_fitness(fitness[run])
        if other_pbest:
            pbest = pick_other_leading(row[:size], order, num_pbest[run])
        else:
            pbest = order[pick_leading(row[:size], num_pbest[run])]
        trials[run] = current_to_pbest_trials(
            pool[:size],
            pool,
            size + archive_size[run],
            scale_factors[run],
            pbest_weight * scale_factors[run],
            crossover_rates[run],
            pbest,
            row[size:],
            lower[run],
            upper[run],
        )
    return trials


@compiled
def _select_and_archive(
    positions: FloatArray,
    fitness: FloatArray,
    archive_size: IntArray,
    trials: FloatArray,
    trial_fitness: FloatArray,
    uniforms: FloatArray,
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return the next positions with archives, fitness and archive sizes.

    Trials that are not worse replace; parents that are strictly beaten go to the archive in the order of the
    population, each on a slot at random once it is full.
    """
    num_runs, size = fitness.shape
    capacity = positions.shape[1] - size
    next_positions, next_fitness = positions.copy(), fitness.copy()
    next_archive_size = archive_size.copy()
    for run in range(num_runs):
        count = archive_size[run]
        for i in range(size):
            if trial_fitness[run, i] <= fitness[run, i]:
                next_positions[run, i] = trials[run, i]
                next_fitness[run, i] = trial_fitness[run, i]
            if trial_fitness[run, i] < fitness[run, i] and capacity > 0:
                slot = count if count < capacity else int(uniforms[run, i] * capacity)
                next_positions[run, size + slot] = positions[run, i]
                count = min(count + 1, capacity)
        next_archive_size[run] = count
    return next_positions, next_fitness, next_archive_size


@compiled
def gain_weights(fitness: FloatArray, trial_fitness: FloatArray) -> FloatArray:
    """Return each trial's improvement of its parent as a share of the largest one, shape (N,), zero for the others.

    Improvements from or to infinity outweigh all finite ones and count alike.
    """
    weights = np.empty_like(fitness)
    largest = 0.0
    for i in range(fitness.shape[0]):
        weights[i] = fitness[i] - trial_fitness[i] if trial_fitness[i] < fitness[i] else 0.0
        largest = max(largest, weights[i])
    for i in range(fitness.shape[0]):
        if largest == np.inf:
            weights[i] = 1.0 if weights[i] == np.inf else 0.0
        elif largest > 0.0:
            weights[i] /= largest
    return weights


@compiled
def _remember_successes(
    fitness: FloatArray,
    trial_fitness: FloatArray,
    scale_factors: FloatArray,
    crossover_rates: FloatArray,
    memory_scale_factor: FloatArray,
    memory_crossover_rate: FloatArray,
    memory_slot: IntArray,
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return both memories (R, H) and the next slots (R,), one entry averaged with the weighted Lehmer means.

    The last entry is written like the others although it is never read.
    """
    next_scale_factor, next_crossover_rate = memory_scale_factor.copy(), memory_crossover_rate.copy()
    next_slot = memory_slot.copy()
    for run in range(fitness.shape[0]):
        weights = gain_weights(fitness[run], trial_fitness[run])
        factor_sum, factor_squares, rate_sum, rate_squares = 0.0, 0.0, 0.0, 0.0
        for i in range(weights.shape[0]):
            factor, rate = scale_factors[run, i], crossover_rates[run, i]
            factor_sum += weights[i] * factor
            factor_squares += weights[i] * factor * factor
            rate_sum += weights[i] * rate
            rate_squares += weights[i] * rate * rate
        if factor_sum > 0.0:
            slot = memory_slot[run]
            lehmer_rate = rate_squares / rate_sum if rate_sum > 0.0 else -1.0
            next_scale_factor[run, slot] = 0.5 * (memory_scale_factor[run, slot] + factor_squares / factor_sum)
            next_crossover_rate[run, slot] = 0.5 * (memory_crossover_rate[run, slot] + lehmer_rate)
            next_slot[run] = (slot + 1) % memory_scale_factor.shape[1]
    return next_scale_factor, next_crossover_rate, next_slot


@compiled
def _drop_worst(
    positions: FloatArray, fitness: FloatArray, next_size: int, next_capacity: int
) -> tuple[FloatArray, FloatArray]:
    """Return positions with archives and fitness of the best ``next_size``, in their old order.

    Among equals the first goes first; the archive loses its tail.
    """
    num_runs, size = fitness.shape
    next_positions = np.empty((num_runs, next_size + next_capacity, positions.shape[2]))
    next_fitness = np.empty((num_runs, next_size))
    for run in range(num_runs):
        dropped = np.zeros(size, np.bool_)
        worst_first = rank_by_fitness(-fitness[run])
        for rank in range(size - next_size):
            dropped[worst_first[rank]] = True
        row = 0
        for i in range(size):
            if not dropped[i]:
                next_positions[run, row] = positions[run, i]
                next_fitness[run, row] = fitness[run, i]
                row += 1
        next_positions[run, next_size:] = positions[run, size : size + next_capacity]
    return next_positions, next_fitness
