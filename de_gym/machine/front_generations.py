"""Generations of R runs with two populations: a few runs at a time where their problems are compiled, or in halves.

What is needed in every turn is addressed, not passed on as arrays: counting references to arrays, for every run and
every part of its generation, would cost as much as breeding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from de_gym.arrays import Float32Array, FloatArray, IntArray
from de_gym.machine.breeding_places import BreedingSpace, locate_space, make_breeding_space
from de_gym.machine.compiling import compiled, shared
from de_gym.machine.front_breeding import breed_run, turn_axes_in_time
from de_gym.machine.front_selection import select_run
from de_gym.machine.kernel import evaluate_programs
from de_gym.machine.lanes import moved, pointer_to
from de_gym.machine.run_features import FEATURES, observe_run
from de_gym.machine.top_and_front import (
    PARTS_PER_GENERATION,
    RunArray,
    Trials,
    TwoPopulations,
    find_starts,
    locate_run,
    locate_state,
    locate_trials,
    make_trials,
    num_trials,
    trials_from,
    write_starts,
)

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


@shared
def _find_largest(starts: IntArray) -> int:
    """Return the number of trials of the run that has most."""
    largest = 0
    for index in range(len(starts) - 1):
        largest = max(largest, starts[index + 1] - starts[index])
    return largest


@compiled
def breed_runs(
    state: TwoPopulations, parameters: RunArray, lower: FloatArray, upper: FloatArray, trials: Trials
) -> None:
    """Write the next trials of R runs, as many as their ``starts`` say."""
    space = make_breeding_space(_find_largest(trials.starts), lower.shape[1])
    _breed(0, state, parameters, lower, upper, trials, space)


@shared
def _breed(
    first: int,
    state: TwoPopulations,
    parameters: RunArray,
    lower: FloatArray,
    upper: FloatArray,
    trials: Trials,
    space: BreedingSpace,
) -> None:
    """Write the trials of the runs from ``first`` on."""
    everything, places, memory = locate_state(state), locate_trials(trials), locate_space(space)
    runs, starts, dimension = state.runs, trials.starts, lower.shape[1]
    low, high = pointer_to(lower), pointer_to(upper)
    for index in range(first, first + len(starts) - 1):
        begin, count = starts[index - first], starts[index - first + 1] - starts[index - first]
        if count == 0:
            continue
        if parameters[index].eigenvector_probability > 0.0:
            turn_axes_in_time(index, state, lower, upper)
        at, own = index * dimension, trials_from(begin, dimension, places)
        home = locate_run(index, everything)
        breed_run(runs[index], parameters[index], count, home, moved(low, at), moved(high, at), own, memory)


@shared
def _can_be_next(runs: RunArray, trials: Trials) -> bool:
    """Return whether the trials can be the next ones of these runs, so that selection stays within its arrays."""
    if trials.starts[0] != 0 or trials.starts[-1] != len(trials.points):
        return False
    for index in range(len(runs)):
        run, first, end = runs[index], trials.starts[index], trials.starts[index + 1]
        if first > end or end - first > num_trials(run):
            return False
        for trial in range(first, end):
            if not 0 <= trials.targets[trial] < run.size:
                return False
    return True


@compiled
def select_runs(state: TwoPopulations, parameters: RunArray, trials: Trials, values: FloatArray) -> bool:
    """Let trials compete and return True, or do nothing where they are not the next ones of these runs."""
    if not _can_be_next(state.runs, trials):
        return False
    capacity = state.positions.shape[2]
    _select(0, state, parameters, trials, values, np.empty(2 * capacity, np.int64), np.empty(capacity))
    return True


@shared
def _select(
    first: int,
    state: TwoPopulations,
    parameters: RunArray,
    trials: Trials,
    values: FloatArray,
    integers: IntArray,
    numbers: FloatArray,
) -> None:
    """Let the trials of the runs from ``first`` on compete, with memory to work in."""
    everything, places, offered = locate_state(state), locate_trials(trials), pointer_to(values)
    runs, starts, dimension = state.runs, trials.starts, trials.points.shape[1]
    indices, floats = pointer_to(integers), pointer_to(numbers)
    for index in range(first, first + len(starts) - 1):
        begin, count = starts[index - first], starts[index - first + 1] - starts[index - first]
        if count > 0:
            own, home = trials_from(begin, dimension, places), locate_run(index, everything)
            select_run(runs[index], parameters[index], count, home, own, moved(offered, begin), indices, floats)


@compiled
def observe_runs(state: TwoPopulations, lower: FloatArray, upper: FloatArray, features: Float32Array) -> None:
    """Write the features (R, K) of all runs, given bounds (R, D)."""
    _observe(0, len(state.runs), state, lower, upper, features)


@shared
def _observe(
    first: int, end: int, state: TwoPopulations, lower: FloatArray, upper: FloatArray, features: Float32Array
) -> None:
    """Write the features of the runs from ``first`` up to ``end``."""
    everything, runs, dimension = locate_state(state), state.runs, lower.shape[1]
    low, high, written = pointer_to(lower), pointer_to(upper), pointer_to(features)
    for index in range(first, end):
        home, at = locate_run(index, everything), index * dimension
        observe_run(runs[index], home, moved(low, at), moved(high, at), moved(written, index * _NUM_FEATURES))


@shared
def _take_memory(memory: Trials, starts: IntArray) -> Trials:
    """Return trials that are written into the first part of ``memory``."""
    return Trials(memory.points, starts, memory.targets, memory.rates, memory.ways)


@compiled
def advance_runs(state: TwoPopulations, parameters: RunArray, problems: Problems, features: Float32Array) -> None:
    """Do a whole generation of R runs, and write their features (R, K)."""
    num_runs, dimension = problems.lower.shape
    capacity, all_starts = state.positions.shape[2], find_starts(state.runs, True)
    largest = _find_largest(all_starts)
    space, starts = make_breeding_space(largest, dimension), np.empty(num_runs + 1, np.int64)
    memory = make_trials(np.array([0, _TRIALS_AT_ONCE + largest]), dimension)
    values, integers, numbers = np.empty(len(memory.points)), np.empty(2 * capacity, np.int64), np.empty(capacity)
    # With three axes, because the kernel is compiled anew for each number of them.
    points, fitness = memory.points.reshape(1, -1, dimension), values.reshape(1, -1)
    lower, upper, entries, instructions, data = problems
    first = 0
    while first < num_runs:
        end = first + 1
        while end < num_runs and all_starts[end + 1] - all_starts[first] <= _TRIALS_AT_ONCE:
            end += 1
        trials = _take_memory(memory, starts[: end - first + 1])
        for part in range(PARTS_PER_GENERATION):
            write_starts(state.runs, first, end, part == 0, trials.starts)
            _breed(first, state, parameters, lower, upper, trials, space)
            evaluate_programs(points, trials.starts, entries[first:end], instructions, data, fitness)
            _select(first, state, parameters, trials, values, integers, numbers)
        _observe(first, end, state, lower, upper, features)
        first = end
