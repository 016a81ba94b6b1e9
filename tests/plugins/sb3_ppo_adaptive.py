"""Stable-Baselines3 PPO as it comes, on the environment that adjusts an adaptive algorithm; then its agent in use."""

from __future__ import annotations

from typing import Any

import numpy as np
from small_task import report
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import de_gym
from de_gym.controllers import from_policy

# A divisor of PPO's default rollout of 2048 steps, so that it consists of whole episodes.
EPISODE_LENGTH = 16
TASK: dict[str, Any] = {
    "suite": "random",
    "functions": [1, 2, 3],
    "dimension": 10,
    "max_evaluations": 20_000,
    "max_generations": EPISODE_LENGTH,
    "target_error": 0.0,
}


def main() -> None:
    # Zeros leave the algorithm unchanged, and a fresh policy's means are close to them: nothing needs to be rescaled.
    envs = make_vec_env("de_gym:AdaptiveDEControl-v0", n_envs=1, seed=0, env_kwargs=TASK)
    agent = PPO("MlpPolicy", envs, seed=0, device="cpu", stats_window_size=2048 // EPISODE_LENGTH)
    agent.learn(2048)
    controller = from_policy(agent)
    result = de_gym.minimize(lambda x: float(x @ x), [(-5.0, 5.0)] * 10, controller=controller, seed=0)
    assert result.fun < 1e-8, result
    assert np.isfinite(result.x).all()
    assert agent.ep_info_buffer is not None
    episodes = list(agent.ep_info_buffer)
    lengths = [e["l"] for e in episodes]
    report("stable-baselines3", [e["r"] for e in episodes], lengths, agent.num_timesteps, EPISODE_LENGTH)


if __name__ == "__main__":
    main()
