"""The task that every example trains on, and the check that every example ends with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

# With the module's name in front, worker processes find the environment too: they import the package themselves.
ENV_ID = "de_gym:DEParamControl-v0"
# Ten generations neither solve the function nor spend the budget, so every episode has this length exactly.
EPISODE_LENGTH = 10
TASK: dict[str, Any] = {"functions": [1], "population_size": 10, "max_generations": EPISODE_LENGTH}


def split_episodes(rewards: np.ndarray, ended: np.ndarray) -> tuple[list[float], list[float]]:
    """Return the returns and lengths of the episodes in rollouts of shape (T, R), counted from their transitions.

    Gymnasium's own statistics wrapper miscounts same-step resets before version 1.4.
    """
    returns: list[float] = []
    lengths: list[float] = []
    for run in range(rewards.shape[1]):
        stops = np.flatnonzero(ended[:, run]) + 1
        for start, stop in zip([0, *stops], stops, strict=False):
            returns.append(float(rewards[start:stop, run].sum()))
            lengths.append(int(stop - start))
    return returns, lengths


def report(
    library: str,
    returns: Sequence[float],
    lengths: Sequence[float],
    num_steps: int,
    episode_length: int = EPISODE_LENGTH,
) -> None:
    """Print one line about a training run, or raise where the library misread the environment.

    A vector environment that resets its runs in another way than a library expects raises no error: the library
    counts a step too many or too few in each episode, or learns from a transition between two episodes.

    Args:
        library: The name of its distribution.
        returns: Return of each episode as the library reports it; every reward is a share in [0, 1].
        lengths: Length of each episode as the library reports it.
        num_steps: Transitions that the library trained on, of whole episodes.
        episode_length: Steps that every episode has; no reward is expected to be above 1.
    """
    if not returns or len(lengths) != len(returns):
        raise ValueError(f"Expected one return and length per episode, got {len(returns)} and {len(lengths)}.")
    wrong = [length for length in lengths if length != episode_length]
    if wrong:
        raise ValueError(f"Every episode must have {episode_length} steps, got {sorted(set(wrong))}.")
    if num_steps != len(lengths) * episode_length:
        raise ValueError(f"{len(lengths)} episodes of {episode_length} steps cannot be {num_steps} transitions.")
    if not all(0 <= episode_return <= episode_length for episode_return in returns):
        raise ValueError(f"Returns must lie between 0 and {episode_length}, got {min(returns)} to {max(returns)}.")
    mean_return = math.fsum(returns) / len(returns)
    print(
        f"{library} {version(library)}, gymnasium {version('gymnasium')}: "
        f"{len(returns)} episodes, mean return {mean_return:.3f}, length {episode_length}"
    )
