"""Agents that learn to control Differential Evolution, in Stable-Baselines3 style."""

from sb3_contrib import RecurrentPPO

from .collapse import CollapseError
from .evolution_strategy import EvolutionStrategy
from .export import export_controller
from .policies import UnitBoxLstmPolicy
from .reinforce import RecurrentREINFORCE
from .vec_env import GymnasiumVecEnv, WholeEpisodeVecEnv

__all__ = [
    "CollapseError",
    "EvolutionStrategy",
    "GymnasiumVecEnv",
    "RecurrentPPO",
    "RecurrentREINFORCE",
    "UnitBoxLstmPolicy",
    "WholeEpisodeVecEnv",
    "export_controller",
]
