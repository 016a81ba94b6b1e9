"""RLlib PPO, new API stack: the native vector environment in a worker process of its own."""

from __future__ import annotations

from typing import Any

import ray
from gymnasium.vector import AutoresetMode
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger
from small_task import ENV_ID, TASK, report


def log_episode(*, episode: SingleAgentEpisode, metrics_logger: MetricsLogger, **_: Any) -> None:
    """Keep every episode's length and return; RLlib's own metrics are means over a window."""
    metrics_logger.log_value("lengths", len(episode), reduce="item_series")
    metrics_logger.log_value("returns", episode.get_return(), reduce="item_series")


def main() -> None:
    # RLlib implements next-step resets only, and silently drops a step of each episode with same-step resets.
    config = (
        PPOConfig()
        .environment(ENV_ID, env_config=TASK | {"autoreset_mode": AutoresetMode.NEXT_STEP})
        .env_runners(num_env_runners=1, num_envs_per_env_runner=4, gym_env_vectorize_mode="vector_entry_point")
        .training(train_batch_size_per_learner=200, minibatch_size=50, num_epochs=2)
        .callbacks(on_episode_end=log_episode)
        .debugging(seed=0)
    )
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    algorithm = config.build_algo()
    returns: list[float] = []
    lengths: list[float] = []
    for _ in range(2):
        results = algorithm.train()["env_runners"]
        returns += results["returns"]
        lengths += results["lengths"]
    num_steps = int(results["num_env_steps_sampled_lifetime"])
    algorithm.stop()
    ray.shutdown()
    report("ray", returns, lengths, num_steps)


if __name__ == "__main__":
    main()
