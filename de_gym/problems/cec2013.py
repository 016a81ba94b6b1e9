"""The CEC'13 suite as a table: 28 functions of a point, by the official evaluator.

Reference: J. J. Liang, B. Y. Qu, P. N. Suganthan and A. G. Hernández-Díaz, "Problem definitions and evaluation
criteria for the CEC 2013 special session on real-parameter optimization", 2013. Where report and official code
disagree, the code wins, because the published results were produced with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from de_gym.arrays import FloatArray
from de_gym.machine import kernel
from de_gym.problems import data
from de_gym.problems.programs import Program
from de_gym.problems.table import Outline, SuiteTable

NUMBERS = tuple(range(1, 29))
DIMENSIONS = (2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)


class Frame(NamedTuple):
    """Where a basic function stands: its shift and its two rotations, None for the identity."""

    shift: FloatArray
    first: FloatArray | None
    second: FloatArray | None


class Basic(NamedTuple):
    """A basic function: how it writes itself into a program, and whether it is rotated."""

    write: Callable[[Program, Frame], None]
    is_rotated: bool = True


class Component(NamedTuple):
    """A basic function inside a composition: its height and the width of its influence."""

    basic: Basic
    scale: float
    spread: float


def _stretch(dimension: int, ratio: float) -> FloatArray:
    """Return the diagonal ratio ** (i / (D - 1) / 2), i from 0."""
    return np.array([ratio ** (i / (dimension - 1) / 2) for i in range(dimension)])


def _skewness(dimension: int, strength: float) -> FloatArray:
    return np.array([strength * i / (dimension - 1) for i in range(dimension)])


def _rotate(program: Program, source: int, target: int, rotation: FloatArray | None) -> int:
    """Return the register with the rotated vector; without a rotation that is ``source`` itself."""
    if rotation is None:
        return source
    program.rotate(source, target, rotation)
    return target


def _plain(landscape: str, *, rate: float = 1.0, offset: float = 0.0, ratio: float | None = None) -> Basic:
    """Return landscape(stretch A rate u + offset), u = x - o."""

    def write(program: Program, frame: Frame) -> None:
        program.shift(1, frame.shift, rate)
        vector = _rotate(program, 1, 2, frame.first)
        if ratio is not None:
            program.scale(vector, vector, _stretch(program.dimension, ratio))
        program.landscape(landscape, vector, offset=offset)

    return Basic(write)


def _oscillated(landscape: str) -> Basic:
    """Return landscape(osz(A u))."""

    def write(program: Program, frame: Frame) -> None:
        program.shift(1, frame.shift)
        vector = _rotate(program, 1, 2, frame.first)
        program.transform(kernel.OSCILLATE, vector, vector)
        program.landscape(landscape, vector)

    return Basic(write)


def _skewed(landscape: str, *, rate: float = 1.0, ratio: float | None = None, operation: int = kernel.SKEW) -> Basic:
    """Return landscape(B stretch asy(A u)); where A u is not positive, asy leaves the unrotated u."""

    def write(program: Program, frame: Frame) -> None:
        program.shift(1, frame.shift, rate)
        vector = _rotate(program, 1, 2, frame.first)
        # The exponent behind the coefficients is read by the exact form of the transformation only.
        program.transform(operation, vector, 1, np.append(_skewness(program.dimension, 0.5), 0.5))
        if ratio is not None:
            program.scale(1, 1, _stretch(program.dimension, ratio))
        program.landscape(landscape, _rotate(program, 1, 2, frame.second))

    return Basic(write)


def _rastrigin(*, steps: bool = False) -> Basic:
    """Return rastrigin(A stretch B asy(osz(z))), z = A (0.0512 u), rounded to steps first where asked for."""

    def write(program: Program, frame: Frame) -> None:
        program.shift(1, frame.shift, 5.12 / 100.0)
        vector = _rotate(program, 1, 2, frame.first)
        if steps:
            program.transform(kernel.ROUND_STEPS, vector, vector)
        program.transform(kernel.OSCILLATE, vector, 3)
        program.transform(kernel.SKEW, 3, vector, _skewness(program.dimension, 0.2))
        vector = _rotate(program, vector, 3, frame.second)
        program.scale(vector, vector, _stretch(program.dimension, 10.0))
        program.landscape("rastrigin", _rotate(program, vector, 1, frame.first))

    return Basic(write)


def _write_katsuura(program: Program, frame: Frame) -> None:
    program.shift(1, frame.shift, 5.0 / 100.0)
    vector = _rotate(program, 1, 2, frame.first)
    program.scale(vector, vector, _stretch(program.dimension, 100.0))
    program.landscape("katsuura", _rotate(program, vector, 1, frame.second))


def _write_lunacek(program: Program, frame: Frame) -> None:
    program.shift(1, frame.shift, 0.2)
    program.scale(1, 1, np.where(frame.shift < 0.0, -1.0, 1.0))
    program.scale(1, 2, np.ones(program.dimension))
    vector = _rotate(program, 2, 3, frame.first)
    program.scale(vector, vector, _stretch(program.dimension, 100.0))
    program.landscape("lunacek", 1, waves=_rotate(program, vector, 4, frame.second))


def _unrotated(basic: Basic) -> Basic:
    return basic._replace(is_rotated=False)


SPHERE = _unrotated(_plain("sphere"))
ELLIPSOID = _oscillated("ellipsoid")
BENT_CIGAR = _skewed("bent cigar")
DISCUS = _oscillated("discus")
DIFFERENT_POWERS = _plain("different powers")
ROSENBROCK = _plain("rosenbrock", rate=2.048 / 100.0, offset=1.0)
SCHAFFER = _skewed("schaffer", ratio=10.0)
ACKLEY = _skewed("ackley", ratio=10.0, operation=kernel.SKEW_EXACTLY)
WEIERSTRASS = _skewed("weierstrass", rate=0.5 / 100.0, ratio=10.0)
GRIEWANK = _plain("griewank", rate=600.0 / 100.0, ratio=100.0)
RASTRIGIN = _rastrigin()
STEP_RASTRIGIN = _rastrigin(steps=True)
SCHWEFEL = _plain("schwefel", rate=1000.0 / 100.0, ratio=10.0)
KATSUURA = Basic(_write_katsuura)
LUNACEK = Basic(_write_lunacek)
# NOTE: the report rotates this one; the official code computes the rotation and then uses the unrotated vector.
GRIEWANK_ROSENBROCK = _unrotated(_plain("griewank-rosenbrock", rate=5.0 / 100.0, offset=1.0))
EXPANDED_SCHAFFER = _skewed("expanded schaffer")

BASICS = {
    1: SPHERE,
    2: ELLIPSOID,
    3: BENT_CIGAR,
    4: DISCUS,
    5: _unrotated(DIFFERENT_POWERS),
    6: ROSENBROCK,
    7: SCHAFFER,
    8: ACKLEY,
    9: WEIERSTRASS,
    10: GRIEWANK,
    11: _unrotated(RASTRIGIN),
    12: RASTRIGIN,
    13: STEP_RASTRIGIN,
    14: _unrotated(SCHWEFEL),
    15: SCHWEFEL,
    16: KATSUURA,
    17: _unrotated(LUNACEK),
    18: LUNACEK,
    19: GRIEWANK_ROSENBROCK,
    20: EXPANDED_SCHAFFER,
}

COMPOSITIONS = {
    21: (
        Component(ROSENBROCK, 1.0, 10.0),
        Component(DIFFERENT_POWERS, 1e-6, 20.0),
        Component(BENT_CIGAR, 1e-26, 30.0),
        Component(DISCUS, 1e-6, 40.0),
        Component(SPHERE, 0.1, 50.0),
    ),
    22: (Component(_unrotated(SCHWEFEL), 1.0, 20.0),) * 3,
    23: (Component(SCHWEFEL, 1.0, 20.0),) * 3,
    24: (
        Component(SCHWEFEL, 0.25, 20.0),
        Component(RASTRIGIN, 1.0, 20.0),
        Component(WEIERSTRASS, 2.5, 20.0),
    ),
    25: (
        Component(SCHWEFEL, 0.25, 10.0),
        Component(RASTRIGIN, 1.0, 30.0),
        Component(WEIERSTRASS, 2.5, 50.0),
    ),
    26: (
        Component(SCHWEFEL, 0.25, 10.0),
        Component(RASTRIGIN, 1.0, 10.0),
        Component(ELLIPSOID, 1e-7, 10.0),
        Component(WEIERSTRASS, 2.5, 10.0),
        Component(GRIEWANK, 10.0, 10.0),
    ),
    27: (
        Component(GRIEWANK, 100.0, 10.0),
        Component(RASTRIGIN, 10.0, 10.0),
        Component(SCHWEFEL, 2.5, 10.0),
        Component(WEIERSTRASS, 25.0, 20.0),
        Component(SPHERE, 0.1, 20.0),
    ),
    28: (
        Component(GRIEWANK_ROSENBROCK, 2.5, 10.0),
        Component(SCHAFFER, 2.5e-3, 20.0),
        Component(SCHWEFEL, 2.5, 30.0),
        Component(EXPANDED_SCHAFFER, 5e-4, 40.0),
        Component(SPHERE, 0.1, 50.0),
    ),
}


def optimum(number: int) -> float:
    """Return f*; the suite skips zero."""
    return 100.0 * (number - 15 if number < 15 else number - 14)


def optimal_position(number: int, dimension: int) -> FloatArray:
    """Return the point with value f*, shape (D,)."""
    return data.shift_2013(0, dimension).copy()


def outline(number: int, dimension: int) -> Outline:
    """Return what is known of a function beforehand."""
    return Outline(f"cec2013_f{number}", optimum(number), optimal_position(number, dimension))


def supported_dimensions(number: int) -> tuple[int, ...]:
    """Return the dimensions with official data."""
    return DIMENSIONS


def _frame(basic: Basic, component: int, dimension: int) -> Frame:
    shift = data.shift_2013(component, dimension)
    if not basic.is_rotated:
        return Frame(shift, None, None)
    return Frame(shift, data.rotation_2013(component, dimension), data.rotation_2013(component + 1, dimension))


def write_program(number: int, dimension: int) -> Program:
    """Return the program of one function."""
    program = Program(dimension)
    if number in BASICS:
        basic = BASICS[number]
        basic.write(program, _frame(basic, 0, dimension))
    else:
        for k, (basic, scale, spread) in enumerate(COMPOSITIONS[number]):
            frame = _frame(basic, k, dimension)
            basic.write(program, frame)
            program.end_component(scale, 100.0 * k, spread, frame.shift)
    program.end(optimum(number))
    return program


TABLE = SuiteTable(
    name="cec2013",
    numbers=NUMBERS,
    default_numbers=NUMBERS,
    dimensions=DIMENSIONS,
    supported_dimensions=supported_dimensions,
    outline=outline,
    write_program=write_program,
)
