"""The documented settings of RL Zoo make an agent that trains, without the Zoo itself."""

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import RescaleAction
from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

yaml = pytest.importorskip("yaml")
DOCS = Path(__file__).parents[2] / ".github" / "docs"
NUM_ENVS = 4  # of the file's 400, which here would take seconds to build


@pytest.mark.parametrize(("file", "algorithm"), [("ppo.yml", PPO), ("ppo_lstm.yml", RecurrentPPO)])
def test_documented_settings_train(file, algorithm):
    ((env_id, settings),) = yaml.safe_load((DOCS / file).read_text()).items()
    ((wrapper, box),) = settings.pop("env_wrapper")[0].items()
    assert wrapper == "gymnasium.wrappers.RescaleAction"
    kwargs, num_envs, _ = (settings.pop(name) for name in ("env_kwargs", "n_envs", "n_timesteps"))
    assert settings["batch_size"] == num_envs * settings["n_steps"]  # one step of the optimiser for all of them
    settings["policy_kwargs"] = eval(settings["policy_kwargs"])  # as the Zoo does
    envs = DummyVecEnv(
        [
            lambda: RescaleAction(gym.make(f"de_gym:{env_id}", **kwargs), *(np.float32(box[key]) for key in box))
            for _ in range(NUM_ENVS)
        ]
    )
    agent = algorithm(env=envs, device="cpu", seed=0, **settings | {"batch_size": NUM_ENVS * settings["n_steps"]})
    agent.learn(1)
    assert agent.num_timesteps == NUM_ENVS * settings["n_steps"]
    assert agent.action_space.shape == (10,)
