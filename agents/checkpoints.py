"""Checkpoints: weights, optimiser and counters in one file, from which training goes on exactly."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from torch import Tensor

from de_gym.tensor_files import check_tensor_file, read_tensor_file, write_tensor_file

from .collapse import CollapseGuard
from .reinforce import RecurrentREINFORCE

CHECKPOINT_FILE = "checkpoint.safetensors"
FORMAT = "de_gym checkpoint 2"
_RECORD = "record of "  # metadata of files beside the checkpoint begin so
_CRITIC = ("value_net", "lstm_critic")  # names of its parameters begin so


@dataclass(frozen=True)
class Progress:
    """The counters of a training."""

    updates: int  # rollouts that were learned from
    gradient_steps: int  # SB3's own counter; several per update in PPO
    timesteps: int  # environment steps
    suspicious_updates: int = 0  # in a row until now; files of earlier versions do not have it


def save_checkpoint(agent: OnPolicyAlgorithm, updates: int, path: Path, records: Sequence[Path] = ()) -> None:
    """Write the state of ``agent`` after ``updates`` updates; the file is replaced whole or not at all.

    Args:
        agent: What is trained.
        updates: Updates done.
        path: The file.
        records: Files beside it that grow with the training, of which it notes what they are so far.
    """
    tensors = {f"policy/{name}": tensor for name, tensor in agent.policy.state_dict().items()}
    for number, state in agent.policy.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{number}/{key}": torch.as_tensor(value) for key, value in state.items()}
    guard = _collapse_guard(agent)
    suspicious_updates = 0 if guard is None else guard.suspicious_updates
    progress = Progress(updates, agent._n_updates, agent.num_timesteps, suspicious_updates)
    metadata = {"format": FORMAT} | {key: str(value) for key, value in asdict(progress).items()}
    metadata |= {_RECORD + record.name: _seal(record.read_bytes()) for record in records if record.exists()}
    write_tensor_file(path, {name: tensor.cpu().numpy() for name, tensor in tensors.items()}, metadata)


def load_checkpoint(agent: OnPolicyAlgorithm, path: Path, max_updates: int) -> Progress:
    """Put the state stored at ``path`` into ``agent`` and return the counters; nothing changes where it cannot be.

    Args:
        agent: Must have the architecture of the one that was saved.
        path: Written by ``save_checkpoint``.
        max_updates: The updates that the training is to have in the end; a checkpoint cannot be further.
    """
    if not path.is_file():
        raise ValueError(f"There is no checkpoint {str(path)!r}.")
    content = read_tensor_file(path)
    if content.metadata.get("format") != FORMAT:
        raise ValueError(
            f"{str(path)!r} is not a checkpoint of this version: its format is {content.metadata.get('format')!r}."
        )
    check_tensor_file(path, content)
    try:
        progress = _checked_progress(agent, content.metadata, max_updates)
        weights = _checked_weights(agent, content.tensors)
        states = _checked_states(agent, content.tensors, progress)
    except ValueError as error:
        raise ValueError(f"Checkpoint {str(path)!r} does not fit its run: {error}") from error
    agent.policy.load_state_dict(weights)
    optimizer = agent.policy.optimizer
    optimizer.load_state_dict({"state": states, "param_groups": optimizer.state_dict()["param_groups"]})
    agent._n_updates, agent.num_timesteps = progress.gradient_steps, progress.timesteps
    if (guard := _collapse_guard(agent)) is not None:
        guard.suspicious_updates = progress.suspicious_updates
    _warn_of_changed_records(path, content.metadata)
    return progress


def _seal(content: bytes) -> str:
    """Return what tells whether a file still begins with this content."""
    return f"{len(content)} {hashlib.sha256(content).hexdigest()}"


def _warn_of_changed_records(path: Path, metadata: Mapping[str, str]) -> None:
    """Say which records of the training do not begin with what they were when the checkpoint was written."""
    for name in sorted(key.removeprefix(_RECORD) for key in metadata if key.startswith(_RECORD)):
        seal, record = metadata[_RECORD + name], path.with_name(name)
        length = int(seal.split()[0])
        if not record.exists() or _seal(record.read_bytes()[:length]) != seal:
            warnings.warn(
                f"{str(record)!r} is damaged or incomplete: the training goes on exactly, its record does not.",
                RuntimeWarning,
                stacklevel=3,
            )


def _collapse_guard(agent: OnPolicyAlgorithm) -> CollapseGuard | None:
    """Return what ends a training of the agent that has collapsed, if it has such a thing."""
    return agent.collapse_guard if isinstance(agent, RecurrentREINFORCE) else None


def _checked_progress(agent: OnPolicyAlgorithm, metadata: Mapping[str, str], max_updates: int) -> Progress:
    """Return the counters, which must belong to one point of a training of ``max_updates`` updates."""
    metadata = {"suspicious_updates": "0", **metadata}
    names = [field.name for field in fields(Progress)]
    if not all(re.fullmatch(r"\d{1,18}", metadata.get(name, "")) for name in names):
        raise ValueError(f"its counters must be whole numbers, got { {name: metadata.get(name) for name in names} }.")
    progress = Progress(**{name: int(metadata[name]) for name in names})
    if progress.updates > max_updates:
        raise ValueError(f"it was written after {progress.updates} updates, of {max_updates} in the whole training.")
    # Updates are seeded by their number: a wrong one would train on other episodes. PPO counts its epochs.
    expected = progress.updates * getattr(agent, "n_epochs", 1)
    in_order = progress.suspicious_updates <= progress.updates <= progress.timesteps
    if progress.gradient_steps != expected or not in_order:
        raise ValueError(f"its counters contradict each other: {progress}.")
    return progress


def _checked_weights(agent: OnPolicyAlgorithm, tensors: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
    """Return the policy's weights, which must have its names, shapes and types."""
    stored = {name.removeprefix("policy/"): array for name, array in tensors.items() if name.startswith("policy/")}
    weights = {name: torch.as_tensor(array) for name, array in stored.items()}
    expected = agent.policy.state_dict()
    for name in sorted(expected.keys() | weights.keys()):
        if _kind(weights.get(name)) != _kind(expected.get(name)):
            raise ValueError(f"{name!r} is {_kind(weights.get(name))}, not {_kind(expected.get(name))}.")
    return weights


def _checked_states(
    agent: OnPolicyAlgorithm, tensors: Mapping[str, NDArray[Any]], progress: Progress
) -> dict[int, dict[str, Tensor]]:
    """Return Adam's state of each parameter by number: complete for all trained ones, of equally many steps."""
    states: dict[int, dict[str, Tensor]] = {}
    for name, array in tensors.items():
        if match := re.fullmatch(r"optimizer/(\d+)/(\w+)", name):
            states.setdefault(int(match[1]), {})[match[2]] = torch.as_tensor(array)
        elif not name.startswith("policy/"):
            raise ValueError(f"it holds an unknown array {name!r}.")
    parameters = dict(enumerate(agent.policy.named_parameters()))
    # Without a value loss the critic never gets a gradient, and Adam keeps nothing for it.
    trained = {
        number
        for number, (name, parameter) in parameters.items()
        if parameter.requires_grad and not (agent.vf_coef == 0.0 and name.startswith(_CRITIC))
    }
    if set(states) != (trained if progress.updates else set()):
        raise ValueError(f"the optimiser's state is of parameters {sorted(states)}, not {sorted(trained)}.")
    for number, state in states.items():
        name, parameter = parameters[number]
        expected = {"step": "float32 ()", "exp_avg": _kind(parameter), "exp_avg_sq": _kind(parameter)}
        found = {key: _kind(tensor) for key, tensor in state.items()}
        if found != expected:
            raise ValueError(f"the optimiser's state of {name!r} is {found}, not {expected}.")
    if len({float(state["step"]) for state in states.values()}) > 1:
        raise ValueError("the optimiser has taken more steps with some parameters than with others.")
    return states


def _kind(tensor: Tensor | None) -> str:
    """Return type and shape in words."""
    return "missing" if tensor is None else f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
