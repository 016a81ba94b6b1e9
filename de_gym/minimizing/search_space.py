"""SearchSpace: the box that the optimiser searches, and the user's points that it stands for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from de_gym.arrays import BoolArray, FloatArray, IntArray
from de_gym.checks import shown
from de_gym.minimizing.scipys import is_scipys

if TYPE_CHECKING:
    from scipy.optimize import Bounds

BoundsLike: TypeAlias = "Iterable[tuple[float, float]] | Bounds"


@dataclass(frozen=True)
class SearchSpace:
    """D coordinates between bounds, some of them whole numbers; the optimiser sees the d that are not fixed.

    A whole-number coordinate is searched in a box that reaches half a unit beyond its extreme values, so that
    rounding gives each of them the same share.

    Attributes:
        lower: Smallest values of the user's points, shape (D,).
        upper: Largest values of the user's points, shape (D,).
        integral: Which coordinates are whole numbers, shape (D,).
        free: Which coordinates are searched, shape (d,).
        box: Lower and upper bounds of the search, each of shape (d,).
    """

    lower: FloatArray
    upper: FloatArray
    integral: BoolArray
    free: IntArray = field(init=False)
    box: tuple[FloatArray, FloatArray] = field(init=False)

    def __post_init__(self) -> None:
        free = np.flatnonzero(self.lower < self.upper)
        margin = np.where(self.integral[free], 0.5, 0.0)
        object.__setattr__(self, "free", free)
        object.__setattr__(self, "box", (self.lower[free] - margin, self.upper[free] + margin))

    @classmethod
    def of(cls, bounds: BoundsLike, integrality: ArrayLike | None = None) -> SearchSpace:
        """Return the space of ``minimize``'s arguments, or say what is wrong with them."""
        lower, upper = _split_bounds(bounds)
        integral = _checked_integrality(integrality, len(lower))
        _refuse_first(~np.isfinite(lower) | ~np.isfinite(upper), lower, upper, "must be finite numbers")
        _refuse_first(lower > upper, lower, upper, "must not have a lower bound above the upper bound")
        with np.errstate(over="ignore"):
            is_too_wide = ~np.isfinite(upper - lower)
        _refuse_first(is_too_wide, lower, upper, "must have a distance that is a number, at most 1.8e308")
        lowest, highest = np.where(integral, np.ceil(lower), lower), np.where(integral, np.floor(upper), upper)
        _refuse_first(lowest > highest, lower, upper, "must have a whole number between them, as `integrality` says")
        return cls(lowest, highest, integral)

    @cached_property
    def is_plain(self) -> bool:
        """Whether the optimiser's points are the user's."""
        return len(self.free) == self.dimension and not self.integral.any()

    @property
    def dimension(self) -> int:
        """Number of coordinates D of the user's points."""
        return len(self.lower)

    def to_user(self, points: FloatArray) -> FloatArray:
        """Return the user's points (P, D) of the optimiser's (P, d)."""
        if self.is_plain:
            return points
        complete = np.repeat(self.lower[None], len(points), axis=0)
        complete[:, self.free] = points
        return self.rounded(complete)

    def rounded(self, points: FloatArray) -> FloatArray:
        """Return the points (P, D) with whole numbers where they are asked for, inside the bounds."""
        return np.where(self.integral, np.clip(np.rint(points), self.lower, self.upper), points)

    def checked_starts(self, x0: ArrayLike | None, name: str = "x0") -> FloatArray:
        """Return starting points, given by an argument of that name, as the user's points (K, D), K possibly 0."""
        if x0 is None:
            return np.empty((0, self.dimension))
        try:
            starts = np.atleast_2d(np.asarray(x0, dtype=np.float64))
        except (TypeError, ValueError):
            raise ValueError(f"`{name}` must be points of numbers, got {shown(x0)}.") from None
        if starts.ndim != 2 or starts.shape[1] != self.dimension:
            raise ValueError(f"`{name}` must be points of {self.dimension} coordinates, got shape {np.shape(x0)}.")
        starts = self.rounded(starts)
        if not ((starts >= self.lower) & (starts <= self.upper)).all():
            raise ValueError(f"`{name}` must lie inside the bounds, got a point outside or NaN.")
        return starts


def _split_bounds(bounds: Any) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds, each of shape (D,)."""
    if is_scipys(bounds, "Bounds"):
        low, high = np.broadcast_arrays(
            np.atleast_1d(np.asarray(bounds.lb, np.float64)), np.atleast_1d(np.asarray(bounds.ub, np.float64))
        )
        bounds = np.stack([low, high], axis=-1)
    try:
        pairs = np.asarray(list(bounds) if isinstance(bounds, Iterator) else bounds, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`bounds` must be (lower, upper) pairs of numbers, got {shown(bounds)}.") from error
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise ValueError(f"`bounds` must be one (lower, upper) pair per coordinate, got shape {pairs.shape}.")
    return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])


def _checked_integrality(integrality: ArrayLike | None, dimension: int) -> BoolArray:
    try:
        given = np.asarray(False if integrality is None else integrality)
    except ValueError:  # lists of different lengths
        given = np.empty(0)
    if given.dtype.kind not in "biu" or given.shape not in ((), (dimension,)):
        raise ValueError(
            f"`integrality` must be True or False, or one of them per coordinate ({dimension}), "
            f"got {shown(integrality)}."
        )
    return np.broadcast_to(given.astype(np.bool_), (dimension,)).copy()


def _refuse_first(refused: BoolArray, lower: FloatArray, upper: FloatArray, rule: str) -> None:
    if refused.any():
        worst = int(np.argmax(refused))
        raise ValueError(f"`bounds` {rule}, got {lower[worst]:g} and {upper[worst]:g} in coordinate {worst}.")
