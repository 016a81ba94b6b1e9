"""RecurrentPPO of sb3-contrib: on one environment, then on the native vector environment through our bridge."""

from __future__ import annotations

import gymnasium as gym
from gymnasium.vector import AutoresetMode
from sb3_contrib import RecurrentPPO
from small_task import ENV_ID, EPISODE_LENGTH, TASK, report
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor

from agents.policies import UnitBoxLstmPolicy
from agents.vec_env import GymnasiumVecEnv


def train(envs: VecEnv) -> None:
    """Train on two rollouts of whole episodes, with the policy whose means start in the middle of the box."""
    agent = RecurrentPPO(
        UnitBoxLstmPolicy,
        VecMonitor(envs),
        n_steps=5 * EPISODE_LENGTH,
        batch_size=50,
        n_epochs=2,
        policy_kwargs={"lstm_hidden_size": 16, "std": "learned"},
        seed=0,
        device="cpu",
    )
    agent.learn(2 * agent.n_steps * agent.n_envs)
    assert agent.ep_info_buffer is not None
    episodes = list(agent.ep_info_buffer)
    report("sb3-contrib", [e["r"] for e in episodes], [e["l"] for e in episodes], agent.num_timesteps)


def main() -> None:
    train(DummyVecEnv([lambda: gym.make(ENV_ID, **TASK)]))
    vector_env = gym.make_vec(
        ENV_ID,
        num_envs=4,
        vectorization_mode="vector_entry_point",
        autoreset_mode=AutoresetMode.SAME_STEP,
        **TASK,
    )
    train(GymnasiumVecEnv(vector_env))


if __name__ == "__main__":
    main()
