"""Checkpoints: weights, optimiser and counters in one safetensors file, from which training goes on exactly."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from de_gym.files import replacing

CHECKPOINT_FILE = "checkpoint.safetensors"
FORMAT = "de_gym checkpoint 1"


@dataclass(frozen=True)
class Progress:
    """The counters of a training."""

    updates: int  # rollouts that were learned from
    gradient_steps: int  # SB3's own counter; several per update in PPO
    timesteps: int  # environment steps


def save_checkpoint(agent: OnPolicyAlgorithm, updates: int, path: Path) -> None:
    """Write the state of ``agent`` after ``updates`` updates; the file is replaced whole or not at all."""
    tensors = {f"policy/{name}": tensor for name, tensor in agent.policy.state_dict().items()}
    for number, state in agent.policy.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{number}/{key}": torch.as_tensor(value) for key, value in state.items()}
    progress = Progress(updates, agent._n_updates, agent.num_timesteps)
    metadata = {"format": FORMAT} | {key: str(value) for key, value in asdict(progress).items()}
    with replacing(path) as file:
        file.write(save({name: tensor.contiguous() for name, tensor in tensors.items()}, metadata=metadata))


def load_checkpoint(agent: OnPolicyAlgorithm, path: Path) -> Progress:
    """Put the state stored at ``path`` into ``agent``, which must have the same architecture; return the counters."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a dictionary
    except (SafetensorError, FileNotFoundError) as error:
        raise ValueError(f"Checkpoint {str(path)!r} is missing or damaged ({error}).") from error
    if metadata.get("format") != FORMAT:
        raise ValueError(
            f"{str(path)!r} is not a checkpoint of this version: its format is {metadata.get('format')!r}."
        )
    weights = {name.removeprefix("policy/"): tensor for name, tensor in tensors.items() if name.startswith("policy/")}
    try:
        agent.policy.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f"Checkpoint {str(path)!r} does not fit the configuration of its run: {error}") from error
    optimizer = agent.policy.optimizer
    states: dict[int, dict[str, torch.Tensor]] = {}
    for name, tensor in tensors.items():
        if match := re.fullmatch(r"optimizer/(\d+)/(\w+)", name):
            states.setdefault(int(match[1]), {})[match[2]] = tensor
    optimizer.load_state_dict({"state": states, "param_groups": optimizer.state_dict()["param_groups"]})
    progress = Progress(**{key: int(metadata[key]) for key in ("updates", "gradient_steps", "timesteps")})
    agent._n_updates, agent.num_timesteps = progress.gradient_steps, progress.timesteps
    return progress
