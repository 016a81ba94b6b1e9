"""Stable-Baselines3's PPO with its default hyper-parameters on AdaptiveDEControl-v0, against zero control.

It learns where a run is short, 250 evaluations per coordinate, and acts by its means: its exploration is of deviation
1, which by itself costs a tenth of the return. Held-out problems are those of another seed; p is Wilcoxon's, paired.

Run ``PYTHONPATH=. python tests/benchmarks/ppo_adaptive.py --seed 0``; it takes a minute.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from scipy.stats import wilcoxon
from stable_baselines3 import PPO

from agents import GymnasiumVecEnv

NUM_PROBLEMS, NUM_RUNS = 100, 4


@dataclass(frozen=True)
class Config:
    """What to train."""

    steps: int = 131_072
    """Generations to learn from."""
    dimension: int = 10
    """Number of coordinates."""
    seed: int = 0
    """Seed of the agent."""


def make(config: Config, suite: str, functions: range, num_envs: int) -> Any:
    """Return runs of 250 evaluations per coordinate on random problems."""
    return gym.make_vec(
        "de_gym:AdaptiveDEControl-v0",
        num_envs=num_envs,
        vectorization_mode="vector_entry_point",
        autoreset_mode="SAME_STEP",
        suite=suite,
        functions=list(functions),
        dimension=config.dimension,
        max_evaluations=250 * config.dimension,
    )


def mean_returns(config: Config, act: Callable[[NDArray[Any]], NDArray[Any]]) -> NDArray[np.float64]:
    """Return the mean return of each held-out problem."""
    functions = range(1, NUM_PROBLEMS + 1)
    env = make(config, "random:20000", functions, NUM_PROBLEMS * NUM_RUNS)
    observations, _ = env.reset(seed=1000, options={"function": np.repeat(functions, NUM_RUNS).tolist()})
    returns, going = np.zeros(env.num_envs), np.ones(env.num_envs, bool)
    while going.any():
        observations, rewards, terminated, truncated, _ = env.step(act(observations))
        returns += np.where(going, rewards, 0.0)
        going &= ~(terminated | truncated)
    return returns.reshape(NUM_PROBLEMS, NUM_RUNS).mean(axis=1)


def main(config: Config) -> int:
    """Train, and print both returns and how probable their difference is by chance."""
    torch.set_num_threads(1)
    zero = mean_returns(config, lambda observations: np.zeros((len(observations), 13), np.float32))
    env = GymnasiumVecEnv(make(config, "random:0", range(1, 401), 8))
    model = PPO("MlpPolicy", env, seed=config.seed, device="cpu").learn(config.steps)
    learned = mean_returns(config, lambda observations: model.predict(observations, deterministic=True)[0])
    p_value = wilcoxon(learned - zero).pvalue
    print(f"PPO {learned.mean():.3f}, zero control {zero.mean():.3f}, p {p_value:.1e}")
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Config, description=__doc__)))
