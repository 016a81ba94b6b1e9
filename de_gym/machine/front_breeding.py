"""The trials of the two-population shell, made for one run and one part of its generation at a time.

Numbers that every trial needs come from the streams of the run's key, filled at once; those that only some trials need
are drawn by position. What no control asks for is not drawn, so it changes nothing else.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from de_gym.arrays import FloatArray
from de_gym.machine.breeding_places import (
    ANGLE,
    BEST,
    FACTOR,
    FACTOR_NORMAL,
    FORCED,
    MINUS,
    NUM_SECTIONS,
    PARENT,
    PBEST,
    PLUS,
    R1,
    R2,
    RADIUS,
    RANK,
    RATE,
    RATE_NORMAL,
    REDRAW_FACTOR,
    REDRAW_RANK,
    SLOT,
    TARGET,
    TRIPLE_FACTOR,
    USE_SPARSE,
    USE_TRIPLE,
    WEIGHT,
    BreedingPlaces,
    BreedingSpace,
    happens,
    num_uniforms,
    number_of,
    pad,
    uniform_of,
)
from de_gym.machine.chances import MAX_REDRAWS, find_base, redraw_cauchy, redraw_normal, uniform_at
from de_gym.machine.compiling import inlined, shared
from de_gym.machine.coordinates import positive_or_never
from de_gym.machine.elementary import fraction, logarithm, sine_half_turns
from de_gym.machine.front_crossing import cross_all
from de_gym.machine.lanes import (
    WIDTH,
    absolute,
    load,
    moved,
    pointer_to,
    square_root,
    store,
)
from de_gym.machine.picks import pick_index
from de_gym.machine.principal_axes import turn_axes
from de_gym.machine.streams import fill_uniforms, seed_streams
from de_gym.machine.top_and_front import (
    FROM_SPARSE,
    FRONT,
    LARGEST_WITH_AXES,
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

if TYPE_CHECKING:
    from de_gym.machine.lanes import Lanes, Pointer

# Below every crossover rate, also below the one that ``positive_or_never`` returns.
_ALWAYS = -2.0

# Uniforms are multiples of 2^-32; half a step keeps the logarithm away from zero.
_HALF_STEP = 2.0**-33

_SPARSE_SPREAD = 0.1

# Ordered triples: their share of p-best, how much of it is gone at the end of the budget, and the distribution of F.
_TRIPLE_PBEST_SHARE, _TRIPLE_PBEST_LOSS = 0.17, 0.5
_TRIPLE_MEAN_FACTOR, _TRIPLE_FACTOR_SPREAD = 0.5, 0.1

# The axes are turned after this many evaluations per squared dimension: often enough for axes that move slowly, and
# seldom enough to cost less than the evaluations.
_EVALUATIONS_PER_TURN = 5


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
    if parameter.eigenvector_probability > 0.0 and lower.shape[1] <= LARGEST_WITH_AXES:
        _turn_axes(index, state, lower[index], upper[index])
    dimension, home = trials.points.shape[1], locate_run(index, state)
    places = BreedingPlaces(
        end - first,
        pad(end - first),
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
    fill_uniforms(states, places.uniforms, num_uniforms(places.num_trials, dimension))
    _make_numbers(run.size, parameter.rank_pressure, places)
    ways = moved(pointer_to(trials.ways), first)
    _pick_individuals(run, parameter, home, moved(pointer_to(trials.targets), first), places)
    _pick_rates(run, parameter, home, ways, places)
    cross_all(run, parameter, moved(pointer_to(trials.rates), first), ways, places)


@inlined
def _turn_axes(index: int, state: TwoPopulations, lower: FloatArray, upper: FloatArray) -> None:
    """Turn the axes of a run towards those of the better half of top, when that is due."""
    run, period = state.runs[index], _EVALUATIONS_PER_TURN * len(lower) ** 2
    if run.basis_evaluations < 0 or run.evaluations - run.basis_evaluations >= period:
        rows = state.rows[index, TOP, : (run.size + 1) // 2]
        turn_axes(state.basis[index], state.positions[index, TOP], rows, lower, upper)
        run.basis_evaluations = run.evaluations


@inlined
def _make_numbers(size: int, pressure: float, places: BreedingPlaces) -> None:
    """Write normals by Box and Muller, and ranks k with probability proportional to exp(-pressure k / size)."""
    # The sum of the weights up to a rank has a closed form, and so has its inverse.
    scale, mass = -size / pressure, 1.0 - math.exp(-pressure)
    for block in range(places.padded // WIDTH):
        radius = square_root(-2.0 * logarithm(_load_uniforms(places, RADIUS, block) + _HALF_STEP))
        angle = _load_uniforms(places, ANGLE, block)
        _store_numbers(places, FACTOR_NORMAL, block, radius * _cosine_turns(angle))
        _store_numbers(places, RATE_NORMAL, block, radius * _cosine_turns(angle - 0.25))
        rank = scale * logarithm(1.0 - mass * _load_uniforms(places, R1, block))
        _store_numbers(places, RANK, block, rank)


@inlined
def _load_uniforms(places: BreedingPlaces, section: int, block: int) -> Lanes:
    return load(places.uniforms, section * (places.padded // WIDTH) + block)


@inlined
def _store_numbers(places: BreedingPlaces, section: int, block: int, lanes: Lanes) -> None:
    store(places.numbers, section * (places.padded // WIDTH) + block, lanes)


@inlined
def _cosine_turns(turns: Lanes) -> Lanes:
    """Return cos(2 pi t)."""
    return sine_half_turns(0.5 - 2.0 * absolute(fraction(turns)))


@inlined
def _pick_individuals(run: Run, parameter: Run, home: RunPlaces, targets: Pointer[int], places: BreedingPlaces) -> None:
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
        is_triple = happens(parameter.triple_probability, USE_TRIPLE, i, places)
        choices = triple_pbest if is_triple else num_pbest
        target = pick_index(uniform_of(places, TARGET, i), size)
        pbest = pick_index(uniform_of(places, PBEST, i), choices - (target < choices))
        pbest += pbest >= target
        r1 = ranking[min(int(number_of(places, RANK, i)), size - 1)]
        if r1 == pbest:
            r1 = _redraw_rank(i, pbest, ranking, size, parameter.rank_pressure, places)
        r2 = pick_index(uniform_of(places, R2, i), size - 2)
        r2 += r2 >= min(pbest, r1)
        r2 += r2 >= max(pbest, r1)
        best, plus = top_start + top_rows[pbest] * dimension, front_start + front_rows[r1] * dimension
        minus, factor = top_start + top_rows[r2] * dimension, _pick_factor(i, is_triple, parameter, places)
        if is_triple:
            values = home.top_fitness[pbest], home.front_fitness[r1], home.top_fitness[r2]
            best, plus, minus = _put_in_order(best, plus, minus, values)
        targets[i] = target
        _store_rows(i, front_start + front_rows[target] * dimension, best, plus, minus, places)
        places.numbers[FACTOR * places.padded + i] = factor
        places.numbers[WEIGHT * places.padded + i] = factor * parameter.pbest_weight


@inlined
def _store_rows(i: int, parent: int, best: int, plus: int, minus: int, places: BreedingPlaces) -> None:
    rows, padded = places.rows, places.padded
    rows[PARENT * padded + i], rows[BEST * padded + i] = parent, best
    rows[PLUS * padded + i], rows[MINUS * padded + i] = plus, minus


@inlined
def _count_pbest(size: int, share: float) -> int:
    """Return how many ranks of top count as p-best: at least two, so that one remains beside the target's."""
    return min(max(2, int(size * share)), size)


@shared
def _redraw_rank(i: int, pbest: int, ranking: Pointer[int], size: int, pressure: float, places: BreedingPlaces) -> int:
    """Return the slot of a rank of front, by the weights of all ranks but the one whose slot is ``pbest``."""
    base, mass = find_base(places.key, places.stream, REDRAW_RANK), 1.0 - math.exp(-pressure)
    rank = 0
    for attempt in range(MAX_REDRAWS):
        position = i * MAX_REDRAWS + attempt
        rank = min(int(-size / pressure * math.log(1.0 - mass * uniform_at(base, position))), size - 1)
        if ranking[rank] != pbest:
            return ranking[rank]
    return ranking[(rank + 1) % size]


@inlined
def _pick_factor(i: int, is_triple: bool, parameter: Run, places: BreedingPlaces) -> float:
    """Return F of trial i, drawn anew until it is allowed."""
    if is_triple:
        base = find_base(places.key, places.stream, TRIPLE_FACTOR)
        return redraw_cauchy(base, i, _TRIPLE_MEAN_FACTOR, _TRIPLE_FACTOR_SPREAD)
    mean, spread = parameter.mean_scale_factor, parameter.scale_factor_spread
    factor = mean + spread * number_of(places, FACTOR_NORMAL, i)
    if factor < 0.0 or factor > 1.0:
        return redraw_normal(find_base(places.key, places.stream, REDRAW_FACTOR), i, mean, spread)
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
def _pick_rates(run: Run, parameter: Run, home: RunPlaces, ways: Pointer[int], places: BreedingPlaces) -> None:
    """Choose CR of each trial, and set one uniform of its crossover to a number that always crosses."""
    uniforms, padded, dimension = places.uniforms, places.padded, places.dimension
    sparse_probability = parameter.sparse_probability * run.shares[FROM_SPARSE]
    for i in range(places.num_trials):
        kind, spread, ways[i] = MAIN, parameter.crossover_spread, 0
        if happens(sparse_probability, USE_SPARSE, i, places):
            kind, spread, ways[i] = SPARSE, _SPARSE_SPREAD, 1 << FROM_SPARSE
        slot = kind * MEMORY_SIZE + pick_index(uniform_of(places, SLOT, i), MEMORY_SIZE)
        mean = home.memory[slot] + parameter.crossover_shift
        rate = min(max(mean + spread * number_of(places, RATE_NORMAL, i), 0.0), 1.0)
        places.numbers[RATE * padded + i] = positive_or_never(rate)
        forced = pick_index(uniform_of(places, FORCED, i), dimension)
        uniforms[NUM_SECTIONS * padded + i * dimension + forced] = _ALWAYS
