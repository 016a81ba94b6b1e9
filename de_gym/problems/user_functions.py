"""Python callables as objectives: every result checked, every failure said in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from de_gym.arrays import FloatArray

Evaluator: TypeAlias = Callable[[FloatArray], FloatArray]
UserFunction: TypeAlias = Callable[[FloatArray], object]


class PointFunction:
    """A callable that takes one point (D,) and returns a number, applied to every row of points (P, D)."""

    def __init__(self, fun: UserFunction, label: str) -> None:
        self._fun = fun
        self._label = label

    def __call__(self, points: FloatArray) -> FloatArray:
        """Return the values (P,), NaN as +inf."""
        values = np.empty(len(points))
        for row, point in enumerate(points):
            try:
                result = self._fun(point.copy())
            except Exception as error:
                shown = np.array2string(point, precision=6, threshold=20)
                raise RuntimeError(f"Function {self._label!r} raised {error!r} at the point {shown}.") from error
            number = _as_numbers(result, self._label)
            if number.size != 1:
                raise ValueError(
                    f"Function {self._label!r} must return one number for a point, got shape {number.shape}."
                )
            values[row] = number.item()
        return _without_nan(values)


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
            shown = "no point" if not len(points) else np.array2string(points[0], precision=6, threshold=20)
            raise RuntimeError(
                f"Function {self._label!r} raised {error!r} on {len(points)} points, the first of them {shown}."
            ) from error
        values = _as_numbers(result, self._label)
        if values.shape != (len(points),):
            raise ValueError(
                f"Function {self._label!r} must return shape {(len(points),)} for {len(points)} points, "
                f"got {values.shape}."
            )
        return _without_nan(values)


def _as_numbers(result: object, label: str) -> FloatArray:
    """Return ``result`` as float64; anything that is not made of real numbers is an error."""
    array = np.asarray(result)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"Function {label!r} must return real numbers, got {type(result).__name__}: {result!r}.")
    return array.astype(np.float64)


def _without_nan(values: FloatArray) -> FloatArray:
    return np.where(np.isnan(values), np.inf, values)
