"""From a trained torch policy to a controller that needs no torch."""

from __future__ import annotations

import numpy as np
import torch

import de_gym
from agents.lstm import lstm_weights
from agents.policies import UnitBoxLstmPolicy
from de_gym.arrays import Float32Array
from de_gym.controllers import ControllerInfo, RecurrentController


def export_controller(
    policy: UnitBoxLstmPolicy,
    *,
    preset: str = "",
    env_settings: dict[str, object] | None = None,
    seed: int | None = None,
    results: dict[str, object] | None = None,
    deterministic: bool = False,
) -> RecurrentController:
    """Return the controller that acts as ``policy`` does, to 1e-6; the critic is left behind.

    Args:
        policy: A trained policy.
        preset: Name of the training configuration.
        env_settings: Arguments of the training environment, as JSON values.
        seed: Root seed of the training.
        results: What was measured, as JSON values.
        deterministic: Whether the controller acts by the means.
    """
    weights = lstm_weights(policy.lstm_actor)
    tensors = {
        "input_weight": _array(weights.input_weight),
        "hidden_weight": _array(weights.hidden_weight),
        "gate_bias": _array(weights.input_bias + weights.hidden_bias),
        "mean_weight": _array(policy.action_net.get_parameter("weight")),
        "mean_bias": _array(policy.action_net.get_parameter("bias")),
    }
    if policy.std == "state":
        tensors |= {"std_weight": _array(policy.std_net.weight), "std_bias": _array(policy.std_net.bias)}
    else:
        tensors["std"] = _array(policy.log_std.exp())
    if policy.interpolation is not None:
        tensors["interpolation"] = _array(policy.interpolation)
    info = ControllerInfo(
        policy=f"{policy.mean}-{'state' if policy.std == 'state' else 'constant'}",
        preset=preset,
        env_settings=env_settings or {},
        seed=seed,
        package_version=de_gym.__version__,
        results=results or {},
    )
    return RecurrentController(tensors, info, deterministic=deterministic)


def _array(tensor: torch.Tensor) -> Float32Array:
    return np.array(tensor.detach().cpu().numpy(), dtype=np.float32)
