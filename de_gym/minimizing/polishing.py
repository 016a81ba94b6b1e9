"""Polishing: a local search of scipy's from the best point, inside the same budget."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from de_gym.arrays import FloatArray
from de_gym.checks import shown
from de_gym.minimizing.constraints import Constraint, Constraints
from de_gym.minimizing.evaluations import Evaluations
from de_gym.minimizing.search_space import SearchSpace
from de_gym.registry import unknown_name_message

# Share of the budget that is kept for polishing, and gradients by finite differences that it pays for at most.
_BUDGET_SHARE, _MOST_GRADIENTS = 0.1, 100

# The search has come close already: scipy's own tolerances would often end before the first step.
_TOLERANCE = 1e-12

_METHODS = {
    name.lower(): name
    for name in ("L-BFGS-B", "SLSQP", "trust-constr", "Nelder-Mead", "Powell", "TNC", "COBYLA", "COBYQA")
}
_CONSTRAINED_METHODS = ("SLSQP", "trust-constr", "COBYLA", "COBYQA")


class _BudgetSpent(Exception):
    """There is no evaluation left."""


def polishing_method(polish: bool | str, constraints: Constraints) -> str | None:
    """Return scipy's name of the local method that ``polish`` asks for, or None."""
    if isinstance(polish, bool | np.bool_):
        return ("SLSQP" if constraints else "L-BFGS-B") if polish else None
    name = _METHODS.get(str(polish).lower())
    if name is None or not isinstance(polish, str):
        raise ValueError(unknown_name_message("`polish` method", polish, _METHODS.values()))
    if constraints and name not in _CONSTRAINED_METHODS:
        raise ValueError(f"`polish` must be one of {_CONSTRAINED_METHODS} with constraints, got {shown(polish)}.")
    return name


def reserved_for_polishing(max_evaluations: int, num_coordinates: int, constraints: Constraints) -> int:
    """Return how many evaluations the search leaves."""
    share = int(_BUDGET_SHARE * max_evaluations)
    return share if constraints.have_equalities else min(share, _MOST_GRADIENTS * (num_coordinates + 1))


def polish(
    evaluations: Evaluations,
    space: SearchSpace,
    constraints: Constraints,
    method: str,
    max_evaluations: int,
    rng: np.random.Generator,
) -> None:
    """Search from the best point along the coordinates that are neither fixed nor whole numbers.

    Where no feasible point is known it begins at the least violation: equalities are often met here for the first time.
    """
    from scipy.optimize import Bounds, NonlinearConstraint
    from scipy.optimize import minimize as minimize_locally

    moving = space.free[~space.integral[space.free]]
    if not len(moving) or not (np.isfinite(evaluations.best_value) or evaluations.best_violation > 0.0):
        return
    lower, upper, best = space.lower[moving], space.upper[moving], evaluations.best_point.copy()

    def complete(part: FloatArray) -> FloatArray:
        point = best.copy()
        point[moving] = np.clip(part, lower, upper)
        return point

    def value_at(part: FloatArray) -> float:
        if evaluations.num_points >= max_evaluations:
            raise _BudgetSpent
        # Differences at the edge of what is feasible need values on both sides.
        evaluations.evaluate(complete(part)[None], everywhere=True)
        return evaluations.last_value

    def along_part(constraint: Constraint) -> object:
        return NonlinearConstraint(lambda part: constraint.fun(complete(part)), constraint.lower, constraint.upper)

    inside = [along_part(constraint) for constraint in constraints.members]
    options = {"bounds": Bounds(lower, upper, keep_feasible=True), "constraints": inside, "tol": _TOLERANCE}
    end = evaluations.num_points + reserved_for_polishing(max_evaluations, len(space.free), constraints)
    with suppress(_BudgetSpent):
        minimize_locally(value_at, best[moving], method=method, **options)
        # Points that miss equalities are compared by how far: the search chooses between valleys before it has seen a
        # value inside them. Local searches from elsewhere see other valleys.
        while constraints.have_equalities and evaluations.num_points < end:
            minimize_locally(value_at, rng.uniform(lower, upper), method=method, **options)
