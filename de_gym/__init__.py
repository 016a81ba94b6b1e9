"""Learned parameter control for Differential Evolution."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from de_gym.version import __version__

if TYPE_CHECKING:
    from de_gym.envs.extensions import Observation, register_observation, register_reward
    from de_gym.minimizing.front_door import minimize
    from de_gym.minimizing.scipy_method import scipy_method
    from de_gym.problems import Problem, ProblemBatch, make_suite

__all__ = [
    "Observation",
    "Problem",
    "ProblemBatch",
    "__version__",
    "make_suite",
    "minimize",
    "register_observation",
    "register_reward",
    "scipy_method",
]

# Loaded when first asked for: gymnasium imports this package for its environments' names alone.
_MODULES = {
    "Observation": "de_gym.envs.extensions",
    "register_observation": "de_gym.envs.extensions",
    "register_reward": "de_gym.envs.extensions",
    "Problem": "de_gym.problems",
    "ProblemBatch": "de_gym.problems",
    "make_suite": "de_gym.problems",
    "minimize": "de_gym.minimizing.front_door",
    "scipy_method": "de_gym.minimizing.scipy_method",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = entry = getattr(import_module(_MODULES[name]), name)
    return entry


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})


if "gymnasium" in sys.modules:
    from de_gym.registration import register_environments

    register_environments()
