"""ControlledDE: the environment's Differential Evolution with a controller inside, as an optimiser like any other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.checks import shown
from de_gym.controllers.base import Controller, check_population_size
from de_gym.controllers.recurrent import RecurrentController
from de_gym.envs import parameter_process as process
from de_gym.envs.actions import check_actions
from de_gym.envs.settings import POLICY_SETTINGS, EnvSettings
from de_gym.envs.state import RunState, ranked_positions
from de_gym.envs.stepping import breed_runs, select_runs
from de_gym.evolution import draw_keys, draw_uniforms, scale_to_bounds
from de_gym.evolution.populations import Trials
from de_gym.evolution.run_arrays import take_runs
from de_gym.optimizers.base import GenerationParameters, Optimizer
from de_gym.registry import known_name


class ControlledDE(Optimizer):
    """R runs of DE/current-to-pbest/1/bin whose F and CR a controller sets, as in Algorithm 2 of the LDE paper.

    It is the environment's own decision process, so a controller meets in use what it met in training.
    """

    name = "controlled-de"

    def __init__(self, controller: Controller, population_size: int | None = None, **changes: Any) -> None:
        """Store the controller; ``changes`` replace settings of its environment, such as ``pbest=0.1``.

        A ``population_size`` is only needed for a controller of any; others have their own, which it must equal.
        """
        if not isinstance(controller, Controller):
            raise TypeError(f"`controller` must be a controller, got {shown(controller)}.")
        if getattr(controller, "is_residual", False):
            raise ValueError("This controller adjusts an adaptive algorithm: give it to AdaptiveDE.")
        if population_size is not None:
            check_population_size(controller, population_size)
        self.controller = controller
        size = population_size or controller.population_size
        self._settings = EnvSettings(
            population_size=size, max_generations=None, **process_settings(controller) | changes
        )

    def _start(self) -> None:
        # The schedules of all runs follow one budget.
        budgeted = replace(self._settings, max_evaluations=int(self._runs["max_evaluations"][0]))
        self._process = budgeted.resolved(self._dimension)
        self._state: RunState | None = None
        self._actions = np.empty((self.num_runs, self._process.action_size))
        self._parameters = np.empty((self.num_runs, 2 * self._process.capacity))
        self._last_parameters: GenerationParameters | None = None
        self.controller.reset(self._rngs)
        self._runs["size"] = self._process.capacity

    def _ask(self, starts: IntArray) -> Trials:
        if self._state is None:
            size = self._process.capacity
            uniforms = draw_uniforms(self._rngs, size, self._dimension)
            points = scale_to_bounds(uniforms, self._lower, self._upper)
            return Trials(points.reshape(-1, self._dimension), np.arange(self.num_runs + 1) * size)
        observations = process.observe(self._state, self._process, self._lower, self._upper)
        check_actions(self.controller(observations), self._actions)
        expand, capacity = self._process.action_map.expand, self._process.capacity
        self._parameters = expand(self._actions, self._state.runs, capacity)
        return Trials(*breed_runs(self._state, self._parameters, self._lower, self._upper, self._process.codes))

    def _tell(self, trials: Trials, values: FloatArray) -> None:
        if self._state is None:
            positions = trials.points.reshape(self.num_runs, -1, self._dimension)
            unknown = np.full(self.num_runs, np.nan)  # only rewards need the minimum
            fitness, keys = values.reshape(self.num_runs, -1), draw_keys(self._rngs)
            self._state = process.start(positions, fitness, unknown, keys, self._process)
            return
        factors, rates = np.split(self._parameters.copy(), 2, axis=1)
        self._last_parameters = GenerationParameters(factors, rates, self._state.fitness.copy())
        self.mean_parameters = factors[0].mean(), rates[0].mean()
        select_runs(self._state, trials.starts, trials.points, values, self._process.codes)
        self._runs["size"] = self._state.runs["size"]

    def _keep(self, runs: IntArray) -> None:
        self.controller.keep(runs)
        self._actions = self._actions[runs]
        if self._state is not None:
            self._state = take_runs(self._state, runs)
        if self._last_parameters is not None:
            last = self._last_parameters
            self._last_parameters = GenerationParameters(
                last.scale_factors[runs], last.crossover_rates[runs], last.parent_fitness[runs]
            )

    @property
    def last_parameters(self) -> GenerationParameters | None:
        """F and CR of the last generation told; None while only the initial population has been."""
        return self._last_parameters

    @property
    def population(self) -> tuple[FloatArray, FloatArray] | None:
        """Current positions (R, N, D) and fitness (R, N), best first; None before the initial population is told."""
        if self._state is None:
            return None
        return ranked_positions(self._state), self._state.fitness.copy()


def process_settings(controller: Controller) -> dict[str, Any]:
    """Return the settings of the decision process that ``controller`` was trained for; none for untrained ones."""
    if not isinstance(controller, RecurrentController):
        stated = getattr(controller, "env_settings", {})
        return {known_name("setting of a decision process", name, POLICY_SETTINGS): stated[name] for name in stated}
    stored = controller.info.env_settings
    # Whatever its environment's actions were, a recurrent controller gives F and CR of every rank.
    chosen = {name: stored[name] for name in POLICY_SETTINGS if name in stored and name != "action"}
    if "observation" in chosen:
        chosen["observation"] = tuple(chosen["observation"])  # type: ignore[arg-type]  # JSON holds a list
    return chosen
