"""Learned parameter control for Differential Evolution."""

import gymnasium as gym

from de_gym.minimize import minimize
from de_gym.problems import Problem, ProblemBatch, make_suite

__all__ = ["Problem", "ProblemBatch", "make_suite", "minimize"]
__version__ = "0.1.0"

# Registering twice (an interpreter that reloads the package) would only raise a warning.
if "DEParamControl-v0" not in gym.registry:
    gym.register(
        id="DEParamControl-v0",
        entry_point="de_gym.envs:DEParamControlEnv",
        vector_entry_point="de_gym.envs:DEParamControlVectorEnv",
    )
