"""TorchRL PPO on the native vector environment."""

from __future__ import annotations

import gymnasium as gym
import torch
from gymnasium.vector import AutoresetMode
from small_task import ENV_ID, EPISODE_LENGTH, TASK, report, split_episodes
from tensordict.nn import NormalParamExtractor, TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs import GymWrapper
from torchrl.modules import ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE


def main() -> None:
    torch.manual_seed(0)
    # TorchRL accepts same-step resets, or none at all, and refuses next-step ones.
    vector_env = gym.make_vec(
        ENV_ID,
        num_envs=4,
        vectorization_mode="vector_entry_point",
        autoreset_mode=AutoresetMode.SAME_STEP,
        **TASK,
    )
    observation_size, action_size = (
        vector_env.single_observation_space.shape[0],
        vector_env.single_action_space.shape[0],
    )
    envs = GymWrapper(vector_env)
    envs.set_seed(0)

    network = nn.Sequential(
        nn.Linear(observation_size, 64), nn.Tanh(), nn.Linear(64, 2 * action_size), NormalParamExtractor()
    )
    actor = ProbabilisticActor(
        TensorDictModule(network, in_keys=["observation"], out_keys=["loc", "scale"]),
        in_keys=["loc", "scale"],
        distribution_class=TanhNormal,
        distribution_kwargs={"low": 0.0, "high": 1.0},
        return_log_prob=True,
    )
    critic = ValueOperator(
        nn.Sequential(nn.Linear(observation_size, 64), nn.Tanh(), nn.Linear(64, 1)), in_keys=["observation"]
    )
    advantages = GAE(gamma=0.99, lmbda=0.95, value_network=critic)
    loss = ClipPPOLoss(actor, critic)
    optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)
    num_frames = 5 * EPISODE_LENGTH * vector_env.num_envs
    collector = Collector(
        envs, actor, frames_per_batch=num_frames, total_frames=2 * num_frames, auto_register_policy_transforms=False
    )

    all_rewards, all_ended = [], []
    for rollout in collector:  # (R, T)
        for _ in range(2):
            advantages(rollout)
            for rows in torch.randperm(rollout.numel()).chunk(4):
                losses = loss(rollout.reshape(-1)[rows])
                optimizer.zero_grad()
                (losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]).backward()
                optimizer.step()
        all_rewards.append(rollout["next", "reward"].squeeze(-1).T)
        all_ended.append(rollout["next", "done"].squeeze(-1).T)
    collector.shutdown()
    rewards = torch.cat(all_rewards).numpy()
    report("torchrl", *split_episodes(rewards, torch.cat(all_ended).numpy()), rewards.size)


if __name__ == "__main__":
    main()
