"""Stable-Baselines3 SAC on one environment; its actions are squashed and rescaled to the box by SB3 itself."""

from __future__ import annotations

import gymnasium as gym
from small_task import ENV_ID, TASK, report
from stable_baselines3 import SAC


def main() -> None:
    agent = SAC("MlpPolicy", gym.make(ENV_ID, **TASK), learning_starts=100, batch_size=32, seed=0, device="cpu")
    agent.learn(200)
    assert agent.ep_info_buffer is not None
    episodes = list(agent.ep_info_buffer)
    report("stable-baselines3", [e["r"] for e in episodes], [e["l"] for e in episodes], agent.num_timesteps)


if __name__ == "__main__":
    main()
