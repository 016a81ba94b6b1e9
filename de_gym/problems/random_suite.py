"""Random problems: a suite without end, each problem fixed by (seed, number, dimension).

A controller trained on a benchmark learns its functions; one trained on these has to learn how to search. They are
made of the landscapes that the CEC suites are made of and of others that those lack (unrelated peaks, winding valleys,
plateaus, optima on a bound), with no shift, rotation or other datum of a CEC suite in them, so both suites stay unseen.
The optimum and its position are known. Any dimension from 2 on will do.

Seeds are divided by convention: below 1000 for training, from 10 000 for validation, and from 20 000 for final tests
that nothing was tuned to.

The value at the optimal position is the optimum up to the rounding errors of the landscapes' own constants, 1e-9.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import NamedTuple

import numpy as np

from de_gym.arrays import FloatArray
from de_gym.machine import kernel
from de_gym.problems.dice import Dice
from de_gym.problems.programs import Program
from de_gym.problems.table import BOUND, Outline, SuiteTable

# What the problems are, and how large a share of them.
KINDS = {
    "landscape": 0.09,  # one landscape, with or without transformations
    "peaks": 0.07,  # unrelated peaks of different width and height
    "steps": 0.05,  # a landscape of plateaus
    "valley": 0.06,  # an ill-conditioned valley that winds
    "slope": 0.03,  # a linear slope down to a corner of the box
    "hybrid": 0.4,  # landscapes on blocks of the coordinates
    "composition": 0.3,  # landscapes and hybrids with an optimum each, joined by distance
}
UNROTATED_SHARE = 0.4
HYBRID_SHARE_IN_COMPOSITIONS = 0.25
NUM_HYBRID_PARTS = 3, 5
NUM_COMPOSITION_PARTS = 3, 6
SPREADS = 10.0, 60.0
SHIFTS = -80.0, 80.0
NUM_PEAKS = 21, 101
DEFAULT_NUMBERS = tuple(range(1, 61))


class Part(NamedTuple):
    """How a landscape takes part in a problem.

    Attributes:
        rate: What the box is multiplied by to become the landscape's usual range.
        offset: Where the landscape has its minimum, in every coordinate.
        height: What it is multiplied by inside a composition, so that its neighbours still count.
        min_length: Number of coordinates it needs.
        max_condition: The decimal logarithm of the largest condition number it is stretched to.
        may_skew: Whether its coordinates are small enough for the asymmetric transformation.
    """

    rate: float = 1.0
    offset: float = 0.0
    height: float = 1.0
    min_length: int = 1
    max_condition: float = 0.0
    may_skew: bool = False


PARTS = {
    "sphere": Part(height=0.1, max_condition=6.0),
    "ellipsoid": Part(height=1e-6),
    "bent cigar": Part(height=1e-6),
    "discus": Part(height=1e-6),
    "different powers": Part(height=1e-3, max_condition=2.0),
    "absolutes": Part(max_condition=6.0),
    "sharp ridge": Part(height=0.1, max_condition=2.0),
    "zakharov": Part(height=1e-9),
    "rosenbrock": Part(2.048 / 100.0, 1.0, min_length=2, max_condition=2.0),
    "griewank-rosenbrock": Part(5.0 / 100.0, 1.0, height=2.5, max_condition=1.0),
    "expanded schaffer": Part(height=10.0, max_condition=2.0),
    "schaffer": Part(min_length=2, max_condition=3.0),
    "ackley": Part(32.0 / 100.0, height=10.0, max_condition=2.0),
    "weierstrass": Part(0.5 / 100.0, height=2.5, max_condition=2.0, may_skew=True),
    "griewank": Part(600.0 / 100.0, height=10.0, max_condition=2.0),
    "rastrigin": Part(5.12 / 100.0, max_condition=3.0, may_skew=True),
    "schwefel": Part(1000.0 / 100.0, max_condition=1.0),
    "katsuura": Part(5.0 / 100.0, max_condition=2.0, may_skew=True),
    "happycat": Part(5.0 / 100.0, -1.0),
    "hgbat": Part(5.0 / 100.0, -1.0, height=10.0),
    "levy": Part(10.0 / 100.0, 1.0, height=10.0, max_condition=2.0, may_skew=True),
    "lunacek": Part(0.2, min_length=2),
    "peaks": Part(height=10.0),
}
STEP_PARTS = "sphere", "ellipsoid", "absolutes", "different powers", "rastrigin", "ackley", "griewank", "schwefel"
VALLEY_PARTS = (
    "sphere",
    "ellipsoid",
    "bent cigar",
    "discus",
    "different powers",
    "sharp ridge",
    "rosenbrock",
    "zakharov",
)


class Frame(NamedTuple):
    """Where a part stands: its optimum, shape (D,), and whether it is rotated."""

    shift: FloatArray
    is_rotated: bool


class View(NamedTuple):
    """A register that holds a vector of the point, and how points become such vectors: (K, D) to (K, D)."""

    register: int
    of_points: Callable[[FloatArray], FloatArray]


@lru_cache(maxsize=64)
def table(seed: int) -> SuiteTable:
    """Return the suite of one seed."""
    return SuiteTable(
        name=f"random:{seed}",
        numbers=range(1, 2**63),
        default_numbers=DEFAULT_NUMBERS,
        dimensions=range(2, 2**31),
        supported_dimensions=lambda number: range(2, 2**31),
        outline=partial(outline, seed),
        write_program=partial(write_program, seed),
        is_endless=True,
    )


class Draft(NamedTuple):
    """What a problem begins with: one of ``KINDS``, its minimum and where that is, shape (D,)."""

    kind: str
    optimum: float
    optimal_position: FloatArray


def _draft(seed: int, number: int, dimension: int) -> Draft:
    dice = Dice(seed, number, dimension)
    kind = dice.pick_by_share(KINDS)
    optimum = 100.0 * dice.integer(-10, 30)
    position = dice.uniforms(*SHIFTS, dimension)
    if kind == "slope":
        position = np.where(position < 0.0, -BOUND, BOUND)
    return Draft(kind, optimum, position)


def outline(seed: int, number: int, dimension: int) -> Outline:
    """Return what is known of a problem beforehand, its kind in its name."""
    draft = _draft(seed, number, dimension)
    return Outline(f"random-{draft.kind}-{number}", draft.optimum, draft.optimal_position)


def write_program(seed: int, number: int, dimension: int) -> Program:
    """Return the program of one problem."""
    draft = _draft(seed, number, dimension)
    # The fourth number makes it another stream than that of the draft.
    dice = Dice(seed, number, dimension, 1)
    program = Program(dimension)
    frame = Frame(draft.optimal_position, is_rotated=not dice.happens(UNROTATED_SHARE))
    _WRITERS[draft.kind](program, dice, frame)
    program.end(draft.optimum)
    return program


def _write_landscape(program: Program, dice: Dice, frame: Frame) -> None:
    _write_part(program, dice, frame, dice.pick(_parts_for(program.dimension)))


def _write_peaks(program: Program, dice: Dice, frame: Frame) -> None:
    _write_part(program, dice, frame, "peaks")


def _write_steps(program: Program, dice: Dice, frame: Frame) -> None:
    """Add a landscape that is flat between steps, except around its minimum."""
    name = dice.pick(STEP_PARTS)
    part = PARTS[name]
    program.shift(1, frame.shift, part.rate)
    register = _stretch(program, dice, frame, part, _view(program, dice, frame).register)
    width = part.rate * 10.0 ** dice.uniform(0.3, 1.3)
    program.scale(register, register, np.full(program.dimension, 1.0 / width))
    program.transform(kernel.ROUND_STEPS, register, register)
    program.landscape(name, register, rate=width, offset=part.offset)


def _write_valley(program: Program, dice: Dice, frame: Frame) -> None:
    """Add an ill-conditioned landscape whose coordinates wind around each other."""
    name = dice.pick(VALLEY_PARTS)
    part = PARTS[name]
    program.shift(1, frame.shift, part.rate)
    register = _view(program, dice, frame).register
    amplitude = part.rate * dice.uniform(5.0, 30.0)
    angular_rate = 2.0 * math.pi / (part.rate * dice.uniform(60.0, 400.0))
    program.transform(kernel.BEND, register, register, np.tile([amplitude, angular_rate], program.dimension))
    register = _stretch(program, dice, frame, part, register)
    program.landscape(name, register, offset=part.offset)


def _write_slope(program: Program, dice: Dice, frame: Frame) -> None:
    """Add a landscape that falls towards the corner where its minimum is, in every coordinate at its own rate."""
    program.shift(1, frame.shift)
    weights = [10.0 ** dice.uniform(0.0, 2.0) for _ in range(program.dimension)]
    program.landscape("absolutes", 1, coefficients=weights)


def _write_hybrid(program: Program, dice: Dice, frame: Frame) -> None:
    """Add landscapes of separate blocks of the coordinates, rotated or else shuffled."""
    program.shift(1, frame.shift)
    view = _view(program, dice, frame, shuffles=True)
    start = 0
    for length in _block_lengths(dice, program.dimension):
        name = dice.pick(_parts_for(length))
        part, block = PARTS[name], slice(start, start + length)
        rate = part.rate * _zoom(dice)
        if name == "peaks":
            coefficients = _draw_peaks(dice, frame, view, block)
            program.landscape(name, view.register, start=start, length=length, coefficients=coefficients)
        elif name == "lunacek":
            program.scale(view.register, 3, np.where(frame.shift[block] < 0.0, -rate, rate), start)
            program.landscape(name, 3, start=start, length=length, waves=3)
        else:
            program.landscape(name, view.register, start=start, length=length, rate=rate, offset=part.offset)
        start += length


def _write_composition(program: Program, dice: Dice, frame: Frame) -> None:
    """Add parts with an optimum each; the first has the lowest, every other one lies 100 above the one before."""
    for k in range(dice.integer(*NUM_COMPOSITION_PARTS)):
        if k > 0:
            frame = frame._replace(shift=dice.uniforms(*SHIFTS, program.dimension))
        if dice.happens(HYBRID_SHARE_IN_COMPOSITIONS):
            height = 1.0
            _write_hybrid(program, dice, frame)
        else:
            name = dice.pick(_parts_for(program.dimension))
            height = PARTS[name].height
            _write_part(program, dice, frame, name)
        program.end_component(height, 100.0 * k, dice.uniform(*SPREADS), frame.shift)


_WRITERS = {
    "landscape": _write_landscape,
    "peaks": _write_peaks,
    "steps": _write_steps,
    "valley": _write_valley,
    "slope": _write_slope,
    "hybrid": _write_hybrid,
    "composition": _write_composition,
}


def _write_part(program: Program, dice: Dice, frame: Frame, name: str) -> None:
    """Add one landscape of all coordinates, with some of the transformations that suit it."""
    part = PARTS[name]
    program.shift(1, frame.shift, part.rate * (1.0 if name == "peaks" else _zoom(dice)))
    if name == "lunacek":
        # The other bowl then lies on the side where the box has room for it.
        program.scale(1, 1, np.where(frame.shift < 0.0, -1.0, 1.0))
        program.landscape(name, 1, waves=_view(program, dice, frame).register)
        return
    view = _view(program, dice, frame)
    if name == "peaks":
        coefficients = _draw_peaks(dice, frame, view, slice(0, program.dimension))
        program.landscape(name, view.register, coefficients=coefficients)
        return
    register = view.register
    if dice.happens(0.25):
        _oscillate(program, register)
    if part.may_skew and dice.happens(0.5):
        strengths = np.linspace(0.0, dice.uniform(0.1, 0.5), program.dimension)
        program.transform(kernel.SKEW, register, register, strengths)
    register = _stretch(program, dice, frame, part, register)
    program.landscape(name, register, offset=part.offset)


@cache
def _parts_for(length: int) -> list[str]:
    """Return the landscapes that so many coordinates are enough for."""
    return [name for name, part in PARTS.items() if part.min_length <= length]


def _zoom(dice: Dice) -> float:
    """Return a factor around 1 by which a landscape is seen larger or smaller than usual."""
    return math.pow(2.0, dice.uniform(-1.0, 1.0))


def _view(program: Program, dice: Dice, frame: Frame, *, shuffles: bool = False) -> View:
    """Rotate the shifted vector in register 1, or leave it or shuffle it where the problem is not rotated."""
    if frame.is_rotated:
        # Shuffled, it would be another random rotation.
        rotation = dice.rotation(program.dimension)
        program.rotate(1, 2, rotation)
        return View(2, partial(_multiply, rotation))
    if not shuffles:
        return View(1, np.array)
    order = dice.order(program.dimension)
    program.transform(kernel.SHUFFLE, 1, 2, order.astype(np.float64))
    return View(2, lambda points: points[:, order])


def _multiply(rotation: FloatArray, points: FloatArray) -> FloatArray:
    """Return the rotated points (K, D), summed in the same order on every machine."""
    rotated = np.zeros_like(points)
    for j in range(points.shape[1]):
        rotated += rotation[:, j] * points[:, j, np.newaxis]
    return rotated


def _stretch(program: Program, dice: Dice, frame: Frame, part: Part, register: int) -> int:
    """Stretch the coordinates unevenly, half of the time, and maybe rotate again; return the register of the result."""
    if part.max_condition == 0.0 or dice.happens(0.5):
        return register
    condition = dice.uniform(0.0, part.max_condition)
    places = dice.order(program.dimension) / (program.dimension - 1)
    program.scale(
        register, register, np.array([10.0 ** (condition * (place - 0.5) / 2.0) for place in places.tolist()])
    )
    if not frame.is_rotated or dice.happens(0.5):
        return register
    program.rotate(register, 3, dice.rotation(program.dimension))
    return 3


def _oscillate(program: Program, register: int) -> None:
    """Make every coordinate oscillate: the kernel does it to the first and the last, so two at a time."""
    for start in range(0, program.dimension, 2):
        length = min(2, program.dimension - start)
        program.transform(kernel.OSCILLATE, register, register, start=start, length=length)


def _draw_peaks(dice: Dice, frame: Frame, view: View, block: slice) -> FloatArray:
    """Return the coefficients of the landscape of peaks: the highest at the optimum, the others all over the box."""
    num_peaks = NUM_PEAKS[dice.integer(0, 1)]
    centres = dice.uniforms(-BOUND, BOUND, (num_peaks, len(frame.shift))) - frame.shift
    centres = view.of_points(centres)[:, block]
    centres[0] = 0.0
    length = centres.shape[1]
    log_heights = [math.log(height) for height in dice.uniforms(0.1, 0.95, num_peaks).tolist()]
    log_heights[0] = 0.0
    # A peak is about a tenth of the box wide; the highest is rather a wide one, for one that nobody can find teaches
    # nothing.
    exponents_of_size = [dice.uniform(-0.8, 0.0), *dice.uniforms(-1.0, 1.0, num_peaks - 1).tolist()]
    sizes = [10.0**exponent / 400.0 for exponent in exponents_of_size]
    conditions = dice.uniforms(0.0, 3.0, num_peaks)
    places = dice.uniforms(-0.25, 0.25, (num_peaks, length))
    exponents = (conditions[:, np.newaxis] * places).tolist()
    narrowness = [[size * 10.0**exponent for exponent in row] for size, row in zip(sizes, exponents, strict=True)]
    return np.append(float(num_peaks), np.column_stack([log_heights, centres, narrowness]))


def _block_lengths(dice: Dice, dimension: int) -> list[int]:
    """Return how many coordinates each landscape of a hybrid gets: one, and a random share of the others."""
    num_blocks = min(dice.integer(*NUM_HYBRID_PARTS), dimension)
    # Sorted uniforms cut the rest as a Dirichlet distribution does.
    cuts = np.sort(dice.uniforms(0.0, dimension - num_blocks + 1.0, num_blocks - 1)).astype(np.int64)
    ends = np.concatenate([[0], cuts, [dimension - num_blocks]])
    return [1 + int(length) for length in np.diff(ends)]
