"""Rewards: pure functions of a run's error before and after a generation.

A new one is a function, an entry in ``REWARDS`` and a line in ``reward``.
"""

from __future__ import annotations

import numpy as np

from de_gym.compiling import compiled

# Errors below this count as solved in every published table of the benchmarks; differences below it mean nothing.
ERROR_FLOOR = 1e-8

# The numbers are what the compiled code switches on.
REWARDS = {"relative": 0, "log": 1, "initial_gap": 2}
_RELATIVE, _LOG, _INITIAL_GAP = REWARDS.values()


@compiled
def reward(kind: int, before: float, after: float, initial: float) -> float:
    """Return the reward of a generation that took a run's error from ``before`` to ``after``.

    Args:
        kind: A value of ``REWARDS``.
        before: Best error before the generation, e.
        after: Best error after it, e'.
        initial: Best error of the initial population, e_0.
    """
    if kind == _RELATIVE:
        return reward_relative(before, after)
    if kind == _LOG:
        return reward_log(before, after)
    return reward_initial_gap(before, after, initial)


@compiled
def reward_relative(before: float, after: float) -> float:
    """Return (e - e') / e, and 0 once e = 0: the share of the remaining error that a generation removed.

    Reference: LDE paper, Eq. (11), read as the improvement of the best error.
    """
    return _share(before, after, before)


@compiled
def reward_log(before: float, after: float) -> float:
    """Return log10 e - log10 e', in decades, with errors below 1e-8 counted as 1e-8.

    It telescopes: the return of an episode is the number of decades gained, whatever the path.
    """
    if not np.isfinite(before):
        return 0.0
    return float(np.log10(max(before, ERROR_FLOOR)) - np.log10(max(after, ERROR_FLOOR)))


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
