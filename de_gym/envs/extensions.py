"""Rewards and parts of the observation that are Python functions of the user, given as they are or by a name.

The compiled tables ``REWARDS`` and ``FEATURES`` are fixed when the package is compiled, so what is added here is called
from Python, run by run: slower than a built-in one, and free to do anything. What numba has compiled (``numba.njit``)
is called for all runs at once, as fast as a built-in one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numba import njit
from numba.core.dispatcher import Dispatcher
from numba.core.errors import TypingError

from de_gym.arrays import Float32Array, FloatArray, RunArray
from de_gym.checks import listed, numbers, shown, whole
from de_gym.envs.features import FEATURES
from de_gym.envs.rewards import REWARDS
from de_gym.envs.run_views import RunView, RunViews, observe_by_compiled, view_run
from de_gym.machine.run_features import FEATURES as RUN_FEATURES
from de_gym.registry import known_name

RewardFunction = Callable[[float, float, float], float]

Entry = TypeVar("Entry")

_rewards: dict[str, RewardFunction] = {}
_observations: dict[str, Observation] = {}


@dataclass(frozen=True)
class Observation:
    """One stretch of the observation that a Python function computes.

    Attributes:
        function: Returns ``size`` numbers, or one number where the size is 1, given a ``RunView``.
        size: How many entries it has.
        low: Smallest value of its entries; smaller ones are raised to it.
        high: Largest value of its entries.
    """

    function: Callable[[RunView], object]
    size: int = 1
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        """Reject what no observation could be made of."""
        if not callable(self.function):
            raise TypeError(f"An observation must be computed by a callable, got {type(self.function).__name__}.")
        object.__setattr__(self, "size", whole("size", self.size, 1))
        low, high = numbers("low", self.low), numbers("high", self.high)
        if low.ndim or high.ndim or not low < high:
            raise ValueError(f"`low` must be a number below `high`, got {shown(self.low)} and {shown(self.high)}.")
        object.__setattr__(self, "low", float(low))
        object.__setattr__(self, "high", float(high))

    @property
    def name(self) -> str:
        """What the function is called."""
        return _name_of(self.function)

    def __call__(self, view: RunView) -> FloatArray:
        """Return the entries of one run, shape (k,), or say what is wrong with what the function returned."""
        returned = self.function(view)
        try:
            values = np.asarray(returned)
        except ValueError:  # lists of different lengths
            raise ValueError(
                f"The observation {self.name!r} must return {self.size} number(s), got {shown(returned)}."
            ) from None
        if values.dtype.kind not in "biuf" or values.size != self.size or values.ndim > 1:
            raise ValueError(
                f"The observation {self.name!r} must return {self.size} number(s), "
                f"got an array of {values.dtype} of shape {values.shape}."
            )
        if np.isnan(values).any():
            raise ValueError(f"The observation {self.name!r} must return numbers, got NaN.")
        return np.clip(values.reshape(-1).astype(np.float64), self.low, self.high)


def register_reward(name: str, function: RewardFunction) -> None:
    """Let ``reward=name`` of both environments mean ``function(before, after, initial)``.

    Its arguments are the best error before a generation, after it and of the initial population. The name is known in
    this process; environments in other processes need the function itself, or the same call there.

    >>> register_reward("halved", lambda before, after, initial: float(after <= before / 2))
    >>> import gymnasium as gym, de_gym
    >>> env = gym.make("DEParamControl-v0", functions=[1], reward="halved")
    """
    if not callable(function):
        raise TypeError(f"A reward must be a callable of (before, after, initial), got {type(function).__name__}.")
    _add("reward", name, function, _rewards, REWARDS)


def register_observation(
    name: str,
    function: Callable[[RunView], object],
    size: int = 1,
    low: float = -math.inf,
    high: float = math.inf,
) -> None:
    """Let ``name`` in ``observation=[...]`` of both environments mean ``function(view)``; see ``Observation``.

    The name is known in this process; environments in other processes need an ``Observation`` itself.
    """
    names = [*FEATURES, *(feature.name for feature in RUN_FEATURES)]
    _add("observation part", name, Observation(function, size, low, high), _observations, names)


def _add(kind: str, name: str, entry: Entry, table: dict[str, Entry], taken: Iterable[str]) -> None:
    if not isinstance(name, str) or not name:
        raise TypeError(f"The name of a {kind} must be a string that is not empty, got {shown(name)}.")
    # A name that changed its meaning would change environments that are made from stored settings.
    if name in taken or table.get(name, entry) != entry:
        raise ValueError(f"There is a {kind} called {name!r} already: choose another name.")
    table[name] = entry


def check_reward(reward: Any) -> Any:
    """Return a reward as environments keep it, a callable or the name in its own spelling; or reject it."""
    if callable(reward):
        return reward
    return known_name("reward", reward, [*REWARDS, *_rewards], "a callable of (before, after, initial)")


def find_reward(reward: object) -> RewardFunction | None:
    """Return the Python function that a setting means, None for a compiled reward; or reject it."""
    if callable(reward):
        return reward
    return _rewards.get(check_reward(reward))


def find_observation(part: object, built_in: Iterable[str]) -> Observation | None:
    """Return the Python part that an entry of ``observation`` means, None for a built-in one; or reject it."""
    if isinstance(part, Observation):
        return part
    if callable(part):
        return Observation(part)
    return _observations.get(known_name("observation part", part, [*built_in, *_observations], "a callable"))


def check_observation(observation: object, built_in: Sequence[str]) -> tuple[str | Observation, ...]:
    """Return the parts of an observation: built-in names, and ``Observation`` for all others; or reject them."""
    parts = listed("observation", observation, "parts, by name or callable")
    if not parts:
        raise ValueError(f"`observation` must name at least one part of {', '.join(built_in)}, got none.")
    found = [(part, find_observation(part, built_in)) for part in parts]
    return tuple(known_name("observation part", part, built_in) if own is None else own for part, own in found)


def compute_rewards(function: RewardFunction, before: RunArray, after: RunArray) -> FloatArray:
    """Return a user's rewards (R,) of the last generation; 0 where the stated minimum turned out to be none.

    Args:
        function: Of the best error before the generation, after it, and of the initial population.
        before: The runs before it, records of ``RUN``, shape (R,).
        after: The runs after it.
    """
    rewards = np.zeros(len(after))
    runs = np.flatnonzero(before["has_optimum"] == after["has_optimum"])
    errors = before["best_error"][runs], after["best_error"][runs], after["initial_error"][runs]
    if isinstance(function, Dispatcher):
        values = _call_compiled(_reward_all, function, *errors)
        for run in np.flatnonzero(~np.isfinite(values)):
            _checked_reward(function, values[run])
        rewards[runs] = values
    else:
        triples = zip(*(column.tolist() for column in errors), strict=True)
        rewards[runs] = [_checked_reward(function, function(*triple)) for triple in triples]
    return rewards


@njit
def _reward_all(function: Any, before: FloatArray, after: FloatArray, initial: FloatArray) -> FloatArray:
    """Return the rewards of all runs by a function that numba has compiled; this is compiled for each anew."""
    rewards = np.empty(len(before))
    for run in range(len(before)):
        rewards[run] = function(before[run], after[run], initial[run])
    return rewards


def _checked_reward(function: RewardFunction, value: object) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]  # the error is what we want
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"The reward {_name_of(function)!r} must return a finite number, got {shown(value)}.")
    return number


def join_parts(
    parts: Sequence[str | Observation], built_in: Mapping[str, Float32Array], views: RunViews
) -> Float32Array:
    """Return observations (R, O) of which some parts are computed by functions of the user.

    Args:
        parts: What they consist of, in order.
        built_in: The built-in parts, each of shape (R, k).
        views: What the functions see.
    """
    columns = [built_in[part] if isinstance(part, str) else _own_columns(part, views) for part in parts]
    return np.concatenate(columns, axis=1)


def _own_columns(part: Observation, views: RunViews) -> Float32Array:
    """Return what a function of the user sees of R runs, shape (R, k)."""
    num_runs = len(views.sizes)
    if isinstance(part.function, Dispatcher):
        columns = np.empty((num_runs, part.size))
        wrong = _call_compiled(observe_by_compiled, part.function, views, float(part.low), float(part.high), columns)
        if wrong < 0:
            return columns.astype(np.float32)
        part(view_run(views, wrong))  # which says what is wrong
    return np.stack([part(view_run(views, run)) for run in range(num_runs)]).astype(np.float32)


def _call_compiled(kernel: Any, function: Any, *arguments: Any) -> Any:
    """Return what compiled code makes of a user's compiled function, or say that it cannot call it."""
    try:
        return kernel(function, *arguments)
    except TypingError as error:
        raise TypeError(
            f"The compiled function {_name_of(function)!r} must be one that numba can call with its arguments and "
            f"that returns numbers; without `numba.njit` it may do anything. numba says:\n{error}"
        ) from None


def _name_of(function: object) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
