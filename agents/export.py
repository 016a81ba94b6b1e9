"""From a trained torch policy to a controller that needs no torch, and back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

import de_gym
from de_gym.arrays import Float32Array
from de_gym.controllers import ControllerInfo, RecurrentController
from de_gym.controllers.recurrent import PolicyKind

from .networks import layer_arrays, set_layer_arrays
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
    tensors = {name: _array(tensor) for name, tensor in layer_arrays(policy.lstm_actor).items()} | {
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
    set_layer_arrays(policy.lstm_actor, tensors)
    policy.action_net.get_parameter("weight").copy_(tensors["mean_weight"])
    policy.action_net.get_parameter("bias").copy_(tensors["mean_bias"])
    if policy.std == "state":
        policy.std_net.weight.copy_(tensors["std_weight"])
        policy.std_net.bias.copy_(tensors["std_bias"])
    elif policy.std == "learned":
        policy.log_std.copy_(tensors["std"].log())


def _kind(policy: UnitBoxLstmPolicy) -> str:
    return PolicyKind(policy.mean == "sigmoid", policy.std == "state", policy.network).name


def _array(tensor: torch.Tensor) -> Float32Array:
    return np.array(tensor.detach().cpu().numpy(), dtype=np.float32)
