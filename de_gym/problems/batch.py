"""ProblemBatch: one problem for each of R independent runs, evaluated in one call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.problems.base import Problem


class ProblemBatch:
    """R problems of one dimension, one per run; runs may share a problem.

    Attributes:
        problems: The R problems, in the order of the runs.
        dimension: Their common number of coordinates D.
        lower: Lower bounds, shape (R, D).
        upper: Upper bounds, shape (R, D).
        optimum: Minimum (or known lower bound) of each run's problem, NaN where unknown, shape (R,).
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        if not problems:
            raise ValueError("A batch needs at least one problem, got none.")
        dimensions = sorted({problem.dimension for problem in problems})
        if len(dimensions) > 1:
            raise ValueError(f"All problems of a batch must have one dimension, got {dimensions}.")
        self.problems = tuple(problems)
        self.dimension = dimensions[0]
        self.lower = np.stack([problem.lower for problem in problems])
        self.upper = np.stack([problem.upper for problem in problems])
        self.optimum = np.array([np.nan if problem.optimum is None else problem.optimum for problem in problems])

    def __len__(self) -> int:
        return len(self.problems)

    def take(self, runs: IntArray) -> ProblemBatch:
        """Return the batch of the given runs only."""
        return ProblemBatch([self.problems[run] for run in runs])

    def evaluate(self, points: FloatArray) -> FloatArray:
        """Return values (R, N) of points (R, N, D), row r by the problem of run r."""
        values = np.empty(points.shape[:-1])
        for problem in dict.fromkeys(self.problems):
            runs = [run for run, other in enumerate(self.problems) if other is problem]
            values[runs] = problem.evaluate(points[runs])
        return values
