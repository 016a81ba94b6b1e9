"""Learned parameter control for Differential Evolution."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import gymnasium as gym

from de_gym.version import __version__

if TYPE_CHECKING:
    from de_gym.envs.extensions import Observation, register_observation, register_reward
    from de_gym.minimizing.ask_tell import Optimizer
    from de_gym.minimizing.front_door import minimize
    from de_gym.minimizing.nevergrad_optimizer import NevergradOptimizer
    from de_gym.minimizing.optuna_sampler import OptunaSampler
    from de_gym.minimizing.scipy_method import scipy_method
    from de_gym.problems import Problem, ProblemBatch, make_suite, register_suite

__all__ = [
    "NevergradOptimizer",
    "Observation",
    "Optimizer",
    "OptunaSampler",
    "Problem",
    "ProblemBatch",
    "__version__",
    "make_suite",
    "minimize",
    "register_observation",
    "register_reward",
    "register_suite",
    "scipy_method",
]

# Loaded when first asked for: compilers and scipy take more than a second, which not everybody needs.
_MODULES = {
    "Observation": "de_gym.envs.extensions",
    "register_observation": "de_gym.envs.extensions",
    "register_reward": "de_gym.envs.extensions",
    "Optimizer": "de_gym.minimizing.ask_tell",
    "NevergradOptimizer": "de_gym.minimizing.nevergrad_optimizer",
    "OptunaSampler": "de_gym.minimizing.optuna_sampler",
    "Problem": "de_gym.problems",
    "ProblemBatch": "de_gym.problems",
    "make_suite": "de_gym.problems",
    "register_suite": "de_gym.problems",
    "minimize": "de_gym.minimizing.front_door",
    "scipy_method": "de_gym.minimizing.scipy_method",
}
# Names that need packages beyond our own dependencies, and the extra that brings these.
_EXTRAS = {"NevergradOptimizer": "nevergrad", "OptunaSampler": "optuna"}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(_MODULES[name])
    except ModuleNotFoundError as error:
        if name not in _EXTRAS:
            raise
        raise ImportError(f"{name} needs the package {error.name!r}: pip install 'de-gym[{_EXTRAS[name]}]'.") from error
    globals()[name] = entry = getattr(module, name)
    return entry


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})


for _name in ("DEParamControl", "AdaptiveDEControl"):
    # Registering twice (an interpreter that reloads the package) would only raise a warning.
    if f"{_name}-v0" not in gym.registry:
        gym.register(
            id=f"{_name}-v0",
            entry_point=f"de_gym.envs:{_name}Env",
            vector_entry_point=f"de_gym.envs:{_name}VectorEnv",
        )
