"""Learned parameter control for Differential Evolution."""

import gymnasium as gym

from de_gym.envs import Observation, register_observation, register_reward
from de_gym.minimize import minimize
from de_gym.problems import Problem, ProblemBatch, make_suite

__all__ = [
    "Observation",
    "Problem",
    "ProblemBatch",
    "make_suite",
    "minimize",
    "register_observation",
    "register_reward",
]
__version__ = "0.1.0"

for _id, _name in (("DEParamControl-v0", "DEParamControl"), ("AdaptiveDEControl-v0", "AdaptiveDEControl")):
    # Registering twice (an interpreter that reloads the package) would only raise a warning.
    if _id not in gym.registry:
        gym.register(
            id=_id,
            entry_point=f"de_gym.envs:{_name}Env",
            vector_entry_point=f"de_gym.envs:{_name}VectorEnv",
        )
