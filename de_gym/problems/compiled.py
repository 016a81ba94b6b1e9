"""ProgramEvaluator: a function that the kernel evaluates; and what the kernel asks of the arrays it is given."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from de_gym.arrays import FloatArray
from de_gym.checks import numbers
from de_gym.problems.programs import Program, ProgramArrays

FLOAT64 = np.dtype(np.float64)


class ProgramEvaluator:
    """A function of points (P, D) given by a program, which is written at its first use."""

    def __init__(self, write_program: Callable[[], Program]) -> None:
        self._write_program = write_program

    @cached_property
    def arrays(self) -> ProgramArrays:
        """The program as the kernel reads it."""
        return self._write_program().arrays()


def as_kernel_array(array: FloatArray, name: str = "points") -> FloatArray:
    """Return ``array`` as the one kind of array that kernels are compiled for; others, read-only too, are copied."""
    if type(array) is np.ndarray and array.dtype is FLOAT64:
        return array if array.flags.carray else np.array(array, order="C")
    return np.array(numbers(name, array), order="C")
