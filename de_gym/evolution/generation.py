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
from de_gym.evolution.operators import pick_distinct_into, pick_index, rank_into
from de_gym.evolution.streams import NUM_STREAMS, KeyArray, fill_uniforms, seed_streams, whole_turns
from de_gym.problems.lanes import WIDTH, choose, load_from, pointer_to, store_from

if TYPE_CHECKING:
    from de_gym.problems.lanes import Pointer

# Ways to bring a trial back into the box; the numbers are what the compiled code switches on.
BOUND_REPAIRS = {"midpoint": 0, "clip": 1, "reflect": 2, "resample": 3}
_MIDPOINT, _CLIP, _REFLECT, _RESAMPLE = BOUND_REPAIRS.values()

# Below every crossover rate, also below the one that ``positive_or_never`` returns.
_ALWAYS = -2.0


class Workspace(NamedTuple):
    """Memory for one run's generation, used again for every run: fresh arrays would cost as much as their contents.

    Attributes:
        states: States of the random streams.
        uniforms: All random numbers of the generation: p-best, r1, r2, forced coordinate, crossover, resampling.
        picks: Rows of p-best, r1 and r2, then forced coordinates, of every individual, shape (4, N).
        taken: Working memory of ``pick_distinct_into``, shape (2, N).
        bounds: Lower bounds, then upper bounds from number ``len(bounds) // 2`` on.
        values: Values of those who survive, shape (N,).
        ranked: The same, best first, shape (N,).
    """

    states: KeyArray
    uniforms: FloatArray
    picks: IntArray
    taken: IntArray
    bounds: FloatArray
    values: FloatArray
    ranked: FloatArray


@compiled
def make_workspace(size: int, dimension: int, repair: int) -> Workspace:
    """Return memory for runs of ``size`` individuals with ``dimension`` coordinates."""
    num_drawn = whole_turns(num_uniforms(size, dimension, repair)) + WIDTH
    # One block of numbers and one of indices: an allocation costs as much as the work on an individual.
    numbers, indices = np.zeros(num_drawn + 2 * (dimension + WIDTH) + 2 * size), np.empty((6, size), np.int64)
    values_start = num_drawn + 2 * (dimension + WIDTH)
    return Workspace(
        np.empty((4, NUM_STREAMS), np.uint64),
        numbers[:num_drawn],
        indices[:4],
        indices[4:],
        numbers[num_drawn:values_start],
        numbers[values_start : values_start + size],
        numbers[values_start + size :],
    )


@compiled
def num_uniforms(size: int, dimension: int, repair: int) -> int:
    """Return how many uniforms one run's generation consumes."""
    return size * (4 + dimension + (dimension if repair == _RESAMPLE else 0))


@compiled
def make_rows(count: int, dimension: int) -> FloatArray:
    """Return a flat array for ``count`` rows of coordinates.

    Coordinates are computed WIDTH at a time, row after row; what is computed behind a row's end is overwritten by the
    next row. Behind the last row there is room for that.
    """
    rows = np.empty(count * dimension + WIDTH)
    rows[count * dimension :] = 0.0
    return rows


@compiled
def breed_all(
    parents: FloatArray,
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
    size = actions.shape[1] // 2
    drawn = workspace.uniforms[: whole_turns(num_uniforms(size, lower.shape[1], repair))]
    for run in range(actions.shape[0]):
        seed_streams(keys[run], generation[run], workspace.states)
        fill_uniforms(workspace.states, drawn)
        breed(run, parents, actions, num_pbest, lower, upper, repair, workspace, trials)


@compiled
def breed(
    run: int,
    parents: FloatArray,
    actions: FloatArray,
    num_pbest: IntArray,
    lower: FloatArray,
    upper: FloatArray,
    repair: int,
    workspace: Workspace,
    trials: FloatArray,
) -> None:
    """Write the trials of one of R runs.

    Mutation, repair and crossover are done in one pass over the coordinates. Parents lie inside the box, so repairing
    a donor before crossover gives what repairing the trial after it would.

    Args:
        run: Which run.
        parents: Positions of all runs, best individual first, in an array of ``make_rows``.
        actions: F of every rank, then CR of every rank, shape (R, 2N).
        num_pbest: Number of leading individuals that count as p-best, shape (R,).
        lower: Lower bounds, shape (R, D).
        upper: Upper bounds, shape (R, D).
        repair: A value of ``BOUND_REPAIRS``.
        workspace: Holds the uniforms; everything else in it is overwritten.
        trials: Where the result goes, an array of ``make_rows``.
    """
    size, dimension = actions.shape[1] // 2, lower.shape[1]
    _pick(size, dimension, num_pbest[run], workspace)
    half = len(workspace.bounds) // 2
    for j in range(dimension):
        workspace.bounds[j], workspace.bounds[half + j] = lower[run, j], upper[run, j]
    rows, bounds, target = pointer_to(parents), pointer_to(workspace.bounds), pointer_to(trials)
    uniforms, picks = pointer_to(workspace.uniforms), pointer_to(workspace.picks)
    start = run * size * dimension
    for i in range(size):
        row = start + i * dimension
        best, plus = start + picks[i] * dimension, start + picks[size + i] * dimension
        minus = start + picks[2 * size + i] * dimension
        factor, rate = actions[run, i], positive_or_never(actions[run, size + i])
        for j in range(0, dimension, WIDTH):
            parent = load_from(rows, row + j)
            others = load_from(rows, best + j), load_from(rows, plus + j), load_from(rows, minus + j)
            donor = move_to_pbest(parent, *others, factor, factor)
            if repair == _MIDPOINT:
                donor = to_midpoint(donor, parent, load_from(bounds, j), load_from(bounds, half + j))
            is_crossed = load_from(uniforms, 4 * size + i * dimension + j) <= rate
            store_from(target, row + j, choose(is_crossed, donor, parent))
    if repair != _MIDPOINT:
        _repair_others(run, size, lower, upper, repair, workspace, trials)


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
            at = (run * size + i) * dimension + j
            low, high = lower[run, j], upper[run, j]
            if repair == _CLIP:
                trials[at] = to_bound(trials[at], low, high)
            elif repair == _REFLECT:
                trials[at] = to_mirror(trials[at], low, high)
            else:
                fresh = workspace.uniforms[size * (4 + dimension) + i * dimension + j]
                trials[at] = to_fresh(trials[at], fresh, low, high)


@compiled
def select_better(
    parents: FloatArray,
    trials: FloatArray,
    trial_fitness: FloatArray,
    positions: FloatArray,
    fitness: FloatArray,
    num_successes: IntArray,
    workspace: Workspace,
) -> None:
    """Turn R populations into the next ones, in place: a trial replaces its parent where it is not worse.

    Args:
        parents: A flat copy of ``positions``.
        trials: Flat as well, in the same order.
        trial_fitness: Values of the trials, shape (R, N).
        positions: Shape (R, N, D), sorted best first before and after.
        fitness: Their values, shape (R, N).
        num_successes: Receives the number of parents replaced in each run, shape (R,).
        workspace: Overwritten.
    """
    num_runs, size, dimension = positions.shape
    old_rows, new_rows, target = pointer_to(parents), pointer_to(trials), pointer_to(positions)
    values, ranked = pointer_to(workspace.values), pointer_to(workspace.ranked)
    order, replaced = pointer_to(workspace.picks), pointer_to(workspace.taken)
    for run in range(num_runs):
        num_replaced = 0
        for i in range(size):
            is_better = trial_fitness[run, i] <= fitness[run, i]
            values[i] = choose(is_better, trial_fitness[run, i], fitness[run, i])
            replaced[i] = is_better
            num_replaced += is_better
        num_successes[run] = num_replaced
        rank_into(workspace.values, workspace.picks[0], workspace.ranked)
        start = run * size * dimension
        for rank in range(size):
            fitness[run, rank] = ranked[rank]
            # Two addresses, one of them chosen: no branch that random data would make the processor mispredict.
            row = start + order[rank] * dimension
            survivors = new_rows if replaced[order[rank]] else old_rows
            _copy_row(survivors, row, target, start + rank * dimension, dimension)


@inlined
def _copy_row(
    source: Pointer[float], source_start: int, target: Pointer[float], target_start: int, length: int
) -> None:
    """Copy one row; its last numbers by a block that overlaps the one before, so that nothing behind is touched."""
    if length < WIDTH:
        for j in range(length):
            target[target_start + j] = source[source_start + j]
        return
    for j in range(0, length - WIDTH, WIDTH):
        store_from(target, target_start + j, load_from(source, source_start + j))
    last = length - WIDTH
    store_from(target, target_start + last, load_from(source, source_start + last))
