"""Checks of single values from outside, each with its one sentence: which argument, what is allowed, what came."""

from __future__ import annotations

import math
import operator
from typing import SupportsIndex


def whole(name: str, value: object, minimum: int | None = None) -> int:
    """Return a whole number as a plain ``int``, whatever kind of integer it is, or say what is wrong with it.

    >>> import numpy as np
    >>> whole("population_size", np.uint8(200)) * 2
    400
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]  # the error is what we want
    except TypeError:
        raise TypeError(f"`{name}` must be a whole number, got {value!r}.") from None
    if minimum is not None and number < minimum:
        raise ValueError(f"`{name}` must be at least {minimum}, got {number}.")
    return number


def optional_whole(name: str, value: SupportsIndex | None, minimum: int | None = None) -> int | None:
    """Return ``whole`` of a value that may also be None."""
    return None if value is None else whole(name, value, minimum)


def real(name: str, value: object, low: float = -math.inf, high: float = math.inf) -> float:
    """Return a finite number between ``low`` and ``high``, both included, as a plain ``float``."""
    try:
        number = float(value)  # type: ignore[arg-type]  # the error is what we want
    except (TypeError, ValueError):
        raise TypeError(f"`{name}` must be a number, got {value!r}.") from None
    if not (math.isfinite(number) and low <= number <= high):
        raise ValueError(f"`{name}` must be a {_allowed(low, high)}, got {value!r}.")
    return number


def fraction(name: str, value: object) -> float:
    """Return a number in [0, 1]."""
    return real(name, value, 0.0, 1.0)


def _allowed(low: float, high: float) -> str:
    if math.isinf(low) and math.isinf(high):
        return "finite number"
    if math.isinf(high):
        return f"finite number of at least {low:g}"
    return f"number in [{low:g}, {high:g}]"
