"""Problem: a box-constrained objective with a name, bounds and, where known, its minimum."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy import empty, ndarray
from numpy.typing import ArrayLike

from de_gym.arrays import FloatArray
from de_gym.checks import LARGEST_SIZE, listed, numbers, real, shown, truth, whole
from de_gym.machine.kernel import are_finite, evaluate_finite
from de_gym.problems.compiled import FLOAT64, ProgramEvaluator, as_kernel_array
from de_gym.problems.programs import ProgramArrays
from de_gym.problems.user_functions import Evaluator, PointFunction, VectorFunction


class Problem:
    """A function to minimise inside a box.

    A value of NaN counts as +inf: the point is evaluated and counted, and never preferred to another.

    Attributes:
        name: What tables and error messages call it.
        suite: Name of the suite it belongs to, or None.
        number: Official number inside its suite, or None.
        dimension: Number of coordinates D.
        lower: Lower bounds, shape (D,), read-only.
        upper: Upper bounds, shape (D,), read-only.
        optimum: The minimum f*, or a lower bound on it, or None where nothing is known.
        optimal_position: A point with value ``optimum``, shape (D,), read-only, or None.
    """

    def __init__(
        self,
        name: str,
        lower: FloatArray,
        upper: FloatArray,
        evaluator: Evaluator | ProgramEvaluator,
        *,
        suite: str | None = None,
        number: int | None = None,
        optimum: float | None = None,
        optimal_position: FloatArray | None = None,
    ) -> None:
        """Store a problem whose ``evaluator`` maps points (P, D) to values (P,)."""
        self.name = name
        self.suite = suite
        self.number = number
        self.lower, self.upper = _checked_bounds(lower, upper)
        self.dimension = len(self.lower)
        self.optimum = _checked_optimum(optimum)
        self.optimal_position = None if optimal_position is None else _frozen(optimal_position)
        self.evaluator = evaluator

    @cached_property
    def program(self) -> ProgramArrays | None:
        """The function as the kernel reads it; None for a Python function."""
        return self.evaluator.arrays if isinstance(self.evaluator, ProgramEvaluator) else None

    @property
    def function(self) -> Evaluator:
        """What maps points (P, D) to values (P,) where there is no program: the Python function."""
        assert not isinstance(self.evaluator, ProgramEvaluator)
        return self.evaluator

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

        >>> problem = Problem.from_function(lambda x: sum(x**2), -5.0, 5.0, optimum=0.0, dimension=2, name="bowl")
        >>> problem.evaluate([[0.0, 0.0], [3.0, 4.0]])
        array([ 0., 25.])
        """
        if not callable(fun):
            raise TypeError(f"`fun` must be callable, got {type(fun).__name__}.")
        if name is not None and not isinstance(name, str):
            raise TypeError(f"`name` must be a string, got {shown(name)}.")
        label = name or str(getattr(fun, "__name__", type(fun).__name__))
        lower_bounds, upper_bounds = _broadcast_bounds(lower, upper, dimension)
        evaluator: Evaluator = (
            VectorFunction(fun, label) if truth("vectorized", vectorized) else PointFunction(fun, label)
        )
        return cls(label, lower_bounds, upper_bounds, evaluator, optimum=optimum)

    def evaluate(self, points: ArrayLike) -> FloatArray:
        """Return the values of ``points``, shape (..., D), as an array of shape (...)."""
        # For few points the steps around the kernel cost as much as the kernel, so none is taken without need.
        if type(points) is not ndarray or points.dtype is not FLOAT64 or points.ndim != 2 or not points.flags.carray:
            return self._evaluate_any(points)
        count, dimension = points.shape
        if dimension != self.dimension:
            raise self._wrong_shape(points.shape)
        program = self.program
        if program is not None:
            instructions, data = program
            values = empty(count)
            if evaluate_finite(points, instructions, data, values):
                return values
        elif are_finite(points):
            return self.function(points)
        raise ValueError(f"Points of problem {self.name!r} must be finite, got NaN or infinity.")

    def _evaluate_any(self, points: ArrayLike) -> FloatArray:
        """Return the values of points in whatever form, of any number of axes."""
        array = numbers("points", points)
        if array.ndim == 0 or array.shape[-1] != self.dimension:
            raise self._wrong_shape(array.shape)
        return self.evaluate(as_kernel_array(array.reshape(-1, self.dimension))).reshape(array.shape[:-1])

    def _wrong_shape(self, shape: tuple[int, ...]) -> ValueError:
        return ValueError(
            f"Points of problem {self.name!r} must have {self.dimension} coordinates in their last axis, "
            f"got shape {shape}."
        )

    def __repr__(self) -> str:
        return f"Problem({self.name!r}, dimension={self.dimension}, optimum={self.optimum})"


def checked_problems(problems: object) -> tuple[Problem, ...]:
    """Return problems, at least one, or say in one sentence why they are none."""
    chosen = tuple(listed("problems", problems, "Problem objects"))
    if not chosen:
        raise ValueError("`problems` must hold at least one problem, got none.")
    for problem in chosen:
        if not isinstance(problem, Problem):
            raise TypeError(
                f"`problems` must hold Problem objects, got {type(problem).__name__}; "
                f"Problem.from_function turns a callable into one."
            )
    return chosen


def _frozen(vector: FloatArray) -> FloatArray:
    """Return a read-only copy: problems are shared, so nobody may change one in place."""
    copy = np.array(vector, dtype=np.float64)
    copy.setflags(write=False)
    return copy


def _broadcast_bounds(lower: ArrayLike, upper: ArrayLike, dimension: int | None) -> tuple[FloatArray, FloatArray]:
    """Return both bounds as arrays of shape (D,)."""
    low, high = numbers("lower", lower), numbers("upper", upper)
    sizes = {bound.size for bound in (low, high) if bound.ndim == 1}
    if dimension is not None:
        sizes.add(whole("dimension", dimension, 1, LARGEST_SIZE))
    if low.ndim > 1 or high.ndim > 1 or len(sizes) > 1:
        wanted = "" if dimension is None else f" with `dimension` {dimension}"
        raise ValueError(
            f"Bounds must be plain numbers or vectors of one length{wanted}, got shapes {low.shape} and {high.shape}."
        )
    if not sizes:
        raise ValueError("`dimension` is needed when both bounds are plain numbers.")
    shape = (sizes.pop(),)
    if shape[0] < 1:
        raise ValueError(f"A problem needs at least 1 coordinate, got {shape[0]}.")
    return np.broadcast_to(low, shape), np.broadcast_to(high, shape)


def _checked_bounds(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    if lower.ndim != 1 or lower.shape != upper.shape or lower.size == 0:
        raise ValueError(f"Bounds must be two vectors of one length, got shapes {lower.shape} and {upper.shape}.")
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        raise ValueError("Bounds must be finite numbers, got NaN or infinity.")
    with np.errstate(over="ignore"):
        if not np.isfinite(upper - lower).all():
            widest = int(np.argmax(upper - lower))
            raise ValueError(
                f"The width of every bound must be a finite number, got {lower[widest]} to {upper[widest]} "
                f"in coordinate {widest}."
            )
    if not (lower < upper).all():
        worst = int(np.argmin(upper - lower))
        raise ValueError(
            f"Every lower bound must be below its upper bound, got {lower[worst]} >= {upper[worst]} "
            f"in coordinate {worst}."
        )
    return _frozen(lower), _frozen(upper)


def _checked_optimum(optimum: float | None) -> float | None:
    if optimum is None:
        return None
    return real("optimum", optimum)
