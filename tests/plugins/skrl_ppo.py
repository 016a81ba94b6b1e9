"""skrl PPO on the native vector environment."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import torch
from gymnasium.vector import AutoresetMode
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
from skrl.trainers.torch import SequentialTrainer, SequentialTrainerCfg
from skrl.utils import set_seed
from small_task import ENV_ID, EPISODE_LENGTH, TASK, report, split_episodes
from torch import Tensor, nn

# skrl reads no `final_obs`: after a truncated episode it continues with the value of the next one's first
# observation. So the end of the budget, which is a termination, takes the place of the generation limit.
POPULATION_SIZE = TASK["population_size"]
BUDGET_TASK = TASK | {"max_generations": None, "max_evaluations": POPULATION_SIZE * (1 + EPISODE_LENGTH)}


class Policy(GaussianMixin, Model):
    def __init__(self, spaces: dict[str, Any]) -> None:
        Model.__init__(self, **spaces)
        GaussianMixin.__init__(self)
        self.net = nn.Sequential(
            nn.Linear(self.num_observations, 64), nn.Tanh(), nn.Linear(64, self.num_actions), nn.Sigmoid()
        )
        self.log_std = nn.Parameter(torch.full((self.num_actions,), -2.0))

    def compute(self, inputs: dict[str, Tensor], role: str = "") -> tuple[Tensor, dict[str, Any]]:
        return self.net(inputs["observations"]), {"log_std": self.log_std}


class Value(DeterministicMixin, Model):
    def __init__(self, spaces: dict[str, Any]) -> None:
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)
        self.net = nn.Sequential(nn.Linear(self.num_observations, 64), nn.Tanh(), nn.Linear(64, 1))

    def compute(self, inputs: dict[str, Tensor], role: str = "") -> tuple[Tensor, dict[str, Any]]:
        return self.net(inputs["observations"]), {}


def main() -> None:
    set_seed(0)
    # With next-step resets skrl would learn from the step that only resets, as an eleventh of each episode.
    vector_env = gym.make_vec(
        ENV_ID,
        num_envs=4,
        vectorization_mode="vector_entry_point",
        autoreset_mode=AutoresetMode.SAME_STEP,
        **BUDGET_TASK,
    )
    envs = wrap_env(vector_env, wrapper="gymnasium")
    spaces = {
        "observation_space": envs.observation_space,
        "action_space": envs.action_space,
        "device": envs.device,
    }
    num_steps = 5 * EPISODE_LENGTH
    memory = RandomMemory(memory_size=num_steps, num_envs=envs.num_envs, device=envs.device)
    settings = PPO_CFG(rollouts=num_steps, learning_epochs=2, mini_batches=4)
    settings.experiment.write_interval = settings.experiment.checkpoint_interval = 0
    agent = PPO(models={"policy": Policy(spaces), "value": Value(spaces)}, memory=memory, cfg=settings, **spaces)
    trainer_settings = SequentialTrainerCfg(timesteps=2 * num_steps, headless=True, disable_progressbar=True)
    SequentialTrainer(env=envs, agents=agent, cfg=trainer_settings).train()

    # The memory holds the last rollout, exactly as it was trained on.
    rewards, ended = (memory.get_tensor_by_name(name).squeeze(-1).cpu().numpy() for name in ("rewards", "terminated"))
    report("skrl", *split_episodes(rewards, ended), rewards.size)


if __name__ == "__main__":
    main()
