"""Rewards: pure functions of a run's error before and after a generation; a new one is a function and an entry."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from de_gym.arrays import FloatArray
from de_gym.compiling import compiled

# Errors below this count as solved in every published table of the benchmarks; differences below it mean nothing.
ERROR_FLOOR = 1e-8


@compiled
def reward_relative(before: FloatArray, after: FloatArray, initial: FloatArray) -> FloatArray:
    """Return (e - e') / e, and 0 once e = 0: the share of the remaining error that a generation removed.

    Reference: LDE paper, Eq. (11), read as the improvement of the best error.
    """
    rewards = np.empty_like(before)
    for run in range(len(before)):
        rewards[run] = _share(before[run], after[run], before[run])
    return rewards


@compiled
def reward_log(before: FloatArray, after: FloatArray, initial: FloatArray) -> FloatArray:
    """Return log10 e - log10 e', in decades, with errors below 1e-8 counted as 1e-8.

    It telescopes: the return of an episode is the number of decades gained, whatever the path.
    """
    rewards = np.zeros_like(before)
    for run in range(len(before)):
        if np.isfinite(before[run]):
            rewards[run] = np.log10(max(before[run], ERROR_FLOOR)) - np.log10(max(after[run], ERROR_FLOOR))
    return rewards


@compiled
def reward_initial_gap(before: FloatArray, after: FloatArray, initial: FloatArray) -> FloatArray:
    """Return (e - e') / e_0: the improvement as a share of the first population's error.

    It telescopes to a return in [0, 1], so functions of very different scale weigh the same.
    """
    rewards = np.empty_like(before)
    for run in range(len(before)):
        rewards[run] = _share(before[run], after[run], initial[run])
    return rewards


@compiled
def _share(before: float, after: float, whole: float) -> float:
    """Return (before - after) / whole; 0 where the whole is 0, or infinite because no point had a value yet."""
    if whole <= 0.0 or not np.isfinite(whole) or not np.isfinite(before):
        return 0.0
    return (before - after) / whole


Reward = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]

REWARDS: dict[str, Reward] = {
    "relative": reward_relative,
    "log": reward_log,
    "initial_gap": reward_initial_gap,
}
