"""SuiteTable: what a suite's own file says about its functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from de_gym.arrays import FloatArray
from de_gym.problems.programs import Program

# Every function of a suite lives on the box from -BOUND to BOUND.
BOUND = 100.0


class Outline(NamedTuple):
    """A function's name, its minimum f*, and a point with that value, shape (D,)."""

    name: str
    optimum: float
    optimal_position: FloatArray


@dataclass(frozen=True)
class SuiteTable:
    """A suite of functions, without any of their data loaded.

    Attributes:
        name: Name of the suite.
        numbers: Official numbers of all its functions.
        default_numbers: Those that papers use, in order; their positions are the reference paper's numbers.
        dimensions: Dimensions in which at least some functions exist.
        supported_dimensions: number -> dimensions in which that function exists.
        outline: (number, dimension) -> what is known of a function beforehand.
        write_program: (number, dimension) -> the function for the kernel.
        is_endless: Whether there are so many functions that none is kept longer than somebody uses it.
    """

    name: str
    numbers: Sequence[int]
    default_numbers: tuple[int, ...]
    dimensions: Sequence[int]
    supported_dimensions: Callable[[int], Sequence[int]]
    outline: Callable[[int, int], Outline]
    write_program: Callable[[int, int], Program]
    is_endless: bool = False
