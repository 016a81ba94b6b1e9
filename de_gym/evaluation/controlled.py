"""ControlledDE: Differential Evolution whose F and CR a controller chooses, as an optimiser like the baselines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.baselines import GenerationParameters, Optimizer
from de_gym.baselines.base import take_runs as take_rows
from de_gym.controllers import Controller, check_population_size
from de_gym.envs.process import RunState, absorb, breed, observe, start, take_runs
from de_gym.envs.settings import EnvSettings
from de_gym.envs.task import check_actions
from de_gym.evolution import draw_keys, draw_uniforms, scale_to_bounds


class ControlledDE(Optimizer):
    """The environment's dynamics under a controller, run to the end of the budget.

    A run's generator gives its initial population, then the key of its generations, then the controller's numbers:
    what an environment draws whose generator it is.
    """

    name = "controlled"
    settings: EnvSettings

    def __init__(self, controller: Controller, settings: EnvSettings) -> None:
        """Store what chooses F and CR and the decision process; budget and limits are those of the run."""
        check_population_size(controller, settings.population_size)
        self.controller = controller
        self.settings = settings

    def _start(self) -> None:
        self._state: RunState | None = None
        self._last_parameters: GenerationParameters | None = None
        self._process: EnvSettings = replace(self.settings, max_evaluations=self._max_evaluations, max_generations=None)

    def _next_cost(self) -> IntArray:
        return np.full(self.num_runs, self.settings.population_size)

    def _ask(self) -> FloatArray:
        size = self.settings.population_size
        if self._state is None:
            return scale_to_bounds(draw_uniforms(self._rngs, size, self._dimension), self._lower, self._upper)
        actions = check_actions(self.controller(observe(self._state, self._process)), (self.num_runs, 2 * size))
        fitness = self._state.population.fitness
        self._last_parameters = GenerationParameters(actions[:, :size], actions[:, size:], fitness)
        return breed(self._state, actions, self._process, self._lower, self._upper)

    def _tell(self, trials: FloatArray, fitness: FloatArray) -> None:
        if self._state is not None:
            self._state = absorb(self._state, trials, fitness)
            return
        # Neither observation nor dynamics depend on the optimum, which a user's problem may not have.
        unknown = np.full(self.num_runs, np.nan)
        self._state = start(trials, fitness, unknown, draw_keys(self._rngs), self._process)
        self.controller.reset(self._rngs)

    def _keep(self, runs: IntArray) -> None:
        if self._state is not None:
            self._state = take_runs(self._state, runs)
            self.controller.keep(runs)
        if self._last_parameters is not None:
            self._last_parameters = take_rows(self._last_parameters, runs)

    @property
    def last_parameters(self) -> GenerationParameters | None:
        """F and CR of the last generation, by rank; None while only the initial population has been told."""
        return self._last_parameters
