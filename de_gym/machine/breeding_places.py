"""Where one run's trials are made: random numbers, what was chosen for each trial, and how to read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from de_gym.machine.chances import find_base, uniform_at
from de_gym.machine.compiling import inlined
from de_gym.machine.lanes import WIDTH, as_integers, as_words, in_line, moved
from de_gym.machine.principal_axes import turning_size
from de_gym.machine.streams import NUM_STREAMS, whole_turns
from de_gym.machine.top_and_front import LARGEST_WITH_AXES

if TYPE_CHECKING:
    import numpy as np

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
USE_AXES, USE_NOISE, NOISE, USE_MIDPOINT, FRESH, USE_IN_PLACE, USE_RESTART, NEW_POINT = range(5, 13)


class SpacePlaces(NamedTuple):
    """Memory for one run's trials, used again for every run; P is their number rounded up to whole lanes.

    Attributes:
        uniforms: Random numbers, sections of P and then D per trial.
        numbers: Sections of P, named above.
        rows: Where parent, p-best, r1 and r2 of each trial begin within ``positions``, sections of P.
        states: States of the random streams.
        move: A move and its part along some axes, D numbers each.
        turning: What turning the axes needs.
    """

    uniforms: Pointer[float]
    numbers: Pointer[float]
    rows: Pointer[int]
    states: Pointer[np.uint64]
    move: Pointer[float]
    turning: Pointer[float]


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
def space_size(max_trials: int, capacity: int, dimension: int) -> int:
    """Return how many numbers ``locate_space`` needs for runs of so many trials and individuals at most."""
    # One line more, because the first one may begin before the memory does.
    size = num_uniforms(max_trials, dimension) + (NUM_NUMBERS + NUM_ROWS) * pad(max_trials)
    size += 4 * NUM_STREAMS + 2 * dimension + WIDTH
    return size + (turning_size((capacity + 1) // 2, dimension) if dimension <= LARGEST_WITH_AXES else 0)


@inlined
def locate_space(memory: Pointer[float], max_trials: int, dimension: int) -> SpacePlaces:
    """Return where everything begins within ``space_size`` numbers; whoever holds them keeps them alive."""
    padded, uniforms = pad(max_trials), in_line(memory)
    numbers = moved(uniforms, num_uniforms(max_trials, dimension))
    rows = moved(numbers, NUM_NUMBERS * padded)
    states = moved(rows, NUM_ROWS * padded)
    move = moved(states, 4 * NUM_STREAMS)
    return SpacePlaces(uniforms, numbers, as_integers(rows), as_words(states), move, moved(move, 2 * dimension))


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
