"""ProblemBatch: one problem for each of R independent runs, evaluated in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.machine.kernel import evaluate_programs
from de_gym.problems.base import Problem, checked_problems
from de_gym.problems.compiled import FLOAT64, as_kernel_array
from de_gym.problems.programs import join_programs

_NO_ENTRY = -1

# A shape of points (R, N, D), that of their values (R, N), and where the points of each run start. A batch keeps the
# last one, because it is asked for the same shape again and again.
_Layout: TypeAlias = tuple[tuple[int, ...], tuple[int, int], IntArray]
_NO_LAYOUT: _Layout = (-1,), (0, 0), np.zeros(1, dtype=np.int64)


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
        self.problems = checked_problems(problems)
        members = {problem: index for index, problem in enumerate(dict.fromkeys(self.problems))}
        dimensions = sorted({problem.dimension for problem in members})
        if len(dimensions) > 1:
            raise ValueError(f"All problems of a batch must have one dimension, got {dimensions}.")
        runs = np.array([members[problem] for problem in self.problems])
        self.dimension = dimensions[0]
        self.lower = np.array([problem.lower for problem in members])[runs]
        self.upper = np.array([problem.upper for problem in members])[runs]
        self.optimum = np.array([np.nan if problem.optimum is None else problem.optimum for problem in members])[runs]
        programs = {index: problem.program for problem, index in members.items()}
        compiled = {index: program for index, program in programs.items() if program is not None}
        entries = np.full((len(members), 2), _NO_ENTRY)
        # The programs are the batch's own, so that problems that nobody holds any more leave nothing behind.
        entries[list(compiled)], self._instructions, self._data = join_programs(list(compiled.values()))
        self._entries = entries[runs]
        self._is_compiled = len(compiled) == len(members)
        self._layout = _NO_LAYOUT

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
        batch._layout = _NO_LAYOUT
        return batch

    def evaluate(self, points: FloatArray) -> FloatArray:
        """Return values (R, N) of points (R, N, D), row r by the problem of run r.

        A run's values do not depend on what the other runs are. Points are not searched for NaN here:
        a value that is not a number comes back as +inf.
        """
        if type(points) is not np.ndarray or points.dtype is not FLOAT64 or not points.flags.carray:
            points = as_kernel_array(points)
        shape, values_shape, starts = self._layout
        if points.shape != shape:
            shape, values_shape, starts = self._layout = self._lay_out(points.shape)
        values = np.empty(values_shape)
        if self._is_compiled:
            evaluate_programs(points, starts, self._entries, self._instructions, self._data, values)
        else:
            self._write_mixture(points.reshape(-1, self.dimension), starts, values.reshape(-1))
        return values

    def _lay_out(self, shape: tuple[int, ...]) -> _Layout:
        """Return what follows from the shape of points for every run alike, or say what is wrong with it."""
        if len(shape) != 3 or shape[0] != len(self) or shape[2] != self.dimension:
            raise ValueError(f"Points of this batch must have shape ({len(self)}, N, {self.dimension}), got {shape}.")
        num_runs, num_points, _ = shape
        return shape, (num_runs, num_points), np.arange(num_runs + 1) * num_points

    def evaluate_ragged(self, points: FloatArray, starts: IntArray) -> FloatArray:
        """Return values (T,) of points (T, D), where runs have different numbers of points.

        Args:
            points: Points of all runs one after another, shape (T, D).
            starts: Run r owns the points ``starts[r]`` to ``starts[r + 1]``, possibly none; from 0 to T, never
                falling, shape (R + 1,).
        """
        points, starts = as_kernel_array(points), np.asarray(starts)
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
        values = np.empty(len(points))
        if self._is_compiled:
            # With three axes again, because the kernel is compiled anew for each number of them.
            programs = self._entries, self._instructions, self._data
            evaluate_programs(points[np.newaxis], starts, *programs, values[np.newaxis])
        else:
            self._write_mixture(points, starts, values)
        return values

    def _write_mixture(self, points: FloatArray, starts: IntArray, values: FloatArray) -> None:
        """Write the values where some problems are Python functions: those one by one, all others in one call."""
        if len(points) and self.problems.count(self.problems[0]) == len(self):
            values[:] = self.problems[0].function(points)
            return
        runs_of: dict[Problem | None, list[int]] = {}
        for run, problem in enumerate(self.problems):
            is_compiled = self._entries[run, 0] != _NO_ENTRY
            runs_of.setdefault(None if is_compiled else problem, []).append(run)
        for member, runs in runs_of.items():
            counts = (starts[1:] - starts[:-1])[runs]
            rows = np.concatenate([np.arange(starts[run], starts[run + 1]) for run in runs])
            if member is None:
                values[rows] = self.take(np.array(runs)).evaluate_ragged(points[rows], np.append(0, counts.cumsum()))
            elif rows.size:
                values[rows] = member.function(points[rows])

    def __reduce__(self) -> tuple[Callable[[Iterable[Problem]], ProblemBatch], tuple[tuple[Problem, ...]]]:
        return ProblemBatch, (self.problems,)
