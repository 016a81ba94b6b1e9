"""OptunaSampler: the methods of this package for Optuna's studies, in OptunaHub's form; install ``de-gym[optuna]``."""

from __future__ import annotations

import math
from threading import Lock
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState
from optunahub.samplers import SimpleBaseSampler

from de_gym.arrays import FloatArray
from de_gym.checks import whole
from de_gym.minimizing.ask_tell import Optimizer
from de_gym.minimizing.choosing import checked_rng

_ENDED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)


class OptunaSampler(SimpleBaseSampler):
    """Differential Evolution with learned parameter control over all parameters of a study at once.

    Failed and pruned trials count as worse than all others; constraints are those that the objective gives by
    ``trial.set_constraint``, 0 or less where they hold. Whatever the study already holds is learned from.

    Args:
        search_space: All parameters, where they are known; else those that every trial so far has had in common.
        n_trials: Trials that the run is planned for; where a study goes on, a new run begins at the best point.
        method: As for ``de_gym.minimize``.
        seed: Of all random numbers.
    """

    def __init__(
        self,
        search_space: dict[str, BaseDistribution] | None = None,
        *,
        n_trials: int = 1000,
        method: str = "learned",
        seed: int | None = None,
    ) -> None:
        super().__init__(search_space, seed)
        self._n_trials, self._method, self._rng = whole("n_trials", n_trials, 1), method, checked_rng(seed)
        self._lock = Lock()
        self._space: dict[str, BaseDistribution] = {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the next point's parameters, after all that is new in the study has been told."""
        self._raise_error_if_multi_objective(study)
        if not search_space:
            return {}
        with self._lock:
            if search_space != self._space:
                self._space, self._told, self._points = dict(search_space), set[int](), dict[int, FloatArray]()
                self._optimizer = self._begin()
            self._tell_news(study)
            if self._optimizer.has_ended:
                self._optimizer = self._begin(self._optimizer.result.x)
            point = self._points[trial.number] = self._optimizer.ask(1)[0]
        places = zip(self._space.items(), point, strict=True)
        return {name: _decode(distribution, float(place)) for (name, distribution), place in places}

    def reseed_rng(self) -> None:
        """Keep the one run that all threads of a study share."""

    def _begin(self, x0: FloatArray | None = None) -> Optimizer:
        bounds, integrality = ([of(one) for one in self._space.values()] for of in (_bounds, _is_counted))
        options: dict[str, Any] = {"method": self._method, "max_evaluations": self._n_trials, "seed": self._rng}
        return Optimizer(bounds, integrality=integrality, x0=x0, **options)

    def _tell_news(self, study: Study) -> None:
        sign = -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0
        for trial in study.get_trials(deepcopy=False, states=_ENDED):
            if trial.number in self._told or not self._space.keys() <= trial.params.keys():
                continue
            self._told.add(trial.number)
            point = self._points.pop(trial.number, None)
            if point is None:
                point = np.array([_encode(one, trial.params[name]) for name, one in self._space.items()])
            value = sign * trial.value if trial.state == TrialState.COMPLETE and trial.value is not None else None
            self._optimizer.tell(point, value, sum(max(amount, 0.0) for amount in trial.constraints.values()))


def _is_counted(distribution: BaseDistribution) -> bool:
    """Return whether a parameter is searched by the number of its value: neither continuous nor logarithmic."""
    is_stepped = getattr(distribution, "step", None) is not None and not getattr(distribution, "log", False)
    return isinstance(distribution, CategoricalDistribution) or is_stepped


def _bounds(distribution: Any) -> tuple[float, float]:
    if isinstance(distribution, CategoricalDistribution):
        return 0.0, len(distribution.choices) - 1.0
    if _is_counted(distribution):
        return 0.0, float(round((distribution.high - distribution.low) / distribution.step))
    # A whole number on a logarithmic scale has the share of the scale that is rounded to it.
    margin = 0.5 if isinstance(distribution, IntDistribution) else 0.0
    low, high = distribution.low - margin, distribution.high + margin
    return (math.log(low), math.log(high)) if distribution.log else (low, high)


def _encode(distribution: Any, value: Any) -> float:
    if isinstance(distribution, CategoricalDistribution):
        return float(distribution.to_internal_repr(value))
    if _is_counted(distribution):
        return float(round((value - distribution.low) / distribution.step))
    return float(np.clip(math.log(value) if distribution.log else value, *_bounds(distribution)))


def _decode(distribution: Any, place: float) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[int(place)]
    value = distribution.low + place * distribution.step if _is_counted(distribution) else place
    value = math.exp(value) if distribution.log else value
    value = min(max(value, distribution.low), distribution.high)
    return float(value) if isinstance(distribution, FloatDistribution) else round(value)
