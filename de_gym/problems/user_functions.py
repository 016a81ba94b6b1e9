"""Python callables as objectives: every result checked, every failure said in one sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from de_gym.arrays import FloatArray
from de_gym.checks import shown

Evaluator: TypeAlias = Callable[[FloatArray], FloatArray]
UserFunction: TypeAlias = Callable[[FloatArray], object]
MapLike: TypeAlias = Callable[[UserFunction, Sequence[FloatArray]], Iterable[object]]


class CallFailed(RuntimeError):
    """A function could not be called at all, through no fault of its own: a worker process died, for example."""


class PointFunction:
    """A callable that takes one point (D,) and returns a number, applied to every row of points (P, D)."""

    def __init__(self, fun: UserFunction, label: str, map_like: MapLike = map) -> None:
        """Store the callable and what applies it to many points, by default one after another."""
        self._fun = fun
        self._label = label
        self._map = map_like

    def __call__(self, points: FloatArray) -> FloatArray:
        """Return the values (P,), NaN as +inf."""
        return np.fromiter(self.each(points), np.float64, len(points))

    def each(self, points: FloatArray) -> Iterator[float]:
        """Yield the values one by one, each as soon as it is known, NaN as +inf."""
        results: Iterator[object] | None = None
        for point in points:
            try:
                if results is None:
                    results = iter(self._map(self._fun, [row.copy() for row in points]))
                result = next(results)
            except CallFailed:
                raise
            except Exception as error:
                if isinstance(error, StopIteration) and not self.calls_one_by_one:
                    raise TypeError("`workers` must give one value for each point, and gave fewer.") from None
                where = np.array2string(point, precision=6, threshold=20)
                raise RuntimeError(f"Function {self._label!r} raised {error!r} at the point {where}.") from error
            yield self._as_number(result)

    @property
    def calls_one_by_one(self) -> bool:
        """Whether a point is only evaluated when its value is asked for."""
        return self._map is map

    def _as_number(self, result: object) -> float:
        if type(result) is not float:
            number = _as_numbers(result, self._label)
            if number.size != 1:
                raise ValueError(
                    f"Function {self._label!r} must return one number for a point, got shape {number.shape}."
                )
            result = float(number.item())
        return result if result == result else math.inf


class VectorFunction:
    """A callable that takes all points (P, D) at once and returns values (P,)."""

    def __init__(self, fun: UserFunction, label: str) -> None:
        self._fun = fun
        self._label = label

    def __call__(self, points: FloatArray) -> FloatArray:
        """Return the values (P,), NaN as +inf."""
        try:
            result = self._fun(points.copy())
        except Exception as error:
            first = "no point" if not len(points) else np.array2string(points[0], precision=6, threshold=20)
            raise RuntimeError(
                f"Function {self._label!r} raised {error!r} on {len(points)} points, the first of them {first}."
            ) from error
        values = _as_numbers(result, self._label)
        if values.shape != (len(points),):
            raise ValueError(
                f"Function {self._label!r} must return shape {(len(points),)} for {len(points)} points, which are the "
                f"rows of its argument, got {values.shape}."
            )
        return _without_nan(values)


def _as_numbers(result: object, label: str) -> FloatArray:
    """Return ``result`` as float64; anything that is not made of real numbers is an error."""
    try:
        array = np.asarray(result)
    except ValueError:  # parts of different shapes, such as a value and a gradient
        array = np.empty(0, np.object_)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"Function {label!r} must return real numbers, got {type(result).__name__}: {shown(result)}.")
    return array.astype(np.float64)


def _without_nan(values: FloatArray) -> FloatArray:
    return np.where(np.isnan(values), np.inf, values)
