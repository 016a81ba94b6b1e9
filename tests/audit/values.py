"""Values that callers hand in by mistake, and what tells them from those that an argument takes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

Verdict = bool | None
"""Whether a value is allowed; None where both an answer and a refusal are right."""

_MAKERS: tuple[Callable[[np.random.Generator], object], ...] = (
    lambda rng: None,
    lambda rng: bool(rng.integers(2)),
    lambda rng: int(rng.integers(-3, 60)),
    lambda rng: int(rng.integers(-3, 60)),
    lambda rng: int(2 ** rng.integers(20, 80)),
    lambda rng: -int(2 ** rng.integers(1, 80)),
    lambda rng: 10**30,
    lambda rng: float(rng.choice([math.nan, math.inf, -math.inf])),
    lambda rng: float(rng.choice([1e308, -1e308, 5e-324, -0.0, 0.0, 1e-12, 1e18])),
    lambda rng: float(rng.normal()) * 10.0 ** float(rng.integers(-3, 6)),
    lambda rng: float(rng.random()),
    lambda rng: complex(rng.normal(), 1.0),
    lambda rng: str(rng.choice(["", "x", "5", "0.5", "nan", "learned ", "LOG", "Ü", "../x", "relativ", "cec2013:1"])),
    lambda rng: "a" * int(rng.integers(1, 5000)),
    lambda rng: b"abc",
    lambda rng: np.uint8(rng.integers(256)),
    lambda rng: np.int64(rng.integers(-3, 60)),
    lambda rng: np.float32(rng.normal()),
    lambda rng: np.float64(math.nan),
    lambda rng: np.array(int(rng.integers(0, 30))),
    lambda rng: np.bool_(True),
    lambda rng: np.str_("log"),
    lambda rng: np.datetime64("2020-01-01"),
    lambda rng: Decimal("NaN") if rng.integers(2) else Decimal("2.5"),
    lambda rng: Fraction(1, 3),
    lambda rng: [],
    lambda rng: (),
    lambda rng: {},
    lambda rng: {"a": 1},
    lambda rng: set(),
    lambda rng: [1, 1],
    lambda rng: [None],
    lambda rng: ["a", 2],
    lambda rng: [[1.0], [1.0, 2.0]],
    lambda rng: [math.nan] * int(rng.integers(1, 6)),
    lambda rng: list(range(int(rng.integers(1, 6)))),
    lambda rng: np.full(tuple(rng.integers(0, 4, int(rng.integers(0, 4)))), rng.normal()),
    lambda rng: np.full((2, 2), math.nan),
    lambda rng: np.array(["a"]),
    lambda rng: np.array([None, 1], dtype=object),
    lambda rng: object(),
    lambda rng: type,
    lambda rng: len,
    lambda rng: lambda *arguments: None,
    lambda rng: iter(()),
    lambda rng: slice(None),
    lambda rng: NotImplemented,
    lambda rng: Exception("x"),
)


def wild(rng: np.random.Generator) -> object:
    """Return something that a caller might hand in by mistake."""
    return _MAKERS[int(rng.integers(len(_MAKERS)))](rng)


@dataclass(frozen=True)
class Argument:
    """What an argument takes.

    Attributes:
        usual: Makes a value that must work.
        verdict: Says whether another value is allowed.
        words: What a refusal may call it, beside its name.
    """

    usual: Callable[[np.random.Generator], Any]
    verdict: Callable[[Any], Verdict]
    words: tuple[str, ...] = ()


def among(*values: Any) -> Callable[[np.random.Generator], Any]:
    """Return a maker of one of the given values."""
    return lambda rng: values[int(rng.integers(len(values)))]


def is_whole(low: int, high: int, optional: bool = False) -> Callable[[Any], Verdict]:
    """Return a verdict on whole numbers; above ``high`` a run may be too large for any machine."""

    def verdict(value: Any) -> Verdict:
        if value is None:
            return optional
        try:
            number = operator.index(value)
        except TypeError:
            return False
        if isinstance(value, bool | np.bool_) or number < low:
            return False
        return True if number <= high and not isinstance(value, np.ndarray) else None

    return verdict


def is_real(low: float, high: float, optional: bool = False) -> Callable[[Any], Verdict]:
    """Return a verdict on finite numbers in a range; what merely can be turned into one may be refused."""

    def verdict(value: Any) -> Verdict:
        if value is None:
            return optional
        if isinstance(value, bool | np.bool_ | str | bytes | Decimal | Fraction | np.ndarray | np.datetime64):
            return None if is_number(value) and low <= float(value) <= high else False
        return isinstance(value, int | float | np.number) and is_number(value) and low <= float(value) <= high

    return verdict


def is_number(value: Any) -> bool:
    """Return whether a value can be turned into a finite number."""
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError, OverflowError):
        return False


def is_name(names: Sequence[str], or_callable: bool = False, optional: bool = False) -> Callable[[Any], Verdict]:
    """Return a verdict on names, in any case."""

    def verdict(value: Any) -> Verdict:
        if value is None:
            return optional
        if callable(value) and or_callable:
            return None
        return isinstance(value, str) and value.lower() in names

    return verdict


def never(value: Any) -> Verdict:
    """Refuse everything."""
    return False


def either(value: Any) -> Verdict:
    """Leave it open."""
    return None
