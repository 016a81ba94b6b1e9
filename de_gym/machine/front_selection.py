"""Selection of the two-population shell: successes enter front in turn and top by value, and the rule adapts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from de_gym.machine.compiling import inlined, shared
from de_gym.machine.lanes import choose, larger_of, moved, smaller_of, whole_of
from de_gym.machine.ordering import rank_numbers
from de_gym.machine.scale_free import FIRST_SUCCESS_RATE, average_success_rate
from de_gym.machine.selection import copy_row
from de_gym.machine.top_and_front import (
    ALONG_AXES,
    FIRST_SHARE,
    FROM_SPARSE,
    IN_PLACE,
    MAIN,
    MAIN_RATE,
    MEMORY_SIZE,
    NUM_WAYS,
    SPARSE,
    SPARSE_RATE,
    Run,
    RunPlaces,
    TrialPlaces,
    plan_size,
)

if TYPE_CHECKING:
    from de_gym.machine.lanes import Pointer

# Shares adapt slowly, and no way to make a trial ever dies out.
_KEPT_SHARE, _SMALLEST_SHARE = 0.9, 0.1


@shared
def select_run(
    run: Run,
    parameter: Run,
    count: int,
    places: RunPlaces,
    trials: TrialPlaces,
    values: Pointer[float],
    integers: Pointer[int],
    numbers: Pointer[float],
) -> None:
    """Let the last ``count`` trials of a run compete by their values; then end its generation if due.

    Memory to work in are twice as many integers, and as many numbers, as a population has room for.
    """
    dimension = places.dimension
    num_winners = _find_winners(run, parameter, count, places, trials, values, integers)
    for k in range(num_winners):
        row = places.front_rows[_slot_after(run.cursor, k, run.size)]
        copy_row(trials.points, integers[k] * dimension, places.front, row * dimension, dimension)
    run.cursor = _slot_after(run.cursor, num_winners, run.size)
    run.pool_size += num_winners
    run.part += 1
    run.num_made += count
    run.evaluations += count
    if run.num_made == run.size or run.evaluations == run.max_evaluations:
        _end_generation(run, parameter, places, integers, numbers)


@inlined
def _find_winners(
    run: Run,
    parameter: Run,
    count: int,
    places: RunPlaces,
    trials: TrialPlaces,
    values: Pointer[float],
    winners: Pointer[int],
) -> int:
    """Write which trials succeed, and what is known of them; their values enter front in turn.

    Everything is written for all and kept for some: a branch would be mispredicted as often as it is taken.
    """
    front, cursor, size, pool_size = places.front_fitness, run.cursor, run.size, run.pool_size
    num_winners, may_give_place = 0, parameter.in_place_probability > 0.0
    ranks = moved(winners, places.capacity)
    if may_give_place:
        _invert(places.ranking, size, ranks)
    for trial in range(count):
        target, at = trials.targets[trial], pool_size + num_winners
        # What is not a number is worse than any.
        value = values[trial] if values[trial] == values[trial] else np.inf
        gain, is_success = front[target] - value, value <= front[target]
        # NOTE: the official program computes the gain after the success has entered front, so one that takes the
        # slot of its own target gains nothing; and so do ours. Gains that are not finite would swallow the others.
        places.gains[at] = gain if cursor != target and math.isfinite(gain) else 0.0
        places.rates[at], places.ways[at] = trials.rates[trial], trials.ways[trial]
        places.pool_fitness[at] = value
        winners[num_winners] = trial
        if may_give_place and is_success and _is_made(trials.ways[trial], IN_PLACE):
            _give_place(target, cursor, at, size, places, ranks)
        front[cursor] = choose(is_success, value, front[cursor])
        num_winners += is_success
        cursor = _slot_after(cursor, is_success, size)
    _count_ways(run, count, trials)
    return num_winners


@inlined
def _invert(ranking: Pointer[int], size: int, ranks: Pointer[int]) -> None:
    """Write the rank of each slot."""
    for rank in range(size):
        ranks[ranking[rank]] = rank


@inlined
def _give_place(target: int, cursor: int, num_taken: int, size: int, places: RunPlaces, ranks: Pointer[int]) -> None:
    """Let a target and the oldest individual change slots, so that the success takes the place of the target.

    Whoever entered front in this generation stays there until its end: slots are taken in turn.
    """
    rows, fitness, ranking = places.front_rows, places.front_fitness, places.ranking
    since = target - cursor if target >= cursor else target - cursor + size
    if 0 < since < size - num_taken:
        rows[cursor], rows[target] = rows[target], rows[cursor]
        fitness[target] = fitness[cursor]
        ranks[cursor], ranks[target] = ranks[target], ranks[cursor]
        ranking[ranks[cursor]], ranking[ranks[target]] = cursor, target


@shared
def _end_generation(
    run: Run, parameter: Run, places: RunPlaces, integers: Pointer[int], numbers: Pointer[float]
) -> None:
    """Adapt the rule, let both populations shrink, and top take in the pool."""
    for kind in (MAIN, SPARSE):
        run.memory_slots[kind] = _remember(run.memory_slots[kind], run.pool_size, places, kind)
    _share_out(run, places)
    run.num_successes = run.pool_size
    run.success_rate = run.pool_size / run.size
    average_success_rate(run)
    next_size = plan_size(run, parameter.size_factor)
    if run.pool_size > 0:
        _take_pool(run, next_size, places, integers, numbers)
    if next_size < run.size:
        _shrink_front(run.size, next_size, places, integers)
    run.size, run.cursor = next_size, run.cursor % next_size
    run.part, run.num_made, run.pool_size = 0, 0, 0
    run.generation += 1
    if run.begins_anew:
        _forget_experience(run, places)
    best = places.top_fitness[0]
    run.stagnation = 0 if best < run.leading_fitness else run.stagnation + 1
    run.leading_fitness, run.best_fitness = best, smaller_of(run.best_fitness, best)


@inlined
def _forget_experience(run: Run, places: RunPlaces) -> None:
    """Let the rule be what it is at the beginning of a run."""
    run.success_rate = run.recent_success_rate = run.lasting_success_rate = FIRST_SUCCESS_RATE
    run.basis_evaluations = -1
    for way in range(NUM_WAYS):
        run.shares[way] = FIRST_SHARE
    for slot in range(MEMORY_SIZE):
        places.memory[MAIN * MEMORY_SIZE + slot] = MAIN_RATE
        places.memory[SPARSE * MEMORY_SIZE + slot] = SPARSE_RATE


@inlined
def _find_largest_gain(num_successes: int, places: RunPlaces) -> float:
    largest = 0.0
    for k in range(num_successes):
        largest = larger_of(largest, places.gains[k])
    return largest


@inlined
def _remember(slot: int, pool_size: int, places: RunPlaces, kind: int) -> int:
    """Move one slot of a memory halfway to the Lehmer mean of its successes' rates, weighted by gain.

    Where nothing was gained, the official program says 1 for the mean; the sparse memory then stays what it is.

    Returns:
        The slot to be moved next.
    """
    # Relative to the largest, so that sums of huge gains stay finite.
    largest, num_successes, plain, squared = _find_largest_gain(pool_size, places), 0, 0.0, 0.0
    for k in range(pool_size):
        if _is_made(whole_of(places.ways[k]), FROM_SPARSE) == (kind == SPARSE):
            weight = places.gains[k] / largest if largest > 0.0 else 0.0
            num_successes += 1
            plain += weight * places.rates[k]
            squared += weight * places.rates[k] * places.rates[k]
    if num_successes == 0 or (kind == SPARSE and plain == 0.0):
        return slot
    at = kind * MEMORY_SIZE + slot
    places.memory[at] = 0.5 * (places.memory[at] + (squared / plain if plain > 0.0 else MAIN_RATE))
    return (slot + 1) % MEMORY_SIZE


@inlined
def _is_made(ways: int, way: int) -> bool:
    return (ways >> way) & 1 > 0


@inlined
def _might_be_made(way: int, rate: float) -> bool:
    """Return whether a trial that was crossed in this share of its coordinates might have been made in a way."""
    return way != ALONG_AXES or rate < 1.0


@inlined
def _count_ways(run: Run, count: int, trials: TrialPlaces) -> None:
    for way in range(NUM_WAYS):
        num_compared, num_tried = 0, 0
        for trial in range(count):
            num_compared += _might_be_made(way, trials.rates[trial])
            num_tried += _is_made(trials.ways[trial], way)
        run.num_compared[way] += num_compared
        run.num_tried[way] += num_tried


@inlined
def _share_out(run: Run, places: RunPlaces) -> None:
    """Move the share of each way towards its share of the gain per trial, and begin to count anew."""
    largest = _find_largest_gain(run.pool_size, places)
    for way in range(NUM_WAYS):
        num_with, num_without = run.num_tried[way], run.num_compared[way] - run.num_tried[way]
        run.num_tried[way], run.num_compared[way] = 0, 0
        if num_with == 0 or num_without == 0 or largest == 0.0:
            continue
        gain_with, gain_without = 0.0, 0.0
        for k in range(run.pool_size):
            if _is_made(whole_of(places.ways[k]), way):
                gain_with += places.gains[k] / largest / num_with
            elif _might_be_made(way, places.rates[k]):
                gain_without += places.gains[k] / largest / num_without
        if gain_with + gain_without > 0.0:
            moved = _KEPT_SHARE * run.shares[way] + (1.0 - _KEPT_SHARE) * gain_with / (gain_with + gain_without)
            run.shares[way] = smaller_of(larger_of(moved, _SMALLEST_SHARE), 1.0 - _SMALLEST_SHARE)


@inlined
def _take_pool(run: Run, next_size: int, places: RunPlaces, order: Pointer[int], numbers: Pointer[float]) -> None:
    """Rank front anew, and let top take in the pool."""
    kept = moved(order, places.capacity)
    rank_numbers(places.pool_fitness, run.pool_size, order, kept, numbers)
    first_slot = (run.cursor - run.pool_size) % run.size
    _rank_front(run.size, first_slot, run.pool_size, order, kept, places)
    _update_top(run.size, next_size, first_slot, run.pool_size, order, kept, places)


@inlined
def _rank_front(
    size: int, first_slot: int, num_successes: int, order: Pointer[int], kept: Pointer[int], places: RunPlaces
) -> None:
    """Merge the slots that kept their individual, in their old order, with those of the pool, whose order is given."""
    ranking, num_kept = places.ranking, 0
    for rank in range(size):
        slot = ranking[rank]
        age = slot - first_slot if slot >= first_slot else slot - first_slot + size
        kept[num_kept] = slot
        num_kept += age >= num_successes
    taken, rank = 0, 0
    for k in range(num_kept):
        slot = kept[k]
        while taken < num_successes and places.pool_fitness[order[taken]] < places.front_fitness[slot]:
            ranking[rank] = _slot_after(first_slot, order[taken], size)
            taken, rank = taken + 1, rank + 1
        ranking[rank] = slot
        rank += 1
    for k in range(taken, num_successes):
        ranking[rank] = _slot_after(first_slot, order[k], size)
        rank += 1


@inlined
def _slot_after(slot: int, count: int, size: int) -> int:
    """Return the slot so many after another, in turn."""
    return slot + count if slot + count < size else slot + count - size


@inlined
def _shrink_front(size: int, next_size: int, places: RunPlaces, stays: Pointer[int]) -> None:
    """Remove the worst of front and close the gaps they leave: the others keep their order."""
    ranking, fitness, rows = places.ranking, places.front_fitness, places.front_rows
    renumbered = moved(stays, places.capacity)
    for rank in range(size):
        stays[ranking[rank]] = rank < next_size
    next_slot = 0
    for slot in range(size):
        renumbered[slot] = next_slot
        if stays[slot]:
            fitness[next_slot], rows[next_slot] = fitness[slot], rows[slot]
            next_slot += 1
    for rank in range(next_size):
        ranking[rank] = renumbered[ranking[rank]]


@inlined
def _update_top(
    size: int,
    next_size: int,
    first_slot: int,
    pool_size: int,
    order: Pointer[int],
    freed: Pointer[int],
    places: RunPlaces,
) -> None:
    """Keep the best of top and pool; where values are equal, the older individual is the better one."""
    fitness, offered, rows, dimension = places.top_fitness, places.pool_fitness, places.top_rows, places.dimension
    num_kept, num_entering = size, pool_size
    while num_kept + num_entering > next_size:
        if num_entering > 0 and (num_kept == 0 or not offered[order[num_entering - 1]] < fitness[num_kept - 1]):
            num_entering -= 1
        else:
            num_kept -= 1
    # Whoever enters takes the row of one who leaves.
    for k in range(num_entering):
        freed[k] = rows[num_kept + k]
        # No slot of front is taken twice in a generation, so whoever is in the pool still is in front.
        row = places.front_rows[_slot_after(first_slot, order[k], size)]
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
