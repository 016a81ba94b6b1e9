"""The documented settings of RL Zoo make an agent that trains, without the Zoo itself."""

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import RescaleAction
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

yaml = pytest.importorskip("yaml")
SETTINGS = Path(__file__).parents[2] / ".github" / "docs" / "ppo.yml"


def test_documented_settings_train():
    ((env_id, settings),) = yaml.safe_load(SETTINGS.read_text()).items()
    ((wrapper, box),) = settings.pop("env_wrapper")[0].items()
    assert wrapper == "gymnasium.wrappers.RescaleAction"
    kwargs, num_envs, _ = (settings.pop(name) for name in ("env_kwargs", "n_envs", "n_timesteps"))
    settings["policy_kwargs"] = eval(settings["policy_kwargs"])  # as the Zoo does
    envs = DummyVecEnv(
        [
            lambda: RescaleAction(gym.make(f"de_gym:{env_id}", **kwargs), *(np.float32(box[key]) for key in box))
            for _ in range(num_envs)
        ]
    )
    agent = PPO(env=envs, device="cpu", seed=0, **settings)
    agent.learn(1)
    assert agent.num_timesteps == num_envs * settings["n_steps"]
    assert agent.action_space.shape == (4,)
