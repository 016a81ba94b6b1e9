"""Benchmark suites and user functions to minimise."""

from de_gym.problems.base import Problem
from de_gym.problems.batch import ProblemBatch
from de_gym.problems.own_suites import OwnSuite, register_suite
from de_gym.problems.suites import Suite, make_suite, official_number, paper_number

__all__ = [
    "OwnSuite",
    "Problem",
    "ProblemBatch",
    "Suite",
    "make_suite",
    "official_number",
    "paper_number",
    "register_suite",
]
