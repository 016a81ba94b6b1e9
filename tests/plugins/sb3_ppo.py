"""Stable-Baselines3 PPO on single environments."""

from __future__ import annotations

import numpy as np
from gymnasium.wrappers import RescaleAction
from small_task import ENV_ID, EPISODE_LENGTH, TASK, report
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env


def main() -> None:
    # SB3's Gaussian starts with all means at 0. In the box [0, 1] that is a corner; in [-1, 1] it is the middle.
    envs = make_vec_env(
        ENV_ID,
        n_envs=4,
        seed=0,
        env_kwargs=TASK,
        wrapper_class=RescaleAction,
        wrapper_kwargs={"min_action": np.float32(-1), "max_action": np.float32(1)},
    )
    agent = PPO("MlpPolicy", envs, n_steps=5 * EPISODE_LENGTH, batch_size=50, n_epochs=2, seed=0, device="cpu")
    agent.learn(400)
    assert agent.ep_info_buffer is not None
    episodes = list(agent.ep_info_buffer)
    report("stable-baselines3", [e["r"] for e in episodes], [e["l"] for e in episodes], agent.num_timesteps)


if __name__ == "__main__":
    main()
