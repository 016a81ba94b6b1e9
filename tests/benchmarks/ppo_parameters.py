"""PPO and RecurrentPPO with the documented settings on DEParamControl-v0, against the textbook's constants.

The files of settings are those of RL Zoo, ``.github/docs/ppo.yml`` and ``ppo_lstm.yml``; here the runs go side by side
in the native vector environment. Agents act by their means. They were chosen on the training functions and on random
problems of seed 10 000; the test functions are for the last look.

Run ``PYTHONPATH=. python tests/benchmarks/ppo_parameters.py --seed 1``; a training takes half a CPU-minute.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import gymnasium as gym
import numpy as np
import torch
import tyro
import yaml
from gymnasium.wrappers.vector import RescaleAction
from numpy.typing import NDArray
from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO

from agents import GymnasiumVecEnv
from de_gym.evaluation.statistics import superiority

SETTINGS = Path(__file__).parents[2] / ".github" / "docs"
ALGORITHMS = {"ppo": PPO, "ppo_lstm": RecurrentPPO}
SETS = {
    "training functions": ("cec2013", range(1, 21), 51),
    "validation problems": ("random:10000", range(1, 101), 8),
    "test functions": ("cec2013", range(21, 29), 51),
}
CONSTANTS = np.repeat([0.5, 0.9], 5)


@dataclass(frozen=True)
class Config:
    """What to train."""

    algorithm: Literal["ppo", "ppo_lstm"] = "ppo"
    """PPO or RecurrentPPO."""
    seed: int = 0
    """Seed of the agent."""
    test: bool = True
    """Whether to look at the test functions."""


def make(num_envs: int, **options: Any) -> Any:
    """Return runs side by side whose actions lie between -1 and 1."""
    kind = {"vectorization_mode": "vector_entry_point", "autoreset_mode": "SAME_STEP", "assignment": "in_turn"}
    env = gym.make_vec("de_gym:DEParamControl-v0", num_envs=num_envs, **kind, **options)
    return RescaleAction(env, np.float32(-1), np.float32(1))


def measure(act: Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]], kind: str, **options: Any) -> NDArray[Any]:
    """Return the return of every problem and run, shape (P, R), of a policy of observations and of what begins."""
    suite, functions, num_runs = SETS[kind]
    numbers = np.repeat(functions, num_runs)
    env = make(len(numbers), **(options | {"suite": suite, "functions": list(functions)}))
    observations, _ = env.reset(seed=1000, options={"function": numbers.tolist()})
    returns, going = np.zeros(len(numbers)), np.ones(len(numbers), bool)
    begins = going
    while going.any():
        observations, rewards, terminated, truncated, _ = env.step(act(observations, begins))
        begins = terminated | truncated
        returns += np.where(going, rewards, 0.0)
        going = going & ~begins
    return returns.reshape(len(functions), num_runs)


def acting(model: Any) -> Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]:
    """Return a trained model as a policy, with its memory if it has one."""
    states: Any = None

    def act(observations: NDArray[Any], begins: NDArray[Any]) -> NDArray[Any]:
        nonlocal states
        actions, states = model.predict(observations, states, begins, deterministic=True)
        return actions

    return act


def main(config: Config) -> int:
    """Train, and print what the agent gains on the constants for each set of problems."""
    torch.set_num_threads(1)
    (settings,) = yaml.safe_load((SETTINGS / f"{config.algorithm}.yml").read_text()).values()
    options, steps = settings.pop("env_kwargs"), settings.pop("n_timesteps")
    settings.pop("env_wrapper")
    settings["policy_kwargs"] = eval(settings["policy_kwargs"])  # as the Zoo does
    env = GymnasiumVecEnv(make(settings.pop("n_envs"), **options))
    model = ALGORITHMS[config.algorithm](env=env, seed=config.seed, device="cpu", **settings).learn(steps)
    for kind in [kind for kind in SETS if config.test or kind != "test functions"]:
        constant = measure(lambda observations, _: np.tile(2 * CONSTANTS - 1, (len(observations), 1)), kind, **options)
        learned = measure(acting(model), kind, **options)
        gains = learned.mean(axis=1) - constant.mean(axis=1)
        error = np.sqrt((learned.var(axis=1) + constant.var(axis=1)).mean() / learned.size)
        better = superiority(-constant, -learned).mean()
        print(
            f"{config.algorithm}, seed {config.seed}, {len(gains)} {kind}: return {learned.mean():.3f}, constants "
            f"{constant.mean():.3f}, gain {gains.mean():.3f} +- {1.96 * error:.3f} over runs; a run's is higher with "
            f"probability {better:.2f}; by problem {np.round(gains, 2).tolist()[:28]}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Config, description=__doc__)))
