"""ProblemBatch: one problem for each of R independent runs, evaluated in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.problems.base import Problem
from de_gym.problems.kernel import evaluate_programs
from de_gym.problems.programs import library

_NO_SLOT = -1


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
        members = {problem: index for index, problem in enumerate(dict.fromkeys(problems))}
        dimensions = sorted({problem.dimension for problem in members})
        if len(dimensions) > 1:
            raise ValueError(f"All problems of a batch must have one dimension, got {dimensions}.")
        runs = np.array([members[problem] for problem in problems])
        self.problems = tuple(problems)
        self.dimension = dimensions[0]
        self.lower = np.stack([problem.lower for problem in members])[runs]
        self.upper = np.stack([problem.upper for problem in members])[runs]
        self.optimum = np.array([np.nan if problem.optimum is None else problem.optimum for problem in members])[runs]
        slots = [_NO_SLOT if problem.slot is None else problem.slot for problem in members]
        self._slots = np.array(slots, dtype=np.int64)[runs]
        # The arrays of this moment hold every program the batch needs; later ones would only hold more.
        self._programs = library(self.dimension).arrays
        self._is_compiled = _NO_SLOT not in slots

    def __len__(self) -> int:
        return len(self.problems)

    def take(self, runs: IntArray) -> ProblemBatch:
        """Return the batch of the given runs only, possibly of none."""
        batch = object.__new__(ProblemBatch)
        batch.problems = tuple([self.problems[run] for run in runs])
        batch.dimension = self.dimension
        batch.lower, batch.upper, batch.optimum = self.lower[runs], self.upper[runs], self.optimum[runs]
        batch._slots = self._slots[runs]
        batch._programs = self._programs
        batch._is_compiled = self._is_compiled or _NO_SLOT not in batch._slots
        return batch

    def evaluate(self, points: FloatArray) -> FloatArray:
        """Return values (R, N) of points (R, N, D), row r by the problem of run r.

        A run's values do not depend on what the other runs are. Points are not searched for NaN here:
        a value that is not a number comes back as +inf.
        """
        points = np.ascontiguousarray(points, dtype=np.float64)
        if points.ndim != 3 or points.shape[0] != len(self._slots) or points.shape[2] != self.dimension:
            raise ValueError(
                f"Points of this batch must have shape ({len(self)}, N, {self.dimension}), got {points.shape}."
            )
        if self._is_compiled:
            # Read-only input would be another type to the compiler, and cost a compilation.
            writable = points if points.flags.writeable else points.copy()
            return evaluate_programs(writable, self._slots, *self._programs)
        return self._evaluate_mixture(points)

    def _evaluate_mixture(self, points: FloatArray) -> FloatArray:
        """Return the values where some problems are Python functions: those one by one, all others in one call."""
        values = np.empty(points.shape[:2])
        compiled_runs = np.flatnonzero(self._slots != _NO_SLOT)
        if compiled_runs.size:
            values[compiled_runs] = evaluate_programs(
                points[compiled_runs], self._slots[compiled_runs], *self._programs
            )
        runs_of: dict[Problem, list[int]] = {}
        for run in np.flatnonzero(self._slots == _NO_SLOT):
            runs_of.setdefault(self.problems[run], []).append(run)
        for problem, runs in runs_of.items():
            rows = points[runs].reshape(-1, self.dimension)
            values[runs] = problem.evaluator(rows).reshape(len(runs), -1)
        return values

    def __reduce__(self) -> tuple[Callable[[Sequence[Problem]], ProblemBatch], tuple[tuple[Problem, ...]]]:
        return ProblemBatch, (self.problems,)
