"""JADE without and with archive: Zhang and Sanderson, JADE: Adaptive DE with Optional External Archive (2009).

NOTE: the authors' program does not count the initial population's evaluations; we do. It also drops exact
duplicates from the archive, which occur too rarely to matter; we do not look for them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from de_gym.arrays import BoolArray, FloatArray, IntArray
from de_gym.baselines.base import check_at_least, check_fraction
from de_gym.baselines.population_based import PopulationOptimizer, PopulationState
from de_gym.baselines.steps import current_to_pbest_trials, sample_clipped_normal, sample_positive_cauchy
from de_gym.evolution import draw_normals, draw_uniforms
from de_gym.machine.compiling import compiled
from de_gym.machine.ordering import rank_by_fitness
from de_gym.machine.picks import pick_leading


@dataclass(frozen=True, slots=True)
class JADESettings:
    """Constants of JADE as in the LDE paper.

    Attributes:
        population_size: N; None for the paper's 30 up to n = 10, 100 at n = 30, 400 at n = 100, linear in
            between and at least that beyond.
        use_archive: Whether beaten parents serve as r2.
        archive_fraction: Capacity of the archive in multiples of N.
        learning_rate: c, the weight of the newest successes in both means.
        pbest_fraction: p.
        min_pbest: Smallest number of p-best candidates; only the authors' program has it.
        initial_mean: Both means at the start.
        spread: Scale of the normal and the Cauchy distribution.
    """

    population_size: int | None = None
    use_archive: bool = False
    archive_fraction: float = 1.0
    learning_rate: float = 0.1
    pbest_fraction: float = 0.05
    min_pbest: int = 2
    initial_mean: float = 0.5
    spread: float = 0.1

    def __post_init__(self) -> None:
        check_at_least("population_size", self.population_size, 4)
        check_at_least("min_pbest", self.min_pbest, 1)
        for name in ("learning_rate", "pbest_fraction", "initial_mean"):
            check_fraction(name, getattr(self, name))


@dataclass(frozen=True, slots=True)
class JADEState(PopulationState):
    """Populations followed by their archives, and the two means.

    Attributes:
        archive_size: Rows of the archive in use, shape (R,).
        mean_scale_factor: Shape (R,).
        mean_crossover_rate: Shape (R,).
        archive_uniforms: Numbers that decide which archive members leave, shape (R, N).
    """

    archive_size: IntArray
    mean_scale_factor: FloatArray
    mean_crossover_rate: FloatArray
    archive_uniforms: FloatArray


class JADE(PopulationOptimizer[JADEState]):
    """Adaptive DE/current-to-pbest/1/bin whose mean F and CR follow the successful ones."""

    name = "jade"
    settings: JADESettings

    def __init__(self, settings: JADESettings | None = None) -> None:
        self.settings = settings or JADESettings()

    def _population_size(self, dimension: int) -> int:
        published = np.interp(dimension, (10, 30, 100), (30, 100, 400))
        return self.settings.population_size or int(published)

    def _initialize(self, positions: FloatArray, fitness: FloatArray) -> JADEState:
        num_runs, size = fitness.shape
        capacity = int(self.settings.archive_fraction * size) if self.settings.use_archive else 0
        archive = np.zeros((num_runs, capacity, self._dimension))
        means = np.full(num_runs, self.settings.initial_mean)
        return JADEState(
            positions=np.concatenate([positions, archive], axis=1),
            fitness=fitness,
            scale_factors=np.empty_like(fitness),
            crossover_rates=np.empty_like(fitness),
            archive_size=np.zeros(num_runs, np.int64),
            mean_scale_factor=means,
            mean_crossover_rate=means.copy(),
            archive_uniforms=np.empty_like(fitness),
        )

    def _propose(self, state: JADEState) -> tuple[JADEState, FloatArray]:
        settings, size = self.settings, state.fitness.shape[1]
        num_pbest = min(max(int(settings.pbest_fraction * size + 0.5), settings.min_pbest), size)
        uniforms = draw_uniforms(self._rngs, size * (6 + self._dimension))
        normals = draw_normals(self._rngs, size)
        trials, scale_factors, crossover_rates = _propose(
            state.positions,
            state.fitness,
            state.archive_size,
            state.mean_scale_factor,
            state.mean_crossover_rate,
            num_pbest,
            settings.spread,
            uniforms,
            normals,
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

    def _select(self, state: JADEState, trials: FloatArray, fitness: FloatArray) -> JADEState:
        positions, next_fitness, archive_size = _select_and_archive(
            state.positions, state.fitness, state.archive_size, trials, fitness, state.archive_uniforms
        )
        mean_scale_factor, mean_crossover_rate = _follow_successes(
            fitness < state.fitness,
            state.scale_factors,
            state.crossover_rates,
            state.mean_scale_factor,
            state.mean_crossover_rate,
            self.settings.learning_rate,
        )
        return replace(
            state,
            positions=positions,
            fitness=next_fitness,
            archive_size=archive_size,
            mean_scale_factor=mean_scale_factor,
            mean_crossover_rate=mean_crossover_rate,
        )


class JADEWithArchive(JADE):
    """JADE whose r2 may also be a recently beaten parent."""

    name = "jade-archive"

    def __init__(self, settings: JADESettings | None = None) -> None:
        super().__init__(settings or JADESettings(use_archive=True))


@compiled
def _propose(
    positions: FloatArray,
    fitness: FloatArray,
    archive_size: IntArray,
    mean_scale_factor: FloatArray,
    mean_crossover_rate: FloatArray,
    num_pbest: int,
    spread: float,
    uniforms: FloatArray,
    normals: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return trials (R, N, D), F (R, N) and CR (R, N); ``uniforms`` begin with N (5 + D) per run."""
    (num_runs, size), dimension = fitness.shape, positions.shape[2]
    trials = np.empty((num_runs, size, dimension))
    scale_factors, crossover_rates = np.empty_like(fitness), np.empty_like(fitness)
    for run in range(num_runs):
        row, pool = uniforms[run], positions[run]
        factors = sample_positive_cauchy(row[:size], np.full(size, mean_scale_factor[run]), spread)
        rates = sample_clipped_normal(normals[run], np.full(size, mean_crossover_rate[run]), spread)
        pbest = rank_by_fitness(fitness[run])[pick_leading(row[size : 2 * size], num_pbest)]
        trials[run] = current_to_pbest_trials(
            pool,
            size + archive_size[run],
            factors,
            factors,
            rates,
            pbest,
            row[2 * size : (5 + dimension) * size],
            lower[run],
            upper[run],
        )
        scale_factors[run], crossover_rates[run] = factors, rates
    return trials, scale_factors, crossover_rates


@compiled
def _select_and_archive(
    positions: FloatArray,
    fitness: FloatArray,
    archive_size: IntArray,
    trials: FloatArray,
    trial_fitness: FloatArray,
    uniforms: FloatArray,
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return the next positions with archives, fitness and archive sizes: better trials replace, parents retire.

    Where the archive and the newly beaten parents exceed the capacity, members leave at random, old and new
    alike; ``uniforms`` (R, N) decide which.
    """
    num_runs, size = fitness.shape
    capacity = positions.shape[1] - size
    next_positions, next_fitness = positions.copy(), fitness.copy()
    next_archive_size = archive_size.copy()
    retired = np.empty((capacity + size, positions.shape[2]))
    for run in range(num_runs):
        count = archive_size[run]
        retired[:count] = positions[run, size : size + count]
        for i in range(size):
            if trial_fitness[run, i] < fitness[run, i]:
                retired[count] = positions[run, i]
                count += 1
                next_positions[run, i] = trials[run, i]
                next_fitness[run, i] = trial_fitness[run, i]
        while count > capacity:
            leaving = int(uniforms[run, count - capacity - 1] * count)
            count -= 1
            retired[leaving] = retired[count]
        next_positions[run, size : size + count] = retired[:count]
        next_archive_size[run] = count
    return next_positions, next_fitness, next_archive_size


@compiled
def _follow_successes(
    succeeded: BoolArray,
    scale_factors: FloatArray,
    crossover_rates: FloatArray,
    mean_scale_factor: FloatArray,
    mean_crossover_rate: FloatArray,
    learning_rate: float,
) -> tuple[FloatArray, FloatArray]:
    """Return both means moved towards the Lehmer mean of successful F and the mean of successful CR.

    Reference: JADE, Eqs. (8), (11) and (12).
    """
    next_scale_factor, next_crossover_rate = mean_scale_factor.copy(), mean_crossover_rate.copy()
    for run in range(succeeded.shape[0]):
        count, factor_sum, square_sum, rate_sum = 0, 0.0, 0.0, 0.0
        for i in range(succeeded.shape[1]):
            # A weight instead of a branch, which random data would make the processor mispredict.
            weight = 1.0 if succeeded[run, i] else 0.0
            count += succeeded[run, i]
            factor_sum += weight * scale_factors[run, i]
            square_sum += weight * scale_factors[run, i] * scale_factors[run, i]
            rate_sum += weight * crossover_rates[run, i]
        if count > 0:
            next_scale_factor[run] += learning_rate * (square_sum / factor_sum - mean_scale_factor[run])
            next_crossover_rate[run] += learning_rate * (rate_sum / count - mean_crossover_rate[run])
    return next_scale_factor, next_crossover_rate
