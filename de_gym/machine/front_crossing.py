"""Crossover of the two-population shell: writes one run's trials, given what was chosen for each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from de_gym.machine.breeding import fetch
from de_gym.machine.breeding_places import (
    BEST,
    FACTOR,
    FRESH,
    MINUS,
    NOISE,
    NUM_SECTIONS,
    PARENT,
    PLUS,
    RATE,
    USE_AXES,
    USE_MIDPOINT,
    USE_NOISE,
    WEIGHT,
    BreedingPlaces,
    happens,
    number_of,
)
from de_gym.machine.chances import cauchy_at, find_base, uniform_at
from de_gym.machine.compiling import inlined, shared
from de_gym.machine.coordinates import move_to_pbest, to_fresh, to_midpoint
from de_gym.machine.lanes import (
    WIDTH,
    choose,
    count_true,
    larger_of,
    load_wide,
    moved,
    smaller_of,
    stay_apart,
    store_from,
)
from de_gym.machine.principal_axes import cross_along_axes
from de_gym.machine.top_and_front import ALONG_AXES, LARGEST_WITH_AXES, Run

if TYPE_CHECKING:
    from de_gym.machine.lanes import Pointer

# How many trials before its own the rows of a trial are fetched: memory answers after some of them.
_TRIALS_AHEAD = 6

# Scale of the noise in widths of the box.
_NOISE_SCALE = 0.0005


@inlined
def cross_all(run: Run, parameter: Run, rates: Pointer[float], ways: Pointer[int], places: BreedingPlaces) -> None:
    """Write the trials, and the share of their coordinates that were crossed."""
    dimension = places.dimension
    axes_probability = parameter.eigenvector_probability * run.shares[ALONG_AXES]
    axes_probability *= dimension <= LARGEST_WITH_AXES
    noise_probability, midpoint_probability = parameter.noise_probability, parameter.midpoint_probability
    for i in range(places.num_trials):
        _fetch_rows(min(i + _TRIALS_AHEAD, places.num_trials - 1), places)
        drawn = NUM_SECTIONS * places.padded + i * dimension
        if dimension < WIDTH:
            num_crossed, is_outside = _cross_narrow(i, drawn, places)
        else:
            num_crossed, is_outside = _cross_wide(i, drawn, places)
        rates[i] = num_crossed / dimension
        if num_crossed < dimension and axes_probability + noise_probability > 0.0:
            if happens(axes_probability, USE_AXES, i, places):
                _cross_axes(i, drawn, places)
                ways[i] += 1 << ALONG_AXES
            elif happens(noise_probability, USE_NOISE, i, places):
                _add_noise(i, drawn, places)
            is_outside = True
        if is_outside:
            _repair(i, happens(midpoint_probability, USE_MIDPOINT, i, places), places)


@inlined
def _fetch_rows(i: int, places: BreedingPlaces) -> None:
    """Have the rows of trial i fetched, which come from anywhere in the memory of a run."""
    for start in _find_rows(i, places):
        fetch(moved(places.positions, start), places.dimension)


@inlined
def _find_rows(i: int, places: BreedingPlaces) -> tuple[int, int, int, int]:
    rows, padded = places.rows, places.padded
    return rows[PARENT * padded + i], rows[BEST * padded + i], rows[PLUS * padded + i], rows[MINUS * padded + i]


@inlined
def _cross_narrow(i: int, drawn: int, places: BreedingPlaces) -> tuple[int, bool]:
    """Write trial i: the donor's coordinates where the uniform does not exceed CR, the parent's elsewhere.

    Returns:
        How many coordinates were crossed, and whether the trial lies outside the box.
    """
    numbers, (parent, best, plus, minus) = places.positions, _find_rows(i, places)
    weight, factor, rate = number_of(places, WEIGHT, i), number_of(places, FACTOR, i), number_of(places, RATE, i)
    num_crossed, num_outside = 0, 0
    for j in range(places.dimension):
        current, leading = numbers[parent + j], numbers[best + j]
        donor = move_to_pbest(current, leading, numbers[plus + j], numbers[minus + j], weight, factor)
        is_crossed = places.uniforms[drawn + j] <= rate
        point = choose(is_crossed, donor, current)
        places.points[i * places.dimension + j] = point
        num_crossed += is_crossed
        num_outside += (point < places.low[j]) | (point > places.high[j])
    return num_crossed, num_outside > 0


@inlined
def _cross_wide(i: int, drawn: int, places: BreedingPlaces) -> tuple[int, bool]:
    """Do the same WIDTH coordinates at a time."""
    numbers, (parent, best, plus, minus), dimension = places.positions, _find_rows(i, places), places.dimension
    weight, factor, rate = number_of(places, WEIGHT, i), number_of(places, FACTOR, i), number_of(places, RATE, i)
    num_crossed, num_outside, k, num_seen, last = 0, 0, 0, 0, dimension - WIDTH
    while True:
        current, leading = load_wide(numbers, parent + k), load_wide(numbers, best + k)
        added, taken = load_wide(numbers, plus + k), load_wide(numbers, minus + k)
        donor = move_to_pbest(current, leading, added, taken, weight, factor)
        is_crossed = load_wide(places.uniforms, drawn + k) <= rate
        point = choose(is_crossed, donor, current)
        store_from(places.points, i * dimension + k, point)
        num_crossed += count_true(is_crossed, num_seen)
        num_outside += count_true((point < load_wide(places.low, k)) | (point > load_wide(places.high, k)), 0)
        if k == last:
            break
        # The last block overlaps the one before, so that nothing behind the row is touched.
        num_seen, k = larger_of(k + 2 * WIDTH - dimension, 0), smaller_of(k + WIDTH, last)
    return num_crossed, num_outside > 0


@shared
def _cross_axes(i: int, drawn: int, places: BreedingPlaces) -> None:
    """Write trial i: moved to the donor along the axes whose uniform does not exceed CR."""
    stay_apart()
    numbers, move, low, high = places.positions, places.move, places.low, places.high
    parent, best, plus, minus = _find_rows(i, places)
    weight, factor, dimension = number_of(places, WEIGHT, i), number_of(places, FACTOR, i), places.dimension
    for j in range(dimension):
        current, leading = numbers[parent + j], numbers[best + j]
        donor = move_to_pbest(current, leading, numbers[plus + j], numbers[minus + j], weight, factor)
        move[j] = (donor - current) / (high[j] - low[j])
    cross_along_axes(move, places.axes, dimension, places.uniforms, drawn, number_of(places, RATE, i))
    for j in range(dimension):
        places.points[i * dimension + j] = numbers[parent + j] + move[dimension + j] * (high[j] - low[j])


@shared
def _add_noise(i: int, drawn: int, places: BreedingPlaces) -> None:
    """Add Cauchy noise to the coordinates of trial i that were not crossed."""
    stay_apart()
    base, rate = find_base(places.key, places.stream, NOISE), number_of(places, RATE, i)
    for j in range(places.dimension):
        at, scale = i * places.dimension + j, _NOISE_SCALE * (places.high[j] - places.low[j])
        if places.uniforms[drawn + j] > rate:
            places.points[at] += scale * cauchy_at(base, at)


@shared
def _repair(i: int, to_middle: bool, places: BreedingPlaces) -> None:
    """Bring trial i back into the box: to the midpoint of its parent and the bound, or drawn anew."""
    stay_apart()
    base, parent = find_base(places.key, places.stream, FRESH), places.rows[PARENT * places.padded + i]
    for j in range(places.dimension):
        at, low, high = i * places.dimension + j, places.low[j], places.high[j]
        if to_middle:
            places.points[at] = to_midpoint(places.points[at], places.positions[parent + j], low, high)
        else:
            places.points[at] = to_fresh(places.points[at], uniform_at(base, at), low, high)
