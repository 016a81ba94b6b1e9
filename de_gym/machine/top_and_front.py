"""The memory of R runs with two populations: *top*, the best points found, and *front*, the newest successes.

A generation makes as many trials as front has individuals, in a few parts: successes enter front after each part, so
that later parts can build on them, and top at the end, until when they wait in a *pool*. Capacities never change; how
many individuals are alive is a field of each run.

Reference: Stanovov and Semenkin, "Success rate-based adaptive differential evolution L-SRTDE for CEC 2024
competition" (2024).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from de_gym.arrays import FloatArray, IntArray
from de_gym.machine.compiling import compiled, inlined
from de_gym.machine.lanes import larger_of, moved, pointer_to, smaller_of, whole_of

if TYPE_CHECKING:
    from de_gym.machine.lanes import Pointer

# Second index within ``fitness``; ``positions`` and ``rows`` have the first two only.
TOP, FRONT, POOL = range(3)

# Second index within ``successes``: by how much each was better, in which share of its coordinates it was crossed, and
# in which ways it was made.
GAIN, RATE, WAYS = range(3)

# Second index within ``memory``: crossover rates of L-SRTDE, and of the trials that change few coordinates.
MAIN, SPARSE = range(2)

# Ways to make a trial that must earn their share: with a crossover rate from the sparse memory, and crossed along the
# axes of top. Of a trial that was made in way k, bit k of ``Trials.ways`` is set.
FROM_SPARSE, ALONG_AXES = range(2)
NUM_WAYS = 2

# A bit of ``Trials.ways`` too, though it says what becomes of a trial that succeeds: it takes its target's place.
IN_PLACE = 2

MEMORY_SIZE = 5
MAIN_RATE, SPARSE_RATE = 1.0, 0.2

# How much of its probability every way to make a trial has before the first generation.
FIRST_SHARE = 0.5

# What every population shrinks to: target, p-best, r1 and r2 may all be different individuals.
SMALLEST_SIZE = 4

# NOTE: the official program lets every success enter front at once. Parts of this size end alike, and can be evaluated
# in parallel; whole generations converge visibly later.
PARTS_PER_GENERATION = 4
SMALLEST_PART = 8

# Axes of more coordinates would take more memory and more time than all the rest; runs with more have none.
LARGEST_WITH_AXES = 300

RUN = np.dtype(
    [
        ("key", "u8"),  # what the run's random numbers follow from
        ("generation", "i8"),  # since the initial population
        ("evaluations", "i8"),
        ("max_evaluations", "i8"),
        ("target_fitness", "f8"),  # ends the run when its best value lies below; -inf never does
        ("initial_size", "i8"),
        ("size", "i8"),  # of top and of front
        ("part", "i8"),  # parts of the current generation that were made, as the next three
        ("num_made", "i8"),  # trials
        ("num_compared", "i8", NUM_WAYS),  # trials that might have been made in each way
        ("num_tried", "i8", NUM_WAYS),  # those that were
        ("pool_size", "i8"),  # successes
        ("cursor", "i8"),  # slot of front that the next success takes
        ("memory_slots", "i8", 2),  # slot of each memory of crossover rates that is updated next
        ("num_successes", "i8"),  # in the last generation, as the success rate
        ("success_rate", "f8"),
        ("recent_success_rate", "f8"),  # moving averages, of about the last 10 and the last 50 generations
        ("lasting_success_rate", "f8"),
        ("best_fitness", "f8"),
        ("leading_fitness", "f8"),  # of the populations there are: they may have begun anew
        ("begins_anew", "i8"),  # whether the last trials are new points instead
        ("stagnation", "i8"),  # generations without a new leading value
        ("initial_diversity", "f8"),  # of front
        ("initial_spread", "f8"),  # of top, median minus best
        ("shares", "f8", NUM_WAYS),  # how much of its probability each way has earned
        ("basis_evaluations", "i8"),  # evaluations when the basis was last turned; -1 before
    ],
    align=True,
)

RunArray: TypeAlias = NDArray[np.void]
# One record of such an array; numba knows its fields, a type checker cannot.
Run: TypeAlias = Any


class TwoPopulations(NamedTuple):
    """Everything that R runs remember from one generation to the next; the runs are the first axis of every array.

    Individuals stay in their rows. Rank k of top is row ``rows[r, TOP, k]``; slot s of front is ``rows[r, FRONT, s]``;
    the pool are the slots of front that were taken in this generation, in turn, none of them twice.

    Attributes:
        runs: The numbers of each run, dtype ``RUN``, shape (R,).
        positions: Rows of top and of front, shape (R, 2, C, D).
        rows: Row of each rank of top and of each slot of front, shape (R, 2, C).
        fitness: Value of each rank of top, ascending, each slot of front and each success of the pool, shape (R, 3, C).
        ranking: Slot of front of each rank, best first, when the generation began, shape (R, C).
        successes: What is known of each success of the pool, shape (R, 3, C).
        memory: Crossover rates to draw around, main and sparse, shape (R, 2, MEMORY_SIZE).
        basis: Orthonormal axes of top in units of the box, one per row, shape (R, D, D); empty where there are none.
        former_best: Best point of the populations before the present ones, where there were any, shape (R, D).
    """

    runs: RunArray
    positions: FloatArray
    rows: IntArray
    fitness: FloatArray
    ranking: IntArray
    successes: FloatArray
    memory: FloatArray
    basis: FloatArray
    former_best: FloatArray


class Trials(NamedTuple):
    """The points that R runs want evaluated, those of all runs one after another, and what selection has to know.

    Attributes:
        points: Shape (T, D).
        starts: Run r owns the points ``starts[r]`` to ``starts[r + 1]``, shape (R + 1,).
        targets: Slot of front that each trial competes with, shape (T,).
        rates: Share of the coordinates in which each trial was crossed, shape (T,).
        ways: In which ways each trial was made, as bits, shape (T,).
    """

    points: FloatArray
    starts: IntArray
    targets: IntArray
    rates: FloatArray
    ways: IntArray


class StatePlaces(NamedTuple):
    """Where the arrays of a state begin: addresses, unlike arrays, need no counting of references.

    Attributes:
        capacity: Individuals that each population has room for, C.
        dimension: Number of coordinates, D.
        positions: As in ``TwoPopulations``, like all that follow.
        rows: See there.
        fitness: See there.
        ranking: See there.
        successes: See there.
        memory: See there.
        basis: See there.
        former_best: See there.
    """

    capacity: int
    dimension: int
    positions: Pointer[float]
    rows: Pointer[int]
    fitness: Pointer[float]
    ranking: Pointer[int]
    successes: Pointer[float]
    memory: Pointer[float]
    basis: Pointer[float]
    former_best: Pointer[float]


class TrialPlaces(NamedTuple):
    """Where the numbers of trials begin.

    Attributes:
        points: As in ``Trials``, like all that follow.
        targets: See there.
        rates: See there.
        ways: See there.
    """

    points: Pointer[float]
    targets: Pointer[int]
    rates: Pointer[float]
    ways: Pointer[int]


class RunPlaces(NamedTuple):
    """Where the numbers of one run begin.

    Attributes:
        capacity: Individuals that each population has room for, C.
        dimension: Number of coordinates, D.
        top: Positions of top by row, shape (C, D).
        front: Positions of front by row, shape (C, D).
        top_rows: Row of each rank of top.
        front_rows: Row of each slot of front.
        top_fitness: Value of each rank of top.
        front_fitness: Value of each slot of front.
        pool_fitness: Value of each success of the pool.
        ranking: Slot of front of each rank.
        gains: By how much each success of the pool was better.
        rates: In which share of its coordinates it was crossed.
        ways: In which ways it was made.
        memory: Crossover rates, shape (2, MEMORY_SIZE).
        axes: Shape (D, D).
        former_best: Shape (D,).
    """

    capacity: int
    dimension: int
    top: Pointer[float]
    front: Pointer[float]
    top_rows: Pointer[int]
    front_rows: Pointer[int]
    top_fitness: Pointer[float]
    front_fitness: Pointer[float]
    pool_fitness: Pointer[float]
    ranking: Pointer[int]
    gains: Pointer[float]
    rates: Pointer[float]
    ways: Pointer[float]
    memory: Pointer[float]
    axes: Pointer[float]
    former_best: Pointer[float]


@inlined
def locate_state(state: TwoPopulations) -> StatePlaces:
    """Return where the arrays of a state begin; whoever holds it keeps them alive."""
    return StatePlaces(
        state.positions.shape[2],
        state.positions.shape[3],
        pointer_to(state.positions),
        pointer_to(state.rows),
        pointer_to(state.fitness),
        pointer_to(state.ranking),
        pointer_to(state.successes),
        pointer_to(state.memory),
        pointer_to(state.basis),
        pointer_to(state.former_best),
    )


@inlined
def locate_run(index: int, places: StatePlaces) -> RunPlaces:
    """Return where the numbers of run ``index`` begin."""
    capacity, dimension = places.capacity, places.dimension
    area = capacity * dimension
    return RunPlaces(
        capacity,
        dimension,
        moved(places.positions, (2 * index + TOP) * area),
        moved(places.positions, (2 * index + FRONT) * area),
        moved(places.rows, (2 * index + TOP) * capacity),
        moved(places.rows, (2 * index + FRONT) * capacity),
        moved(places.fitness, (3 * index + TOP) * capacity),
        moved(places.fitness, (3 * index + FRONT) * capacity),
        moved(places.fitness, (3 * index + POOL) * capacity),
        moved(places.ranking, index * capacity),
        moved(places.successes, (3 * index + GAIN) * capacity),
        moved(places.successes, (3 * index + RATE) * capacity),
        moved(places.successes, (3 * index + WAYS) * capacity),
        moved(places.memory, 2 * index * MEMORY_SIZE),
        moved(places.basis, index * dimension * dimension),
        moved(places.former_best, index * dimension),
    )


@inlined
def locate_trials(trials: Trials) -> TrialPlaces:
    """Return where the numbers of all trials begin."""
    targets, ways = pointer_to(trials.targets), pointer_to(trials.ways)
    return TrialPlaces(pointer_to(trials.points), targets, pointer_to(trials.rates), ways)


@inlined
def trials_from(first: int, dimension: int, trials: TrialPlaces) -> TrialPlaces:
    """Return where the numbers of the trials from ``first`` on begin."""
    points, rates = moved(trials.points, first * dimension), moved(trials.rates, first)
    return TrialPlaces(points, moved(trials.targets, first), rates, moved(trials.ways, first))


def make_trials(starts: IntArray, dimension: int) -> Trials:
    """Return memory for the trials of R runs."""
    count = int(starts[-1])
    points, integers = np.empty((count, dimension)), np.empty((2, count), np.int64)
    return Trials(points, starts, integers[0], np.empty(count), integers[1])


@inlined
def num_trials(run: Run) -> int:
    """Return how many trials the next part of the run's generation has: 0 once it has reached its target or budget."""
    if run.best_fitness < run.target_fitness:
        return 0
    part: int = larger_of(SMALLEST_PART, -(-run.size // PARTS_PER_GENERATION))
    part = smaller_of(part, smaller_of(run.size - run.num_made, run.max_evaluations - run.evaluations))
    return part


def find_starts(runs: RunArray, begins: bool) -> IntArray:
    """Return ``starts`` of the trials that each run makes next, shape (R + 1,).

    Args:
        runs: Dtype ``RUN``, shape (R,).
        begins: Whether runs begin a generation; otherwise only those make trials that are in the middle of one.
    """
    starts = np.empty(len(runs) + 1, np.int64)
    _write_all_starts(runs, begins, starts)
    return starts


@compiled
def _write_all_starts(runs: RunArray, begins: bool, starts: IntArray) -> None:
    write_starts(runs, 0, len(runs), begins, starts)


@inlined
def write_starts(runs: RunArray, first: int, end: int, begins: bool, starts: IntArray) -> None:
    """Write what ``find_starts`` returns for the runs from ``first`` up to ``end``."""
    starts[0] = 0
    for index in range(first, end):
        makes_some = begins or runs[index].part > 0
        starts[index - first + 1] = starts[index - first] + (num_trials(runs[index]) if makes_some else 0)


@inlined
def plan_size(run: Run, factor: float) -> int:
    """Return the size of both populations after the generation: linear in evaluations, stretched, never growing."""
    linear = whole_of((SMALLEST_SIZE - run.initial_size) / run.max_evaluations * run.evaluations + run.initial_size)
    stretched = whole_of(SMALLEST_SIZE + (linear - SMALLEST_SIZE) * factor)
    planned: int = smaller_of(run.size, larger_of(SMALLEST_SIZE, stretched))
    return planned
