"""Decision processes of Differential Evolution as Gymnasium environments."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from de_gym.envs.extensions import Observation, register_observation, register_reward
from de_gym.envs.run_views import RunView
from de_gym.envs.settings import EnvSettings

if TYPE_CHECKING:
    from de_gym.envs.adaptive_de_control import AdaptiveDEControlEnv, AdaptiveDEControlVectorEnv
    from de_gym.envs.de_param_control import DEParamControlEnv, DEParamControlVectorEnv

__all__ = [
    "AdaptiveDEControlEnv",
    "AdaptiveDEControlVectorEnv",
    "DEParamControlEnv",
    "DEParamControlVectorEnv",
    "EnvSettings",
    "Observation",
    "RunView",
    "register_observation",
    "register_reward",
]

# Loaded when first asked for: optimisers use the decision processes alone.
_MODULES = {
    "AdaptiveDEControlEnv": "de_gym.envs.adaptive_de_control",
    "AdaptiveDEControlVectorEnv": "de_gym.envs.adaptive_de_control",
    "DEParamControlEnv": "de_gym.envs.de_param_control",
    "DEParamControlVectorEnv": "de_gym.envs.de_param_control",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = entry = getattr(import_module(_MODULES[name]), name)
    return entry
