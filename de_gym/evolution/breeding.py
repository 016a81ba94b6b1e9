"""The trials of one generation of DE/current-to-pbest/1/bin, for R runs at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.evolution.coordinates import (
    move_to_pbest,
    positive_or_never,
    to_bound,
    to_fresh,
    to_midpoint,
    to_mirror,
)
from de_gym.evolution.operators import pick_distinct_into, pick_index
from de_gym.machine.compiling import compiled, inlined
from de_gym.machine.lanes import ROW_WIDTH, choose, load_from, pointer_to, prefetch, store_from
from de_gym.machine.streams import NUM_STREAMS, KeyArray, fill_uniforms, seed_streams, whole_turns

if TYPE_CHECKING:
    from de_gym.evolution.coordinates import Number
    from de_gym.machine.lanes import Pointer

# Ways to bring a trial back into the box; the numbers are what the compiled code switches on.
BOUND_REPAIRS = {"midpoint": 0, "clip": 1, "reflect": 2, "resample": 3}
_MIDPOINT, _CLIP, _REFLECT, _RESAMPLE = BOUND_REPAIRS.values()

# Doubles that come with one access to memory, on all processors of today.
_NUMBERS_FETCHED = 8

# Below every crossover rate, also below the one that ``positive_or_never`` returns.
_ALWAYS = -2.0


class Workspace(NamedTuple):
    """Memory for one run's generation, used again for every run: fresh arrays would cost as much as their contents.

    Attributes:
        states: States of the random streams.
        uniforms: All random numbers of the generation: p-best, r1, r2, forced coordinate, crossover, resampling.
        picks: Ranks of p-best, r1 and r2, then forced coordinates, of every individual, shape (4, N).
        taken: Working memory of ``pick_distinct_into``, shape (2, N).
    """

    states: KeyArray
    uniforms: FloatArray
    picks: IntArray
    taken: IntArray


@compiled
def make_workspace(size: int, dimension: int, repair: int) -> Workspace:
    """Return memory for runs of ``size`` individuals with ``dimension`` coordinates."""
    uniforms = np.empty(whole_turns(num_uniforms(size, dimension, repair)))
    # One block of indices: an allocation costs as much as the work on an individual.
    indices = np.empty((6, size), np.int64)
    return Workspace(np.empty((4, NUM_STREAMS), np.uint64), uniforms, indices[:4], indices[4:])


@compiled
def num_uniforms(size: int, dimension: int, repair: int) -> int:
    """Return how many uniforms one run's generation consumes."""
    return size * (4 + dimension + (dimension if repair == _RESAMPLE else 0))


class Places(NamedTuple):
    """Where the arrays of R runs begin. Unlike arrays, addresses need no counting of references for every run.

    Attributes:
        positions: Shape (R, N, D).
        order: Row of the individual of each rank, best first, shape (R, N).
        actions: F of every rank, then CR of every rank, shape (R, 2N).
        lower: Lower bounds, shape (R, D).
        upper: Upper bounds, shape (R, D).
        trials: Receives the trial of each rank, shape (R, N, D).
        states: As in ``Workspace``.
        uniforms: As in ``Workspace``.
        picks: As in ``Workspace``.
        taken: As in ``Workspace``.
    """

    positions: Pointer[float]
    order: Pointer[int]
    actions: Pointer[float]
    lower: Pointer[float]
    upper: Pointer[float]
    trials: Pointer[float]
    states: Pointer[np.uint64]
    uniforms: Pointer[float]
    picks: Pointer[int]
    taken: Pointer[int]


@inlined
def find_places(
    positions: FloatArray,
    order: IntArray,
    actions: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    trials: FloatArray,
    workspace: Workspace,
) -> Places:
    """Return where these arrays begin; whoever holds them keeps them alive."""
    return Places(
        pointer_to(positions),
        pointer_to(order),
        pointer_to(actions),
        pointer_to(lower),
        pointer_to(upper),
        pointer_to(trials),
        pointer_to(workspace.states),
        pointer_to(workspace.uniforms),
        pointer_to(workspace.picks),
        pointer_to(workspace.taken),
    )


@compiled
def breed_all(
    positions: FloatArray,
    order: IntArray,
    actions: FloatArray,
    num_pbest: IntArray,
    keys: KeyArray,
    generation: IntArray,
    lower: FloatArray,
    upper: FloatArray,
    repair: int,
    workspace: Workspace,
    trials: FloatArray,
) -> None:
    """Write the trials of R runs.

    Each run draws its uniforms from the streams of its key and generation number.

    Args:
        positions: As in ``Places``, like the others that are not named here.
        order: See there.
        actions: See there.
        num_pbest: Number of leading individuals that count as p-best, shape (R,).
        keys: Shape (R,).
        generation: Shape (R,).
        lower: See there.
        upper: See there.
        repair: A value of ``BOUND_REPAIRS``.
        workspace: Overwritten.
        trials: See there.
    """
    num_runs, size, dimension = positions.shape
    places = find_places(positions, order, actions, lower, upper, trials, workspace)
    num_drawn = len(workspace.uniforms)
    for run in range(num_runs):
        _fetch(places.positions, run * size * dimension, size * dimension)
        seed_streams(keys[run], generation[run], places.states)
        fill_uniforms(places.states, places.uniforms, num_drawn)
        breed(run, size, dimension, num_pbest[run], repair, places)


@inlined
def _fetch(numbers: Pointer[float], start: int, length: int) -> None:
    """Have numbers fetched from memory that will be read in an order no processor foresees."""
    for at in range(start, start + length, _NUMBERS_FETCHED):
        prefetch(numbers, at)


@inlined
def breed(run: int, size: int, dimension: int, num_pbest: int, repair: int, places: Places) -> None:
    """Write the trials of one run, whose uniforms have been drawn; arguments as in ``breed_all``."""
    _pick(size, dimension, num_pbest, places)
    if dimension < ROW_WIDTH:
        _breed_narrow(run, size, dimension, repair, places)
    else:
        _breed_wide(run, size, dimension, repair, places)
    if repair != _MIDPOINT:
        _repair_others(run, size, dimension, repair, places)


@inlined
def _pick(size: int, dimension: int, num_pbest: int, places: Places) -> None:
    """Choose p-best, r1, r2 and the forced coordinate, whose uniform is set to one that always crosses."""
    uniforms, picks = places.uniforms, places.picks
    pick_distinct_into(uniforms, size, 2, size, size, picks, size, places.taken)
    for i in range(size):
        picks[i] = pick_index(uniforms[i], num_pbest)
    for i in range(size):
        picks[3 * size + i] = pick_index(uniforms[3 * size + i], dimension)
    for i in range(size):
        uniforms[4 * size + i * dimension + picks[3 * size + i]] = _ALWAYS


@inlined
def _find_rows(run: int, i: int, size: int, dimension: int, places: Places) -> tuple[int, int, int, int]:
    """Return where the coordinates of the parent of rank i, of its p-best, r1 and r2 begin."""
    order, picks, first = places.order, places.picks, run * size
    parent, best = order[first + i], order[first + picks[i]]
    plus, minus = order[first + picks[size + i]], order[first + picks[2 * size + i]]
    start = first * dimension
    return start + parent * dimension, start + best * dimension, start + plus * dimension, start + minus * dimension


@inlined
def _breed_narrow(run: int, size: int, dimension: int, repair: int, places: Places) -> None:
    """Write the trials of one run whose rows are too short for lanes."""
    numbers, box = places.positions, run * dimension
    for i in range(size):
        parent, best, plus, minus = _find_rows(run, i, size, dimension, places)
        factor = places.actions[2 * run * size + i]
        rate = positive_or_never(places.actions[(2 * run + 1) * size + i])
        for j in range(dimension):
            places.trials[(run * size + i) * dimension + j] = _cross(
                numbers[parent + j],
                numbers[best + j],
                numbers[plus + j],
                numbers[minus + j],
                places.lower[box + j],
                places.upper[box + j],
                places.uniforms[4 * size + i * dimension + j],
                factor,
                rate,
                repair,
            )


@inlined
def _breed_wide(run: int, size: int, dimension: int, repair: int, places: Places) -> None:
    """Write the trials of one run ROW_WIDTH coordinates at a time."""
    numbers, box = places.positions, run * dimension
    for i in range(size):
        parent, best, plus, minus = _find_rows(run, i, size, dimension, places)
        factor = places.actions[2 * run * size + i]
        rate = positive_or_never(places.actions[(2 * run + 1) * size + i])
        for block in range(0, dimension, ROW_WIDTH):
            # The last block overlaps the one before, so that nothing behind the row is touched.
            j = min(block, dimension - ROW_WIDTH)
            crossed = _cross(
                load_from(numbers, parent + j),
                load_from(numbers, best + j),
                load_from(numbers, plus + j),
                load_from(numbers, minus + j),
                load_from(places.lower, box + j),
                load_from(places.upper, box + j),
                load_from(places.uniforms, 4 * size + i * dimension + j),
                factor,
                rate,
                repair,
            )
            store_from(places.trials, (run * size + i) * dimension + j, crossed)


@inlined
def _cross(
    parent: Number,
    best: Number,
    plus: Number,
    minus: Number,
    low: Number,
    high: Number,
    uniform: Number,
    factor: float,
    rate: float,
    repair: int,
) -> Number:
    """Return a coordinate of the trial, or ROW_WIDTH of them, brought back into the box by the midpoint rule alone.

    Parents lie inside the box, so repairing the donor before crossover gives what repairing the trial after it would.
    """
    donor = move_to_pbest(parent, best, plus, minus, factor, factor)
    if repair == _MIDPOINT:
        donor = to_midpoint(donor, parent, low, high)
    return choose(uniform <= rate, donor, parent)


@inlined
def _repair_others(run: int, size: int, dimension: int, repair: int, places: Places) -> None:
    """Bring the trials of one run back into the box by a rule that has no vector form."""
    trials = places.trials
    for i in range(size):
        for j in range(dimension):
            at = (run * size + i) * dimension + j
            low, high = places.lower[run * dimension + j], places.upper[run * dimension + j]
            if repair == _CLIP:
                trials[at] = to_bound(trials[at], low, high)
            elif repair == _REFLECT:
                trials[at] = to_mirror(trials[at], low, high)
            else:
                fresh = places.uniforms[size * (4 + dimension) + i * dimension + j]
                trials[at] = to_fresh(trials[at], fresh, low, high)
