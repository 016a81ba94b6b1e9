"""Programs: how a suite writes a function down for the kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.machine import kernel

# The instructions of a program, one per row, and the numbers they refer to.
ProgramArrays: TypeAlias = tuple[IntArray, FloatArray]
_NO_INSTRUCTIONS, _NO_NUMBERS = np.empty((0, kernel.NUM_COLUMNS), dtype=np.int64), np.empty(0)


class Landscape(NamedTuple):
    """A landscape of the kernel and the coefficients that make it the named one, for a number of coordinates."""

    operation: int
    coefficients: Callable[[int], list[float]] = lambda length: []


# Powers are taken by Python's `**`, which is the C library's: numpy's may differ in the last bit.
LANDSCAPES = {
    "sphere": Landscape(kernel.WEIGHTED_SQUARES, lambda length: [1.0] * length),
    "ellipsoid": Landscape(
        kernel.WEIGHTED_SQUARES, lambda length: [10.0 ** (6.0 * i / max(length - 1, 1)) for i in range(length)]
    ),
    "bent cigar": Landscape(kernel.WEIGHTED_SQUARES, lambda length: [1.0] + [1e6] * (length - 1)),
    "discus": Landscape(kernel.WEIGHTED_SQUARES, lambda length: [1e6] + [1.0] * (length - 1)),
    "absolutes": Landscape(kernel.WEIGHTED_ABSOLUTES, lambda length: [1.0] * length),
    "sharp ridge": Landscape(kernel.SHARP_RIDGE, lambda length: [100.0]),
    # A single peak; problems with more of them bring their own coefficients.
    "peaks": Landscape(kernel.PEAKS, lambda length: [1.0, 0.0, *[0.0] * length, *[1.0] * length]),
    # NOTE: the report's exponents are real numbers; the official code divides integers, and so do we.
    "different powers": Landscape(
        kernel.DIFFERENT_POWERS, lambda length: [2.0 + 4 * i // max(length - 1, 1) for i in range(length)]
    ),
    "sum of powers": Landscape(kernel.SUM_OF_POWERS, lambda length: [i + 1.0 for i in range(length)]),
    "zakharov": Landscape(kernel.ZAKHAROV),
    "rosenbrock": Landscape(kernel.ROSENBROCK),
    "griewank-rosenbrock": Landscape(kernel.GRIEWANK_ROSENBROCK),
    "expanded schaffer": Landscape(kernel.EXPANDED_SCHAFFER),
    "schaffer": Landscape(kernel.SCHAFFER),
    "ackley": Landscape(kernel.ACKLEY),
    "weierstrass": Landscape(kernel.WEIERSTRASS),
    "griewank": Landscape(kernel.GRIEWANK, lambda length: [1.0 / (i + 1.0) ** 0.5 for i in range(length)]),
    "rastrigin": Landscape(kernel.RASTRIGIN),
    "schwefel": Landscape(kernel.SCHWEFEL),
    "katsuura": Landscape(kernel.KATSUURA, lambda length: [10.0 / length**1.2]),
    "happycat": Landscape(kernel.HAPPYCAT),
    "hgbat": Landscape(kernel.HGBAT),
    "levy": Landscape(kernel.LEVY),
    "lunacek": Landscape(kernel.LUNACEK),
}


class Program:
    """The instructions and numbers of one function, written step by step.

    A register is a vector of ``dimension`` coordinates; register 0 holds the point itself.

    Attributes:
        dimension: Number of coordinates D.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._rows: list[list[int]] = []
        self._numbers: list[FloatArray] = []
        self._num_numbers = 0

    def shift(self, target: int, shift: FloatArray, rate: float = 1.0) -> None:
        """Register ``target`` becomes rate * (x - shift)."""
        self._add(kernel.SHIFT, 0, target, np.append(rate, shift))

    def rotate(self, source: int, target: int, rotation: FloatArray) -> None:
        """Register ``target`` becomes rotation @ source; the two must differ."""
        self._add(kernel.ROTATE, source, target, rotation.ravel())

    def scale(self, source: int, target: int, factors: FloatArray, start: int = 0) -> None:
        """Coordinates of ``target`` from ``start`` on become those of ``source`` times ``factors``."""
        self._add(kernel.SCALE, source, target, factors, start=start, length=len(factors))

    def transform(
        self,
        operation: int,
        source: int,
        target: int,
        coefficients: FloatArray | None = None,
        *,
        start: int = 0,
        length: int | None = None,
    ) -> None:
        """Coordinates of ``target`` become one of the kernel's other transformations of those of ``source``."""
        numbers = np.empty(0) if coefficients is None else coefficients
        self._add(operation, source, target, numbers, start=start, length=length)

    def landscape(
        self,
        name: str,
        source: int,
        *,
        start: int = 0,
        length: int | None = None,
        rate: float = 1.0,
        offset: float = 0.0,
        waves: int = 0,
        coefficients: Sequence[float] | FloatArray | None = None,
    ) -> None:
        """Add the named landscape's value at rate * v + offset, v the coordinates of ``source`` from ``start`` on.

        Only Lunacek's function reads ``waves``, the register of its rotated coordinates.
        """
        operation, usual_coefficients = LANDSCAPES[name]
        count = self.dimension if length is None else length
        numbers = np.append([rate, offset], usual_coefficients(count) if coefficients is None else coefficients)
        self._add(operation, source, 0, numbers, start=start, length=count, other=waves * self.dimension + start)

    def end_component(self, scale: float, bias: float, spread: float, shift: FloatArray) -> None:
        """Close a component: its value so far, times ``scale`` plus ``bias``, weighted around ``shift``."""
        constants = self._append(np.array([scale, bias]))
        weighting = self._append(np.append(2.0 * self.dimension * spread**2, shift))
        self._rows.append([kernel.END_COMPONENT, 0, 0, self.dimension, constants, weighting])

    def end(self, optimum: float) -> None:
        """Close the program; ``optimum`` is added to the value."""
        self._add(kernel.END, 0, 0, np.array([optimum]))

    def arrays(self) -> ProgramArrays:
        """Return the program as the kernel reads it."""
        return np.array(self._rows, dtype=np.int64), np.concatenate(self._numbers)

    def _add(
        self,
        operation: int,
        source: int,
        target: int,
        numbers: FloatArray,
        *,
        start: int = 0,
        length: int | None = None,
        other: int = 0,
    ) -> None:
        first, written = (register * self.dimension + start for register in (source, target))
        count = self.dimension if length is None else length
        self._rows.append([operation, first, written, count, self._append(numbers), other])

    def _append(self, numbers: FloatArray) -> int:
        """Store ``numbers`` and return where they start."""
        at = self._num_numbers
        self._numbers.append(np.asarray(numbers, dtype=np.float64))
        self._num_numbers += len(numbers)
        return at


def join_programs(programs: Sequence[ProgramArrays]) -> tuple[IntArray, IntArray, FloatArray]:
    """Return programs side by side, as the kernel takes them: entries, instructions and data.

    Row p of the entries says where program p has its first instruction and its first number.
    """
    entries = np.zeros((len(programs), 2), dtype=np.int64)
    if len(programs) == 1:
        return entries, *programs[0]
    instructions = [_NO_INSTRUCTIONS, *(rows for rows, _ in programs)]
    numbers = [_NO_NUMBERS, *(row for _, row in programs)]
    np.cumsum([len(rows) for rows in instructions[:-1]], out=entries[:, 0])
    np.cumsum([len(row) for row in numbers[:-1]], out=entries[:, 1])
    return entries, np.concatenate(instructions), np.concatenate(numbers)
