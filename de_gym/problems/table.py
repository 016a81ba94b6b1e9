"""SuiteTable: what a suite's own file says about its functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from de_gym.arrays import FloatArray
from de_gym.problems.programs import Program


@dataclass(frozen=True)
class SuiteTable:
    """A suite of functions on the box from -100 to 100, without any of their data loaded.

    Attributes:
        name: Name of the suite.
        numbers: Official numbers of all its functions.
        default_numbers: Those that papers use, in order; their positions are the reference paper's numbers.
        dimensions: Dimensions with official data for at least some functions.
        supported_dimensions: number -> dimensions with official data for that function.
        optimum: number -> f*.
        optimal_position: (number, dimension) -> a point with value f*, shape (D,).
        write_program: (number, dimension) -> the function for the kernel.
    """

    name: str
    numbers: tuple[int, ...]
    default_numbers: tuple[int, ...]
    dimensions: tuple[int, ...]
    supported_dimensions: Callable[[int], tuple[int, ...]]
    optimum: Callable[[int], float]
    optimal_position: Callable[[int, int], FloatArray]
    write_program: Callable[[int, int], Program]
