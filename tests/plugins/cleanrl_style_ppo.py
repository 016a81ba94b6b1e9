"""PPO in one file, in the manner of CleanRL, on the native vector environment; needs torch and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from small_task import ENV_ID, EPISODE_LENGTH, TASK, report, split_episodes
from torch import Tensor, nn
from torch.distributions import Independent, Normal


@dataclass(frozen=True)
class Config:
    num_envs: int = 8
    num_steps: int = 5 * EPISODE_LENGTH
    num_updates: int = 2
    num_epochs: int = 4
    num_minibatches: int = 4
    learning_rate: float = 1e-3
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip_range: float = 0.2
    max_grad_norm: float = 0.5
    initial_std: float = 0.15  # small in a box of width 1: samples outside it are clipped, which biases the mean
    seed: int = 0


class Agent(nn.Module):
    def __init__(self, observation_size: int, action_size: int, initial_std: float) -> None:
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(observation_size, 64), nn.Tanh(), nn.Linear(64, action_size))
        self.critic = nn.Sequential(nn.Linear(observation_size, 64), nn.Tanh(), nn.Linear(64, 1))
        self.log_std = nn.Parameter(torch.full((action_size,), initial_std).log())

    def distribution(self, observations: Tensor) -> Independent:
        # The sigmoid starts the means in the middle of the box; a linear head would start them in a corner.
        return Independent(Normal(torch.sigmoid(self.actor(observations)), self.log_std.exp()), 1)

    def value(self, observations: Tensor) -> Tensor:
        return self.critic(observations).squeeze(-1)


@dataclass
class Rollout:
    observations: Tensor  # (T, R, O)
    actions: Tensor  # (T, R, A)
    log_probs: Tensor  # this and the rest: (T, R)
    rewards: Tensor
    next_values: Tensor  # value of where the step led: 0 if it terminated, of the last observation if truncated
    ended: Tensor


@torch.no_grad()
def collect(
    agent: Agent, envs: gym.vector.VectorEnv, observations: np.ndarray, num_steps: int
) -> tuple[Rollout, np.ndarray]:
    """Return a rollout and the observations after it."""
    rows = []
    for _ in range(num_steps):
        inputs = torch.as_tensor(observations)
        distribution = agent.distribution(inputs)
        actions = distribution.sample()
        observations, rewards, terminated, truncated, infos = envs.step(actions.clamp(0, 1).numpy())
        ended = terminated | truncated
        successors = observations.copy()
        for run in np.flatnonzero(ended):  # `observations` already belong to the next episode there
            successors[run] = infos["final_obs"][run]
        next_values = agent.value(torch.as_tensor(successors)) * torch.as_tensor(~terminated)
        log_probs, rewards = distribution.log_prob(actions), torch.as_tensor(rewards, dtype=torch.float32)
        rows.append((inputs, actions, log_probs, rewards, next_values, torch.as_tensor(ended)))
    return Rollout(*(torch.stack(column) for column in zip(*rows, strict=True))), observations


@torch.no_grad()
def estimate_advantages(agent: Agent, rollout: Rollout, config: Config) -> tuple[Tensor, Tensor]:
    """Return generalised advantage estimates and the returns that the critic learns, each (T, R)."""
    values = agent.value(rollout.observations)
    errors = rollout.rewards + config.gamma * rollout.next_values - values
    advantages, later = torch.zeros_like(errors), torch.zeros(errors.shape[1])
    for step in reversed(range(len(errors))):
        later = errors[step] + config.gamma * config.gae_lambda * later * ~rollout.ended[step]
        advantages[step] = later
    return advantages, advantages + values


def update(agent: Agent, optimizer: torch.optim.Optimizer, rollout: Rollout, config: Config) -> None:
    """Take the clipped policy gradient steps of one rollout."""
    advantages, returns = estimate_advantages(agent, rollout, config)
    columns = (rollout.observations, rollout.actions, rollout.log_probs, advantages, returns)
    batch = [column.flatten(0, 1) for column in columns]
    for _ in range(config.num_epochs):
        for rows in torch.randperm(len(batch[0])).chunk(config.num_minibatches):
            observations, actions, old_log_probs, advantage, returns = (column[rows] for column in batch)
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            ratio = (agent.distribution(observations).log_prob(actions) - old_log_probs).exp()
            clipped_ratio = ratio.clamp(1 - config.clip_range, 1 + config.clip_range)
            policy_loss = -torch.min(ratio * advantage, clipped_ratio * advantage).mean()
            value_loss = (agent.value(observations) - returns).square().mean()
            optimizer.zero_grad()
            (policy_loss + 0.5 * value_loss).backward()
            nn.utils.clip_grad_norm_(agent.parameters(), config.max_grad_norm)
            optimizer.step()


def main() -> None:
    config = Config()
    torch.manual_seed(config.seed)
    envs = gym.make_vec(
        ENV_ID,
        num_envs=config.num_envs,
        vectorization_mode="vector_entry_point",
        autoreset_mode=AutoresetMode.SAME_STEP,
        **TASK,
    )
    observations, _ = envs.reset(seed=config.seed)
    agent = Agent(observations.shape[1], envs.single_action_space.shape[0], config.initial_std)
    optimizer = torch.optim.Adam(agent.parameters(), config.learning_rate)
    all_rewards, all_ended = [], []
    for _ in range(config.num_updates):
        rollout, observations = collect(agent, envs, observations, config.num_steps)
        update(agent, optimizer, rollout, config)
        all_rewards.append(rollout.rewards.numpy())
        all_ended.append(rollout.ended.numpy())
    rewards = np.concatenate(all_rewards)
    report("torch", *split_episodes(rewards, np.concatenate(all_ended)), rewards.size)


if __name__ == "__main__":
    main()
