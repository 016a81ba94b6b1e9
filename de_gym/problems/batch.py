"""ProblemBatch: one problem for each of R independent runs, evaluated in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.machine.kernel import evaluate_programs
from de_gym.problems.base import Problem
from de_gym.problems.programs import library

_NO_ENTRY = -1
_FLOAT64 = np.dtype(np.float64)


class ProblemBatch:
    """R problems of one dimension, one per run; runs may share a problem.

    Attributes:
        problems: The R problems, in the order of the runs.
        dimension: Their common number of coordinates D.
        lower: Lower bounds, shape (R, D).
        upper: Upper bounds, shape (R, D).
        optimum: Minimum (or known lower bound) of each run's problem, NaN where unknown, shape (R,).
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        if not self.problems:
            raise ValueError("A batch needs at least one problem, got none.")
        members = {problem: index for index, problem in enumerate(dict.fromkeys(self.problems))}
        dimensions = sorted({problem.dimension for problem in members})
        if len(dimensions) > 1:
            raise ValueError(f"All problems of a batch must have one dimension, got {dimensions}.")
        runs = np.array([members[problem] for problem in self.problems])
        self.dimension = dimensions[0]
        self.lower = np.array([problem.lower for problem in members])[runs]
        self.upper = np.array([problem.upper for problem in members])[runs]
        self.optimum = np.array([np.nan if problem.optimum is None else problem.optimum for problem in members])[runs]
        entries = [_NO_ENTRY if problem.program_entry is None else problem.program_entry for problem in members]
        self._entries = np.array(entries, dtype=np.int64)[runs]
        # The arrays of this moment hold every program the batch needs; later ones would only hold more.
        self._instructions, self._data = library(self.dimension).arrays
        self._is_compiled = _NO_ENTRY not in entries

    def __len__(self) -> int:
        return len(self.problems)

    @property
    def programs(self) -> tuple[IntArray, IntArray, FloatArray] | None:
        """What compiled code needs to evaluate points itself: entries, instructions and data of ``evaluate_programs``.

        None where some problem is a Python function.
        """
        return (self._entries, self._instructions, self._data) if self._is_compiled else None

    def take(self, runs: IntArray) -> ProblemBatch:
        """Return the batch of the given runs only, possibly of none."""
        batch = object.__new__(ProblemBatch)
        batch.problems = tuple([self.problems[run] for run in runs])
        batch.dimension = self.dimension
        batch.lower, batch.upper, batch.optimum = self.lower[runs], self.upper[runs], self.optimum[runs]
        batch._entries = self._entries[runs]
        batch._instructions, batch._data = self._instructions, self._data
        batch._is_compiled = self._is_compiled or _NO_ENTRY not in batch._entries
        return batch

    def evaluate(self, points: FloatArray) -> FloatArray:
        """Return values (R, N) of points (R, N, D), row r by the problem of run r.

        A run's values do not depend on what the other runs are. Points are not searched for NaN here:
        a value that is not a number comes back as +inf.
        """
        points = _as_plain(points)
        shape = points.shape
        if len(shape) != 3 or shape[0] != len(self) or shape[2] != self.dimension:
            raise ValueError(f"Points of this batch must have shape ({len(self)}, N, {self.dimension}), got {shape}.")
        num_runs, num_points, dimension = shape
        starts = np.arange(num_runs + 1) * num_points
        values = self._evaluate_rows(points.reshape(num_runs * num_points, dimension), starts)
        return values.reshape(num_runs, num_points)

    def evaluate_ragged(self, points: FloatArray, starts: IntArray) -> FloatArray:
        """Return values (T,) of points (T, D), where runs have different numbers of points.

        Args:
            points: Points of all runs one after another, shape (T, D).
            starts: Run r owns the points ``starts[r]`` to ``starts[r + 1]``, possibly none; from 0 to T, never
                falling, shape (R + 1,).
        """
        points, starts = _as_plain(points), np.asarray(starts)
        if points.ndim != 2 or points.shape[1] != self.dimension:
            raise ValueError(f"Points of this batch must have shape (T, {self.dimension}), got {points.shape}.")
        if starts.shape != (len(self) + 1,) or starts.dtype.kind not in "iu":
            raise ValueError(
                f"`starts` must be {len(self) + 1} integers, one per run and the end, "
                f"got {starts.dtype} of shape {starts.shape}."
            )
        starts = starts.astype(np.int64)
        if starts[0] != 0 or starts[-1] != len(points) or (starts[1:] < starts[:-1]).any():
            raise ValueError(f"`starts` must rise from 0 to the number of points {len(points)}, got {starts.tolist()}.")
        return self._evaluate_rows(points, starts)

    def _evaluate_rows(self, points: FloatArray, starts: IntArray) -> FloatArray:
        """Do what ``evaluate_ragged`` does, with arguments that were checked."""
        values = np.empty(len(points))
        if self._is_compiled:
            evaluate_programs(points, starts, self._entries, self._instructions, self._data, values)
        else:
            self._evaluate_mixture(points, starts, values)
        return values

    def _evaluate_mixture(self, points: FloatArray, starts: IntArray, values: FloatArray) -> None:
        """Write the values where some problems are Python functions: those one by one, all others in one call."""
        runs_of: dict[Problem | None, list[int]] = {}
        for run, problem in enumerate(self.problems):
            is_compiled = self._entries[run] != _NO_ENTRY
            runs_of.setdefault(None if is_compiled else problem, []).append(run)
        for member, runs in runs_of.items():
            counts = (starts[1:] - starts[:-1])[runs]
            rows = np.concatenate([np.arange(starts[run], starts[run + 1]) for run in runs])
            if member is None:
                values[rows] = self.take(np.array(runs)).evaluate_ragged(points[rows], np.append(0, counts.cumsum()))
            elif rows.size:
                values[rows] = member.evaluator(points[rows])

    def __reduce__(self) -> tuple[Callable[[Iterable[Problem]], ProblemBatch], tuple[tuple[Problem, ...]]]:
        return ProblemBatch, (self.problems,)


def _as_plain(points: FloatArray) -> FloatArray:
    """Return ``points`` as the one kind of array that the kernel is compiled for; others, read-only too, are copied."""
    if type(points) is not np.ndarray or points.dtype is not _FLOAT64 or not points.flags.carray:
        return np.array(points, dtype=np.float64, order="C")
    return points
