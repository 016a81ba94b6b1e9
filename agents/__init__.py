"""Agents that learn to control Differential Evolution, in Stable-Baselines3 style."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sb3_contrib import RecurrentPPO

    from .collapse import CollapseError
    from .evolution_strategy import EvolutionStrategy
    from .export import export_controller
    from .policies import UnitBoxLstmPolicy
    from .reinforce import PAPER_RECIPE, RecurrentREINFORCE
    from .stacking import StackedVecEnv
    from .vec_env import GymnasiumVecEnv, WholeEpisodeVecEnv

__all__ = [
    "PAPER_RECIPE",
    "CollapseError",
    "EvolutionStrategy",
    "GymnasiumVecEnv",
    "RecurrentPPO",
    "RecurrentREINFORCE",
    "StackedVecEnv",
    "UnitBoxLstmPolicy",
    "WholeEpisodeVecEnv",
    "export_controller",
]

# Loaded when first asked for: processes that only measure controllers need no torch.
_MODULES = {
    "PAPER_RECIPE": ".reinforce",
    "CollapseError": ".collapse",
    "EvolutionStrategy": ".evolution_strategy",
    "GymnasiumVecEnv": ".vec_env",
    "RecurrentPPO": "sb3_contrib",
    "RecurrentREINFORCE": ".reinforce",
    "StackedVecEnv": ".stacking",
    "UnitBoxLstmPolicy": ".policies",
    "WholeEpisodeVecEnv": ".vec_env",
    "export_controller": ".export",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = entry = getattr(import_module(_MODULES[name], __name__), name)
    return entry


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
