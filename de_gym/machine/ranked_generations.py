"""Generations of R runs addressed by rank: a few runs at a time where their problems are compiled, or in halves.

As ``front_generations`` for two populations, with addresses for the same reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from de_gym.arrays import FloatArray, IntArray, RunArray
from de_gym.machine.breeding import (
    BreedingSpace,
    TrialNumbers,
    choose_rows,
    fetch,
    force_coordinates,
    locate_workspace,
    make_workspace,
    num_uniforms,
    write_trials,
)
from de_gym.machine.compiling import compiled, inlined, shared
from de_gym.machine.kernel import evaluate_programs
from de_gym.machine.lanes import hold, moved, pointer_to, smaller_of
from de_gym.machine.selection import RankedPlaces, find_population, select_ranked
from de_gym.machine.streams import fill_uniforms, seed_streams, whole_turns

if TYPE_CHECKING:
    from de_gym.machine.lanes import Pointer

# Runs advanced together: few, so that they stay in the processor's inner caches from breeding to selection, and
# enough that the code of each of these steps is not fetched anew for every run.
_RUNS_AT_ONCE = 16


class Plan(NamedTuple):
    """What R runs breed with.

    Attributes:
        actions: F of every rank, then CR of every rank, shape (R, 2C).
        num_pbest: Number of leading individuals that count as p-best, shape (R,).
        lower: Lower bounds, shape (R, D).
        upper: Upper bounds, shape (R, D).
        repair: A value of ``BOUND_REPAIRS``.
    """

    actions: Pointer[float]
    num_pbest: Pointer[int]
    lower: Pointer[float]
    upper: Pointer[float]
    repair: int


@inlined
def _locate(positions: FloatArray, order: IntArray, fitness: FloatArray) -> RankedPlaces:
    """Return where the arrays of R populations begin."""
    shape = order.shape[1], positions.shape[1], positions.shape[2]
    return RankedPlaces(*shape, pointer_to(positions), pointer_to(order), pointer_to(fitness))


@inlined
def _locate_plan(actions: FloatArray, num_pbest: IntArray, lower: FloatArray, upper: FloatArray, repair: int) -> Plan:
    """Return where the numbers begin that R runs breed with."""
    return Plan(pointer_to(actions), pointer_to(num_pbest), pointer_to(lower), pointer_to(upper), repair)


@shared
def _breed(
    first: int,
    runs: RunArray,
    places: RankedPlaces,
    plan: Plan,
    space: BreedingSpace,
    starts: IntArray,
    trials: Pointer[float],
) -> None:
    """Write the trials of the runs from ``first`` on, and where those of each begin."""
    dimension, uniforms, repair = places.dimension, space.uniforms, plan.repair
    starts[0] = 0
    for index in range(first, first + len(starts) - 1):
        run, home, begin = runs[index], find_population(index, places), starts[index - first]
        size, factors = run.size, moved(plan.actions, 2 * index * places.capacity)
        starts[index - first + 1] = begin + size
        # Of the next run, while this one is bred; to fetch what is not there does no harm.
        fetch(moved(home.positions, places.num_rows * dimension), size * dimension)
        seed_streams(run.key, run.generation, space.states)
        fill_uniforms(space.states, uniforms, whole_turns(num_uniforms(size, dimension, repair)))
        leading, archived = plan.num_pbest[index], run.archive_size
        choose_rows(size, leading, places.capacity, archived, home.order, uniforms, space.picks, space.taken)
        crossing = moved(uniforms, 4 * size)
        force_coordinates(size, dimension, moved(uniforms, 3 * size), crossing)
        numbers = TrialNumbers(
            home.positions,
            space.picks,
            factors,
            factors,
            moved(factors, places.capacity),
            crossing,
            moved(plan.lower, index * dimension),
            moved(plan.upper, index * dimension),
            moved(trials, begin * dimension),
        )
        write_trials(size, dimension, repair, numbers)


@shared
def _select(
    first: int,
    runs: RunArray,
    places: RankedPlaces,
    starts: IntArray,
    trials: Pointer[float],
    values: Pointer[float],
    winners: Pointer[int],
) -> None:
    """Let the trials of the runs from ``first`` on compete, with memory to work in: an integer for each of a run."""
    for index in range(first, first + len(starts) - 1):
        begin, size = starts[index - first], starts[index - first + 1] - starts[index - first]
        own, offered = moved(trials, begin * places.dimension), moved(values, begin)
        select_ranked(runs[index], size, find_population(index, places), own, offered, winners)


@compiled
def breed_by_rank(
    runs: RunArray,
    positions: FloatArray,
    order: IntArray,
    actions: FloatArray,
    num_pbest: IntArray,
    lower: FloatArray,
    upper: FloatArray,
    repair: int,
    starts: IntArray,
    trials: FloatArray,
) -> None:
    """Write the trials of R runs; each draws its uniforms from the streams of its key and generation number.

    Args:
        runs: Scalars of the runs, of which key, generation, size and archive size matter here, shape (R,).
        positions: Rows of the population, then of the archive, shape (R, C + A, D).
        order: Row of the individual of each rank, best first, shape (R, C).
        actions: As in ``Plan``, like the next four.
        num_pbest: See there.
        lower: See there.
        upper: See there.
        repair: See there.
        starts: Receives the row of each run's first trial, and behind them the number of all, shape (R + 1,).
        trials: Receives the trials, by rank, one run after the other, shape (T, D).
    """
    # Breeding looks at no values.
    places, plan = _locate(positions, order, positions), _locate_plan(actions, num_pbest, lower, upper, repair)
    workspace = make_workspace(places.capacity, places.dimension, repair)
    _breed(0, runs, places, plan, locate_workspace(workspace), starts, pointer_to(trials))
    hold(workspace)


@compiled
def select_by_rank(
    runs: RunArray,
    positions: FloatArray,
    order: IntArray,
    fitness: FloatArray,
    starts: IntArray,
    trials: FloatArray,
    trial_fitness: FloatArray,
) -> None:
    """Turn R populations into the next ones, in place; arrays as in ``breed_by_rank`` and ``select_ranked``.

    The ``fitness`` (R, C) are values by rank, ``trial_fitness`` (T,) those of the trials.
    """
    winners = np.empty(order.shape[1], np.int64)
    offered, room = pointer_to(trial_fitness), pointer_to(winners)
    _select(0, runs, _locate(positions, order, fitness), starts, pointer_to(trials), offered, room)
    hold(winners)


@compiled
def advance_by_rank(
    runs: RunArray,
    positions: FloatArray,
    order: IntArray,
    fitness: FloatArray,
    actions: FloatArray,
    num_pbest: IntArray,
    lower: FloatArray,
    upper: FloatArray,
    repair: int,
    entries: IntArray,
    instructions: IntArray,
    data: FloatArray,
) -> None:
    """Breed, evaluate and select R runs; arrays as in ``breed_by_rank`` and ``evaluate_programs``."""
    places, plan = _locate(positions, order, fitness), _locate_plan(actions, num_pbest, lower, upper, repair)
    capacity, dimension, num_at_once = places.capacity, places.dimension, smaller_of(len(runs), _RUNS_AT_ONCE)
    # With three axes, because the kernel is compiled anew for each number of them.
    points, values = np.empty((1, num_at_once * capacity, dimension)), np.empty((1, num_at_once * capacity))
    workspace, winners = make_workspace(capacity, dimension, repair), np.empty(capacity, np.int64)
    all_starts, space, room = np.empty(num_at_once + 1, np.int64), locate_workspace(workspace), pointer_to(winners)
    trials, offered = pointer_to(points), pointer_to(values)
    for first in range(0, len(runs), num_at_once):
        end = smaller_of(first + num_at_once, len(runs))
        starts = all_starts[: end - first + 1]
        _breed(first, runs, places, plan, space, starts, trials)
        evaluate_programs(points, starts, entries[first:end], instructions, data, values)
        _select(first, runs, places, starts, trials, offered, room)
    hold((points, values, winners))
    hold(workspace)
