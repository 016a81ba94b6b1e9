"""CoBiDE: Wang, Li, Huang and Li, DE Based on Covariance Matrix Learning and Bimodal Distribution (2014).

CoBiDE-PCM is its parameter control alone, on DE/best/1/bin, as in Tanabe and Fukunaga, Reviewing and
Benchmarking Parameter Control Methods in Differential Evolution (2020).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from de_gym.arrays import BoolArray, FloatArray
from de_gym.baselines.base import check_at_least, check_fraction
from de_gym.baselines.population_based import PopulationOptimizer, PopulationState
from de_gym.baselines.steps import (
    best_1_donors,
    cross_and_repair_midpoint,
    rand_1_donors,
    rotate_rows,
    sample_cauchy,
    sample_positive_cauchy,
    select_not_worse,
)
from de_gym.evolution import draw_uniforms
from de_gym.evolution.operators import cross_binomial, repair_reflect_once
from de_gym.machine.compiling import compiled
from de_gym.machine.ordering import rank_by_fitness
from de_gym.machine.picks import pick_leading


@dataclass(frozen=True, slots=True)
class BimodalSettings:
    """The bimodal distribution of F and CR.

    Attributes:
        scale_factor_modes: Locations of the two Cauchy distributions of F.
        crossover_rate_modes: Locations of the two Cauchy distributions of CR.
        spread: Scale of all four.
        low_crossover_rate: Replaces a CR at or below zero. NOTE: one expects 0; the authors' program has this. The
            LDE paper's mean on official F17 at n = 10 fits 0 and not this value.
    """

    scale_factor_modes: tuple[float, float] = (0.65, 1.0)
    crossover_rate_modes: tuple[float, float] = (0.1, 0.95)
    spread: float = 0.1
    low_crossover_rate: float = 0.1


@dataclass(frozen=True, slots=True)
class CoBiDESettings:
    """Constants of CoBiDE as in the LDE paper.

    Attributes:
        population_size: N.
        eigen_probability: Probability that a generation crosses over in the eigenvector coordinates.
        covariance_fraction: Share of the best individuals whose covariance is learned.
        bimodal: Distribution of F and CR.
    """

    population_size: int = 60
    eigen_probability: float = 0.4
    covariance_fraction: float = 0.5
    bimodal: BimodalSettings = BimodalSettings()

    def __post_init__(self) -> None:
        check_at_least("population_size", self.population_size, 4)
        check_fraction("eigen_probability", self.eigen_probability)
        check_fraction("covariance_fraction", self.covariance_fraction)


@dataclass(frozen=True, slots=True)
class CoBiDEPCMSettings:
    """Constants of CoBiDE-PCM as in the LDE paper.

    Attributes:
        population_size: N; None for 5 n.
        bimodal: Distribution of F and CR.
    """

    population_size: int | None = None
    bimodal: BimodalSettings = BimodalSettings()

    def __post_init__(self) -> None:
        check_at_least("population_size", self.population_size, 4)


@dataclass(frozen=True, slots=True)
class BimodalState(PopulationState):
    """Populations, and whose parameters have just succeeded.

    Attributes:
        succeeded: Whether each individual's last trial replaced it, shape (R, N).
        used_eigenvectors: Whether each run's last crossover was in the eigenvector coordinates, shape (R,).
    """

    succeeded: BoolArray
    used_eigenvectors: BoolArray


class _BimodalOptimizer(PopulationOptimizer[BimodalState]):
    """What CoBiDE and its parameter control alone share: individuals keep F and CR as long as they succeed."""

    def _initialize(self, positions: FloatArray, fitness: FloatArray) -> BimodalState:
        return BimodalState(
            positions=positions,
            fitness=fitness,
            scale_factors=np.zeros_like(fitness),
            crossover_rates=np.zeros_like(fitness),
            succeeded=np.zeros(fitness.shape, np.bool_),
            used_eigenvectors=np.zeros(len(fitness), np.bool_),
        )

    def _refresh(self, state: BimodalState, uniforms: FloatArray, bimodal: BimodalSettings) -> BimodalState:
        """Return the state with new parameters for those who failed; ``uniforms`` begin with 4 N per run."""
        scale_factors, crossover_rates = refresh_failed(
            state.succeeded,
            state.scale_factors,
            state.crossover_rates,
            uniforms,
            bimodal.scale_factor_modes,
            bimodal.crossover_rate_modes,
            bimodal.spread,
            bimodal.low_crossover_rate,
        )
        return replace(state, scale_factors=scale_factors, crossover_rates=crossover_rates)

    def _select(self, state: BimodalState, trials: FloatArray, fitness: FloatArray) -> BimodalState:
        positions, next_fitness, succeeded = select_not_worse(state.positions, state.fitness, trials, fitness)
        return replace(state, positions=positions, fitness=next_fitness, succeeded=succeeded)


class CoBiDE(_BimodalOptimizer):
    """DE/rand/1 that sometimes crosses over along the eigenvectors of the best half's covariance."""

    name = "cobide"
    settings: CoBiDESettings

    def __init__(self, settings: CoBiDESettings | None = None) -> None:
        self.settings = settings or CoBiDESettings()

    def _population_size(self, dimension: int) -> int:
        return self.settings.population_size

    def _propose(self, state: BimodalState) -> tuple[BimodalState, FloatArray]:
        settings, size = self.settings, state.fitness.shape[1]
        uniforms = draw_uniforms(self._rngs, size * (8 + self._dimension) + 1)
        refreshed = self._refresh(state, uniforms, settings.bimodal)
        use_eigenvectors = uniforms[:, -1] < settings.eigen_probability
        trials = _propose_cobide(
            state.positions,
            state.fitness,
            refreshed.scale_factors,
            refreshed.crossover_rates,
            use_eigenvectors,
            max(int(settings.covariance_fraction * size + 0.5), 2),
            uniforms,
            self._lower,
            self._upper,
        )
        return replace(refreshed, used_eigenvectors=use_eigenvectors), trials


class CoBiDEPCM(_BimodalOptimizer):
    """CoBiDE's parameter control on DE/best/1/bin with midpoint repair, without covariance."""

    name = "cobide-pcm"
    settings: CoBiDEPCMSettings

    def __init__(self, settings: CoBiDEPCMSettings | None = None) -> None:
        self.settings = settings or CoBiDEPCMSettings()

    def _population_size(self, dimension: int) -> int:
        return self.settings.population_size or 5 * dimension

    def _propose(self, state: BimodalState) -> tuple[BimodalState, FloatArray]:
        uniforms = draw_uniforms(self._rngs, state.fitness.shape[1] * (7 + self._dimension))
        refreshed = self._refresh(state, uniforms, self.settings.bimodal)
        trials = _propose_best_1(
            state.positions,
            state.fitness,
            refreshed.scale_factors,
            refreshed.crossover_rates,
            uniforms,
            self._lower,
            self._upper,
        )
        return refreshed, trials


@compiled
def refresh_failed(
    succeeded: BoolArray,
    scale_factors: FloatArray,
    crossover_rates: FloatArray,
    uniforms: FloatArray,
    scale_factor_modes: tuple[float, float],
    crossover_rate_modes: tuple[float, float],
    spread: float,
    low_crossover_rate: float,
) -> tuple[FloatArray, FloatArray]:
    """Return F (R, N) and CR (R, N), drawn anew for individuals whose last trial failed.

    The ``uniforms`` of each run begin with N each for the mode of F, F, the mode of CR, and CR.
    """
    num_runs, size = succeeded.shape
    next_factors, next_rates = np.empty_like(scale_factors), np.empty_like(crossover_rates)
    factor_modes, rate_modes = np.array(scale_factor_modes), np.array(crossover_rate_modes)
    for run in range(num_runs):
        row = uniforms[run]
        factor_locations = factor_modes[pick_leading(row[:size], 2)]
        factors = sample_positive_cauchy(row[size : 2 * size], factor_locations, spread)
        rate_locations = rate_modes[pick_leading(row[2 * size : 3 * size], 2)]
        rates = sample_cauchy(row[3 * size : 4 * size], rate_locations, spread)
        for i in range(size):
            rate = low_crossover_rate if rates[i] <= 0.0 else min(rates[i], 1.0)
            next_factors[run, i] = scale_factors[run, i] if succeeded[run, i] else factors[i]
            next_rates[run, i] = crossover_rates[run, i] if succeeded[run, i] else rate
    return next_factors, next_rates


@compiled
def learn_eigenvectors(positions: FloatArray, fitness: FloatArray, num_best: int) -> FloatArray:
    """Return an orthonormal basis (D, D), in columns, of eigenvectors of the best individuals' covariance.

    NOTE: the authors add a multiple of the identity to an ill-conditioned covariance, which changes no
    eigenvector and is left out.
    """
    best = positions[rank_by_fitness(fitness)[:num_best]]
    dimension = best.shape[1]
    for j in range(dimension):
        best[:, j] -= best[:, j].mean()
    covariance = np.zeros((dimension, dimension))
    for row in range(best.shape[0]):
        for j in range(dimension):
            covariance[j] += best[row, j] * best[row]
    basis: FloatArray = np.linalg.eigh(covariance / (best.shape[0] - 1.0))[1]
    return basis


@compiled
def _propose_cobide(
    positions: FloatArray,
    fitness: FloatArray,
    scale_factors: FloatArray,
    crossover_rates: FloatArray,
    use_eigenvectors: BoolArray,
    num_best: int,
    uniforms: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> FloatArray:
    """Return trials (R, N, D); ``uniforms`` have N (4 + D) per run after the first 4 N."""
    num_runs, size, dimension = positions.shape
    trials = np.empty_like(positions)
    for run in range(num_runs):
        row, parents, rates = uniforms[run, 4 * size :], positions[run], crossover_rates[run]
        donors = rand_1_donors(parents, scale_factors[run], row[: 3 * size])
        donors = repair_reflect_once(donors, lower[run], upper[run])
        forced = pick_leading(row[3 * size : 4 * size], dimension)
        crossing = row[4 * size : (4 + dimension) * size].reshape(size, dimension)
        if use_eigenvectors[run]:
            vectors = learn_eigenvectors(parents, fitness[run], num_best)
            basis, inverse = np.ascontiguousarray(vectors), np.ascontiguousarray(vectors.T)
            rotated_parents, rotated_donors = rotate_rows(parents, basis), rotate_rows(donors, basis)
            rotated = cross_binomial(rotated_parents, rotated_donors, rates, crossing, forced)
            trials[run] = repair_reflect_once(rotate_rows(rotated, inverse), lower[run], upper[run])
        else:
            trials[run] = cross_binomial(parents, donors, rates, crossing, forced)
    return trials


@compiled
def _propose_best_1(
    positions: FloatArray,
    fitness: FloatArray,
    scale_factors: FloatArray,
    crossover_rates: FloatArray,
    uniforms: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> FloatArray:
    """Return trials (R, N, D); ``uniforms`` have N (3 + D) per run after the first 4 N."""
    size = positions.shape[1]
    trials = np.empty_like(positions)
    for run in range(positions.shape[0]):
        row, parents = uniforms[run, 4 * size :], positions[run]
        best = int(np.argmin(fitness[run]))
        donors = best_1_donors(parents, best, scale_factors[run], row[: 2 * size])
        trials[run] = cross_and_repair_midpoint(
            parents, donors, crossover_rates[run], row[2 * size :], lower[run], upper[run]
        )
    return trials
