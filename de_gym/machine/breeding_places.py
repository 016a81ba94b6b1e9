"""Where one run's trials are made: random numbers, what was chosen for each trial, and how to read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.machine.chances import find_base, uniform_at
from de_gym.machine.compiling import inlined
from de_gym.machine.lanes import WIDTH, pointer_to
from de_gym.machine.streams import NUM_STREAMS, KeyArray, whole_turns

if TYPE_CHECKING:
    from de_gym.machine.lanes import Pointer

# Sections of the uniforms, each as long as all trials, rounded up to whole lanes; those of the crossover follow them.
TARGET, PBEST, R1, R2, SLOT, FORCED, RADIUS, ANGLE = range(8)
NUM_SECTIONS = 8

# Sections of the numbers: made of uniforms at first, then what each trial is made with.
TARGET_RANK, PBEST_RANK, FRONT_RANK, OTHER_RANK, CERTAIN, FACTOR, WEIGHT, RATE, RATE_NORMAL = range(9)
NUM_NUMBERS = 9

# Sections of the rows.
PARENT, BEST, PLUS, MINUS = range(4)
NUM_ROWS = 4

# Purposes of numbers drawn by position.
REDRAW_RANK, REDRAW_FACTOR, USE_SPARSE, USE_TRIPLE, TRIPLE_FACTOR = range(5)
USE_AXES, USE_NOISE, NOISE, USE_MIDPOINT, FRESH, USE_IN_PLACE = range(5, 11)


class BreedingSpace(NamedTuple):
    """Memory for one run's trials, used again for every run; P is their number rounded up to whole lanes.

    Attributes:
        states: States of the random streams.
        uniforms: Random numbers, sections of P and then D per trial.
        numbers: Sections of P, named above.
        rows: Where parent, p-best, r1 and r2 of each trial begin within ``positions``, sections of P.
        move: A move and its part along some axes, D numbers each.
    """

    states: KeyArray
    uniforms: FloatArray
    numbers: FloatArray
    rows: IntArray
    move: FloatArray


class SpacePlaces(NamedTuple):
    """Where the arrays of a ``BreedingSpace`` begin.

    Attributes:
        states: See there, like the others.
        uniforms: See there.
        numbers: See there.
        rows: See there.
        move: See there.
    """

    states: Pointer[np.uint64]
    uniforms: Pointer[float]
    numbers: Pointer[float]
    rows: Pointer[int]
    move: Pointer[float]


class BreedingPlaces(NamedTuple):
    """Where the numbers begin that one run's trials are made of.

    Attributes:
        num_trials: Their number.
        padded: Rounded up to whole lanes.
        dimension: Number of coordinates.
        key: What the run's random numbers follow from.
        stream: Number of its streams.
        uniforms: As in ``BreedingSpace``, like the next three.
        numbers: See there.
        rows: See there.
        move: See there.
        positions: Of top and front, shape (2, C, D).
        axes: Shape (D, D).
        low: Lower bounds, shape (D,).
        high: Upper bounds, shape (D,).
        points: Receives the trials, shape (num_trials, D).
    """

    num_trials: int
    padded: int
    dimension: int
    key: np.uint64
    stream: int
    uniforms: Pointer[float]
    numbers: Pointer[float]
    rows: Pointer[int]
    move: Pointer[float]
    positions: Pointer[float]
    axes: Pointer[float]
    low: Pointer[float]
    high: Pointer[float]
    points: Pointer[float]


@inlined
def make_breeding_space(max_trials: int, dimension: int) -> BreedingSpace:
    """Return memory for at most ``max_trials`` trials of a run."""
    padded = pad(max_trials)
    return BreedingSpace(
        np.empty(4 * NUM_STREAMS, np.uint64),
        np.empty(num_uniforms(max_trials, dimension)),
        np.empty(NUM_NUMBERS * padded),
        np.empty(NUM_ROWS * padded, np.int64),
        np.empty(2 * dimension),
    )


@inlined
def locate_space(space: BreedingSpace) -> SpacePlaces:
    """Return where the arrays begin; whoever holds them keeps them alive."""
    states, move = pointer_to(space.states), pointer_to(space.move)
    return SpacePlaces(states, pointer_to(space.uniforms), pointer_to(space.numbers), pointer_to(space.rows), move)


@inlined
def pad(count: int) -> int:
    """Return the number of trials rounded up to whole lanes."""
    return -(-count // WIDTH) * WIDTH


@inlined
def num_uniforms(count: int, dimension: int) -> int:
    """Return how many uniforms so many trials need."""
    return whole_turns(NUM_SECTIONS * pad(count) + count * dimension)


@inlined
def uniform_of(places: BreedingPlaces, section: int, i: int) -> float:
    """Return a uniform of trial i."""
    return places.uniforms[section * places.padded + i]


@inlined
def number_of(places: BreedingPlaces, section: int, i: int) -> float:
    """Return a number of trial i."""
    return places.numbers[section * places.padded + i]


@inlined
def happens(probability: float, purpose: int, i: int, places: BreedingPlaces) -> bool:
    """Return whether trial i is one of those that something is done to with a probability."""
    return probability > 0.0 and uniform_at(find_base(places.key, places.stream, purpose), i) < probability
