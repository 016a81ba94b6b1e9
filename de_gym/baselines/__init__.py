"""The old names of ``de_gym.optimizers``, for what has not moved yet."""

from de_gym.optimizers import METHODS, GenerationParameters, Method, Optimizer, run
from de_gym.optimizers import PAPER_METHODS as BASELINES

__all__ = [
    "BASELINES",
    "METHODS",
    "GenerationParameters",
    "Method",
    "Optimizer",
    "run",
]
