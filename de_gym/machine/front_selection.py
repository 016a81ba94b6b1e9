"""Selection of the two-population shell: successes enter front in turn and top by value, and the rule adapts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.machine.compiling import inlined, shared
from de_gym.machine.lanes import pointer_to
from de_gym.machine.ordering import rank_by_fitness
from de_gym.machine.scale_free import average_success_rate
from de_gym.machine.selection import copy_row
from de_gym.machine.top_and_front import (
    ALONG_AXES,
    FROM_SPARSE,
    MAIN,
    MAIN_RATE,
    MEMORY_SIZE,
    NUM_WAYS,
    POOL,
    SPARSE,
    Run,
    RunArray,
    RunPlaces,
    Trials,
    TwoPopulations,
    locate_run,
    plan_size,
)

if TYPE_CHECKING:
    from de_gym.machine.lanes import Pointer

# Shares adapt slowly, and no way to make a trial ever dies out.
_KEPT_SHARE, _SMALLEST_SHARE = 0.9, 0.1


@shared
def select_run(index: int, state: TwoPopulations, parameter: Run, trials: Trials, values: FloatArray) -> None:
    """Let the trials of run ``index`` compete, given the values (T,) of all trials; then end its generation if due."""
    run, first, end = state.runs[index], trials.starts[index], trials.starts[index + 1]
    if first == end:
        return
    places, points = locate_run(index, state), pointer_to(trials.points)
    for trial in range(first, end):
        _count_ways(run, trials.ways[trial], trials.rates[trial])
        # What is not a number is worse than any.
        value = values[trial] if values[trial] == values[trial] else np.inf
        gain = places.front_fitness[trials.targets[trial]] - value
        if value <= places.front_fitness[trials.targets[trial]]:
            # NOTE: the official program computes the gain after the success has entered front, so one that takes the
            # slot of its own target gains nothing; and so do ours. Gains that are not finite would swallow the others.
            is_counted = run.cursor != trials.targets[trial] and math.isfinite(gain)
            success = state.successes[index, run.pool_size]
            success.gain = gain if is_counted else 0.0
            success.rate, success.ways = trials.rates[trial], trials.ways[trial]
            _admit(run, points, trial, value, places)
    run.part += 1
    run.num_made += end - first
    run.evaluations += end - first
    if run.num_made == run.size or run.evaluations == run.max_evaluations:
        _end_generation(index, state, parameter)


@inlined
def _admit(run: Run, points: Pointer[float], trial: int, value: float, places: RunPlaces) -> None:
    """Let a success take the next slot of front, and be counted in the pool."""
    slot, dimension = run.cursor, places.dimension
    copy_row(points, trial * dimension, places.front, places.front_rows[slot] * dimension, dimension)
    places.front_fitness[slot] = places.pool_fitness[run.pool_size] = value
    run.cursor = slot + 1 if slot + 1 < run.size else 0
    run.pool_size += 1


@shared
def _end_generation(index: int, state: TwoPopulations, parameter: Run) -> None:
    """Adapt the rule, let both populations shrink, and top take in the pool."""
    run, successes = state.runs[index], state.successes[index]
    successes = successes[: run.pool_size]
    for kind in (MAIN, SPARSE):
        slot = run.memory_slots[kind]
        run.memory_slots[kind] = _remember(state.memory[index, kind], slot, successes, kind)
    _share_out(run, successes)
    run.num_successes = run.pool_size
    run.success_rate = run.pool_size / run.size
    average_success_rate(run)
    next_size = plan_size(run, parameter.size_factor)
    order = rank_by_fitness(state.fitness[index, POOL, : run.pool_size])
    places = locate_run(index, state)
    first_slot = (run.cursor - run.pool_size) % run.size
    _rank_front(run.size, first_slot, order, places)
    _update_top(run.size, next_size, first_slot, order, places)
    if next_size < run.size:
        _shrink_front(run.size, next_size, places)
    run.size, run.cursor = next_size, run.cursor % next_size
    run.part, run.num_made, run.pool_size = 0, 0, 0
    run.generation += 1
    best = places.top_fitness[0]
    run.stagnation = 0 if best < run.best_fitness else run.stagnation + 1
    run.best_fitness = best


@inlined
def _find_largest_gain(successes: RunArray) -> float:
    largest = 0.0
    for k in range(len(successes)):
        largest = max(largest, successes[k].gain)
    return largest


@inlined
def _remember(memory: FloatArray, slot: int, successes: RunArray, kind: int) -> int:
    """Move one slot of a memory (MEMORY_SIZE,) halfway to the Lehmer mean of its successes' rates, weighted by gain.

    Where nothing was gained, the official program says 1 for the mean; the sparse memory then stays what it is.

    Returns:
        The slot to be moved next.
    """
    # Relative to the largest, so that sums of huge gains stay finite.
    largest, num_successes, plain, squared = _find_largest_gain(successes), 0, 0.0, 0.0
    for k in range(len(successes)):
        if _is_made(successes[k].ways, FROM_SPARSE) == (kind == SPARSE):
            weight = successes[k].gain / largest if largest > 0.0 else 0.0
            num_successes += 1
            plain += weight * successes[k].rate
            squared += weight * successes[k].rate * successes[k].rate
    if num_successes == 0 or (kind == SPARSE and plain == 0.0):
        return slot
    memory[slot] = 0.5 * (memory[slot] + (squared / plain if plain > 0.0 else MAIN_RATE))
    return (slot + 1) % MEMORY_SIZE


@inlined
def _is_made(ways: int, way: int) -> bool:
    return (ways >> way) & 1 > 0


@inlined
def _might_be_made(way: int, rate: float) -> bool:
    """Return whether a trial that was crossed in this share of its coordinates might have been made in a way."""
    return way != ALONG_AXES or rate < 1.0


@inlined
def _count_ways(run: Run, ways: int, rate: float) -> None:
    for way in range(NUM_WAYS):
        run.num_compared[way] += _might_be_made(way, rate)
        run.num_tried[way] += _is_made(ways, way)


@inlined
def _share_out(run: Run, successes: RunArray) -> None:
    """Move the share of each way towards its share of the gain per trial, and begin to count anew."""
    largest = _find_largest_gain(successes)
    for way in range(NUM_WAYS):
        num_with, num_without = run.num_tried[way], run.num_compared[way] - run.num_tried[way]
        run.num_tried[way], run.num_compared[way] = 0, 0
        if num_with == 0 or num_without == 0 or largest == 0.0:
            continue
        gain_with, gain_without = 0.0, 0.0
        for k in range(len(successes)):
            if _is_made(successes[k].ways, way):
                gain_with += successes[k].gain / largest / num_with
            elif _might_be_made(way, successes[k].rate):
                gain_without += successes[k].gain / largest / num_without
        if gain_with + gain_without > 0.0:
            moved = _KEPT_SHARE * run.shares[way] + (1.0 - _KEPT_SHARE) * gain_with / (gain_with + gain_without)
            run.shares[way] = min(max(moved, _SMALLEST_SHARE), 1.0 - _SMALLEST_SHARE)


@inlined
def _rank_front(size: int, first_slot: int, order: IntArray, places: RunPlaces) -> None:
    """Merge the slots that kept their individual, in their old order, with those of the pool, whose order is given."""
    num_successes = len(order)
    merged, taken, rank = np.empty(size, np.int64), 0, 0
    for old_rank in range(size):
        slot = places.ranking[old_rank]
        age = slot - first_slot if slot >= first_slot else slot - first_slot + size
        if age >= num_successes:
            while taken < num_successes and places.pool_fitness[order[taken]] < places.front_fitness[slot]:
                merged[rank] = (first_slot + order[taken]) % size
                taken, rank = taken + 1, rank + 1
            merged[rank] = slot
            rank += 1
    for k in range(taken, num_successes):
        merged[rank] = (first_slot + order[k]) % size
        rank += 1
    for rank in range(size):
        places.ranking[rank] = merged[rank]


@inlined
def _shrink_front(size: int, next_size: int, places: RunPlaces) -> None:
    """Remove the worst of front and close the gaps they leave: the others keep their order."""
    ranking, fitness, rows = places.ranking, places.front_fitness, places.front_rows
    stays = np.ones(size, np.bool_)
    for rank in range(next_size, size):
        stays[ranking[rank]] = False
    renumbered, next_slot = np.empty(size, np.int64), 0
    for slot in range(size):
        renumbered[slot] = next_slot
        if stays[slot]:
            fitness[next_slot], rows[next_slot] = fitness[slot], rows[slot]
            next_slot += 1
    for rank in range(next_size):
        ranking[rank] = renumbered[ranking[rank]]


@inlined
def _update_top(size: int, next_size: int, first_slot: int, order: IntArray, places: RunPlaces) -> None:
    """Keep the best of top and pool; where values are equal, the older individual is the better one."""
    fitness, offered, rows, dimension = places.top_fitness, places.pool_fitness, places.top_rows, places.dimension
    num_kept, num_entering = 0, 0
    while num_kept + num_entering < next_size:
        if num_entering < len(order) and offered[order[num_entering]] < fitness[num_kept]:
            num_entering += 1
        else:
            num_kept += 1
    # Whoever enters takes the row of one who leaves.
    freed = np.empty(num_entering, np.int64)
    for k in range(num_entering):
        freed[k] = rows[num_kept + k]
        # No slot of front is taken twice in a generation, so whoever is in the pool still is in front.
        row = places.front_rows[(first_slot + order[k]) % size]
        copy_row(places.front, row * dimension, places.top, freed[k] * dimension, dimension)
    rank = next_size - 1
    while num_entering > 0:
        if num_kept > 0 and fitness[num_kept - 1] > offered[order[num_entering - 1]]:
            num_kept -= 1
            fitness[rank], rows[rank] = fitness[num_kept], rows[num_kept]
        else:
            num_entering -= 1
            fitness[rank], rows[rank] = offered[order[num_entering]], freed[num_entering]
        rank -= 1
