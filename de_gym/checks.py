"""The checks of settings that every room makes at its door."""

from __future__ import annotations


def check_at_least(name: str, value: int | None, minimum: int) -> None:
    """Raise unless the setting ``value`` is None, for the default, or at least ``minimum``."""
    if value is not None and value < minimum:
        raise ValueError(f"`{name}` must be at least {minimum}, got {value}.")


def check_fraction(name: str, value: float) -> None:
    """Raise unless the setting ``value`` lies in [0, 1]."""
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"`{name}` must lie in [0, 1], got {value}.")
