"""One whole episode of every run, or of some rows of a batch, step by step and without gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.distributions import Distribution
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from de_gym.arrays import BoolArray, FloatArray

from .log_probs import moments
from .policies import UnitBoxLstmPolicy
from .tapes import Tape


class Step(NamedTuple):
    """What a generation of b runs gave, under the names that callbacks of SB3 know."""

    actions: NDArray[np.float32]  # as sampled, (b, A)
    clipped_actions: NDArray[np.float32]  # as the environment sees them, (b, A)
    rewards: FloatArray  # (b,)
    dones: BoolArray  # (b,)
    infos: list[dict[str, Any]]
    going: BoolArray  # whether the run's episode was still going before the step, (b,)


def play(policy: UnitBoxLstmPolicy, env: VecEnv, tape: Tape, observations: Any, rows: slice) -> Iterator[Step]:
    """Step an env until the episodes of all of ``rows`` have ended; the actions of its other runs are zeros.

    What follows the end of a run's episode counts for nothing; the network goes on in all rows, because the rounding of
    its matrix products depends on their number.

    Args:
        policy: Samples the actions.
        env: Has just been reset.
        tape: Of the policy's hidden layer, for as many runs as ``rows`` has.
        observations: What the reset returned.
        rows: Which runs of the env.
    """
    assert env.action_space.shape is not None
    going, device = np.ones(env.num_envs, dtype=bool)[rows], policy.device
    while going.any():
        with torch.no_grad():
            seen = torch.as_tensor(observations[rows], dtype=torch.float32, device=device)
            samples = sample(policy.action_distribution(tape.step(seen)), env.num_envs, rows)
        actions: NDArray[np.float32] = samples.cpu().numpy()
        clipped_actions = np.clip(actions, 0.0, 1.0)
        all_actions = np.zeros((env.num_envs, *env.action_space.shape), np.float32)
        all_actions[rows] = clipped_actions
        observations, rewards, dones, infos = env.step(all_actions)
        yield Step(actions, clipped_actions, rewards[rows], dones[rows], infos[rows], going)
        going = going & ~dones[rows]


def sample(distribution: Distribution, num_runs: int, rows: slice) -> Tensor:
    """Return samples (b, A) of the runs ``rows``, for which the noise of all runs is drawn: it is the same in any part.

    For all rows these are the samples that the distribution itself draws.
    """
    mean, deviation = moments(distribution)
    noise = torch.empty((num_runs, mean.shape[1]), dtype=mean.dtype, device=mean.device).normal_()
    return mean + noise[rows] * deviation
