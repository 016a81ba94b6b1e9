"""The landscapes of the suites, each written once, without shift, rotation or offset.

Every function here takes ``(buffer, first, length, data, at)`` and returns the value g(v) as ``Lanes``. The
coordinates of v are the ``length`` rows of ``buffer`` from row ``first`` on, each times ``data[at]`` plus
``data[at + 1]``; a landscape with coefficients finds them from ``data[at + 2]`` on.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from de_gym.machine.compiling import inlined, shared
from de_gym.machine.elementary import (
    PI,
    exponential,
    fraction,
    one_minus_cosine,
    power,
    sine,
    sine_half_turns,
    squared_sine,
    squared_sine_half_turns,
)
from de_gym.machine.lanes import (
    absolute,
    choose,
    load,
    multiply_add,
    round_down,
    spread,
    square_root,
    with_sign_of,
)

if TYPE_CHECKING:
    from de_gym.machine.lanes import Lanes, Pointer

E = math.e
SCHWEFEL_OPTIMUM = 420.9687462275036
SCHWEFEL_DEPTH = 418.9828872724338
WEIERSTRASS_GROUP_SIZE = 7
KATSUURA_TERMS = 32
LUNACEK_CENTRE = 2.5


@inlined
def coordinate(buffer: Pointer[float], row: int, data: Pointer[float], at: int) -> Lanes:
    """Return one coordinate of v."""
    return load(buffer, row) * data[at] + data[at + 1]


@shared
def weighted_squares(buffer: Pointer[float], first: int, length: int, data: Pointer[float], at: int) -> Lanes:
    """Return sum w_i v_i**2: sphere, ellipsoid, bent cigar and discus differ in their weights only."""
    total = spread(0.0)
    for i in range(length):
        v = coordinate(buffer, first + i, data, at)
        total = total + data[at + 2 + i] * v * v
    return total


@shared
def weighted_absolutes(buffer: Pointer[float], first: int, length: int, data: Pointer[float], at: int) -> Lanes:
    """Return sum w_i abs(v_i): on one side of its minimum in every coordinate, a linear slope."""
    total = spread(0.0)
    for i in range(length):
        total = total + data[at + 2 + i] * absolute(coordinate(buffer, first + i, data, at))
    return total


@shared
def sharp_ridge(buffer: Pointer[float], first: int, length: int, data: Pointer[float], at: int) -> Lanes:
    """Return v_0**2 + c sqrt(sum of the other v_i**2), the sharpness c its coefficient."""
    v = coordinate(buffer, first, data, at)
    others = spread(0.0)
    for i in range(1, length):
        other = coordinate(buffer, first + i, data, at)
        others = others + other * other
    return v * v + data[at + 2] * square_root(others)


@shared
def peaks(buffer: Pointer[float], first: int, length: int, data: Pointer[float], at: int) -> Lanes:
    """Return 100 (1 - max_k h_k exp(-sum_i c_ki (v_i - y_ki)**2 / (2 D))): unrelated peaks, upside down.

    The coefficients are the number of peaks; then for each of them log h_k, the centre y_k and the narrowness c_k.
    """
    highest = spread(-np.inf)
    size = 2.0 * float(length)
    peak = at + 3
    for _ in range(int(data[at + 2])):
        distance = spread(0.0)
        for i in range(length):
            offset = coordinate(buffer, first + i, data, at) - data[peak + 1 + i]
            distance = distance + data[peak + 1 + length + i] * offset * offset
        height = data[peak] - distance / size
        # Asked this way round, the question lets NaN pass.
        highest = choose(highest > height, highest, height)
        peak += 1 + 2 * length
    return 100.0 * (1.0 - exponential(highest))


@shared
def sum_of_powers(buffer: Pointer[float], first: int, length: int, data: Pointer[float], at: int) -> Lanes:
    """Return sum abs(v_i)**p_i for positive integers p_i."""
    total = spread(0.0)
    for i in range(length):
        factor = absolute(coordinate(buffer, first + i, data, at))
        exponent = int(data[at + 2 + i])
        value = spread(1.0)
        while exponent > 0:
            if exponent % 2 == 1:
                value = value * factor
            factor = factor * factor
            exponent //= 2
        total = total + value
    return total


@shared
def different_powers(buffer: Pointer[float], first: int, length: int, data: Pointer[float], at: int) -> Lanes:
    """Return the square root of ``sum_of_powers``."""
    return square_root(sum_of_powers(buffer, first, length, data, at))


@shared
def zakharov(buffer: Pointer[float], first: int, length: int, data: Pointer[float], at: int) -> Lanes:
    """Return sum v_i**2 + s**2 + s**4 with s = sum (i + 1) v_i / 2, i from 0."""
    squares = spread(0.0)
    slope = spread(0.0)
    for i in range(length):
        v = coordinate(buffer, first + i, data, at)
        squares = squares + v * v
        slope = slope + (0.5 * (i + 1.0)) * v
    square = slope * slope
    return squares + square + square * square


@inlined
def rosenbrock_term(v: Lanes, successor: Lanes) -> Lanes:
    """Return 100 (v**2 - successor)**2 + (v - 1)**2."""
    valley = v * v - successor
    offset = v - 1.0
    return 100.0 * valley * valley + offset * offset


@shared
def rosenbrock(buffer: Pointer[float], first: int, length: int, data: Pointer[float], at: int) -> Lanes:
    """Return the sum of Rosenbrock's terms over neighbouring coordinates."""
    total = spread(0.0)
    v = coordinate(buffer, first, data, at)
    for i in range(1, length):
        successor = coordinate(buffer, first + i, data, at)
        total = total + rosenbrock_term(v, successor)
        v = successor
    return total


@shared
def griewank_rosenbrock(buffer: Pointer[float], first: int, length: int, data: Pointer[float], at: int) -> Lanes:
    """Return the sum of Griewank's function of Rosenbrock's terms over neighbours, the last with the first."""
    total = spread(0.0)
    v = coordinate(buffer, first + length - 1, data, at)
    for i in range(length):
        successor = coordinate(buffer, first + i, data, at)
        term = rosenbrock_term(v, successor)
        total = total + (term * term / 4000.0 + one_minus_cosine(term))
        v = successor
    return total


@shared
def expanded_schaffer(buffer: Pointer[float], first: int, length: int, data: Pointer[float], at: int) -> Lanes:
    """Return the expanded Schaffer F6 function, neighbours taken in a cycle."""
    total = spread(0.0)
    v = coordinate(buffer, first + length - 1, data, at)
    for i in range(length):
        successor = coordinate(buffer, first + i, data, at)
        square = v * v + successor * successor
        damping = 1.0 + 0.001 * square
        total = total + (0.5 + (squared_sine(square_root(square)) - 0.5) / (damping * damping))
        v = successor
    return total


@shared
def schaffer(buffer: Pointer[float], first: int, length: int, data: Pointer[float], at: int) -> Lanes:
    """Return Schaffer's F7 function, the squared mean over neighbours of sqrt(s) (1 + sin(50 s**0.2)**2)."""
    total = spread(0.0)
    v = coordinate(buffer, first, data, at)
    for i in range(1, length):
        successor = coordinate(buffer, first + i, data, at)
        radius = square_root(v * v + successor * successor)
        root = square_root(radius)
        total = total + (root + root * squared_sine(50.0 * power(radius, spread(0.2))))
        v = successor
    mean = total / (length - 1.0)
    return mean * mean


@shared
def ackley(buffer: Pointer[float], first: int, length: int, data: Pointer[float], at: int) -> Lanes:
    """Return Ackley's function."""
    squares = spread(0.0)
    cosines = spread(0.0)
    for i in range(length):
        v = coordinate(buffer, first + i, data, at)
        squares = squares + v * v
        # NOTE: the official code rounds 2 pi v before the cosine; skewed arguments reach 1e19, where it shows.
        cosines = cosines + (1.0 - one_minus_cosine((2.0 * PI) * v))
    size = float(length)
    return E - 20.0 * exponential(-0.2 * square_root(squares / size)) - exponential(cosines / size) + 20.0


@shared
def weierstrass(buffer: Pointer[float], first: int, length: int, data: Pointer[float], at: int) -> Lanes:
    """Return sum_i sum_j 2**-j (1 - cos(2 pi 3**j v_i)), j from 0 to 20.

    1 - cos is written as 2 sin**2, and the sine of three times an angle is s (3 - 4 s**2). That formula multiplies
    rounding errors by up to 9, so the 21 terms are three groups, each started from its own sine, which keeps the
    errors far below the weight of a term. The groups advance side by side because each is one long dependency.
    """
    tripled_often = 3.0**WEIERSTRASS_GROUP_SIZE
    group_weight = 0.5**WEIERSTRASS_GROUP_SIZE
    total = spread(0.0)
    for i in range(length):
        phase = fraction(coordinate(buffer, first + i, data, at))
        next_phase = fraction(phase * tripled_often)
        early = sine_half_turns(phase)
        middle = sine_half_turns(next_phase)
        late = sine_half_turns(fraction(next_phase * tripled_often))
        weight = 2.0
        for _ in range(WEIERSTRASS_GROUP_SIZE):
            early_square = early * early
            middle_square = middle * middle
            late_square = late * late
            total = total + weight * (early_square + group_weight * (middle_square + group_weight * late_square))
            early = early * (3.0 - 4.0 * early_square)
            middle = middle * (3.0 - 4.0 * middle_square)
            late = late * (3.0 - 4.0 * late_square)
            weight *= 0.5
    return total


@shared
def griewank(buffer: Pointer[float], first: int, length: int, data: Pointer[float], at: int) -> Lanes:
    """Return 1 + sum v_i**2 / 4000 - prod cos(v_i / sqrt(i + 1)), i from 0; the roots' inverses are coefficients."""
    squares = spread(0.0)
    product = spread(1.0)
    for i in range(length):
        v = coordinate(buffer, first + i, data, at)
        squares = squares + v * v
        product = product * (1.0 - one_minus_cosine(v * data[at + 2 + i]))
    return 1.0 + squares / 4000.0 - product


@shared
def rastrigin(buffer: Pointer[float], first: int, length: int, data: Pointer[float], at: int) -> Lanes:
    """Return sum v_i**2 + 10 (1 - cos(2 pi v_i))."""
    total = spread(0.0)
    for i in range(length):
        v = coordinate(buffer, first + i, data, at)
        total = total + (v * v + 20.0 * squared_sine_half_turns(v))
    return total


@shared
def schwefel(buffer: Pointer[float], first: int, length: int, data: Pointer[float], at: int) -> Lanes:
    """Return Schwefel's function with its optimum moved to the origin and its outside folded back."""
    total = spread(0.0)
    for i in range(length):
        z = coordinate(buffer, first + i, data, at) + SCHWEFEL_OPTIMUM
        size = absolute(z)
        # Exactly the remainder of the C library: a quotient below an integer never rounds up to it, since the
        # steps of doubles near 500 k are 512 times those near k or more.
        remainder = multiply_add(round_down(size / 500.0), -500.0, size)
        folded = choose(size <= 500.0, size, 500.0 - remainder)
        excess = choose(size <= 500.0, 0.0, (size - 500.0) / 100.0)
        wave = with_sign_of(folded, z) * sine(square_root(folded))
        total = total + (SCHWEFEL_DEPTH - wave + excess * excess / float(length))
    return total


@shared
def katsuura(buffer: Pointer[float], first: int, length: int, data: Pointer[float], at: int) -> Lanes:
    """Return Katsuura's function; the exponent 10 / D**1.2 is its coefficient."""
    product = spread(1.0)
    for i in range(length):
        phase = fraction(coordinate(buffer, first + i, data, at))
        roughness = spread(0.0)
        scale = 1.0
        weight = 1.0
        for _ in range(KATSUURA_TERMS):
            scale *= 2.0
            weight *= 0.5
            roughness = roughness + weight * absolute(fraction(phase * scale))
        product = product * (1.0 + (i + 1.0) * roughness)
    size = float(length)
    return (10.0 / size / size) * (power(product, spread(data[at + 2])) - 1.0)


@shared
def happycat(buffer: Pointer[float], first: int, length: int, data: Pointer[float], at: int) -> Lanes:
    """Return abs(r2 - D)**0.25 + (r2 / 2 + s) / D + 1/2, r2 the sum of squares and s the sum."""
    squares = spread(0.0)
    plain = spread(0.0)
    for i in range(length):
        v = coordinate(buffer, first + i, data, at)
        squares = squares + v * v
        plain = plain + v
    size = float(length)
    return square_root(square_root(absolute(squares - size))) + (0.5 * squares + plain) / size + 0.5


@shared
def hgbat(buffer: Pointer[float], first: int, length: int, data: Pointer[float], at: int) -> Lanes:
    """Return abs(r2**2 - s**2)**0.5 + (r2 / 2 + s) / D + 1/2, r2 the sum of squares and s the sum."""
    squares = spread(0.0)
    plain = spread(0.0)
    for i in range(length):
        v = coordinate(buffer, first + i, data, at)
        squares = squares + v * v
        plain = plain + v
    size = float(length)
    return square_root(absolute(squares * squares - plain * plain)) + (0.5 * squares + plain) / size + 0.5


@shared
def levy(buffer: Pointer[float], first: int, length: int, data: Pointer[float], at: int) -> Lanes:
    """Return Levy's function."""
    w = 1.0 + (coordinate(buffer, first, data, at) - 1.0) / 4.0
    total = squared_sine_half_turns(w)
    for i in range(1, length):
        offset = w - 1.0
        total = total + offset * offset * (1.0 + 10.0 * squared_sine(PI * w + 1.0))
        w = 1.0 + (coordinate(buffer, first + i, data, at) - 1.0) / 4.0
    offset = w - 1.0
    return total + offset * offset * (1.0 + squared_sine_half_turns(2.0 * w))


@shared
def lunacek(buffer: Pointer[float], first: int, length: int, data: Pointer[float], at: int, rotated: int) -> Lanes:
    """Return the Lunacek bi-Rastrigin function: two bowls in the first rows, waves in the rows from ``rotated``."""
    near = spread(0.0)
    far = spread(0.0)
    waves = spread(0.0)
    size = float(length)
    steepness = 1.0 - 1.0 / (2.0 * math.sqrt(size + 20.0) - 8.2)
    other_centre = -math.sqrt((LUNACEK_CENTRE * LUNACEK_CENTRE - 1.0) / steepness)
    for i in range(length):
        v = coordinate(buffer, first + i, data, at)
        distance = v + LUNACEK_CENTRE - other_centre
        near = near + v * v
        far = far + distance * distance
        waves = waves + squared_sine_half_turns(coordinate(buffer, rotated + i, data, at))
    far = steepness * far + size
    return choose(near < far, near, far) + 20.0 * waves
