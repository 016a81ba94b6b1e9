"""From a trained torch policy to a controller that needs no torch, and back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

import de_gym
from de_gym.arrays import Float32Array
from de_gym.controllers import ControllerInfo, RecurrentController

from .lstm import lstm_weights
from .policies import UnitBoxLstmPolicy

OBSERVED = ("num_bins", "history_window", "histogram")
"""Settings of the environment that say what the numbers of an observation mean."""
DECISION_PROCESS = ("population_size", *OBSERVED, "pbest", "bound_repair")
"""Settings without which nobody can say in which decision process a controller was trained."""


def export_controller(
    policy: UnitBoxLstmPolicy,
    env_settings: Mapping[str, object],
    *,
    preset: str = "",
    seed: int | None = None,
    results: Mapping[str, object] | None = None,
    deterministic: bool = False,
) -> RecurrentController:
    """Return the controller that acts as ``policy`` does, to 1e-6; the critic is left behind.

    Args:
        policy: A trained policy.
        env_settings: Arguments of the training environment, as JSON values: at least those of ``DECISION_PROCESS``.
        preset: Name of the training configuration.
        seed: Root seed of the training.
        results: What was measured, as JSON values.
        deterministic: Whether the controller acts by the means.
    """
    missing = [name for name in DECISION_PROCESS if name not in env_settings]
    if missing:
        raise ValueError(
            f"`env_settings` must say in which decision process the policy was trained, but lack {', '.join(missing)}."
        )
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
        policy=_kind(policy),
        preset=preset,
        env_settings=dict(env_settings),
        seed=seed,
        package_version=de_gym.__version__,
        results=dict(results or {}),
    )
    return RecurrentController(tensors, info, deterministic=deterministic)


@torch.no_grad()
def import_controller(
    policy: UnitBoxLstmPolicy, controller: RecurrentController, env_settings: Mapping[str, object]
) -> None:
    """Give ``policy`` the weights of ``controller``, to begin a training with.

    A constant standard deviation stays the policy's own: it is a choice for the exploration of the new training.

    Args:
        policy: Receives the weights; its architecture must be the controller's.
        controller: A trained one.
        env_settings: Arguments of the new training environment, whose observations must mean the same.
    """
    expected = export_controller(policy, env_settings)
    if controller.info.policy != expected.info.policy:
        raise ValueError(f"The controller is of kind {controller.info.policy!r}, the policy {expected.info.policy!r}.")
    for name in sorted(controller.tensors.keys() | expected.tensors.keys()):
        shapes = [getattr(source.tensors.get(name), "shape", None) for source in (controller, expected)]
        if shapes[0] != shapes[1]:
            raise ValueError(f"The controller's {name!r} has shape {shapes[0]}, the policy's {shapes[1]}.")
    for name in OBSERVED:
        trained = controller.info.env_settings.get(name)
        if trained != env_settings[name]:
            raise ValueError(f"The controller was trained with `{name}` {trained}, got {env_settings[name]}.")
    tensors = {name: torch.as_tensor(array) for name, array in controller.tensors.items()}
    weights = lstm_weights(policy.lstm_actor)
    weights.input_weight.copy_(tensors["input_weight"])
    weights.hidden_weight.copy_(tensors["hidden_weight"])
    weights.input_bias.copy_(tensors["gate_bias"])
    weights.hidden_bias.zero_()  # only the sum of the two acts
    policy.action_net.get_parameter("weight").copy_(tensors["mean_weight"])
    policy.action_net.get_parameter("bias").copy_(tensors["mean_bias"])
    if policy.std == "state":
        policy.std_net.weight.copy_(tensors["std_weight"])
        policy.std_net.bias.copy_(tensors["std_bias"])
    elif policy.std == "learned":
        policy.log_std.copy_(tensors["std"].log())


def _kind(policy: UnitBoxLstmPolicy) -> str:
    return f"{policy.mean}-{'state' if policy.std == 'state' else 'constant'}"


def _array(tensor: torch.Tensor) -> Float32Array:
    return np.array(tensor.detach().cpu().numpy(), dtype=np.float32)
