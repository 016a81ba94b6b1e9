"""DE/rand/1/bin with constant parameters: Storn and Price, Differential Evolution (1997)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from de_gym.arrays import FloatArray
from de_gym.baselines.base import check_at_least, check_fraction
from de_gym.baselines.population_based import PopulationOptimizer, PopulationState
from de_gym.baselines.steps import cross_and_repair_midpoint, rand_1_donors, select_not_worse
from de_gym.evolution import draw_uniforms
from de_gym.machine.compiling import compiled


@dataclass(frozen=True, slots=True)
class DESettings:
    """Constants of DE/rand/1/bin as in the LDE paper.

    Attributes:
        population_size: N; None for 5 n.
        scale_factor: F.
        crossover_rate: CR.
    """

    population_size: int | None = None
    scale_factor: float = 0.5
    crossover_rate: float = 0.8

    def __post_init__(self) -> None:
        check_at_least("population_size", self.population_size, 4)
        check_fraction("crossover_rate", self.crossover_rate)


class DE(PopulationOptimizer[PopulationState]):
    """Differential Evolution: donors x_r1 + F (x_r2 - x_r3), binomial crossover, midpoint repair."""

    name = "de"
    settings: DESettings

    def __init__(self, settings: DESettings | None = None) -> None:
        self.settings = settings or DESettings()

    def _population_size(self, dimension: int) -> int:
        return self.settings.population_size or 5 * dimension

    def _initialize(self, positions: FloatArray, fitness: FloatArray) -> PopulationState:
        scale_factors = np.full(fitness.shape, self.settings.scale_factor)
        return PopulationState(positions, fitness, scale_factors, np.full(fitness.shape, self.settings.crossover_rate))

    def _propose(self, state: PopulationState) -> tuple[PopulationState, FloatArray]:
        uniforms = draw_uniforms(self._rngs, state.fitness.shape[1] * (4 + self._dimension))
        return state, _propose_rand_1(
            state.positions, state.scale_factors, state.crossover_rates, uniforms, self._lower, self._upper
        )

    def _select(self, state: PopulationState, trials: FloatArray, fitness: FloatArray) -> PopulationState:
        positions, next_fitness, _ = select_not_worse(state.positions, state.fitness, trials, fitness)
        return replace(state, positions=positions, fitness=next_fitness)


@compiled
def _propose_rand_1(
    positions: FloatArray,
    scale_factors: FloatArray,
    crossover_rates: FloatArray,
    uniforms: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> FloatArray:
    """Return trials (R, N, D); ``uniforms`` has shape (R, N (4 + D))."""
    size = positions.shape[1]
    trials = np.empty_like(positions)
    for run in range(positions.shape[0]):
        row, parents = uniforms[run], positions[run]
        donors = rand_1_donors(parents, scale_factors[run], row[: 3 * size])
        trials[run] = cross_and_repair_midpoint(
            parents, donors, crossover_rates[run], row[3 * size :], lower[run], upper[run]
        )
    return trials
