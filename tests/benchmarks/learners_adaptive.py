"""How far learners get on AdaptiveDEControl-v0 with the same number of runs, against zero control.

Stable-Baselines3's PPO and sb3-contrib's RecurrentPPO with their default hyper-parameters, RecurrentREINFORCE with its
own, and EvolutionStrategy. Runs have 250 evaluations per coordinate; all learners act by their means in the end, since
PPO's exploration, of deviation 1, by itself costs a tenth of the return. Held-out problems are those of another seed; p
is Wilcoxon's, paired.

Run ``PYTHONPATH=. python tests/benchmarks/learners_adaptive.py --learner ppo --seed 0``; it takes a minute.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium as gym
import numpy as np
import torch
import tyro
from gymnasium.wrappers.vector import RescaleAction
from numpy.typing import NDArray
from sb3_contrib import RecurrentPPO
from scipy.stats import wilcoxon
from stable_baselines3 import PPO

from agents import EvolutionStrategy, GymnasiumVecEnv, RecurrentREINFORCE, WholeEpisodeVecEnv
from agents.evolution_strategy import Stage

NUM_PROBLEMS, NUM_RUNS, PER_COORDINATE = 100, 4, 250
GENERATIONS_PER_RUN = 39  # of zero control

Act = Callable[[NDArray[Any], NDArray[np.bool_]], NDArray[Any]]


@dataclass(frozen=True)
class Config:
    """What to train."""

    learner: Literal["ppo", "recurrent-ppo", "reinforce", "evolution-strategy"] = "ppo"
    """The learning algorithm."""
    runs: int = 3360
    """Runs to learn from."""
    dimension: int = 10
    """Number of coordinates."""
    seed: int = 0
    """Seed of the agent."""


def make(config: Config, suite: str, functions: range, num_envs: int, autoreset: str = "SAME_STEP") -> Any:
    """Return runs on random problems."""
    return gym.make_vec(
        "de_gym:AdaptiveDEControl-v0",
        num_envs=num_envs,
        vectorization_mode="vector_entry_point",
        autoreset_mode=autoreset,
        suite=suite,
        functions=list(functions),
        dimension=config.dimension,
        max_evaluations=PER_COORDINATE * config.dimension,
    )


def mean_returns(config: Config, act: Act) -> NDArray[np.float64]:
    """Return the mean return of each held-out problem."""
    functions = range(1, NUM_PROBLEMS + 1)
    env = make(config, "random:20000", functions, NUM_PROBLEMS * NUM_RUNS)
    observations, _ = env.reset(seed=1000, options={"function": np.repeat(functions, NUM_RUNS).tolist()})
    returns, going = np.zeros(env.num_envs), np.ones(env.num_envs, bool)
    begins = going.copy()
    while going.any():
        observations, rewards, terminated, truncated, _ = env.step(act(observations, begins))
        returns += np.where(going, rewards, 0.0)
        begins = terminated | truncated
        going &= ~begins
    return returns.reshape(NUM_PROBLEMS, NUM_RUNS).mean(axis=1)


def train(config: Config) -> Act:
    """Return how the trained agent acts, by its means."""
    functions = range(1, 401)
    if config.learner == "evolution-strategy":
        stage = Stage(1, (config.dimension,), PER_COORDINATE, PER_COORDINATE, num_problems=40, cec2013_share=0.0)
        strategy = EvolutionStrategy(stage, seed=config.seed)
        strategy.learn(config.runs // ((strategy.num_candidates + 1) * stage.num_problems))
        return lambda observations, begins: strategy.predict(observations)[0]
    if config.learner == "reinforce":
        num_envs = 240
        env = RescaleAction(make(config, "random:0", functions, num_envs, "DISABLED"), 0.0, 1.0)
        model = RecurrentREINFORCE("UnitBoxLstmPolicy", WholeEpisodeVecEnv(env), seed=config.seed)
        model.learn(config.runs * GENERATIONS_PER_RUN)
        return _recurrent(model, lambda actions: 2.0 * actions - 1.0)
    env = GymnasiumVecEnv(make(config, "random:0", functions, 8))
    steps = config.runs * GENERATIONS_PER_RUN
    if config.learner == "recurrent-ppo":
        model = RecurrentPPO("MlpLstmPolicy", env, seed=config.seed, device="cpu").learn(steps)
        return _recurrent(model, lambda actions: actions)
    model = PPO("MlpPolicy", env, seed=config.seed, device="cpu").learn(steps)
    return lambda observations, begins: model.predict(observations, deterministic=True)[0]


def _recurrent(model: Any, scaled: Callable[[NDArray[Any]], NDArray[Any]]) -> Act:
    state = None

    def act(observations: NDArray[Any], begins: NDArray[np.bool_]) -> NDArray[Any]:
        nonlocal state
        actions, state = model.predict(observations, state, begins, deterministic=True)
        return scaled(actions)

    return act


def main(config: Config) -> int:
    """Train, and print both returns and how probable their difference is by chance."""
    torch.set_num_threads(1)
    zero = mean_returns(config, lambda observations, begins: np.zeros((len(observations), 15), np.float32))
    learned = mean_returns(config, train(config))
    p_value = wilcoxon(learned - zero).pvalue
    print(f"{config.learner} {learned.mean():.3f}, zero control {zero.mean():.3f}, p {p_value:.1e}")
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Config, description=__doc__)))
