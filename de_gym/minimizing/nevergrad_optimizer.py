"""The methods of this package among Nevergrad's optimisers, from the import on; install ``de-gym[nevergrad]``.

>>> import nevergrad
>>> from de_gym import NevergradOptimizer  # which registers "DEGym"
>>> optimizer = nevergrad.optimizers.registry["DEGym"](parametrization=2, budget=300)
>>> optimizer.parametrization.random_state.seed(0)
>>> bool(sum(optimizer.minimize(lambda x: sum((x - 0.5) ** 2)).value - 0.5) < 0.01)
True
"""

from __future__ import annotations

from typing import Any

import numpy as np
from nevergrad.optimization import base
from nevergrad.parametrization.helpers import Normalizer

from de_gym.arrays import FloatArray
from de_gym.minimizing.ask_tell import Optimizer
from de_gym.problems.budgets import default_max_evaluations

_POINT = "de_gym point"


class NevergradRun(base.Optimizer):  # type: ignore[misc]  # Nevergrad has no types
    """Differential Evolution with learned parameter control on the unit cube of a parametrisation.

    Whole numbers and choices are those of the parametrisation. Violations given to ``tell`` are compared as
    ``minimize`` compares them; points that violate a cheap constraint are never evaluated and count as infeasible.
    """

    def __init__(
        self, parametrization: Any, budget: int | None = None, num_workers: int = 1, method: str = "learned"
    ) -> None:
        super().__init__(parametrization, budget=budget, num_workers=num_workers)
        self._penalize_cheap_violations = True
        self._method, self._normalizer, self._violation = method, Normalizer(self.parametrization), 0.0
        self._run: Optimizer | None = None

    def tell(self, candidate: Any, loss: Any, constraint_violation: Any = None, penalty_style: Any = None) -> None:
        """Take a loss; the violation goes to our own comparison beside Nevergrad's penalty."""
        self._violation = 0.0 if constraint_violation is None else float(np.maximum(constraint_violation, 0.0).sum())
        try:
            super().tell(candidate, loss, constraint_violation, penalty_style)
        finally:
            self._violation = 0.0

    def _internal_ask_candidate(self) -> Any:
        if self._run is None or self._run.has_ended:
            self._run = self._begin(None if self._run is None else self._run.result.x)
        point = self._run.ask(1)[0]
        candidate = self.parametrization.spawn_child().set_standardized_data(self._normalizer.backward(point))
        candidate._meta[_POINT] = point
        return candidate

    def _internal_tell_candidate(self, candidate: Any, loss: float) -> None:
        point = candidate._meta.get(_POINT)
        if point is None:
            standardized = candidate.get_standardized_data(reference=self.parametrization)
            point = np.clip(self._normalizer.forward(standardized), 0.0, 1.0)
        if self._run is None:
            self._run = self._begin()
        # Without a loss of its own the candidate broke a cheap constraint, by an amount that nobody knows.
        violation = 1.0 if candidate.loss is None else self._violation
        self._run.tell(point, loss, violation)

    def _internal_provide_recommendation(self) -> FloatArray | None:
        if self._run is None or not self._run.result.nfev:
            return None
        recommended: FloatArray = self._normalizer.backward(self._run.result.x)
        return recommended

    def _begin(self, x0: FloatArray | None = None) -> Optimizer:
        budget = self.budget or default_max_evaluations(self.dimension)
        bounds, seed = [(0.0, 1.0)] * self.dimension, int(self._rng.randint(2**31))
        return Optimizer(bounds, method=self._method, max_evaluations=budget, seed=seed, x0=x0)


class NevergradOptimizer(base.ConfiguredOptimizer):  # type: ignore[misc]  # Nevergrad has no types
    """Makes optimisers of any method of ``de_gym.minimize``; "DEGym" is registered with the learned one."""

    def __init__(self, *, method: str = "learned") -> None:
        super().__init__(NevergradRun, locals())


DEGym = NevergradOptimizer().set_name("DEGym", register=True)
