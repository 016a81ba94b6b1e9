"""ControlledOptimizer: a shell, which evolves populations, and a controller, which sets its parameters."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.controllers.parameter_rule import ParameterRule
from de_gym.evolution import draw_uniforms
from de_gym.evolution.draws import DrawLayout, GenerationDraws
from de_gym.evolution.populations import Population, Trials
from de_gym.evolution.run_arrays import take_runs
from de_gym.evolution.shell import Parameters, Shell, View
from de_gym.optimizers.base import GenerationParameters, Optimizer

Recipe = Callable[[Any, int], tuple[Shell, ParameterRule]]
"""What makes a shell and a controller of settings and a number of coordinates."""


class ControlledOptimizer(Optimizer):
    """R runs of a shell whose parameters a controller sets.

    >>> from de_gym.controllers.bimodal import Bimodal
    >>> from de_gym.evolution.current_to_pbest import CurrentToPbest
    >>> optimizer = ControlledOptimizer("own", lambda settings, dimension: (CurrentToPbest(5 * dimension), Bimodal()))
    >>> optimizer.start(-np.ones((2, 3)), np.ones((2, 3)), [np.random.default_rng(seed) for seed in (0, 1)], 600)
    >>> while not optimizer.has_ended.all():
    ...     optimizer.tell((optimizer.ask().points ** 2).sum(axis=1))
    >>> bool((optimizer.best_fitness < 0.01).all())
    True
    """

    shell: Shell
    controller: ParameterRule

    def __init__(self, name: str, recipe: Recipe, settings: object = None) -> None:
        self.name, self.settings = name, settings
        self._recipe = recipe

    def _start(self) -> None:
        self.shell, self.controller = self._recipe(self.settings, self._dimension)
        self._state: Population = self.shell.start(self._runs, self._dimension)
        self.controller.reset(self._state)
        layout = DrawLayout(
            self.controller.num_uniforms, *self.shell.num_uniforms(self._dimension), self.controller.num_normals
        )
        self._draws = GenerationDraws(self._rngs, self._state.capacity, layout)
        self._has_population = False
        self._parameters: Parameters | None = None

    def _ask(self) -> Trials:
        starts = self._next_starts()
        if not self._has_population:
            uniforms = draw_uniforms(self._rngs, self._state.capacity, self._dimension)
            lower, upper = self._lower[:, None, :], self._upper[:, None, :]
            return Trials((lower + uniforms * (upper - lower)).reshape(-1, self._dimension), starts)
        self._draws.draw(starts)
        self._parameters = self.controller(View(self._state, self._draws))
        return self.shell.breed(self._state, self._parameters, self._draws, self._lower, self._upper)

    def _tell(self, trials: Trials, values: FloatArray) -> None:
        if self._parameters is None:
            self.shell.settle(self._state, trials, values)
            self._has_population = True
            return
        self.controller.learn(self.shell.select(self._state, self._parameters, self._draws, trials, values))

    def _keep(self, runs: IntArray) -> None:
        self._state = take_runs(self._state, runs)._replace(runs=self._runs)
        self._draws.keep(runs)
        self.controller.keep(runs)
        if self._parameters is not None:
            self._parameters = self.controller.parameters

    @property
    def last_parameters(self) -> GenerationParameters | None:
        """Control parameters of the last generation told; None while only the initial population has been."""
        if self._parameters is None:
            return None
        sizes = np.diff(self._draws.starts)
        arrays = (self._parameters.scale_factors, self._parameters.crossover_rates, self._state.parent_fitness)
        return GenerationParameters(*(_live(array, sizes, np.nan) for array in arrays))

    @property
    def mean_parameters(self) -> FloatArray | None:
        """Mean F and CR of the last generation told, shape (R, 2)."""
        if self._parameters is None:
            return None
        factors, rates = self._parameters.scale_factors, self._parameters.crossover_rates
        means, starts = np.empty((self.num_runs, 2)), self._draws.starts.tolist()
        for run, (begin, end) in enumerate(pairwise(starts)):
            size = end - begin
            # Sums and quotients, because ``np.mean`` costs more than both.
            means[run, 0] = np.add.reduce(factors[run, :size]) / size if size else np.nan
            means[run, 1] = np.add.reduce(rates[run, :size]) / size if size else np.nan
        return means

    @property
    def population(self) -> tuple[FloatArray, FloatArray] | None:
        """Current positions (R, N, D) and fitness (R, N); None before the initial population is told."""
        if not self._has_population:
            return None
        sizes = self._runs["size"]
        return _live(self._state.positions, sizes, np.nan), _live(self._state.fitness, sizes, np.inf)


def _live(array: FloatArray, sizes: IntArray, missing: float) -> FloatArray:
    """Return a copy of the rows in use, shape (R, N, ...), filled up where a run has fewer than the largest."""
    size = int(sizes.max(initial=0))
    live = array[:, :size].copy()
    if (sizes < size).any():
        live[np.arange(size) >= sizes[:, None]] = missing
    return live
