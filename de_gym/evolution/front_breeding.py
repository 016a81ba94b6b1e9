"""The trials of the two-population shell, made for one run and one part of its generation at a time.

Numbers that every trial needs come from the streams of the run's key, filled at once; those that only some trials need
are drawn by position. What no control asks for is not drawn, so it changes nothing else.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.evolution.chances import MAX_REDRAWS, cauchy_at, find_base, redraw_cauchy, redraw_normal, uniform_at
from de_gym.evolution.principal_axes import cross_along_axes, turn_axes
from de_gym.evolution.top_and_front import (
    FRONT,
    MAIN,
    MEMORY_SIZE,
    PARTS_PER_GENERATION,
    SPARSE,
    TOP,
    Run,
    RunPlaces,
    Trials,
    TwoPopulations,
    locate_run,
)
from de_gym.machine.compiling import inlined, shared
from de_gym.machine.coordinates import move_to_pbest, positive_or_never, to_fresh, to_midpoint
from de_gym.machine.elementary import fraction, logarithm, sine_half_turns
from de_gym.machine.lanes import (
    ROW_WIDTH,
    WIDTH,
    absolute,
    choose,
    load,
    load_from,
    moved,
    pointer_to,
    square_root,
    store,
    store_from,
)
from de_gym.machine.picks import pick_index
from de_gym.machine.streams import NUM_STREAMS, KeyArray, fill_uniforms, seed_streams, whole_turns

if TYPE_CHECKING:
    from de_gym.machine.lanes import Lanes, Pointer

# Sections of the uniforms, each as long as all trials, rounded up to whole lanes; those of the crossover follow them.
_TARGET, _PBEST, _R1, _R2, _SLOT, _FORCED, _RADIUS, _ANGLE = range(8)
_NUM_SECTIONS = 8

# Sections of the numbers: made of uniforms at first, then what each trial is made with.
_FACTOR_NORMAL, _RATE_NORMAL, _RANK, _FACTOR, _WEIGHT, _RATE = range(6)
_NUM_NUMBERS = 6

# Sections of the rows.
_PARENT, _BEST, _PLUS, _MINUS = range(4)
_NUM_ROWS = 4

# Purposes of numbers drawn by position.
_REDRAW_RANK, _REDRAW_FACTOR, _USE_SPARSE, _USE_TRIPLE, _TRIPLE_FACTOR = range(5)
_USE_AXES, _USE_NOISE, _NOISE, _USE_MIDPOINT, _FRESH = range(5, 10)

# Below every crossover rate, also below the one that ``positive_or_never`` returns.
_ALWAYS = -2.0

# Uniforms are multiples of 2^-32; half a step keeps the logarithm away from zero.
_HALF_STEP = 2.0**-33

_SPARSE_SPREAD = 0.1

# Ordered triples: their share of p-best, how much of it is gone at the end of the budget, and the distribution of F.
_TRIPLE_PBEST_SHARE, _TRIPLE_PBEST_LOSS = 0.17, 0.5
_TRIPLE_MEAN_FACTOR, _TRIPLE_FACTOR_SPREAD = 0.5, 0.1

# Scale of the noise in widths of the box.
_NOISE_SCALE = 0.0005

# The axes are turned after this many evaluations per squared dimension: often enough for axes that move slowly, and
# seldom enough to cost less than the evaluations.
_EVALUATIONS_PER_TURN = 5


class BreedingSpace(NamedTuple):
    """Memory for one run's trials, used again for every run; P is their number rounded up to whole lanes.

    Attributes:
        states: States of the random streams.
        uniforms: Random numbers, sections of P and then D per trial.
        numbers: Sections of P, named above.
        rows: Where parent, p-best, r1 and r2 of each trial begin within ``positions``, sections of P.
        move: A move and its part along some axes, shape (2, D).
    """

    states: KeyArray
    uniforms: FloatArray
    numbers: FloatArray
    rows: IntArray
    move: FloatArray


class Places(NamedTuple):
    """Where the numbers begin that one run's trials are made of.

    Attributes:
        num_trials: Their number.
        padded: Rounded up to whole lanes.
        dimension: Number of coordinates.
        key: What the run's random numbers follow from.
        stream: Number of its streams.
        uniforms: As in ``BreedingSpace``, like the next three.
        numbers: See there.
        rows: See there.
        move: See there.
        positions: Of top, front and pool, shape (3, C, D).
        axes: Shape (D, D).
        low: Lower bounds, shape (D,).
        high: Upper bounds, shape (D,).
        points: Receives the trials, shape (num_trials, D).
    """

    num_trials: int
    padded: int
    dimension: int
    key: np.uint64
    stream: int
    uniforms: Pointer[float]
    numbers: Pointer[float]
    rows: Pointer[int]
    move: Pointer[float]
    positions: Pointer[float]
    axes: Pointer[float]
    low: Pointer[float]
    high: Pointer[float]
    points: Pointer[float]


@inlined
def make_breeding_space(max_trials: int, dimension: int) -> BreedingSpace:
    """Return memory for at most ``max_trials`` trials of a run."""
    padded = _pad(max_trials)
    return BreedingSpace(
        np.empty((4, NUM_STREAMS), np.uint64),
        np.empty(_num_uniforms(max_trials, dimension)),
        np.empty(_NUM_NUMBERS * padded),
        np.empty(_NUM_ROWS * padded, np.int64),
        np.empty((2, dimension)),
    )


@inlined
def _pad(count: int) -> int:
    return -(-count // WIDTH) * WIDTH


@inlined
def _num_uniforms(count: int, dimension: int) -> int:
    return whole_turns(_NUM_SECTIONS * _pad(count) + count * dimension)


@shared
def breed_run(
    index: int,
    state: TwoPopulations,
    parameter: Run,
    lower: FloatArray,
    upper: FloatArray,
    trials: Trials,
    space: BreedingSpace,
) -> None:
    """Write the trials of run ``index``; all arrays hold the same runs."""
    run, first, end = state.runs[index], trials.starts[index], trials.starts[index + 1]
    if first == end:
        return
    if parameter.eigenvector_probability > 0.0:
        _turn_axes(index, state, lower[index], upper[index])
    dimension, home = trials.points.shape[1], locate_run(index, state)
    places = Places(
        end - first,
        _pad(end - first),
        dimension,
        run.key,
        run.generation * PARTS_PER_GENERATION + run.part,
        pointer_to(space.uniforms),
        pointer_to(space.numbers),
        pointer_to(space.rows),
        pointer_to(space.move),
        home.top,
        home.axes,
        moved(pointer_to(lower), index * dimension),
        moved(pointer_to(upper), index * dimension),
        moved(pointer_to(trials.points), first * dimension),
    )
    states = pointer_to(space.states)
    seed_streams(places.key, places.stream, states)
    fill_uniforms(states, places.uniforms, _num_uniforms(places.num_trials, dimension))
    _make_numbers(run.size, parameter.rank_pressure, places)
    _pick_individuals(run, parameter, home, moved(pointer_to(trials.targets), first), places)
    _pick_rates(run, parameter, home, moved(pointer_to(trials.memories), first), places)
    _cross_all(parameter, moved(pointer_to(trials.rates), first), places)


@inlined
def _turn_axes(index: int, state: TwoPopulations, lower: FloatArray, upper: FloatArray) -> None:
    """Turn the axes of a run towards those of the better half of top, when that is due."""
    run, period = state.runs[index], _EVALUATIONS_PER_TURN * len(lower) ** 2
    if run.basis_evaluations < 0 or run.evaluations - run.basis_evaluations >= period:
        rows = state.rows[index, TOP, : (run.size + 1) // 2]
        turn_axes(state.basis[index], state.positions[index, TOP], rows, lower, upper)
        run.basis_evaluations = run.evaluations


@inlined
def _make_numbers(size: int, pressure: float, places: Places) -> None:
    """Write normals by Box and Muller, and ranks k with probability proportional to exp(-pressure k / size)."""
    # The sum of the weights up to a rank has a closed form, and so has its inverse.
    scale, mass = -size / pressure, 1.0 - math.exp(-pressure)
    for block in range(places.padded // WIDTH):
        radius = square_root(-2.0 * logarithm(_load_uniforms(places, _RADIUS, block) + _HALF_STEP))
        angle = _load_uniforms(places, _ANGLE, block)
        _store_numbers(places, _FACTOR_NORMAL, block, radius * _cosine_turns(angle))
        _store_numbers(places, _RATE_NORMAL, block, radius * _cosine_turns(angle - 0.25))
        rank = scale * logarithm(1.0 - mass * _load_uniforms(places, _R1, block))
        _store_numbers(places, _RANK, block, rank)


@inlined
def _load_uniforms(places: Places, section: int, block: int) -> Lanes:
    return load(places.uniforms, section * (places.padded // WIDTH) + block)


@inlined
def _store_numbers(places: Places, section: int, block: int, lanes: Lanes) -> None:
    store(places.numbers, section * (places.padded // WIDTH) + block, lanes)


@inlined
def _cosine_turns(turns: Lanes) -> Lanes:
    """Return cos(2 pi t)."""
    return sine_half_turns(0.5 - 2.0 * absolute(fraction(turns)))


@inlined
def _uniform(places: Places, section: int, i: int) -> float:
    return places.uniforms[section * places.padded + i]


@inlined
def _number(places: Places, section: int, i: int) -> float:
    return places.numbers[section * places.padded + i]


@inlined
def _happens(probability: float, purpose: int, i: int, places: Places) -> bool:
    """Return whether trial i is one of those that something is done to with a probability."""
    return probability > 0.0 and uniform_at(find_base(places.key, places.stream, purpose), i) < probability


@inlined
def _pick_individuals(run: Run, parameter: Run, home: RunPlaces, targets: Pointer[int], places: Places) -> None:
    """Choose target, p-best, r1, r2 and F of each trial.

    NOTE: ranks of top and slots of front are compared as if they were of one population, as in the official program.
    """
    ranking, top_rows, front_rows = home.ranking, home.top_rows, home.front_rows
    size, dimension = run.size, places.dimension
    top_start, front_start = TOP * home.capacity * dimension, FRONT * home.capacity * dimension
    num_pbest = _count_pbest(size, parameter.pbest_share)
    spent = run.evaluations / run.max_evaluations
    triple_pbest = _count_pbest(size, _TRIPLE_PBEST_SHARE * (1.0 - _TRIPLE_PBEST_LOSS * spent))
    for i in range(places.num_trials):
        is_triple = _happens(parameter.triple_probability, _USE_TRIPLE, i, places)
        choices = triple_pbest if is_triple else num_pbest
        target = pick_index(_uniform(places, _TARGET, i), size)
        pbest = pick_index(_uniform(places, _PBEST, i), choices - (target < choices))
        pbest += pbest >= target
        r1 = ranking[min(int(_number(places, _RANK, i)), size - 1)]
        if r1 == pbest:
            r1 = _redraw_rank(i, pbest, ranking, size, parameter.rank_pressure, places)
        r2 = pick_index(_uniform(places, _R2, i), size - 2)
        r2 += r2 >= min(pbest, r1)
        r2 += r2 >= max(pbest, r1)
        best, plus = top_start + top_rows[pbest] * dimension, front_start + front_rows[r1] * dimension
        minus, factor = top_start + top_rows[r2] * dimension, _pick_factor(i, is_triple, parameter, places)
        if is_triple:
            values = home.top_fitness[pbest], home.front_fitness[r1], home.top_fitness[r2]
            best, plus, minus = _put_in_order(best, plus, minus, values)
        targets[i] = target
        _store_rows(i, front_start + front_rows[target] * dimension, best, plus, minus, places)
        places.numbers[_FACTOR * places.padded + i] = factor
        places.numbers[_WEIGHT * places.padded + i] = factor * parameter.pbest_weight


@inlined
def _store_rows(i: int, parent: int, best: int, plus: int, minus: int, places: Places) -> None:
    rows, padded = places.rows, places.padded
    rows[_PARENT * padded + i], rows[_BEST * padded + i] = parent, best
    rows[_PLUS * padded + i], rows[_MINUS * padded + i] = plus, minus


@inlined
def _count_pbest(size: int, share: float) -> int:
    """Return how many ranks of top count as p-best: at least two, so that one remains beside the target's."""
    return min(max(2, int(size * share)), size)


@shared
def _redraw_rank(i: int, pbest: int, ranking: Pointer[int], size: int, pressure: float, places: Places) -> int:
    """Return the slot of a rank of front, by the weights of all ranks but the one whose slot is ``pbest``."""
    base, mass = find_base(places.key, places.stream, _REDRAW_RANK), 1.0 - math.exp(-pressure)
    rank = 0
    for attempt in range(MAX_REDRAWS):
        position = i * MAX_REDRAWS + attempt
        rank = min(int(-size / pressure * math.log(1.0 - mass * uniform_at(base, position))), size - 1)
        if ranking[rank] != pbest:
            return ranking[rank]
    return ranking[(rank + 1) % size]


@inlined
def _pick_factor(i: int, is_triple: bool, parameter: Run, places: Places) -> float:
    """Return F of trial i, drawn anew until it is allowed."""
    if is_triple:
        base = find_base(places.key, places.stream, _TRIPLE_FACTOR)
        return redraw_cauchy(base, i, _TRIPLE_MEAN_FACTOR, _TRIPLE_FACTOR_SPREAD)
    mean, spread = parameter.mean_scale_factor, parameter.scale_factor_spread
    factor = mean + spread * _number(places, _FACTOR_NORMAL, i)
    if factor < 0.0 or factor > 1.0:
        return redraw_normal(find_base(places.key, places.stream, _REDRAW_FACTOR), i, mean, spread)
    return float(factor)


@inlined
def _put_in_order(first: int, second: int, third: int, values: tuple[float, float, float]) -> tuple[int, int, int]:
    """Return three rows, the one with the lowest value first."""
    one, two, three = values
    if two < one:
        first, second, one, two = second, first, two, one
    if three < two:
        second, third, two, three = third, second, three, two
    if two < one:
        first, second = second, first
    return first, second, third


@inlined
def _pick_rates(run: Run, parameter: Run, home: RunPlaces, memories: Pointer[int], places: Places) -> None:
    """Choose CR of each trial, and set one uniform of its crossover to a number that always crosses."""
    uniforms, padded, dimension = places.uniforms, places.padded, places.dimension
    sparse_probability = parameter.sparse_probability * run.sparse_share
    for i in range(places.num_trials):
        kind, spread = MAIN, parameter.crossover_spread
        if _happens(sparse_probability, _USE_SPARSE, i, places):
            kind, spread = SPARSE, _SPARSE_SPREAD
        slot = kind * MEMORY_SIZE + pick_index(_uniform(places, _SLOT, i), MEMORY_SIZE)
        mean = home.memory[slot] + parameter.crossover_shift
        rate = min(max(mean + spread * _number(places, _RATE_NORMAL, i), 0.0), 1.0)
        places.numbers[_RATE * padded + i] = positive_or_never(rate)
        memories[i] = kind
        forced = pick_index(_uniform(places, _FORCED, i), dimension)
        uniforms[_NUM_SECTIONS * padded + i * dimension + forced] = _ALWAYS


@inlined
def _cross_all(parameter: Run, rates: Pointer[float], places: Places) -> None:
    """Write the trials, and the share of their coordinates that were crossed."""
    dimension, points, low, high = places.dimension, places.points, places.low, places.high
    for i in range(places.num_trials):
        rate, drawn = _number(places, _RATE, i), _NUM_SECTIONS * places.padded + i * dimension
        num_crossed, num_outside = 0, 0
        for j in range(dimension):
            num_crossed += places.uniforms[drawn + j] <= rate
        rates[i] = num_crossed / dimension
        is_partial = num_crossed < dimension
        if is_partial and _happens(parameter.eigenvector_probability, _USE_AXES, i, places):
            _cross_axes(i, drawn, places)
        else:
            _cross_row(i, drawn, places)
            if is_partial and _happens(parameter.noise_probability, _USE_NOISE, i, places):
                _add_noise(i, drawn, places)
        for j in range(dimension):
            point = points[i * dimension + j]
            num_outside += (point < low[j]) | (point > high[j])
        if num_outside:
            _repair(i, _happens(parameter.midpoint_probability, _USE_MIDPOINT, i, places), places)


@inlined
def _find_rows(i: int, places: Places) -> tuple[int, int, int, int]:
    rows, padded = places.rows, places.padded
    return rows[_PARENT * padded + i], rows[_BEST * padded + i], rows[_PLUS * padded + i], rows[_MINUS * padded + i]


@inlined
def _cross_row(i: int, drawn: int, places: Places) -> None:
    """Write trial i: the donor's coordinates where the uniform does not exceed CR, the parent's elsewhere."""
    numbers, uniforms, dimension, at = places.positions, places.uniforms, places.dimension, i * places.dimension
    parent, best, plus, minus = _find_rows(i, places)
    weight, factor = _number(places, _WEIGHT, i), _number(places, _FACTOR, i)
    rate = _number(places, _RATE, i)
    for j in range(dimension if dimension < ROW_WIDTH else 0):
        current, leading = numbers[parent + j], numbers[best + j]
        donor = move_to_pbest(current, leading, numbers[plus + j], numbers[minus + j], weight, factor)
        places.points[at + j] = choose(uniforms[drawn + j] <= rate, donor, current)
    for block in range(0, dimension if dimension >= ROW_WIDTH else 0, ROW_WIDTH):
        # The last block overlaps the one before, so that nothing behind the row is touched.
        k = min(block, dimension - ROW_WIDTH)
        row, leaders = load_from(numbers, parent + k), load_from(numbers, best + k)
        added, taken = load_from(numbers, plus + k), load_from(numbers, minus + k)
        donors = move_to_pbest(row, leaders, added, taken, weight, factor)
        store_from(places.points, at + k, choose(load_from(uniforms, drawn + k) <= rate, donors, row))


@shared
def _cross_axes(i: int, drawn: int, places: Places) -> None:
    """Write trial i: moved to the donor along the axes whose uniform does not exceed CR."""
    numbers, move, low, high = places.positions, places.move, places.low, places.high
    parent, best, plus, minus = _find_rows(i, places)
    weight, factor, dimension = _number(places, _WEIGHT, i), _number(places, _FACTOR, i), places.dimension
    for j in range(dimension):
        current, leading = numbers[parent + j], numbers[best + j]
        donor = move_to_pbest(current, leading, numbers[plus + j], numbers[minus + j], weight, factor)
        move[j] = (donor - current) / (high[j] - low[j])
    cross_along_axes(move, places.axes, dimension, places.uniforms, drawn, _number(places, _RATE, i))
    for j in range(dimension):
        places.points[i * dimension + j] = numbers[parent + j] + move[dimension + j] * (high[j] - low[j])


@shared
def _add_noise(i: int, drawn: int, places: Places) -> None:
    """Add Cauchy noise to the coordinates of trial i that were not crossed."""
    base, rate = find_base(places.key, places.stream, _NOISE), _number(places, _RATE, i)
    for j in range(places.dimension):
        at, scale = i * places.dimension + j, _NOISE_SCALE * (places.high[j] - places.low[j])
        if places.uniforms[drawn + j] > rate:
            places.points[at] += scale * cauchy_at(base, at)


@shared
def _repair(i: int, to_middle: bool, places: Places) -> None:
    """Bring trial i back into the box: to the midpoint of its parent and the bound, or drawn anew."""
    base, parent = find_base(places.key, places.stream, _FRESH), places.rows[_PARENT * places.padded + i]
    for j in range(places.dimension):
        at, low, high = i * places.dimension + j, places.low[j], places.high[j]
        if to_middle:
            places.points[at] = to_midpoint(places.points[at], places.positions[parent + j], low, high)
        else:
            places.points[at] = to_fresh(places.points[at], uniform_at(base, at), low, high)
