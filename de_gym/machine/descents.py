"""Quasi-Newton descents of R runs inside their boxes: what each wants evaluated next, and what it makes of the values.

Gradients are finite differences, so a step costs as many evaluations as there are coordinates; looking along its
direction costs one each, and is done more often than methods do that are given gradients. Sums are made in one order
everywhere; those of linear algebra depend on the processor.

Reference: Nocedal and Wright, "Numerical Optimization" (2006), chapters 3 and 6: line searches and BFGS.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from de_gym.arrays import FloatArray, IntArray, RunArray
from de_gym.machine.compiling import compiled, inlined, shared
from de_gym.machine.lanes import as_integers, hold, larger_of, moved, pointer_to, smaller_of, stay_apart

if TYPE_CHECKING:
    from de_gym.machine.lanes import Pointer

# What a descent waits for: nothing once it is over; the values around its point, at the end of a step, or at the place
# along it, nearer or farther, where a parabola says that the step should have ended.
OVER, AROUND, STEP, AGAIN = range(4)

# Second index within ``vectors``: where it is, where its last step began, the slopes there, and the step.
POINT, FORMER, SLOPES, DIRECTION = range(4)
NUM_VECTORS = 4

# Of finite differences, in multiples of the box; and of coordinates, where the box is narrow and far from zero.
_DIFFERENCE, _DIFFERENCE_FAR_AWAY = 2e-9, 1e-12

# In multiples of the box: steps whose scale nobody knows, and the longest of all.
_FIRST_STEP, _LONGEST_STEP = 0.01, 1.0

# What a step must gain of what the slopes promise, and how often it is shortened where it does not.
_LEAST_SHARE, _MOST_TRIALS = 1e-4, 12

# By which factors a step that gains too little is made shorter, and one that gains enough is looked at again.
_MOST_SHORTENED, _LEAST_SHORTENED, _MOST_STRETCHED = 0.1, 0.5, 4.0

# Between these factors it is not worth another look.
_GOOD_ENOUGH_FROM, _GOOD_ENOUGH_TO = 0.8, 1.25

# The descent has ended when so many steps gain less than these shares of the value and of all that was gained.
_LAST_STEPS, _LEAST_OF_VALUE, _LEAST_OF_GAIN = 4, 1e-12, 1e-16
_NUM_LAST_VALUES = _LAST_STEPS + 1

# Curvature along a step that rounding errors may have made.
_LEAST_CURVATURE = 1e-10

# Sums are made of so many others, which vector instructions make at once.
_NUM_SUMS = 8

# Vectors in the memory to work in.
_NUM_WORKING = 4

# One record of ``DESCENT``; numba knows its fields, a type checker cannot.
Descent: TypeAlias = Any

DESCENT = np.dtype(
    [
        ("phase", "i8"),  # what it waits for
        ("value", "f8"),  # at its point
        ("first_value", "f8"),
        ("last_values", "f8", _NUM_LAST_VALUES),  # after the last steps, in turn
        ("num_values", "i8"),  # so far, the first one included
        ("num_trials", "i8"),  # lengths of this step that were tried
        ("length", "f8"),  # of the step, in multiples of the direction
        ("has_scale", "i8"),  # whether a step has shown curvature, from which the metric has its scale
    ],
    align=True,
)


class DescentState(NamedTuple):
    """Everything that R descents remember.

    Attributes:
        runs: The numbers of each, dtype ``DESCENT``, shape (R,).
        vectors: Shape (R, NUM_VECTORS, D).
        metric: What is known of the inverse of the second derivatives, in widths of the box, shape (R, D, D).
    """

    runs: RunArray
    vectors: FloatArray
    metric: FloatArray


class Box(NamedTuple):
    """Bounds of R runs.

    Attributes:
        lower: Shape (R, D).
        upper: Shape (R, D).
    """

    lower: FloatArray
    upper: FloatArray


def begin_descent(state: DescentState, run: int, point: FloatArray, value: float) -> None:
    """Let a run descend from a point of known value."""
    state.runs[run] = 0
    for field in ("value", "first_value"):
        state.runs[field][run] = value
    state.runs["last_values"][run, 0] = value
    state.runs["num_values"][run], state.runs["phase"][run] = 1, AROUND
    state.vectors[run, POINT] = point
    state.metric[run] = np.eye(len(point))


class Places(NamedTuple):
    """Where the numbers of one run begin.

    Attributes:
        dimension: Number of coordinates, D.
        point: Where it is, shape (D,).
        former: Where its last step began.
        slopes: What is known of the slopes there, per width of the box.
        direction: Of the step, in widths of the box.
        metric: Shape (D, D).
        low: Lower bounds.
        high: Upper bounds.
    """

    dimension: int
    point: Pointer[float]
    former: Pointer[float]
    slopes: Pointer[float]
    direction: Pointer[float]
    metric: Pointer[float]
    low: Pointer[float]
    high: Pointer[float]


@inlined
def _locate(run: int, state: DescentState, box: Box) -> Places:
    dimension = box.lower.shape[1]
    vectors = moved(pointer_to(state.vectors), run * NUM_VECTORS * dimension)
    return Places(
        dimension,
        moved(vectors, POINT * dimension),
        moved(vectors, FORMER * dimension),
        moved(vectors, SLOPES * dimension),
        moved(vectors, DIRECTION * dimension),
        moved(pointer_to(state.metric), run * dimension * dimension),
        moved(pointer_to(box.lower), run * dimension),
        moved(pointer_to(box.upper), run * dimension),
    )


@compiled
def ask_descents(state: DescentState, box: Box, starts: IntArray, points: FloatArray) -> None:
    """Write the points that each run wants evaluated next, as many as ``starts`` (R + 1,) says."""
    for run in range(starts.shape[0] - 1):
        home, count = _locate(run, state, box), starts[run + 1] - starts[run]
        own = moved(pointer_to(points), starts[run] * home.dimension)
        if state.runs[run].phase == AROUND:
            for place in range(count):
                for j in range(home.dimension):
                    own[place * home.dimension + j] = home.point[j]
                own[place * home.dimension + place] = _neighbour(home, place)
        elif count:
            for j in range(home.dimension):
                own[j] = _target(state.runs[run], home, j)


@compiled
def tell_descents(state: DescentState, box: Box, points: FloatArray, starts: IntArray, values: FloatArray) -> None:
    """Take the values of the points; a descent that is told of other points than it asked for is over."""
    memory = np.empty(_NUM_WORKING * points.shape[1])
    for run in range(starts.shape[0] - 1):
        first, count = starts[run], starts[run + 1] - starts[run]
        if count == 0:
            continue
        descent, home, room = state.runs[run], _locate(run, state, box), pointer_to(memory)
        own, found = moved(pointer_to(points), first * home.dimension), moved(pointer_to(values), first)
        if not _are_as_asked(descent, home, own, count):
            descent.phase = OVER
        elif descent.phase == AROUND:
            _take_slopes(descent, home, found, room)
        elif descent.phase == STEP:
            _take_step(descent, home, found[0], room)
        else:
            if found[0] < descent.value:
                _go_to_target(descent, home, found[0])
            _arrive(descent)
    hold(memory)


@inlined
def _neighbour(home: Places, j: int) -> float:
    """Return coordinate ``j`` of the point beside the descent's own along it, inside the box."""
    at, width = home.point[j], _width(home, j)
    step = smaller_of(larger_of(_DIFFERENCE * width, _DIFFERENCE_FAR_AWAY * abs(at)), 0.5 * width)
    return at - step if at + step > home.high[j] else at + step


@inlined
def _target(descent: Descent, home: Places, j: int) -> float:
    """Return coordinate ``j`` of where the step leads."""
    target = home.former[j] + descent.length * home.direction[j] * _width(home, j)
    return smaller_of(larger_of(target, home.low[j]), home.high[j])


@inlined
def _width(home: Places, j: int) -> float:
    return home.high[j] - home.low[j]


@shared
def _are_as_asked(descent: Descent, home: Places, points: Pointer[float], count: int) -> bool:
    """Return whether the points are those that the descent asked for."""
    num_others = 0
    if descent.phase != AROUND:
        for j in range(home.dimension):
            num_others += points[j] != _target(descent, home, j)
        return num_others == 0 and count == 1
    if count != home.dimension:
        return False
    for place in range(count):
        row, neighbour = place * home.dimension, _neighbour(home, place)
        for j in range(home.dimension):
            num_others += points[row + j] != home.point[j]
        num_others -= neighbour != home.point[place]
        if points[row + place] != neighbour:
            return False
    return num_others == 0


@shared
def _take_slopes(descent: Descent, home: Places, values: Pointer[float], room: Pointer[float]) -> None:
    """Begin a step by the values around the point, where there is a way down."""
    dimension, found = home.dimension, room
    descent.phase = OVER
    for j in range(dimension):
        found[j] = (values[j] - descent.value) / ((_neighbour(home, j) - home.point[j]) / _width(home, j))
        if not _is_finite(found[j]):
            return
    if descent.num_values > 1:
        _learn_curvature(descent, home, found, moved(room, dimension))
    for j in range(dimension):
        home.former[j], home.slopes[j] = home.point[j], found[j]
    _choose_direction(home, room)
    product = _product(home.slopes, home.direction, dimension, room)
    if not (product < 0.0 and _is_finite(product)):
        return
    _limit_step(descent, home)
    descent.length, descent.num_trials, descent.phase = 1.0, 0, STEP


@inlined
def _is_finite(number: float) -> bool:
    return number - number == 0.0


@inlined
def _limit_step(descent: Descent, home: Places) -> None:
    """Shorten the direction where it leads out of the box anyway, or where nobody knows its scale."""
    longest, limit = 0.0, _LONGEST_STEP if descent.has_scale else _FIRST_STEP
    for j in range(home.dimension):
        longest = larger_of(longest, abs(home.direction[j]))
    for j in range(home.dimension):
        if longest > limit or not descent.has_scale:
            home.direction[j] *= limit / longest


@shared
def _choose_direction(home: Places, room: Pointer[float]) -> None:
    """Write the quasi-Newton direction along the coordinates along which the way down does not leave the box."""
    dimension, free, num_free = home.dimension, as_integers(moved(room, home.dimension)), 0
    for j in range(dimension):
        home.direction[j] = 0.0
        leaves_below = home.point[j] <= home.low[j] and home.slopes[j] > 0.0
        leaves_above = home.point[j] >= home.high[j] and home.slopes[j] < 0.0
        if not (leaves_below or leaves_above):
            free[num_free] = j
            num_free += 1
    for k in range(num_free):
        row = free[k] * dimension
        for other in range(num_free):
            room[other] = home.metric[row + free[other]] * home.slopes[free[other]]
        home.direction[free[k]] = -_sum(room, num_free)


@shared
def _learn_curvature(descent: Descent, home: Places, found: Pointer[float], room: Pointer[float]) -> None:
    """Update the metric by a step that changed the slopes into those found; the former slopes are overwritten.

    The first step to show curvature sets the metric's scale; one that shows none, or a negative one, says nothing.
    """
    dimension, change = home.dimension, home.slopes
    scaled, terms, step = room, moved(room, dimension), moved(room, 2 * dimension)
    for j in range(dimension):
        step[j], change[j] = (home.point[j] - home.former[j]) / _width(home, j), found[j] - home.slopes[j]
    product = _product(step, change, dimension, terms)
    length, size = _product(step, step, dimension, terms), _product(change, change, dimension, terms)
    if not product > _LEAST_CURVATURE * math.sqrt(length) * math.sqrt(size):
        return
    _multiply(home.metric, change, dimension, scaled, terms)
    if not descent.has_scale:
        descent.has_scale = 1
        factor = product / _product(change, scaled, dimension, terms)
        for entry in range(dimension * dimension):
            home.metric[entry] *= factor
        _multiply(home.metric, change, dimension, scaled, terms)
    own = (1.0 + _product(change, scaled, dimension, terms) / product) / product
    for i in range(dimension):
        for j in range(dimension):
            crossed = scaled[i] * step[j] + scaled[j] * step[i]
            entry = i * dimension + j
            home.metric[entry] = home.metric[entry] + own * (step[i] * step[j]) - crossed / product


@shared
def _multiply(
    metric: Pointer[float], vector: Pointer[float], dimension: int, result: Pointer[float], terms: Pointer[float]
) -> None:
    """Write the product of the metric and a vector."""
    for i in range(dimension):
        result[i] = _product(moved(metric, i * dimension), vector, dimension, terms)


@shared
def _take_step(descent: Descent, home: Places, found: float, room: Pointer[float]) -> None:
    """Go where the step leads if that is lower, and look along it again where a parabola says so; or shorten it."""
    for j in range(home.dimension):
        room[j] = home.slopes[j] * ((_target(descent, home, j) - home.former[j]) / _width(home, j))
    promised = _sum(room, home.dimension)
    factor = _lowest_of_parabola(descent.value, found, promised)
    if found < descent.value and found <= descent.value + _LEAST_SHARE * promised:
        _go_to_target(descent, home, found)
        if _GOOD_ENOUGH_FROM < factor < _GOOD_ENOUGH_TO:
            _arrive(descent)
        else:
            descent.length *= smaller_of(larger_of(factor, _MOST_SHORTENED), _MOST_STRETCHED)
            descent.phase = AGAIN
        return
    descent.length *= smaller_of(larger_of(factor, _MOST_SHORTENED), _LEAST_SHORTENED)
    descent.num_trials += 1
    if descent.num_trials == _MOST_TRIALS:
        descent.phase = OVER


@inlined
def _go_to_target(descent: Descent, home: Places, value: float) -> None:
    for j in range(home.dimension):
        home.point[j] = _target(descent, home, j)
    descent.value = value


@shared
def _arrive(descent: Descent) -> None:
    """End a step, and the descent where the last ones gained hardly anything."""
    descent.last_values[descent.num_values % _NUM_LAST_VALUES] = descent.value
    descent.num_values += 1
    least = _LEAST_OF_VALUE * abs(descent.value) + _LEAST_OF_GAIN * (descent.first_value - descent.value)
    before = descent.last_values[descent.num_values % _NUM_LAST_VALUES]
    has_converged = descent.num_values >= _NUM_LAST_VALUES and before - descent.value <= least
    descent.phase = OVER if has_converged else AROUND


@inlined
def _lowest_of_parabola(value: float, found: float, promised: float) -> float:
    """Return where the parabola through what is known of a step is lowest, in multiples of the step."""
    curvature = found - value - promised
    if curvature > 0.0:
        return -0.5 * promised / curvature
    return math.inf if found < value else 0.0


@shared
def _product(one: Pointer[float], other: Pointer[float], dimension: int, terms: Pointer[float]) -> float:
    stay_apart()
    for j in range(dimension):
        terms[j] = one[j] * other[j]
    return _sum(terms, dimension)


@shared
def _sum(terms: Pointer[float], count: int) -> float:
    """Return the sum of some numbers, which are overwritten."""
    stay_apart()
    total, first = 0.0, 0
    if count >= _NUM_SUMS:
        first = _NUM_SUMS
        while first + _NUM_SUMS <= count:
            for place in range(_NUM_SUMS):
                terms[place] += terms[first + place]
            first += _NUM_SUMS
        num_sums = _NUM_SUMS
        while num_sums > 1:
            num_sums //= 2
            for place in range(num_sums):
                terms[place] = terms[2 * place] + terms[2 * place + 1]
        total = terms[0]
    for k in range(first, count):
        total += terms[k]
    return total
