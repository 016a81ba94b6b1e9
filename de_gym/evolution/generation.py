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

    Coordinates are computed WIDTH at a time, row after row; what is computed behind a row's end is overwritten by the
    next row. Flat arrays therefore have room for WIDTH more numbers.

    Attributes:
        states: States of the random streams.
        uniforms: All random numbers of the generation: p-best, r1, r2, forced coordinate, crossover, resampling.
        picks: p-best, r1, r2 and forced coordinate of every individual, shape (4, N).
        taken: Working memory of ``pick_distinct_into``, shape (2, N).
        parents: Copy of the positions, flat.
        bounds: Lower bounds, then upper bounds from number ``len(bounds) // 2`` on.
        values: Values of those who survive, shape (N,).
    """

    states: KeyArray
    uniforms: FloatArray
    picks: IntArray
    taken: IntArray
    parents: FloatArray
    bounds: FloatArray
    values: FloatArray


@compiled
def make_workspace(size: int, dimension: int, repair: int) -> Workspace:
    """Return memory for runs of ``size`` individuals with ``dimension`` coordinates."""
    return Workspace(
        np.empty((4, NUM_STREAMS), np.uint64),
        np.empty(whole_turns(num_uniforms(size, dimension, repair)) + WIDTH),
        np.empty((4, size), np.int64),
        np.empty((2, size), np.int64),
        np.zeros(size * dimension + WIDTH),
        np.zeros(2 * (dimension + WIDTH)),
        np.empty(size),
    )


@compiled
def num_uniforms(size: int, dimension: int, repair: int) -> int:
    """Return how many uniforms one run's generation consumes."""
    return size * (4 + dimension + (dimension if repair == _RESAMPLE else 0))


@compiled
def make_trials(num_runs: int, size: int, dimension: int) -> FloatArray:
    """Return room for the trials of ``num_runs`` runs, flat."""
    return np.zeros(num_runs * size * dimension + WIDTH)


@compiled
def breed_all(
    positions: FloatArray,
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
    """Write the trials of R runs, whose arguments of ``breed`` stand in the rows of the arrays.

    Each run draws its uniforms from the streams of its key and generation number.
    """
    num_runs, size, dimension = positions.shape
    drawn = workspace.uniforms[: whole_turns(num_uniforms(size, dimension, repair))]
    for run in range(num_runs):
        seed_streams(keys[run], generation[run], workspace.states)
        fill_uniforms(workspace.states, drawn)
        bounds = lower[run], upper[run]
        start = run * size * dimension
        breed(positions[run], actions[run], num_pbest[run], *bounds, repair, workspace, trials, start)


@compiled
def breed(
    parents: FloatArray,
    actions: FloatArray,
    num_pbest: int,
    lower: FloatArray,
    upper: FloatArray,
    repair: int,
    workspace: Workspace,
    trials: FloatArray,
    start: int,
) -> None:
    """Write the trials of one run.

    Mutation, repair and crossover are done in one pass over the coordinates. Parents lie inside the box, so repairing
    a donor before crossover gives what repairing the trial after it would.

    Args:
        parents: Shape (N, D), best individual first.
        actions: F of every rank, then CR of every rank, shape (2N,).
        num_pbest: Number of leading individuals that count as p-best.
        lower: Lower bounds, shape (D,).
        upper: Upper bounds, shape (D,).
        repair: A value of ``BOUND_REPAIRS``.
        workspace: Holds the uniforms; everything else in it is overwritten.
        trials: Where the result goes, flat, as ``make_trials`` returns it.
        start: Index of the first trial's first coordinate in ``trials``.
    """
    size, dimension = parents.shape
    _pick(size, dimension, num_pbest, workspace)
    _copy(parents, workspace.parents)
    half = len(workspace.bounds) // 2
    for j in range(dimension):
        workspace.bounds[j], workspace.bounds[half + j] = lower[j], upper[j]
    rows, bounds, target = pointer_to(workspace.parents), pointer_to(workspace.bounds), pointer_to(trials)
    uniforms, picks = pointer_to(workspace.uniforms), pointer_to(workspace.picks)
    for i in range(size):
        row = i * dimension
        best, plus, minus = picks[i] * dimension, picks[size + i] * dimension, picks[2 * size + i] * dimension
        factor, rate = actions[i], positive_or_never(actions[size + i])
        for j in range(0, dimension, WIDTH):
            parent = load_from(rows, row + j)
            others = load_from(rows, best + j), load_from(rows, plus + j), load_from(rows, minus + j)
            donor = move_to_pbest(parent, *others, factor, factor)
            if repair == _MIDPOINT:
                donor = to_midpoint(donor, parent, load_from(bounds, j), load_from(bounds, half + j))
            is_crossed = load_from(uniforms, 4 * size + row + j) <= rate
            store_from(target, start + row + j, choose(is_crossed, donor, parent))
    if repair != _MIDPOINT:
        _repair_others(
            trials[start : start + size * dimension].reshape(size, dimension), lower, upper, repair, workspace
        )


@inlined
def _pick(size: int, dimension: int, num_pbest: int, workspace: Workspace) -> None:
    """Choose p-best, r1, r2 and the forced coordinate, whose uniform is set to one that always crosses."""
    uniforms, picks = workspace.uniforms, workspace.picks
    pick_distinct_into(uniforms[size : 3 * size].reshape(2, size), size, picks[1:3], workspace.taken)
    pbest, forced = picks[0], picks[3]
    for i in range(size):
        pbest[i] = pick_index(uniforms[i], num_pbest)
    for i in range(size):
        forced[i] = i * dimension + pick_index(uniforms[3 * size + i], dimension)
    crossing = uniforms[4 * size :]
    for i in range(size):
        crossing[forced[i]] = _ALWAYS


@inlined
def _copy(rows: FloatArray, flat: FloatArray) -> None:
    """Copy contiguous ``rows`` (N, D) to the front of ``flat``."""
    numbers = rows.reshape(-1)
    for index in range(numbers.shape[0]):
        flat[index] = numbers[index]


@compiled
def _repair_others(trials: FloatArray, lower: FloatArray, upper: FloatArray, repair: int, workspace: Workspace) -> None:
    """Bring trials (N, D) back into the box by a rule that has no vector form."""
    size, dimension = trials.shape
    fresh = workspace.uniforms[size * (4 + dimension) :]
    for i in range(size):
        for j in range(dimension):
            value, low, high = trials[i, j], lower[j], upper[j]
            if repair == _CLIP:
                trials[i, j] = to_bound(value, low, high)
            elif repair == _REFLECT:
                trials[i, j] = to_mirror(value, low, high)
            else:
                trials[i, j] = to_fresh(value, fresh[i * dimension + j], low, high)


@compiled
def select_better(
    positions: FloatArray,
    fitness: FloatArray,
    trials: FloatArray,
    trial_fitness: FloatArray,
    num_successes: IntArray,
    workspace: Workspace,
) -> None:
    """Turn R populations into the next ones, in place: a trial replaces its parent where it is not worse.

    Args:
        positions: Shape (R, N, D), sorted best first before and after.
        fitness: Their values, shape (R, N).
        trials: Shape (R, N, D).
        trial_fitness: Their values, shape (R, N).
        num_successes: Receives the number of parents replaced in each run, shape (R,).
        workspace: Overwritten.
    """
    num_runs, size, dimension = positions.shape
    values, order = workspace.values, workspace.picks[0]
    parents, candidates, target = pointer_to(workspace.parents), pointer_to(trials), pointer_to(positions)
    for run in range(num_runs):
        replaced = 0
        for i in range(size):
            values[i] = min(fitness[run, i], trial_fitness[run, i])
            replaced += trial_fitness[run, i] <= fitness[run, i]
        num_successes[run] = replaced
        _copy(positions[run], workspace.parents)
        start = run * size * dimension
        for i in range(size):
            workspace.picks[1, i] = trial_fitness[run, i] <= fitness[run, i]
        rank_into(values, order, fitness[run])
        for rank in range(size):
            individual = order[rank]
            if workspace.picks[1, individual]:
                survivors, row = candidates, start + individual * dimension
            else:
                survivors, row = parents, individual * dimension
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
