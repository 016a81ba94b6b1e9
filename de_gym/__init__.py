"""Learned parameter control for Differential Evolution."""

from de_gym.problems import Problem, ProblemBatch

__all__ = ["Problem", "ProblemBatch"]
__version__ = "0.1.0"
