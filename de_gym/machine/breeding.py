"""Trials of DE/current-to-pbest/1/bin: a run's chosen rows in, its trials out, several coordinates at a time.

``write_trials`` is the one place where trials of this kind are computed. ``trials_of_ranks`` uses it for a run whose
individuals are chosen by rank; ``trials_of_rows`` for one whose rows somebody else has chosen.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.machine.compiling import compiled, inlined, shared
from de_gym.machine.coordinates import (
    move_to_pbest,
    positive_or_never,
    to_bound,
    to_fresh,
    to_midpoint,
    to_mirror,
)
from de_gym.machine.lanes import (
    ROW_WIDTH,
    choose,
    load_from,
    moved,
    pointer_to,
    prefetch,
    smaller_of,
    stay_apart,
    store_from,
)
from de_gym.machine.picks import pick_distinct_into, pick_index
from de_gym.machine.streams import NUM_STREAMS, KeyArray, whole_turns

if TYPE_CHECKING:
    from de_gym.machine.coordinates import Number
    from de_gym.machine.lanes import Pointer

# Ways to bring a trial back into the box; the numbers are what the compiled code switches on.
BOUND_REPAIRS = MappingProxyType({"midpoint": 0, "clip": 1, "reflect": 2, "resample": 3})
_MIDPOINT, _CLIP, _REFLECT, _RESAMPLE = BOUND_REPAIRS.values()

# Doubles that come with one access to memory, on all processors of today.
_NUMBERS_FETCHED = 8

# Below every crossover rate, also below the one that ``positive_or_never`` returns.
_ALWAYS = -2.0

# Which rows a trial is made of, in the order in which they are chosen.
_PARENT, _BEST, _PLUS, _MINUS = range(4)
NUM_ROWS = 4


class TrialNumbers(NamedTuple):
    """Where the numbers of one run begin. Unlike arrays, addresses need no counting of references for every run.

    Attributes:
        pool: Coordinates of all rows that may be chosen, D each.
        rows: Row of the parent, p-best, r1 and r2 of every trial, shape (4, N).
        weights: Factor of the difference to p-best, shape (N,).
        factors: Factor of the difference of r1 and r2, shape (N,).
        rates: Crossover rates, shape (N,).
        uniforms: Numbers of the crossover, shape (N, D), then, where coordinates are drawn anew, N D more.
        lower: Lower bounds, shape (D,).
        upper: Upper bounds, shape (D,).
        trials: Receives the trials, shape (N, D).
    """

    pool: Pointer[float]
    rows: Pointer[int]
    weights: Pointer[float]
    factors: Pointer[float]
    rates: Pointer[float]
    uniforms: Pointer[float]
    lower: Pointer[float]
    upper: Pointer[float]
    trials: Pointer[float]


@shared
def write_trials(size: int, dimension: int, repair: int, numbers: TrialNumbers) -> None:
    """Write the trials of one run, brought back into the box by the given repair."""
    stay_apart()
    if dimension < ROW_WIDTH:
        _write_narrow(size, dimension, repair, numbers)
    else:
        _write_wide(size, dimension, repair, numbers)
    if repair != _MIDPOINT:
        _repair_others(size, dimension, repair, numbers)


@inlined
def _write_narrow(size: int, dimension: int, repair: int, numbers: TrialNumbers) -> None:
    """Write trials whose rows are too short for lanes."""
    pool = numbers.pool
    for i in range(size):
        parent, best, plus, minus = _row_starts(i, size, dimension, numbers.rows)
        rate = positive_or_never(numbers.rates[i])
        for j in range(dimension):
            numbers.trials[i * dimension + j] = _cross(
                pool[parent + j],
                pool[best + j],
                pool[plus + j],
                pool[minus + j],
                numbers.lower[j],
                numbers.upper[j],
                numbers.uniforms[i * dimension + j],
                numbers.weights[i],
                numbers.factors[i],
                rate,
                repair,
            )


@inlined
def _write_wide(size: int, dimension: int, repair: int, numbers: TrialNumbers) -> None:
    """Write trials ROW_WIDTH coordinates at a time."""
    pool, low, high, last = numbers.pool, numbers.lower, numbers.upper, dimension - ROW_WIDTH
    for i in range(size):
        parent, best, plus, minus = _row_starts(i, size, dimension, numbers.rows)
        weight, factor, rate = numbers.weights[i], numbers.factors[i], positive_or_never(numbers.rates[i])
        j = 0
        while True:
            crossed = _cross(
                load_from(pool, parent + j),
                load_from(pool, best + j),
                load_from(pool, plus + j),
                load_from(pool, minus + j),
                load_from(low, j),
                load_from(high, j),
                load_from(numbers.uniforms, i * dimension + j),
                weight,
                factor,
                rate,
                repair,
            )
            store_from(numbers.trials, i * dimension + j, crossed)
            if j == last:
                break
            # The last block overlaps the one before, so that nothing behind the row is touched.
            j = smaller_of(j + ROW_WIDTH, last)


@inlined
def _row_starts(i: int, size: int, dimension: int, rows: Pointer[int]) -> tuple[int, int, int, int]:
    """Return where the coordinates of the rows of trial i begin."""
    return (
        rows[_PARENT * size + i] * dimension,
        rows[_BEST * size + i] * dimension,
        rows[_PLUS * size + i] * dimension,
        rows[_MINUS * size + i] * dimension,
    )


@inlined
def _cross(
    parent: Number,
    best: Number,
    plus: Number,
    minus: Number,
    low: Number,
    high: Number,
    uniform: Number,
    weight: float,
    factor: float,
    rate: float,
    repair: int,
) -> Number:
    """Return a coordinate of the trial, or ROW_WIDTH of them, brought back into the box by the midpoint rule alone.

    Parents lie inside the box, so repairing the donor before crossover gives what repairing the trial after it would.
    """
    donor = move_to_pbest(parent, best, plus, minus, weight, factor)
    if repair == _MIDPOINT:
        donor = to_midpoint(donor, parent, low, high)
    return choose(uniform <= rate, donor, parent)


@inlined
def _repair_others(size: int, dimension: int, repair: int, numbers: TrialNumbers) -> None:
    """Bring trials back into the box by a rule that has no vector form."""
    trials = numbers.trials
    for i in range(size):
        for j in range(dimension):
            at, low, high = i * dimension + j, numbers.lower[j], numbers.upper[j]
            if repair == _CLIP:
                trials[at] = to_bound(trials[at], low, high)
            elif repair == _REFLECT:
                trials[at] = to_mirror(trials[at], low, high)
            else:
                trials[at] = to_fresh(trials[at], numbers.uniforms[size * dimension + at], low, high)


@inlined
def force_coordinates(size: int, dimension: int, choices: Pointer[float], uniforms: Pointer[float]) -> None:
    """Have one coordinate of every trial cross for certain: the one that ``choices`` (N,) pick."""
    for i in range(size):
        uniforms[i * dimension + pick_index(choices[i], dimension)] = _ALWAYS


@inlined
def trials_of_rows(
    pool: FloatArray,
    rows: IntArray,
    weights: FloatArray,
    factors: FloatArray,
    rates: FloatArray,
    uniforms: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    trials: FloatArray,
) -> None:
    """Write one run's trials (N, D), repaired by the midpoint rule, from rows (4, N) of the ``pool`` (P, D).

    The ``uniforms``, shape (N (1 + D),), choose the forced coordinates, then decide the crossover; they are changed.
    """
    size, dimension = trials.shape
    drawn = pointer_to(uniforms)
    crossing = moved(drawn, size)
    force_coordinates(size, dimension, drawn, crossing)
    numbers = TrialNumbers(
        pointer_to(pool),
        pointer_to(rows),
        pointer_to(weights),
        pointer_to(factors),
        pointer_to(rates),
        crossing,
        pointer_to(lower),
        pointer_to(upper),
        pointer_to(trials),
    )
    write_trials(size, dimension, _MIDPOINT, numbers)


class Workspace(NamedTuple):
    """Memory for one run's generation, used again for every run: fresh arrays would cost as much as their contents.

    Attributes:
        states: States of the random streams.
        uniforms: All random numbers of the generation: p-best, r1, r2, forced coordinate, crossover, resampling.
        picks: Rows of the parent, p-best, r1 and r2 of every rank, shape (4, N).
        taken: Working memory of ``pick_distinct_into``, shape (2, N).
    """

    states: KeyArray
    uniforms: FloatArray
    picks: IntArray
    taken: IntArray


@compiled
def make_workspace(size: int, dimension: int, repair: int) -> Workspace:
    """Return memory for runs of up to ``size`` individuals with ``dimension`` coordinates."""
    uniforms = np.empty(whole_turns(num_uniforms(size, dimension, repair)))
    # One block of indices: an allocation costs as much as the work on an individual.
    indices = np.empty((6, size), np.int64)
    return Workspace(np.empty((4, NUM_STREAMS), np.uint64), uniforms, indices[:4], indices[4:])


@compiled
def num_uniforms(size: int, dimension: int, repair: int) -> int:
    """Return how many uniforms one run's generation consumes."""
    return size * (4 + dimension + (dimension if repair == _RESAMPLE else 0))


@inlined
def fetch(numbers: Pointer[float], length: int) -> None:
    """Have numbers fetched from memory that will be read in an order no processor foresees."""
    for at in range(0, length, _NUMBERS_FETCHED):
        prefetch(numbers, at)


@shared
def choose_rows(
    size: int,
    num_pbest: int,
    archive_start: int,
    archive_size: int,
    order: Pointer[int],
    uniforms: Pointer[float],
    rows: Pointer[int],
    taken: Pointer[int],
) -> None:
    """Choose the rows (4, N) of one run's trials by rank: the parent, p-best, and r1 and r2 that differ from it.

    Args:
        size: Individuals N.
        num_pbest: Number of leading individuals that count as p-best.
        archive_start: The archive's first row.
        archive_size: Rows of the archive that r2 may be.
        order: Row of the individual of each rank.
        uniforms: The numbers that choose p-best, r1 and r2, shape (3, N).
        rows: Receives the rows.
        taken: Working memory of ``pick_distinct_into``.
    """
    stay_apart()
    pick_distinct_into(uniforms, size, 2, size, size + archive_size, rows, _PLUS * size, taken)
    for i in range(size):
        minus = rows[_MINUS * size + i]
        rows[_PARENT * size + i] = order[i]
        rows[_BEST * size + i] = order[pick_index(uniforms[i], num_pbest)]
        rows[_PLUS * size + i] = order[rows[_PLUS * size + i]]
        rows[_MINUS * size + i] = order[minus] if minus < size else archive_start + minus - size


class BreedingSpace(NamedTuple):
    """Where a workspace begins; its attributes are that one's.

    Attributes:
        states: States of the random streams, shape (4, NUM_STREAMS).
        uniforms: All random numbers of the generation.
        picks: Shape (4, N).
        taken: Shape (2, N).
    """

    states: Pointer[np.uint64]
    uniforms: Pointer[float]
    picks: Pointer[int]
    taken: Pointer[int]


@inlined
def locate_workspace(workspace: Workspace) -> BreedingSpace:
    """Return where a workspace begins; whoever holds it keeps it alive."""
    states, uniforms = pointer_to(workspace.states), pointer_to(workspace.uniforms)
    return BreedingSpace(states, uniforms, pointer_to(workspace.picks), pointer_to(workspace.taken))
