"""Generations of R runs with two populations: a few runs at a time where their problems are compiled, or in halves.

What is needed in every turn is addressed, not passed on as arrays: counting references to arrays, for every run and
every part of its generation, would cost as much as breeding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from de_gym.arrays import Float32Array, FloatArray, IntArray
from de_gym.machine.breeding import fetch
from de_gym.machine.breeding_places import SpacePlaces, locate_space, space_size
from de_gym.machine.compiling import compiled, inlined, shared
from de_gym.machine.front_breeding import breed_run, turn_axes_in_time
from de_gym.machine.front_selection import select_run
from de_gym.machine.kernel import evaluate_programs
from de_gym.machine.lanes import as_integers, hold, larger_of, moved, pointer_to
from de_gym.machine.run_features import FEATURES, observe_run
from de_gym.machine.top_and_front import (
    PARTS_PER_GENERATION,
    Run,
    RunArray,
    StatePlaces,
    TrialPlaces,
    Trials,
    TwoPopulations,
    locate_run,
    locate_state,
    locate_trials,
    num_trials,
    trials_from,
    write_starts,
)

if TYPE_CHECKING:
    from de_gym.machine.lanes import Pointer

# Runs are advanced together while a part of their generations has no more trials than this: they stay in the
# processor's caches from breeding to selection, and those of one problem share the lanes of the evaluation.
_TRIALS_AT_ONCE = 256

_NUM_FEATURES = len(FEATURES)


class Problems(NamedTuple):
    """Boxes and programs of R problems.

    Attributes:
        lower: Lower bounds, shape (R, D).
        upper: Upper bounds, shape (R, D).
        entries: As ``evaluate_programs`` takes them, like the next two.
        instructions: See there.
        data: See there.
    """

    lower: FloatArray
    upper: FloatArray
    entries: IntArray
    instructions: IntArray
    data: FloatArray


class Box(NamedTuple):
    """Where the bounds of R runs begin.

    Attributes:
        low: Lower bounds, shape (R, D).
        high: Upper bounds, shape (R, D).
    """

    low: Pointer[float]
    high: Pointer[float]


@inlined
def _locate_box(lower: FloatArray, upper: FloatArray) -> Box:
    return Box(pointer_to(lower), pointer_to(upper))


@shared
def _find_largest(starts: IntArray) -> int:
    """Return the number of trials of the run that has most."""
    largest = 0
    for index in range(len(starts) - 1):
        largest = larger_of(largest, starts[index + 1] - starts[index])
    return largest


@compiled
def breed_runs(
    state: TwoPopulations, parameters: RunArray, lower: FloatArray, upper: FloatArray, trials: Trials
) -> None:
    """Write the next trials of R runs, as many as their ``starts`` say."""
    largest, places, dimension = _find_largest(trials.starts), locate_state(state), lower.shape[1]
    memory = np.empty(space_size(largest, places.capacity, dimension))
    space = locate_space(pointer_to(memory), largest, dimension)
    _breed(0, state.runs, parameters, trials.starts, places, _locate_box(lower, upper), locate_trials(trials), space)
    hold(memory)


@shared
def _breed(
    first: int,
    runs: RunArray,
    parameters: RunArray,
    starts: IntArray,
    state: StatePlaces,
    box: Box,
    trials: TrialPlaces,
    space: SpacePlaces,
) -> None:
    """Write the trials of the runs from ``first`` on."""
    dimension = state.dimension
    for index in range(first, first + len(starts) - 1):
        begin, count = starts[index - first], starts[index - first + 1] - starts[index - first]
        if count == 0:
            continue
        low, high = moved(box.low, index * dimension), moved(box.high, index * dimension)
        home, run = locate_run(index, state), runs[index]
        _fetch_part(index + len(starts) - 1, len(runs), run, state)
        if parameters[index].eigenvector_probability > 0.0:
            turn_axes_in_time(run, home, low, high, space.turning)
        breed_run(run, parameters[index], count, home, low, high, trials_from(begin, dimension, trials), space)


@inlined
def _fetch_part(index: int, num_runs: int, run: Run, state: StatePlaces) -> None:
    """Have a part of a later run fetched, so that memory answers while this one is bred and evaluated.

    Of populations that have become small most would be fetched in vain.
    """
    if index < num_runs and 2 * run.size > state.capacity:
        later, share = locate_run(index, state), state.capacity // PARTS_PER_GENERATION
        first = run.part * share
        for positions in (later.top, later.front):
            fetch(moved(positions, first * state.dimension), share * state.dimension)
        for fitness in (later.top_fitness, later.front_fitness):
            fetch(moved(fitness, first), share)


@shared
def _can_be_next(runs: RunArray, starts: IntArray, targets: IntArray) -> bool:
    """Return whether the trials can be the next ones of these runs, so that selection stays within its arrays."""
    if starts[0] != 0 or starts[len(runs)] != len(targets):
        return False
    for index in range(len(runs)):
        run, first, end = runs[index], starts[index], starts[index + 1]
        if first > end or end - first > num_trials(run):
            return False
        for trial in range(first, end):
            if not 0 <= targets[trial] < run.size:
                return False
    return True


@compiled
def select_runs(state: TwoPopulations, parameters: RunArray, trials: Trials, values: FloatArray) -> bool:
    """Let trials compete and return True, or do nothing where they are not the next ones of these runs."""
    if not _can_be_next(state.runs, trials.starts, trials.targets):
        return False
    places = locate_state(state)
    memory = np.empty(3 * places.capacity)
    offered, space = pointer_to(values), pointer_to(memory)
    _select(0, state.runs, parameters, trials.starts, places, locate_trials(trials), offered, space)
    hold(memory)
    return True


@shared
def _select(
    first: int,
    runs: RunArray,
    parameters: RunArray,
    starts: IntArray,
    state: StatePlaces,
    trials: TrialPlaces,
    values: Pointer[float],
    memory: Pointer[float],
) -> None:
    """Let the trials of the runs from ``first`` on compete, with memory to work in: three numbers an individual."""
    integers, numbers = as_integers(moved(memory, state.capacity)), memory
    for index in range(first, first + len(starts) - 1):
        begin, count = starts[index - first], starts[index - first + 1] - starts[index - first]
        if count > 0:
            own, home = trials_from(begin, state.dimension, trials), locate_run(index, state)
            select_run(runs[index], parameters[index], count, home, own, moved(values, begin), integers, numbers)


@compiled
def observe_runs(state: TwoPopulations, lower: FloatArray, upper: FloatArray, features: Float32Array) -> None:
    """Write the features (R, K) of all runs, given bounds (R, D)."""
    _observe(0, len(state.runs), state.runs, locate_state(state), _locate_box(lower, upper), pointer_to(features))


@shared
def _observe(first: int, end: int, runs: RunArray, state: StatePlaces, box: Box, features: Pointer[np.float32]) -> None:
    """Write the features of the runs from ``first`` up to ``end``."""
    for index in range(first, end):
        low, high = moved(box.low, index * state.dimension), moved(box.high, index * state.dimension)
        observe_run(runs[index], locate_run(index, state), low, high, moved(features, index * _NUM_FEATURES))


@compiled
def advance_runs(state: TwoPopulations, parameters: RunArray, problems: Problems, features: Float32Array) -> None:
    """Do a whole generation of R runs, and write their features (R, K)."""
    num_runs, dimension = problems.lower.shape
    all_starts, starts = np.empty(num_runs + 1, np.int64), np.empty(num_runs + 1, np.int64)
    write_starts(state.runs, 0, num_runs, True, all_starts)
    largest, places, box = _find_largest(all_starts), locate_state(state), _locate_box(problems.lower, problems.upper)
    memory = np.empty(space_size(largest, places.capacity, dimension))
    space = locate_space(pointer_to(memory), largest, dimension)
    selecting = np.empty(3 * places.capacity)
    # With three axes, because the kernel is compiled anew for each number of them.
    points = np.empty((1, _TRIALS_AT_ONCE + largest, dimension))
    fitness, rates = np.empty((1, points.shape[1])), np.empty(points.shape[1])
    targets, ways = np.empty(points.shape[1], np.int64), np.empty(points.shape[1], np.int64)
    trials = TrialPlaces(pointer_to(points), pointer_to(targets), pointer_to(rates), pointer_to(ways))
    offered, room, seen = pointer_to(fitness), pointer_to(selecting), pointer_to(features)
    first = 0
    while first < num_runs:
        end = first + 1
        while end < num_runs and all_starts[end + 1] - all_starts[first] <= _TRIALS_AT_ONCE:
            end += 1
        own = starts[: end - first + 1]
        for part in range(PARTS_PER_GENERATION):
            write_starts(state.runs, first, end, part == 0, own)
            _breed(first, state.runs, parameters, own, places, box, trials, space)
            evaluate_programs(points, own, problems.entries[first:end], problems.instructions, problems.data, fitness)
            _select(first, state.runs, parameters, own, places, trials, offered, room)
        _observe(first, end, state.runs, places, box, seen)
        first = end
    hold((memory, selecting, points, fitness, rates, targets, ways))
