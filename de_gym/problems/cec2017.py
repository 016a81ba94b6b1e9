"""The CEC'17 suite as a table: 30 functions of a point, by the official evaluator and in its numbering.

Reference: N. H. Awad, M. Z. Ali, J. J. Liang, B. Y. Qu and P. N. Suganthan, "Problem definitions and evaluation
criteria for the CEC 2017 special session and competition on single objective bound constrained real-parameter
numerical optimization", 2016. Where report and official code disagree, the code wins.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from de_gym.arrays import FloatArray
from de_gym.problems import data
from de_gym.problems.programs import Program
from de_gym.problems.table import Outline, SuiteTable

NUMBERS = tuple(range(1, 31))
DIMENSIONS = (2, 10, 30, 50, 100)


class Scaling(NamedTuple):
    """How a landscape takes its coordinates: times ``rate`` before the rotation, plus ``offset`` behind it."""

    rate: float = 1.0
    offset: float = 0.0


class Component(NamedTuple):
    """A landscape (a name) or hybrid (its number) inside a composition: its height and width of influence."""

    part: str | int
    scale: float
    spread: float


SCALINGS = {
    "rosenbrock": Scaling(2.048 / 100.0, 1.0),
    "rastrigin": Scaling(5.12 / 100.0),
    "schwefel": Scaling(1000.0 / 100.0),
    "weierstrass": Scaling(0.5 / 100.0),
    "griewank": Scaling(600.0 / 100.0),
    "katsuura": Scaling(5.0 / 100.0),
    "griewank-rosenbrock": Scaling(5.0 / 100.0, 1.0),
    "happycat": Scaling(5.0 / 100.0, -1.0),
    "hgbat": Scaling(5.0 / 100.0, -1.0),
}
LUNACEK_RATE = 0.2

BASICS = {
    1: "bent cigar",
    2: "sum of powers",
    3: "zakharov",
    4: "rosenbrock",
    5: "rastrigin",
    6: "schaffer",
    7: "lunacek",
    8: "rastrigin",  # NOTE: the report rounds to steps; the official code overwrites the rounded vector before use.
    9: "levy",
    10: "schwefel",
}

# Shares of the coordinates and the landscapes that get them.
HYBRIDS = {
    11: ((0.2, 0.4, 0.4), ("zakharov", "rosenbrock", "rastrigin")),
    12: ((0.3, 0.3, 0.4), ("ellipsoid", "schwefel", "bent cigar")),
    13: ((0.3, 0.3, 0.4), ("bent cigar", "rosenbrock", "lunacek")),
    14: ((0.2, 0.2, 0.2, 0.4), ("ellipsoid", "ackley", "schaffer", "rastrigin")),
    15: ((0.2, 0.2, 0.3, 0.3), ("bent cigar", "hgbat", "rastrigin", "rosenbrock")),
    16: ((0.2, 0.2, 0.3, 0.3), ("expanded schaffer", "hgbat", "rosenbrock", "schwefel")),
    17: ((0.1, 0.2, 0.2, 0.2, 0.3), ("katsuura", "ackley", "griewank-rosenbrock", "schwefel", "rastrigin")),
    18: ((0.2, 0.2, 0.2, 0.2, 0.2), ("ellipsoid", "ackley", "rastrigin", "hgbat", "discus")),
    19: (
        (0.2, 0.2, 0.2, 0.2, 0.2),
        ("bent cigar", "rastrigin", "griewank-rosenbrock", "weierstrass", "expanded schaffer"),
    ),
    20: ((0.1, 0.1, 0.2, 0.2, 0.2, 0.2), ("hgbat", "katsuura", "ackley", "rastrigin", "schwefel", "schaffer")),
}

COMPOSITIONS = {
    21: (Component("rosenbrock", 1.0, 10.0), Component("ellipsoid", 1e-6, 20.0), Component("rastrigin", 1.0, 30.0)),
    22: (Component("rastrigin", 1.0, 10.0), Component("griewank", 10.0, 20.0), Component("schwefel", 1.0, 30.0)),
    23: (
        Component("rosenbrock", 1.0, 10.0),
        Component("ackley", 10.0, 20.0),
        Component("schwefel", 1.0, 30.0),
        Component("rastrigin", 1.0, 40.0),
    ),
    24: (
        Component("ackley", 10.0, 10.0),
        Component("ellipsoid", 1e-6, 20.0),
        Component("griewank", 10.0, 30.0),
        Component("rastrigin", 1.0, 40.0),
    ),
    25: (
        Component("rastrigin", 10.0, 10.0),
        Component("happycat", 1.0, 20.0),
        Component("ackley", 10.0, 30.0),
        Component("discus", 1e-6, 40.0),
        Component("rosenbrock", 1.0, 50.0),
    ),
    26: (
        Component("expanded schaffer", 5e-4, 10.0),
        Component("schwefel", 1.0, 20.0),
        Component("griewank", 10.0, 20.0),
        Component("rosenbrock", 1.0, 30.0),
        Component("rastrigin", 10.0, 40.0),
    ),
    27: (
        Component("hgbat", 10.0, 10.0),
        Component("rastrigin", 10.0, 20.0),
        Component("schwefel", 2.5, 30.0),
        Component("bent cigar", 1e-26, 40.0),
        Component("ellipsoid", 1e-6, 50.0),
        Component("expanded schaffer", 5e-4, 60.0),
    ),
    28: (
        Component("ackley", 10.0, 10.0),
        Component("griewank", 10.0, 20.0),
        Component("discus", 1e-6, 30.0),
        Component("rosenbrock", 1.0, 40.0),
        Component("happycat", 1.0, 50.0),
        Component("expanded schaffer", 5e-4, 60.0),
    ),
    29: (Component(15, 1.0, 10.0), Component(16, 1.0, 30.0), Component(17, 1.0, 50.0)),
    30: (Component(15, 1.0, 10.0), Component(18, 1.0, 30.0), Component(19, 1.0, 50.0)),
}


def optimum(number: int) -> float:
    """Return f*."""
    return 100.0 * number


def optimal_position(number: int, dimension: int) -> FloatArray:
    """Return a point with value f*, shape (D,).

    NOTE: the report puts every optimum at the shift. Levy's function (F9) has its own at (1, ..., 1), and neither
    report nor code moves it to the origin, so the point there is the one whose rotated shift is all ones.
    """
    shift = data.shift_2017(number, 0, dimension)
    if number == 9:
        return shift + np.linalg.solve(data.rotation_2017(number, 0, dimension), np.ones(dimension))
    return shift.copy()


def outline(number: int, dimension: int) -> Outline:
    """Return what is known of a function beforehand."""
    return Outline(f"cec2017_f{number}", optimum(number), optimal_position(number, dimension))


def supported_dimensions(number: int) -> tuple[int, ...]:
    """Return the dimensions with official data; hybrids need more coordinates than two."""
    uses_hybrids = number in HYBRIDS or number in (29, 30)
    return DIMENSIONS[1:] if uses_hybrids else DIMENSIONS


def _write_basic(program: Program, landscape: str, shift: FloatArray, rotation: FloatArray) -> None:
    """Add one landscape of the whole shifted and rotated vector."""
    if landscape == "lunacek":
        program.shift(1, shift, LUNACEK_RATE)
        program.scale(1, 1, np.where(shift < 0.0, -1.0, 1.0))
        program.rotate(1, 2, rotation)
        program.landscape(landscape, 1, waves=2)
        return
    scaling = SCALINGS.get(landscape, Scaling())
    program.shift(1, shift, scaling.rate)
    if landscape == "schaffer":
        # NOTE: the report rotates; the official code reads the vector from before the rotation, and so do we.
        program.landscape(landscape, 1)
        return
    program.rotate(1, 2, rotation)
    program.landscape(landscape, 2, offset=scaling.offset)


def _block_lengths(shares: tuple[float, ...], dimension: int) -> list[int]:
    """Return how many coordinates each landscape of a hybrid gets, the last one the rest."""
    lengths = [math.ceil(share * dimension) for share in shares[:-1]]
    return [*lengths, dimension - sum(lengths)]


def _write_hybrid(program: Program, hybrid: int, number: int, component: int) -> None:
    """Add the landscapes of a hybrid, each on its own block of the shuffled vector."""
    dimension = program.dimension
    shift = data.shift_2017(number, component, dimension)
    rotation = data.rotation_2017(number, component, dimension)
    program.shift(1, shift)
    # Shuffling the rotated vector is rotating with shuffled rows.
    program.rotate(1, 2, rotation[data.permutation_2017(number, component, dimension)])
    shares, landscapes = HYBRIDS[hybrid]
    lengths = _block_lengths(shares, dimension)
    start = 0
    for landscape, length in zip(landscapes, lengths, strict=True):
        scaling = SCALINGS.get(landscape, Scaling())
        if landscape == "lunacek":
            # NOTE: an alias in the official code takes the signs from the first, unshuffled shifts.
            program.scale(2, 3, np.where(shift[:length] < 0.0, -LUNACEK_RATE, LUNACEK_RATE), start)
            program.landscape(landscape, 3, start=start, length=length, waves=3)
        elif landscape == "schaffer":
            # NOTE: another alias evaluates this one on the first coordinates instead of on its own block.
            program.landscape(landscape, 2, length=length)
        else:
            program.landscape(landscape, 2, start=start, length=length, rate=scaling.rate, offset=scaling.offset)
        start += length


def write_program(number: int, dimension: int) -> Program:
    """Return the program of one function."""
    program = Program(dimension)
    if number in BASICS:
        shift, rotation = data.shift_2017(number, 0, dimension), data.rotation_2017(number, 0, dimension)
        _write_basic(program, BASICS[number], shift, rotation)
    elif number in HYBRIDS:
        _write_hybrid(program, number, number, 0)
    else:
        for k, (part, scale, spread) in enumerate(COMPOSITIONS[number]):
            shift = data.shift_2017(number, k, dimension)
            if isinstance(part, int):
                _write_hybrid(program, part, number, k)
            else:
                _write_basic(program, part, shift, data.rotation_2017(number, k, dimension))
            program.end_component(scale, 100.0 * k, spread, shift)
    program.end(optimum(number))
    return program


TABLE = SuiteTable(
    name="cec2017",
    numbers=NUMBERS,
    # F2 was withdrawn by the organisers and is left out by every paper; it can still be asked for.
    default_numbers=tuple(number for number in NUMBERS if number != 2),
    dimensions=DIMENSIONS,
    supported_dimensions=supported_dimensions,
    outline=outline,
    write_program=write_program,
)
