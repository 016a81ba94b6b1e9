"""PopulationOptimizer: what the eight Differential Evolution baselines share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.baselines.base import GenerationParameters, Optimizer, take_runs
from de_gym.evolution import draw_uniforms


@dataclass(frozen=True, slots=True)
class PopulationState:
    """Arrays of R runs, every one with the runs as its first axis; subclasses add what the algorithm remembers.

    Attributes:
        positions: Shape (R, N, D); the rows beyond N, if any, are an archive.
        fitness: Shape (R, N).
        scale_factors: F of the last trials, shape (R, N).
        crossover_rates: CR of the last trials, shape (R, N).
    """

    positions: FloatArray
    fitness: FloatArray
    scale_factors: FloatArray
    crossover_rates: FloatArray


State = TypeVar("State", bound=PopulationState)


class PopulationOptimizer(Optimizer, Generic[State]):
    """An optimiser whose first trials are a uniform population, and each later trial competes with one parent."""

    _state: State | None

    def _start(self) -> None:
        self._state = None
        self._last_parameters: GenerationParameters | None = None

    def _next_cost(self) -> IntArray:
        size = self._population_size(self._dimension) if self._state is None else self._state.fitness.shape[1]
        return np.full(self.num_runs, size)

    def _ask(self) -> FloatArray:
        if self._state is not None:
            self._state, trials = self._propose(self._state)
            return trials
        uniforms = draw_uniforms(self._rngs, self._population_size(self._dimension), self._dimension)
        lower, upper = self._lower[:, None, :], self._upper[:, None, :]
        return lower + uniforms * (upper - lower)

    def _tell(self, trials: FloatArray, fitness: FloatArray) -> None:
        if self._state is None:
            self._state = self._initialize(trials, fitness)
            return
        state = self._state
        self._last_parameters = GenerationParameters(state.scale_factors, state.crossover_rates, state.fitness)
        self._state = self._select(state, trials, fitness)

    def _keep(self, runs: IntArray) -> None:
        if self._state is not None:
            self._state = take_runs(self._state, runs)
        if self._last_parameters is not None:
            self._last_parameters = take_runs(self._last_parameters, runs)

    @property
    def last_parameters(self) -> GenerationParameters | None:
        """Control parameters of the last generation told; None while only the initial population has been."""
        return self._last_parameters

    @property
    def population(self) -> tuple[FloatArray, FloatArray] | None:
        """Current positions (R, N, D) and fitness (R, N); None before the initial population is told."""
        if self._state is None:
            return None
        size = self._state.fitness.shape[1]
        return self._state.positions[:, :size], self._state.fitness

    @abstractmethod
    def _population_size(self, dimension: int) -> int:
        """Return the size of the initial population."""

    @abstractmethod
    def _initialize(self, positions: FloatArray, fitness: FloatArray) -> State:
        """Return the state that begins with the evaluated initial population."""

    @abstractmethod
    def _propose(self, state: State) -> tuple[State, FloatArray]:
        """Return the state with the parameters of the next trials, and these trials (R, N, D)."""

    @abstractmethod
    def _select(self, state: State, trials: FloatArray, fitness: FloatArray) -> State:
        """Return the state after the trials have met their parents; arrays of ``state`` are not changed."""
