"""Constraints: how far points are from feasible, and the one number by which constrained points are compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from de_gym.arrays import FloatArray
from de_gym.checks import listed, shown
from de_gym.minimizing.scipys import is_scipys

if TYPE_CHECKING:
    from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

EQUALITY_TOLERANCE = 1e-6
"""How far an equality may be missed."""

_KINDS = ("NonlinearConstraint", "LinearConstraint", "Bounds")

INFEASIBLE = 1e150
"""Merits from here on belong to infeasible points. The squares of all merits are finite numbers."""

# Logarithms of positive numbers lie within 745 of zero, so the quotient stays between -1 and 1.
_LOGARITHM_SCALE = 1000.0

ConstraintLike: TypeAlias = "NonlinearConstraint | LinearConstraint | Bounds | dict[str, Any]"


def merit(value: float, violation: float) -> float:
    """Return a number that orders points as Deb's rules do.

    Feasible points come before all others, and by their values; the others come by their violations. Feasible points
    of values from ``INFEASIBLE`` on are not told apart.

    >>> merit(3.0, 0.0) < merit(math.inf, 0.0) < merit(-1.0, 1e-300) < merit(-1.0, 2.0) < merit(0.0, math.inf) < 1e151
    True
    """
    if violation == 0.0:
        return min(value, INFEASIBLE)
    logarithm = math.log(violation) if violation < math.inf else _LOGARITHM_SCALE
    return INFEASIBLE * (3.0 + logarithm / _LOGARITHM_SCALE)


@dataclass(frozen=True)
class Constraint:
    """``lower <= fun(x) <= upper`` for M numbers.

    Attributes:
        label: What messages call it.
        fun: Takes a point (D,), returns M numbers.
        lower: Shape (M,), or one number for all.
        upper: Shape (M,), or one number for all.
    """

    label: str
    fun: Callable[[FloatArray], Any]
    lower: FloatArray
    upper: FloatArray

    def violations(self, point: FloatArray) -> FloatArray:
        """Return how far the M numbers are outside, shape (M,); 0 where they are inside, +inf for a NaN."""
        try:
            given = self.fun(point.copy())
        except Exception as error:
            where = np.array2string(point, precision=6, threshold=20)
            raise RuntimeError(f"{self.label} raised {error!r} at the point {where}.") from error
        numbers = self._checked(given)
        for limits in (self.lower, self.upper):
            if numbers.ndim != 1 or limits.size not in (1, numbers.size):
                raise ValueError(f"{self.label} has {limits.size} bounds and returned shape {numbers.shape}.")
        outside = np.maximum(np.maximum(self.lower - numbers, numbers - self.upper), 0.0)
        allowed = np.where(self.lower == self.upper, EQUALITY_TOLERANCE, 0.0)
        return np.where(np.isnan(outside), np.inf, np.where(outside <= allowed, 0.0, outside))

    def _checked(self, given: object) -> FloatArray:
        """Return what ``fun`` returned as numbers, or say that it is none or can say nothing."""
        try:
            numbers = np.atleast_1d(np.asarray(given))
        except ValueError:  # parts of different shapes
            numbers = np.empty(0, np.object_)
        if numbers.dtype.kind not in "biuf":
            raise TypeError(f"{self.label} must return real numbers, got {type(given).__name__}: {shown(given)}.")
        if not numbers.size:
            raise ValueError(f"{self.label} must return at least one number, got {shown(given)}.")
        if numbers.dtype.kind == "b" and ((self.lower <= 0.0) & (self.upper >= 1.0)).any():
            raise TypeError(f"{self.label} returned a truth value, and its bounds allow both True and False.")
        return numbers.astype(np.float64)


class Constraints:
    """All constraints of a problem.

    Attributes:
        members: One entry for each that was given.
    """

    def __init__(self, constraints: ConstraintLike | Sequence[ConstraintLike], dimension: int) -> None:
        """Take scipy's constraint objects, one or several, or say which is none."""
        is_one = isinstance(constraints, dict) or any(is_scipys(constraints, kind) for kind in _KINDS)
        given = [constraints] if is_one else listed("constraints", constraints, "scipy's constraints")
        self.members = [_read(number, constraint, dimension) for number, constraint in enumerate(given)]

    def __bool__(self) -> bool:
        return bool(self.members)

    @property
    def have_equalities(self) -> bool:
        """Whether some number has to have one value."""
        return any((member.lower == member.upper).any() for member in self.members)

    def violations(self, point: FloatArray) -> list[FloatArray]:
        """Return the violations of every constraint."""
        return [member.violations(point) for member in self.members]

    def total_violation(self, point: FloatArray) -> float:
        """Return the sum of all violations; 0 where the point is feasible."""
        return float(sum(violations.sum() for violations in self.violations(point)))


def _read(number: int, constraint: Any, dimension: int) -> Constraint:
    label = f"Constraint {number}"
    if isinstance(constraint, dict):
        return _read_older_kind(label, constraint)
    if is_scipys(constraint, "NonlinearConstraint"):
        if not callable(constraint.fun):
            raise TypeError(f"{label} must have a callable `fun`, got {shown(constraint.fun)}.")
        fun = constraint.fun
    elif is_scipys(constraint, "LinearConstraint"):
        matrix = _as_matrix(constraint.A)
        if matrix.shape[1] != dimension:
            raise ValueError(f"{label} must have a matrix of {dimension} columns, got shape {matrix.shape}.")
        fun = matrix.__matmul__
    elif is_scipys(constraint, "Bounds"):
        fun = np.array
    else:
        raise TypeError(
            "`constraints` must be scipy's NonlinearConstraint, LinearConstraint or Bounds, one or a list of them, "
            f"got {shown(constraint)}."
        )
    if np.any(constraint.keep_feasible):
        raise ValueError(f"{label} must not ask for `keep_feasible`: infeasible points are part of the search.")
    return Constraint(label, fun, *_limits(label, constraint.lb, constraint.ub))


def _read_older_kind(label: str, constraint: dict[str, Any]) -> Constraint:
    """Return what scipy's older kind says: fun(x, *args) is zero ("eq"), or not below it ("ineq")."""
    kind, fun, arguments = constraint.get("type"), constraint.get("fun"), constraint.get("args", ())
    if kind not in ("eq", "ineq") or not callable(fun) or constraint.keys() - {"type", "fun", "args", "jac"}:
        raise ValueError(f'{label} must have a `type`, "eq" or "ineq", a `fun`, and perhaps `args`, got {constraint}.')
    limits = _limits(label, 0.0, 0.0 if kind == "eq" else np.inf)
    return Constraint(label, lambda x: fun(x, *arguments), *limits)


def _as_matrix(matrix: Any) -> FloatArray:
    return np.atleast_2d(np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64))


def _limits(label: str, lower: ArrayLike, upper: ArrayLike) -> tuple[FloatArray, FloatArray]:
    low, high = (np.atleast_1d(np.asarray(limits, dtype=np.float64)) for limits in (lower, upper))
    if not (low <= high).all():
        raise ValueError(f"{label} must not have a lower bound above its upper bound, got {low} and {high}.")
    return low, high
