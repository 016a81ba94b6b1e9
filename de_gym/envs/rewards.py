"""Rewards: pure functions of a run's error before and after a generation.

A new one is a function of (e, e', e_0), the best error before a generation, after it and of the initial population,
and an entry in ``REWARDS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from de_gym.machine.compiling import compiled, switch
from de_gym.problems.budgets import ZERO_ERROR


@compiled
def reward_relative(before: float, after: float, initial: float) -> float:
    """Return (e - e') / e, and 0 once e = 0: the share of the remaining error that a generation removed.

    Reference: LDE paper, Eq. (11), read as the improvement of the best error.
    """
    return _share(before, after, before)


@compiled
def reward_log(before: float, after: float, initial: float) -> float:
    """Return log10 e - log10 e', in decades, with errors below 1e-8 counted as 1e-8.

    It telescopes: the return of an episode is the number of decades gained, whatever the path.
    """
    if not np.isfinite(before):
        return 0.0
    return float(np.log10(max(before, ZERO_ERROR)) - np.log10(max(after, ZERO_ERROR)))


@compiled
def reward_initial_gap(before: float, after: float, initial: float) -> float:
    """Return (e - e') / e_0: the improvement as a share of the first population's error.

    It telescopes to a return in [0, 1], so functions of very different scale weigh the same.
    """
    return _share(before, after, initial)


@compiled
def _share(before: float, after: float, whole: float) -> float:
    """Return (before - after) / whole; 0 where the whole is 0, or infinite because no point had a value yet."""
    if whole <= 0.0 or not np.isfinite(whole) or not np.isfinite(before):
        return 0.0
    return (before - after) / whole


REWARDS: Mapping[str, Callable[[float, float, float], float]] = MappingProxyType(
    {"relative": reward_relative, "log": reward_log, "initial_gap": reward_initial_gap}
)

reward = switch(tuple(REWARDS.values()))
