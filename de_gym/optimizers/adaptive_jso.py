"""AdaptiveJSO: jSO with a residual controller that adjusts its rules."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.controllers.base import ResidualRule
from de_gym.controllers.jso import JSOSettings, make_jso
from de_gym.controllers.success_history import SuccessHistory
from de_gym.envs.actions import check_actions
from de_gym.envs.adaptive_process import join_features
from de_gym.envs.success_history_shell import SuccessHistoryShell, run_views
from de_gym.evolution.history_features import begin_progress, note_progress, observe
from de_gym.evolution.populations import Trials
from de_gym.optimizers.base import ControlledOptimizer, GenerationParameters

_FEATURES, _CONTROLS = SuccessHistoryShell.features, SuccessHistoryShell.controls


class AdaptiveJSO(ControlledOptimizer):
    """R runs of jSO, whose memory of successes a controller adjusts; residuals of zero leave it bit for bit.

    It is the process of ``AdaptiveDEControl-v0`` with ``shell="jso"``, so a controller meets in use what it met in
    training.
    """

    controller: SuccessHistory

    def __init__(self, residual_controller: ResidualRule, settings: JSOSettings | None = None) -> None:
        """Store the controller and the settings of jSO."""
        super().__init__("jso", make_jso, settings or JSOSettings())
        controls = getattr(residual_controller, "controls", _CONTROLS)
        if controls != _CONTROLS:
            raise ValueError(f"A controller of jSO has the controls {_CONTROLS}, got {controls}.")
        self.residual_controller = residual_controller
        self._observation = getattr(residual_controller, "env_settings", {}).get("observation", _FEATURES)
        self._remembers = hasattr(residual_controller, "keep")

    def _start(self) -> None:
        super()._start()
        if hasattr(self.residual_controller, "reset"):
            self.residual_controller.reset(self._rngs)

    def _ask(self, starts: IntArray) -> Trials:
        if self._has_population:
            self.controller.set_residuals(self._choose_residuals())
        return super()._ask(starts)

    def _choose_residuals(self) -> FloatArray:
        """Return what the controller wants of the runs that go on, and zeros for the others."""
        begin, residuals = np.flatnonzero(~self.has_ended), np.zeros((self.num_runs, len(_CONTROLS)))
        if len(begin):
            bounds = self._lower, self._upper
            features = observe(self._state, self.controller.memory, self._progress, *bounds)
            views = partial(run_views, self._state, self._progress, *bounds)
            seen = join_features(self._observation, _FEATURES, features, views)[begin]
            chosen = self.residual_controller(seen, begin) if self._remembers else self.residual_controller(seen)
            residuals[begin] = check_actions(chosen, np.empty((len(begin), len(_CONTROLS))), -1.0)
        return residuals

    @property
    def last_parameters(self) -> GenerationParameters | None:
        """Control parameters of the last generation told, and what they were adjusted by."""
        last = super().last_parameters
        residuals = dict(zip(_CONTROLS, self.controller.residuals.T, strict=True))
        return None if last is None else replace(last, residuals=residuals)

    def _tell(self, trials: Trials, values: FloatArray) -> None:
        super()._tell(trials, values)
        if self._parameters is None:
            self._progress = begin_progress(self._state, self._lower, self._upper)
        else:
            note_progress(self._state, trials.starts, self._progress)

    def _keep(self, runs: IntArray) -> None:
        super()._keep(runs)
        if self._has_population:
            self._progress = self._progress[runs]
        if self._remembers:
            self.residual_controller.keep(runs)  # type: ignore[attr-defined]  # that is what remembering means


def adjusts_jso(controller: object) -> bool:
    """Return whether a residual controller was made for jSO."""
    if hasattr(controller, "env_settings"):
        return bool(controller.env_settings.get("shell") == "jso")
    return getattr(controller, "controls", None) == _CONTROLS
