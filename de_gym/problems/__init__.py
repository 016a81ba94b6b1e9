"""Benchmark suites and user functions to minimise."""

from de_gym.problems.base import Problem
from de_gym.problems.batch import ProblemBatch

__all__ = ["Problem", "ProblemBatch"]
