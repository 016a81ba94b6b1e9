"""Tianshou PPO; it takes lists of single environments and no Gymnasium vector environment."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from small_task import ENV_ID, TASK, report
from tianshou.algorithm import PPO
from tianshou.algorithm.modelfree.reinforce import ProbabilisticActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, CollectStats, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OnPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.continuous import ContinuousActorProbabilistic, ContinuousCritic
from torch.distributions import Independent, Normal


class RecordingCollector(Collector[CollectStats]):
    """Keeps the statistics of every collection; the trainer keeps means only."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.collections: list[CollectStats] = []

    def collect(self, *arguments: Any, **keywords: Any) -> CollectStats:
        self.collections.append(super().collect(*arguments, **keywords))
        return self.collections[-1]


def main() -> None:
    np.random.seed(0)  # noqa: NPY002  # Tianshou draws its minibatches from the global generator
    torch.manual_seed(0)
    envs = DummyVectorEnv([lambda: gym.make(ENV_ID, **TASK) for _ in range(4)])
    envs.seed(0)
    space, action_space = envs.observation_space[0], envs.action_space[0]
    actor = ContinuousActorProbabilistic(
        preprocess_net=Net(state_shape=space.shape, hidden_sizes=[64]),
        action_shape=action_space.shape,
        unbounded=True,
    )
    policy = ProbabilisticActorPolicy(
        actor=actor,
        dist_fn=lambda mean_and_std: Independent(Normal(*mean_and_std), 1),
        action_space=action_space,
        action_scaling=True,  # means of 0 become the middle of the box
        action_bound_method="clip",
    )
    critic = ContinuousCritic(preprocess_net=Net(state_shape=space.shape, hidden_sizes=[64]))
    algorithm = PPO(policy=policy, critic=critic, optim=AdamOptimizerFactory(lr=1e-3))
    collector = RecordingCollector(algorithm, envs, VectorReplayBuffer(400, len(envs)))
    algorithm.run_training(
        OnPolicyTrainerParams(
            training_collector=collector,
            max_epochs=1,
            epoch_num_steps=400,
            collection_step_num_env_steps=None,
            collection_step_num_episodes=20,
            update_step_num_repetitions=2,
            batch_size=50,
            show_progress=False,
            verbose=False,
        )
    )
    returns = np.concatenate([stats.returns for stats in collector.collections])
    lengths = np.concatenate([stats.lens for stats in collector.collections])
    report("tianshou", returns.tolist(), lengths.tolist(), collector.collect_step)


if __name__ == "__main__":
    main()
