"""Benchmark suites and user functions to minimise."""

from de_gym.problems.base import Problem
from de_gym.problems.batch import ProblemBatch
from de_gym.problems.suites import Suite, make_suite, official_number, paper_number

__all__ = ["Problem", "ProblemBatch", "Suite", "make_suite", "official_number", "paper_number"]
