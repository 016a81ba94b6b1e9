"""ProgramEvaluator: a function that the kernel evaluates; and what the kernel asks of the arrays it is given."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.machine.kernel import evaluate_programs
from de_gym.problems.programs import Program, ProgramArrays

FLOAT64 = np.dtype(np.float64)
_FIRST_ENTRY = np.zeros((1, 2), dtype=np.int64)


class ProgramEvaluator:
    """A function of points (P, D) given by a program, which is written at its first use."""

    def __init__(self, write_program: Callable[[], Program]) -> None:
        self._write_program = write_program

    @cached_property
    def arrays(self) -> ProgramArrays:
        """The program as the kernel reads it."""
        return self._write_program().arrays()

    def __call__(self, points: FloatArray) -> FloatArray:
        """Return the values (P,) of points (P, D), which must be as ``as_kernel_array`` returns them; NaN as +inf."""
        values = np.empty(len(points))
        # With three axes, as batches have them, because the kernel is compiled anew for each number of axes.
        populations, fitness = points[np.newaxis], values[np.newaxis]
        evaluate_programs(populations, _whole_run(len(points)), _FIRST_ENTRY, *self.arrays, fitness)
        return values


def as_kernel_array(points: FloatArray) -> FloatArray:
    """Return ``points`` as the one kind of array that kernels are compiled for; others, read-only too, are copied."""
    if type(points) is not np.ndarray or points.dtype is not FLOAT64 or not points.flags.carray:
        return np.array(points, dtype=np.float64, order="C")
    return points


@lru_cache(maxsize=64)
def _whole_run(num_points: int) -> IntArray:
    """Return the beginning and the end of a single run's points."""
    return np.array([0, num_points])
