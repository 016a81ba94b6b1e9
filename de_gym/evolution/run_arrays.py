"""Some of the runs of a state: any named tuple of arrays whose first axis are the runs."""

from __future__ import annotations

from typing import Any, TypeVar

from de_gym.arrays import IntArray

# NOTE: a named tuple of arrays; Python has no type for "any NamedTuple".
State = TypeVar("State", bound=tuple[Any, ...])


def take_runs(state: State, runs: IntArray) -> State:
    """Return a copy of the given runs only."""
    return type(state)(*(array[runs] for array in state))


def put_runs(state: State, runs: IntArray, replacement: State) -> None:
    """Replace the given runs of the state and leave all others untouched."""
    for array, part in zip(state, replacement, strict=True):
        array[runs] = part
