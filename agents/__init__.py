"""Agents that learn to control Differential Evolution, in Stable-Baselines3 style."""

from sb3_contrib import RecurrentPPO

from agents.collapse import CollapseError
from agents.export import export_controller
from agents.policies import UnitBoxLstmPolicy
from agents.reinforce import RecurrentREINFORCE
from agents.vec_env import GymnasiumVecEnv, WholeEpisodeVecEnv

__all__ = [
    "CollapseError",
    "GymnasiumVecEnv",
    "RecurrentPPO",
    "RecurrentREINFORCE",
    "UnitBoxLstmPolicy",
    "WholeEpisodeVecEnv",
    "export_controller",
]
