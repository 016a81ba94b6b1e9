"""Checks of values from outside, each with its one sentence: which argument, what is allowed, what came."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Iterable
from functools import cache
from types import NoneType, UnionType
from typing import Any, SupportsIndex, Union, get_args, get_origin, get_type_hints

import numpy as np

from de_gym.arrays import FloatArray

LARGEST = 2**62
"""Largest whole number that any argument takes: compiled code counts with 64 bits."""
LARGEST_SIZE = 10**6
"""Largest number of individuals, runs or the like: what there is one of in memory for each."""

_SHOWN = 80


def shown(value: object) -> str:
    """Return a value as a message shows it, on one line and not too long."""
    try:
        text = " ".join(repr(value).split())
    except Exception:
        text = f"an object of {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def whole(name: str, value: object, minimum: int | None = None, maximum: int = LARGEST) -> int:
    """Return a whole number as a plain ``int``, whatever kind of integer it is, or say what is wrong with it.

    >>> import numpy as np
    >>> whole("population_size", np.uint8(200)) * 2
    400
    """
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]  # the error is what we want
    except TypeError:
        raise TypeError(f"`{name}` must be a whole number, got {shown(value)}.") from None
    if minimum is not None and number < minimum:
        raise ValueError(f"`{name}` must be at least {minimum}, got {shown(number)}.")
    if number > maximum:
        raise ValueError(f"`{name}` must be at most {maximum}, got {shown(number)}.")
    return number


def optional_whole(
    name: str, value: SupportsIndex | None, minimum: int | None = None, maximum: int = LARGEST
) -> int | None:
    """Return ``whole`` of a value that may also be None."""
    return None if value is None else whole(name, value, minimum, maximum)


def real(name: str, value: object, low: float = -math.inf, high: float = math.inf) -> float:
    """Return a finite number between ``low`` and ``high``, both included, as a plain ``float``."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        number = float(value)  # type: ignore[arg-type]  # the error is what we want
    except (TypeError, ValueError):
        raise TypeError(f"`{name}` must be a number, got {shown(value)}.") from None
    except OverflowError:
        number = math.inf
    if not (math.isfinite(number) and low <= number <= high):
        raise ValueError(f"`{name}` must be a {_allowed(low, high)}, got {shown(value)}.")
    return number


def fraction(name: str, value: object) -> float:
    """Return a number in [0, 1]."""
    return real(name, value, 0.0, 1.0)


def positive(name: str, value: object) -> float:
    """Return a finite number above 0."""
    number = real(name, value)
    if not number > 0.0:
        raise ValueError(f"`{name}` must be a finite number above 0, got {shown(value)}.")
    return number


def truth(name: str, value: object) -> bool:
    """Return True or False, which must be given as such."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"`{name}` must be True or False, got {shown(value)}.")
    return bool(value)


def numbers(name: str, value: object) -> FloatArray:
    """Return real numbers as an array of float64, of any shape."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            array = np.asarray(value, dtype=np.float64) if array.dtype == np.object_ else _refused()
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"`{name}` must consist of real numbers, got {shown(value)}.") from None


def listed(name: str, value: object, of: str) -> list[Any]:
    """Return the entries of a sequence that is no text."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(f"`{name}` must be a sequence of {of}, got {shown(value)}.")
    try:
        return list(value)
    except TypeError:  # an array without axes
        raise TypeError(f"`{name}` must be a sequence of {of}, got {shown(value)}.") from None


def is_several(value: object) -> bool:
    """Return whether a value is a list, a tuple or an array with an axis; unlike ``np.ndim``, of any content."""
    return value.ndim > 0 if isinstance(value, np.ndarray) else isinstance(value, list | tuple)


def store_plain(settings: Any) -> None:
    """Replace the fields of a frozen dataclass by plain values of their types, or say which one has another type."""
    for name, hint in _hints(type(settings)).items():  # type: ignore[arg-type]  # classes are hashable
        object.__setattr__(settings, name, _plain(name, getattr(settings, name), hint))


def _plain(name: str, value: object, hint: Any) -> object:
    """Return ``value`` as the type ``hint``, which is made of plain types, tuples, None and dataclasses."""
    if get_origin(hint) in (Union, UnionType):
        others = [choice for choice in get_args(hint) if choice is not NoneType]
        return None if value is None and len(others) < len(get_args(hint)) else _plain(name, value, others[0])
    if get_origin(hint) is tuple:
        return _plain_tuple(name, value, get_args(hint))
    if hint is bool:
        return truth(name, value)
    if hint is int:
        return whole(name, value)
    if hint is float:
        return real(name, value)
    if not isinstance(value, hint):
        raise TypeError(f"`{name}` must be a {hint.__name__}, got {shown(value)}.")
    return value


def _plain_tuple(name: str, value: object, kinds: tuple[Any, ...]) -> tuple[object, ...]:
    entries = listed(name, value, "numbers" if kinds[0] is not str else "names")
    if not entries or (kinds[-1] is not ... and len(entries) != len(kinds)):
        wanted = "at least one entry" if kinds[-1] is ... else f"{len(kinds)} entries"
        raise ValueError(f"`{name}` must have {wanted}, got {shown(value)}.")
    return tuple(_plain(name, entry, kinds[0]) for entry in entries)


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _refused() -> FloatArray:
    raise TypeError


def _allowed(low: float, high: float) -> str:
    if math.isinf(low) and math.isinf(high):
        return "finite number"
    if math.isinf(high):
        return f"finite number of at least {low:g}"
    return f"number in [{low:g}, {high:g}]"
