"""Problem: a box-constrained objective with a name, bounds and, where known, its minimum."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from de_gym.arrays import FloatArray

Evaluator: TypeAlias = Callable[[FloatArray], FloatArray]


class Problem:
    """A function to minimise inside a box.

    Attributes:
        name: What tables and error messages call it.
        number: Official number inside its suite, or None.
        dimension: Number of coordinates D.
        lower: Lower bounds, shape (D,).
        upper: Upper bounds, shape (D,).
        optimum: The minimum f*, or a lower bound on it, or None where nothing is known.
        optimal_position: A point with value ``optimum``, shape (D,), or None.
    """

    def __init__(
        self,
        name: str,
        lower: FloatArray,
        upper: FloatArray,
        evaluator: Evaluator,
        *,
        number: int | None = None,
        optimum: float | None = None,
        optimal_position: FloatArray | None = None,
    ) -> None:
        """Store a problem whose ``evaluator`` maps points (P, D) to values (P,)."""
        self.name = name
        self.number = number
        self.lower, self.upper = _checked_bounds(lower, upper)
        self.dimension = len(self.lower)
        self.optimum = optimum
        self.optimal_position = optimal_position
        self._evaluator = evaluator

    @classmethod
    def from_function(
        cls,
        fun: Callable[[FloatArray], object],
        lower: ArrayLike,
        upper: ArrayLike,
        optimum: float | None = None,
        *,
        dimension: int | None = None,
        vectorized: bool = False,
        name: str | None = None,
    ) -> Problem:
        """Return a problem that calls ``fun``.

        Args:
            fun: Takes one point (D,) and returns a number; with ``vectorized``, takes (P, D) and returns (P,).
            lower: Lower bound of every coordinate, or one per coordinate.
            upper: Upper bound of every coordinate, or one per coordinate.
            optimum: The minimum, or any lower bound on it, where known; the reward and the stopping rule use it.
            dimension: Number of coordinates; needed only where both bounds are plain numbers.
            vectorized: Whether ``fun`` takes all points at once.
            name: Name in tables and messages; the function's own by default.

        A NaN from ``fun`` counts as +inf: the point is evaluated, counted and never preferred.
        """
        label = name or getattr(fun, "__name__", type(fun).__name__)
        lower_bounds, upper_bounds = _broadcast_bounds(lower, upper, dimension)
        many = fun if vectorized else _point_by_point(fun, label)
        return cls(label, lower_bounds, upper_bounds, _guarded(many, label), optimum=optimum)

    def evaluate(self, points: ArrayLike) -> FloatArray:
        """Return the values of ``points``, shape (..., D), as an array of shape (...)."""
        array = np.ascontiguousarray(points, dtype=np.float64)
        if array.ndim == 0 or array.shape[-1] != self.dimension:
            raise ValueError(
                f"Points of problem {self.name!r} must have {self.dimension} coordinates in their last axis, "
                f"got shape {array.shape}."
            )
        if not np.isfinite(array).all():
            raise ValueError(f"Points of problem {self.name!r} must be finite, got NaN or infinity.")
        return self._evaluator(array.reshape(-1, self.dimension)).reshape(array.shape[:-1])

    def __repr__(self) -> str:
        return f"Problem({self.name!r}, dimension={self.dimension}, optimum={self.optimum})"


def _broadcast_bounds(lower: ArrayLike, upper: ArrayLike, dimension: int | None) -> tuple[FloatArray, FloatArray]:
    """Return both bounds as arrays of shape (D,)."""
    low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    if low.ndim == 0 and high.ndim == 0 and dimension is None:
        raise ValueError("`dimension` is needed when both bounds are plain numbers.")
    shape = (dimension,) if dimension is not None else np.broadcast_shapes(low.shape, high.shape)
    return np.broadcast_to(low, shape).copy(), np.broadcast_to(high, shape).copy()


def _checked_bounds(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    if lower.ndim != 1 or lower.shape != upper.shape or lower.size == 0:
        raise ValueError(f"Bounds must be two vectors of one length, got shapes {lower.shape} and {upper.shape}.")
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        raise ValueError("Bounds must be finite numbers, got NaN or infinity.")
    if not (lower < upper).all():
        worst = int(np.argmin(upper - lower))
        raise ValueError(
            f"Every lower bound must be below its upper bound, got {lower[worst]} >= {upper[worst]} "
            f"in coordinate {worst}."
        )
    return lower, upper


def _point_by_point(fun: Callable[[FloatArray], object], label: str) -> Callable[[FloatArray], object]:
    """Return ``fun`` applied to each row, each value checked to be one number."""

    def evaluate_rows(points: FloatArray) -> FloatArray:
        values = np.empty(len(points))
        for row, point in enumerate(points):
            value = np.asarray(fun(point.copy()), dtype=np.float64)
            if value.size != 1:
                raise ValueError(f"Function {label!r} must return one number for a point, got shape {value.shape}.")
            values[row] = value.item()
        return values

    return evaluate_rows


def _guarded(fun: Callable[[FloatArray], object], label: str) -> Evaluator:
    """Return ``fun`` with its result checked for shape, and NaN turned into +inf."""

    def evaluate_checked(points: FloatArray) -> FloatArray:
        values = np.asarray(fun(points), dtype=np.float64)
        if values.shape != (len(points),):
            raise ValueError(
                f"Function {label!r} must return shape {(len(points),)} for {len(points)} points, got {values.shape}."
            )
        return np.where(np.isnan(values), np.inf, values)

    return evaluate_checked
