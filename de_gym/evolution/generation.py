"""One generation of DE/current-to-pbest/1/bin for R runs at once: breed trials, then select among them and parents."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.compiling import compiled, inlined
from de_gym.evolution.coordinates import (
    move_to_pbest,
    positive_or_never,
    to_bound,
    to_fresh,
    to_midpoint,
    to_mirror,
)
from de_gym.evolution.operators import (
    cross_binomial,
    mutate_current_to_pbest,
    pick_distinct_into,
    pick_index,
    repair_midpoint,
)
from de_gym.evolution.streams import NUM_STREAMS, KeyArray, fill_uniforms, seed_streams, whole_turns
from de_gym.problems.lanes import ROW_WIDTH, choose, load_from, pointer_to, prefetch, store_from

if TYPE_CHECKING:
    from de_gym.evolution.coordinates import Number
    from de_gym.problems.lanes import Pointer

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


@inlined
def _fetch(run: int, positions: FloatArray) -> None:
    """Have the positions of one run fetched from memory: breeding reads them in an order no processor foresees."""
    numbers, length = pointer_to(positions), positions.shape[1] * positions.shape[2]
    for at in range(run * length, (run + 1) * length, _NUMBERS_FETCHED):
        prefetch(numbers, at)


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
    """Write the trials of R runs; arguments as in ``breed``.

    Each run draws its uniforms from the streams of its key and generation number, both of shape (R,).
    """
    for run in range(actions.shape[0]):
        _fetch(run, positions)
        seed_streams(keys[run], generation[run], workspace.states)
        fill_uniforms(workspace.states, workspace.uniforms)
        breed(run, positions, order, actions, num_pbest, lower, upper, repair, workspace, trials)


@compiled
def breed(
    run: int,
    positions: FloatArray,
    order: IntArray,
    actions: FloatArray,
    num_pbest: IntArray,
    lower: FloatArray,
    upper: FloatArray,
    repair: int,
    workspace: Workspace,
    trials: FloatArray,
) -> None:
    """Write the trials of one of R runs.

    Args:
        run: Which run.
        positions: Shape (R, N, D).
        order: Row of the individual of each rank, best first, shape (R, N).
        actions: F of every rank, then CR of every rank, shape (R, 2N).
        num_pbest: Number of leading individuals that count as p-best, shape (R,).
        lower: Lower bounds, shape (R, D).
        upper: Upper bounds, shape (R, D).
        repair: A value of ``BOUND_REPAIRS``.
        workspace: Holds the uniforms; everything else in it is overwritten.
        trials: Receives the trial of each rank, shape (R, N, D).
    """
    size, dimension = order.shape[1], lower.shape[1]
    _pick(size, dimension, num_pbest[run], workspace)
    if dimension < ROW_WIDTH:
        _breed_narrow(run, positions, order, actions, lower, upper, repair, workspace, trials)
    else:
        _breed_wide(run, positions, order, actions, lower, upper, repair, workspace, trials)
    if repair != _MIDPOINT:
        _repair_others(run, size, lower, upper, repair, workspace, trials)


@compiled
def _breed_narrow(
    run: int,
    positions: FloatArray,
    order: IntArray,
    actions: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    repair: int,
    workspace: Workspace,
    trials: FloatArray,
) -> None:
    """Write the trials of one run whose rows are too short for lanes: by one operator after the other."""
    size, dimension = order.shape[1], lower.shape[1]
    parents, factors, rates = positions[run][order[run]], actions[run, :size], actions[run, size:]
    picks = workspace.picks
    pbest, r1, r2, forced = picks[0], picks[1], picks[2], picks[3]
    crossing = workspace.uniforms[4 * size : (4 + dimension) * size].reshape(size, dimension)
    donors = mutate_current_to_pbest(parents, parents, factors, factors, pbest, r1, r2)
    crossed = cross_binomial(parents, donors, rates, crossing, forced)
    trials[run] = repair_midpoint(crossed, parents, lower[run], upper[run]) if repair == _MIDPOINT else crossed


@compiled
def _breed_wide(
    run: int,
    positions: FloatArray,
    order: IntArray,
    actions: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    repair: int,
    workspace: Workspace,
    trials: FloatArray,
) -> None:
    """Write the trials of one run ROW_WIDTH coordinates at a time, each by all operators in one pass.

    Parents lie inside the box, so repairing a donor before crossover gives what repairing the trial after it would.
    """
    size, dimension = order.shape[1], lower.shape[1]
    numbers, rows, target = pointer_to(positions), pointer_to(order), pointer_to(trials)
    uniforms, picks = pointer_to(workspace.uniforms), pointer_to(workspace.picks)
    lows, highs, low = pointer_to(lower), pointer_to(upper), run * dimension
    first, start = run * size, run * size * dimension
    for i in range(size):
        parent, best = start + rows[first + i] * dimension, start + rows[first + picks[i]] * dimension
        plus = start + rows[first + picks[size + i]] * dimension
        minus = start + rows[first + picks[2 * size + i]] * dimension
        factor, rate = actions[run, i], positive_or_never(actions[run, size + i])
        drawn, trial = 4 * size + i * dimension, start + i * dimension
        for block in range(0, dimension, ROW_WIDTH):
            # The last block overlaps the one before, so that nothing behind the row is touched.
            j = min(block, dimension - ROW_WIDTH)
            crossed = _cross(
                load_from(numbers, parent + j),
                load_from(numbers, best + j),
                load_from(numbers, plus + j),
                load_from(numbers, minus + j),
                load_from(lows, low + j),
                load_from(highs, low + j),
                load_from(uniforms, drawn + j),
                factor,
                rate,
                repair,
            )
            store_from(target, trial + j, crossed)


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
    """Return a coordinate of the trial, or ROW_WIDTH of them, brought back into the box by the midpoint rule alone."""
    donor = move_to_pbest(parent, best, plus, minus, factor, factor)
    if repair == _MIDPOINT:
        donor = to_midpoint(donor, parent, low, high)
    return choose(uniform <= rate, donor, parent)


@compiled
def _pick(size: int, dimension: int, num_pbest: int, workspace: Workspace) -> None:
    """Choose p-best, r1, r2 and the forced coordinate, whose uniform is set to one that always crosses."""
    pick_distinct_into(workspace.uniforms[size:], 2, size, size, workspace.picks[1:], workspace.taken)
    uniforms, picks = pointer_to(workspace.uniforms), pointer_to(workspace.picks)
    for i in range(size):
        picks[i] = pick_index(uniforms[i], num_pbest)
    for i in range(size):
        picks[3 * size + i] = pick_index(uniforms[3 * size + i], dimension)
    for i in range(size):
        uniforms[4 * size + i * dimension + picks[3 * size + i]] = _ALWAYS


@compiled
def _repair_others(
    run: int,
    size: int,
    lower: FloatArray,
    upper: FloatArray,
    repair: int,
    workspace: Workspace,
    trials: FloatArray,
) -> None:
    """Bring the trials of one run back into the box by a rule that has no vector form."""
    dimension = lower.shape[1]
    for i in range(size):
        for j in range(dimension):
            value, low, high = trials[run, i, j], lower[run, j], upper[run, j]
            if repair == _CLIP:
                trials[run, i, j] = to_bound(value, low, high)
            elif repair == _REFLECT:
                trials[run, i, j] = to_mirror(value, low, high)
            else:
                fresh = workspace.uniforms[size * (4 + dimension) + i * dimension + j]
                trials[run, i, j] = to_fresh(value, fresh, low, high)


@compiled
def select_better(
    positions: FloatArray,
    order: IntArray,
    fitness: FloatArray,
    trials: FloatArray,
    trial_fitness: FloatArray,
    num_successes: IntArray,
) -> None:
    """Turn R populations into the next ones, in place: a trial replaces its parent where it is not worse.

    Parents stay in their rows; only the order changes. That spares most of the copying.

    Args:
        positions: Shape (R, N, D).
        order: Row of the individual of each rank, best first before and after, shape (R, N).
        fitness: Values by rank, shape (R, N).
        trials: The trial of each rank, shape (R, N, D).
        trial_fitness: Their values, shape (R, N).
        num_successes: Receives the number of parents replaced in each run, shape (R,).
    """
    num_runs, size, dimension = positions.shape
    source, target = pointer_to(trials), pointer_to(positions)
    values, offered, rows = pointer_to(fitness), pointer_to(trial_fitness), pointer_to(order)
    for run in range(num_runs):
        num_replaced, first = 0, run * size
        for at in range(first, first + size):
            value, row = offered[at], rows[at]
            if value <= values[at]:
                num_replaced += 1
                _copy_row(source, at * dimension, target, (first + row) * dimension, dimension)
                # Insertion keeps equals in their order. Parents that survive need none: those before got no worse.
                slot = at
                while slot > first and values[slot - 1] > value:
                    values[slot], rows[slot] = values[slot - 1], rows[slot - 1]
                    slot -= 1
                values[slot], rows[slot] = value, row
        num_successes[run] = num_replaced


@inlined
def _copy_row(
    source: Pointer[float], source_start: int, target: Pointer[float], target_start: int, length: int
) -> None:
    """Copy one row, its last numbers by a block that overlaps the one before."""
    if length < ROW_WIDTH:
        for j in range(length):
            target[target_start + j] = source[source_start + j]
    for block in range(0, length if length >= ROW_WIDTH else 0, ROW_WIDTH):
        j = min(block, length - ROW_WIDTH)
        store_from(target, target_start + j, load_from(source, source_start + j))
