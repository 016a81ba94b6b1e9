"""Learned parameter control for Differential Evolution."""

import gymnasium as gym

from de_gym.minimize import minimize
from de_gym.problems import Problem, ProblemBatch, make_suite
from de_gym.version import __version__

__all__ = ["Problem", "ProblemBatch", "__version__", "make_suite", "minimize"]

for _id, _name in (("DEParamControl-v0", "DEParamControl"), ("AdaptiveDEControl-v0", "AdaptiveDEControl")):
    # Registering twice (an interpreter that reloads the package) would only raise a warning.
    if _id not in gym.registry:
        gym.register(
            id=_id,
            entry_point=f"de_gym.envs:{_name}Env",
            vector_entry_point=f"de_gym.envs:{_name}VectorEnv",
        )
