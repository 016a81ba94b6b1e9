from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

BEST_ACTION = np.array([0.2, 0.8, 0.6, 0.35], dtype=np.float32)


class TargetEnv(gym.Env):
    """Reward 1 minus the distance of the action from one fixed point: the best action is known."""

    metadata: ClassVar = {"render_modes": []}
    render_mode = None

    def __init__(self, lengths=(5,)):
        self.observation_space = spaces.Box(0.0, 1.0, (3,), np.float32)
        self.action_space = spaces.Box(0.0, 1.0, (4,), np.float32)
        self._lengths = lengths

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._length = self._lengths[int(self.np_random.integers(len(self._lengths)))]
        self._step = 0
        return self._observe(), {"function": self._length}

    def step(self, action):
        self._step += 1
        reward = 1.0 - float(np.abs(action - BEST_ACTION).mean())
        return self._observe(), reward, False, self._step >= self._length, {"best_error": 1.0 - reward}

    def _observe(self):
        return self.np_random.random(3, dtype=np.float32)


@pytest.fixture
def best_action():
    return BEST_ACTION


@pytest.fixture
def make_target_env():
    """Return a factory of target environments, batched for SB3; ``lengths`` are drawn at each reset."""

    def make(num_envs=4, lengths=(5,)):
        return DummyVecEnv([lambda: Monitor(TargetEnv(lengths)) for _ in range(num_envs)])

    return make
