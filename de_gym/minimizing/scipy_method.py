"""scipy_method: this package's methods for ``scipy.optimize.minimize``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import ArrayLike
from scipy.optimize import Bounds, OptimizeResult

from de_gym.minimizing.constraints import ConstraintLike
from de_gym.minimizing.endings import Callback
from de_gym.minimizing.front_door import minimize


def scipy_method(method: str = "learned", **defaults: Any) -> Callable[..., OptimizeResult]:
    """Return a method for ``scipy.optimize.minimize``, which must be given ``bounds``.

    Args:
        method: A method of ``de_gym.minimize``.
        **defaults: Further arguments of ``de_gym.minimize``; ``options`` of scipy's function take precedence.

    >>> from scipy.optimize import minimize, rosen
    >>> result = minimize(rosen, [0.0, 0.0], bounds=[(-2, 2)] * 2, method=scipy_method("jso", seed=1),
    ...                   options={"max_evaluations": 5000})
    >>> result.x.round(3).tolist()
    [1.0, 1.0]
    """

    def run(
        fun: Callable[..., Any],
        x0: ArrayLike,
        args: tuple[Any, ...] = (),
        *,
        bounds: Sequence[tuple[float, float]] | Bounds | None = None,
        constraints: ConstraintLike | Sequence[ConstraintLike] = (),
        callback: Callback | None = None,
        jac: object = None,
        hess: object = None,
        hessp: object = None,
        **options: Any,
    ) -> OptimizeResult:
        if bounds is None:
            raise ValueError(f"`bounds` are needed by method {method!r}, got None.")
        for name, derivative in (("jac", jac), ("hess", hess), ("hessp", hessp)):
            if derivative is not None:
                raise ValueError(f"`{name}` must be left out with method {method!r}, which takes no derivatives.")
        arguments = {"method": method, **defaults, **options}
        asked = None if callback is None else _by_scipys_rule(callback)
        return minimize(fun, bounds, args, x0=x0, constraints=constraints, callback=asked, **arguments)

    return run


def _by_scipys_rule(callback: Callback) -> Callback:
    """Return a callback that is handed the result so far if its argument has that name, else the best point."""
    if set(inspect.signature(callback).parameters) == {"intermediate_result"}:
        return lambda result: callback(intermediate_result=result)
    return lambda result: callback(result.x)
