"""The trials of the two-population shell, made for one run and one part of its generation at a time.

Numbers that every trial needs come from the streams of the run's key, filled at once; those that only some trials need
are drawn by position. What no control asks for is not drawn, so it changes nothing else.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from de_gym.machine.breeding_places import (
    ANGLE,
    BEST,
    CERTAIN,
    FACTOR,
    FORCED,
    FRONT_RANK,
    MINUS,
    NEW_POINT,
    NUM_SECTIONS,
    OTHER_RANK,
    PARENT,
    PBEST,
    PBEST_RANK,
    PLUS,
    R1,
    R2,
    RADIUS,
    RATE,
    RATE_NORMAL,
    REDRAW_FACTOR,
    REDRAW_RANK,
    SLOT,
    TARGET,
    TARGET_RANK,
    TRIPLE_FACTOR,
    USE_IN_PLACE,
    USE_RESTART,
    USE_SPARSE,
    USE_TRIPLE,
    WEIGHT,
    BreedingPlaces,
    SpacePlaces,
    happens,
    num_uniforms,
    number_of,
    pad,
    uniform_of,
)
from de_gym.machine.chances import MAX_REDRAWS, find_base, redraw_cauchy, redraw_normal, uniform_at
from de_gym.machine.compiling import inlined, shared
from de_gym.machine.coordinates import NEVER
from de_gym.machine.elementary import fraction, logarithm, sine_half_turns
from de_gym.machine.front_crossing import cross_all
from de_gym.machine.lanes import (
    WIDTH,
    absolute,
    choose,
    larger_of,
    load,
    round_down,
    smaller_of,
    square_root,
    stay_apart,
    store,
    whole_of,
)
from de_gym.machine.picks import pick_index
from de_gym.machine.principal_axes import turn_axes
from de_gym.machine.selection import copy_row
from de_gym.machine.streams import fill_uniforms, seed_streams
from de_gym.machine.top_and_front import (
    FROM_SPARSE,
    FRONT,
    IN_PLACE,
    LARGEST_WITH_AXES,
    MEMORY_SIZE,
    PARTS_PER_GENERATION,
    SPARSE,
    TOP,
    Run,
    RunPlaces,
    TrialPlaces,
)

if TYPE_CHECKING:
    from de_gym.machine.coordinates import Number
    from de_gym.machine.lanes import Lanes, Pointer

# Below every crossover rate, also below ``NEVER``.
_ALWAYS = -2.0

# Uniforms are multiples of 2^-32; half a step keeps the logarithm away from zero.
_HALF_STEP = 2.0**-33

_SPARSE_SPREAD = 0.1

# Ordered triples: their share of p-best, how much of it is gone at the end of the budget, and the distribution of F.
_TRIPLE_PBEST_SHARE, _TRIPLE_PBEST_LOSS = 0.17, 0.5
_TRIPLE_MEAN_FACTOR, _TRIPLE_FACTOR_SPREAD = 0.5, 0.1

# Relative difference of values that count as equal: little more than the rounding errors of a function.
_EQUAL = 1e-12

# Generations without a new best value before a population that has one value counts as stuck: on a narrow ridge it may
# still improve, in its last digits.
_PATIENCE = 10

# The axes are turned after this many evaluations per squared dimension: often enough for axes that move slowly, and
# seldom enough to cost less than the evaluations.
_EVALUATIONS_PER_TURN = 5


@shared
def breed_run(
    run: Run,
    parameter: Run,
    count: int,
    home: RunPlaces,
    low: Pointer[float],
    high: Pointer[float],
    trials: TrialPlaces,
    space: SpacePlaces,
) -> None:
    """Write the next ``count`` trials of a run within the bounds ``low`` and ``high``."""
    dimension = home.dimension
    places = BreedingPlaces(
        count,
        pad(count),
        dimension,
        run.key,
        run.generation * PARTS_PER_GENERATION + run.part,
        space.uniforms,
        space.numbers,
        space.rows,
        space.move,
        home.top,
        home.axes,
        low,
        high,
        trials.points,
    )
    if run.part == 0:
        run.begins_anew = _has_nothing_left(run, home) and happens(
            parameter.restart_probability, USE_RESTART, 0, places
        )
        if run.begins_anew:
            _forget_values(run, home)
    if run.begins_anew:
        _draw_new_points(run, trials, places)
        return
    seed_streams(places.key, places.stream, space.states)
    fill_uniforms(space.states, places.uniforms, num_uniforms(count, dimension))
    _make_numbers(run, parameter, home, places)
    _pick_individuals(run, parameter, home, trials.targets, places)
    _pick_memories(run, parameter, home, trials.ways, places)
    _pick_entrants(parameter.in_place_probability, trials.ways, places)
    cross_all(run, parameter, trials.rates, trials.ways, places)


@inlined
def _has_nothing_left(run: Run, home: RunPlaces) -> bool:
    """Return whether the better half of top has had one value, up to rounding errors, for a while."""
    best = home.top_fitness[0]
    return run.stagnation >= _PATIENCE and home.top_fitness[run.size // 2] - best <= _EQUAL * abs(best)


@shared
def _forget_values(run: Run, home: RunPlaces) -> None:
    """Let every new point be better than whoever is there, but keep the best point that was found."""
    stay_apart()
    if run.leading_fitness == run.best_fitness:
        copy_row(home.top, home.top_rows[0] * home.dimension, home.former_best, 0, home.dimension)
    for slot in range(run.size):
        home.front_fitness[slot] = home.top_fitness[slot] = math.inf
    run.leading_fitness = math.inf


@shared
def _draw_new_points(run: Run, trials: TrialPlaces, places: BreedingPlaces) -> None:
    """Write points uniform in the box, which enter front one slot after another."""
    stay_apart()
    base, low, high, dimension = (
        find_base(places.key, places.stream, NEW_POINT),
        places.low,
        places.high,
        places.dimension,
    )
    for i in range(places.num_trials):
        for j in range(dimension):
            places.points[i * dimension + j] = low[j] + uniform_at(base, i * dimension + j) * (high[j] - low[j])
        trials.targets[i] = (run.cursor + i) % run.size
        trials.rates[i], trials.ways[i] = 1.0, 0


@shared
def turn_axes_in_time(
    run: Run, home: RunPlaces, low: Pointer[float], high: Pointer[float], memory: Pointer[float]
) -> None:
    """Turn the axes of a run towards those of the better half of top, when that is due."""
    stay_apart()
    dimension = home.dimension
    period = _EVALUATIONS_PER_TURN * dimension * dimension
    is_due = run.basis_evaluations < 0 or run.evaluations - run.basis_evaluations >= period
    if dimension <= LARGEST_WITH_AXES and is_due:
        turn_axes(home.axes, home.top, home.top_rows, (run.size + 1) // 2, dimension, low, high, memory)
        run.basis_evaluations = run.evaluations


@inlined
def _make_numbers(run: Run, parameter: Run, home: RunPlaces, places: BreedingPlaces) -> None:
    """Write what can be computed for many trials at once, as if none of them were special."""
    pressure = parameter.rank_pressure
    # Ranks k with probability proportional to exp(-pressure k / size): the sum of the weights up to a rank has a closed
    # form, and so has its inverse.
    scale, mass = -run.size / pressure, 1.0 - math.exp(-pressure)
    last, size, num_pbest = run.size - 1.0, float(run.size), float(_count_pbest(run.size, parameter.pbest_share))
    mean, spread, weight = parameter.mean_scale_factor, parameter.scale_factor_spread, parameter.pbest_weight
    shift, rate_spread, memory = parameter.crossover_shift, parameter.crossover_spread, home.memory
    dimension = float(places.dimension)
    for block in range(places.padded // WIDTH):
        target = round_down(_load_uniforms(places, TARGET, block) * size)
        choices = choose(target < num_pbest, num_pbest - 1.0, num_pbest)
        pbest = round_down(_load_uniforms(places, PBEST, block) * choices)
        _store_numbers(places, TARGET_RANK, block, target)
        _store_numbers(places, PBEST_RANK, block, choose(pbest < target, pbest, pbest + 1.0))
        rank = round_down(scale * logarithm(1.0 - mass * _load_uniforms(places, R1, block)))
        _store_numbers(places, FRONT_RANK, block, choose(rank < last, rank, last))
        _store_numbers(places, OTHER_RANK, block, round_down(_load_uniforms(places, R2, block) * (size - 2.0)))
        # Normals by Box and Muller.
        radius = square_root(-2.0 * logarithm(_load_uniforms(places, RADIUS, block) + _HALF_STEP))
        angle = _load_uniforms(places, ANGLE, block)
        factor = mean + spread * (radius * _cosine_turns(angle))
        _store_numbers(places, FACTOR, block, factor)
        _store_numbers(places, WEIGHT, block, factor * weight)
        normal = radius * _cosine_turns(angle - 0.25)
        _store_numbers(places, RATE_NORMAL, block, normal)
        slot = _load_uniforms(places, SLOT, block) * float(MEMORY_SIZE)
        remembered = choose(slot < 1.0, memory[0], memory[1])
        for entry in range(2, MEMORY_SIZE):
            remembered = choose(slot < float(entry), remembered, memory[entry])
        _store_numbers(places, RATE, block, _limit_rate(remembered + shift + rate_spread * normal))
        _store_numbers(places, CERTAIN, block, round_down(_load_uniforms(places, FORCED, block) * dimension))


@inlined
def _limit_rate(rate: Number) -> Number:
    """Return a crossover rate of at most 1; one that no uniform reaches where it is not above 0."""
    return choose(rate > 0.0, choose(rate < 1.0, rate, 1.0), NEVER)


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
    """Choose target, p-best, r1 and r2 of each trial, and draw F anew until it is allowed.

    NOTE: ranks of top and slots of front are compared as if they were of one population, as in the official program.
    """
    ranking, size, dimension, numbers, padded = home.ranking, run.size, places.dimension, places.numbers, places.padded
    front_start = (FRONT - TOP) * home.capacity * dimension
    triple_probability, certain = parameter.triple_probability, NUM_SECTIONS * padded
    for i in range(places.num_trials):
        target, pbest = whole_of(numbers[TARGET_RANK * padded + i]), whole_of(numbers[PBEST_RANK * padded + i])
        is_triple = happens(triple_probability, USE_TRIPLE, i, places)
        if is_triple:
            pbest = _pick_pbest_of_triple(i, target, run, places)
        r1 = ranking[whole_of(numbers[FRONT_RANK * padded + i])]
        if r1 == pbest:
            r1 = _redraw_rank(i, pbest, ranking, size, parameter.rank_pressure, places)
        r2 = whole_of(numbers[OTHER_RANK * padded + i])
        r2 += r2 >= smaller_of(pbest, r1)
        r2 += r2 >= larger_of(pbest, r1)
        targets[i] = target
        parent, plus = home.front_rows[target] * dimension, home.front_rows[r1] * dimension
        best, minus = home.top_rows[pbest] * dimension, home.top_rows[r2] * dimension
        _store_rows(i, front_start + parent, best, front_start + plus, minus, places)
        factor = numbers[FACTOR * padded + i]
        if is_triple:
            values = home.top_fitness[pbest], home.front_fitness[r1], home.top_fitness[r2]
            best, plus, minus = _put_in_order(best, front_start + plus, minus, values)
            _store_rows(i, front_start + parent, best, plus, minus, places)
            base = find_base(places.key, places.stream, TRIPLE_FACTOR)
            _store_factor(i, redraw_cauchy(base, i, _TRIPLE_MEAN_FACTOR, _TRIPLE_FACTOR_SPREAD), parameter, places)
        elif factor < 0.0 or factor > 1.0:
            base, spread = find_base(places.key, places.stream, REDRAW_FACTOR), parameter.scale_factor_spread
            _store_factor(i, redraw_normal(base, i, parameter.mean_scale_factor, spread), parameter, places)
        places.uniforms[certain + i * dimension + whole_of(numbers[CERTAIN * padded + i])] = _ALWAYS


@inlined
def _store_rows(i: int, parent: int, best: int, plus: int, minus: int, places: BreedingPlaces) -> None:
    rows, padded = places.rows, places.padded
    rows[PARENT * padded + i], rows[BEST * padded + i] = parent, best
    rows[PLUS * padded + i], rows[MINUS * padded + i] = plus, minus


@inlined
def _store_factor(i: int, factor: float, parameter: Run, places: BreedingPlaces) -> None:
    places.numbers[FACTOR * places.padded + i] = factor
    places.numbers[WEIGHT * places.padded + i] = factor * parameter.pbest_weight


@shared
def _pick_pbest_of_triple(i: int, target: int, run: Run, places: BreedingPlaces) -> int:
    stay_apart()
    spent = run.evaluations / run.max_evaluations
    choices = _count_pbest(run.size, _TRIPLE_PBEST_SHARE * (1.0 - _TRIPLE_PBEST_LOSS * spent))
    pbest = pick_index(uniform_of(places, PBEST, i), choices - (target < choices))
    return pbest + (pbest >= target)


@inlined
def _count_pbest(size: int, share: float) -> int:
    """Return how many ranks of top count as p-best: at least two, so that one remains beside the target's."""
    return smaller_of(larger_of(2, whole_of(size * share)), size)


@shared
def _redraw_rank(i: int, pbest: int, ranking: Pointer[int], size: int, pressure: float, places: BreedingPlaces) -> int:
    """Return the slot of a rank of front, by the weights of all ranks but the one whose slot is ``pbest``."""
    stay_apart()
    base, mass = find_base(places.key, places.stream, REDRAW_RANK), 1.0 - math.exp(-pressure)
    rank = 0
    for attempt in range(MAX_REDRAWS):
        position = i * MAX_REDRAWS + attempt
        rank = whole_of(-size / pressure * math.log(1.0 - mass * uniform_at(base, position)))
        rank = smaller_of(rank, size - 1)
        if ranking[rank] != pbest:
            return ranking[rank]
    return ranking[(rank + 1) % size]


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
def _pick_memories(run: Run, parameter: Run, home: RunPlaces, ways: Pointer[int], places: BreedingPlaces) -> None:
    """Have some trials take their CR from the sparse memory."""
    probability = parameter.sparse_probability * run.shares[FROM_SPARSE]
    for i in range(places.num_trials):
        ways[i] = 0
    for i in range(places.num_trials if probability > 0.0 else 0):
        if happens(probability, USE_SPARSE, i, places):
            slot = SPARSE * MEMORY_SIZE + pick_index(uniform_of(places, SLOT, i), MEMORY_SIZE)
            mean = home.memory[slot] + parameter.crossover_shift
            rate = mean + _SPARSE_SPREAD * number_of(places, RATE_NORMAL, i)
            places.numbers[RATE * places.padded + i] = _limit_rate(rate)
            ways[i] = 1 << FROM_SPARSE


@inlined
def _pick_entrants(probability: float, ways: Pointer[int], places: BreedingPlaces) -> None:
    """Have some trials, should they succeed, take the place of their target."""
    for i in range(places.num_trials if probability > 0.0 else 0):
        if happens(probability, USE_IN_PLACE, i, places):
            ways[i] += 1 << IN_PLACE
