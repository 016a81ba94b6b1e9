"""Formulas of the operators for a single coordinate: inlined into every loop that needs them, so written once.

Choices are written as selections of two computed values, not as branches, which random data would make the
processor mispredict. A ``Number`` is a float or, where WIDTH coordinates are computed at once, ``Lanes``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from de_gym.machine.compiling import inlined
from de_gym.machine.lanes import choose

if TYPE_CHECKING:
    from de_gym.machine.lanes import Lanes

# A crossover rate that no uniform reaches.
NEVER = -1.0

Number = TypeVar("Number", float, "Lanes")


@inlined
def move_to_pbest(current: Number, best: Number, plus: Number, minus: Number, weight: float, factor: float) -> Number:
    """Return x + W (x_pbest - x) + F (x_r1 - y_r2)."""
    return current + weight * (best - current) + factor * (plus - minus)


@inlined
def positive_or_never(crossover_rate: float) -> float:
    """Return a rate that no uniform reaches when it is zero, not even a uniform of exactly zero."""
    return crossover_rate if crossover_rate > 0.0 else NEVER


@inlined
def to_midpoint(value: Number, parent: Number, low: Number, high: Number) -> Number:
    """Return an outside value moved halfway between its parent's and the violated bound."""
    bound = choose(value < low, low, high)
    midpoint = 0.5 * (parent + bound)
    return choose((value < low) | (value > high), midpoint, value)


@inlined
def to_bound(value: float, low: float, high: float) -> float:
    """Return an outside value set to the violated bound."""
    return min(max(value, low), high)


@inlined
def to_mirror(value: float, low: float, high: float) -> float:
    """Return an outside value mirrored at the bounds as often as needed: a triangle wave of twice the width."""
    if low <= value <= high:
        return value
    width = high - low
    phase = (value - low) % (2.0 * width)
    return min(max(low + (phase if phase <= width else 2.0 * width - phase), low), high)


@inlined
def to_fresh(value: float, uniform: float, low: float, high: float) -> float:
    """Return an outside value drawn anew, uniform in the box."""
    return low + uniform * (high - low) if (value < low) | (value > high) else value
