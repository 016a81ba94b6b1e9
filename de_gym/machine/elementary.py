"""Sines, exponentials, logarithms and powers of ``Lanes``: branch-free, good to the last place or two.

Everything periodic rests on one polynomial, the sine of half a turn, because the benchmark landscapes need
squared sines and cosines of large arguments and ``1 - cos(2 t) = 2 sin(t)**2`` loses nothing near zero.
Coefficients are Chebyshev fits computed with 400 bits; names ending in ``_low`` hold the part of a constant
that its double leaves out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from de_gym.machine.compiling import inlined
from de_gym.machine.lanes import (
    choose,
    multiply_add,
    power_of_two,
    round_down,
    round_nearest,
    split_exponent,
    spread,
)

if TYPE_CHECKING:
    from de_gym.machine.lanes import Lanes

PI = 3.141592653589793
PI_LOW = 1.2246467991473532e-16
INVERSE_PI = 0.3183098861837907
INVERSE_PI_LOW = -1.9678676675182486e-17
INVERSE_PI_LOWEST = -1.0721436282893004e-33
INVERSE_LN2 = 1.4426950408889634
LN2 = 0.6931471805582987  # 38 bits, so that its multiples by small integers are exact
LN2_LOW = 1.6465949582897082e-12


@inlined
def fraction(lanes: Lanes) -> Lanes:
    """Return the signed distance to the nearest integer, from -1/2 to 1/2, exactly."""
    return lanes - round_nearest(lanes)


@inlined
def sine_half_turns(lanes: Lanes) -> Lanes:
    """Return sin(pi t) for t from -1/2 to 1/2."""
    square = lanes * lanes
    series = multiply_add(square, 7.725743030789876e-07, -2.1906201655131958e-05)
    series = multiply_add(square, series, 0.00046630087411496363)
    series = multiply_add(square, series, -0.007370430719634586)
    series = multiply_add(square, series, 0.08214588659675232)
    series = multiply_add(square, series, -0.599264529320343)
    series = multiply_add(square, series, 2.55016403987734)
    series = multiply_add(square, series, -5.16771278004997)
    return multiply_add(lanes, PI, lanes * multiply_add(square, series, PI_LOW))


@inlined
def squared_sine_half_turns(lanes: Lanes) -> Lanes:
    """Return sin(pi t)**2 for any t."""
    sine = sine_half_turns(fraction(lanes))
    return sine * sine


@inlined
def half_turns(radians: Lanes, inverse: float) -> Lanes:
    """Return radians * inverse / pi up to a multiple of 1, from -1/2 to 1/2, for ``inverse`` a power of two.

    The product is formed with 159 bits of 1/pi and its integer part dropped piece by piece, so that angles
    up to 2**100 keep their full precision.
    """
    angle = radians * inverse
    high = angle * INVERSE_PI
    low = multiply_add(angle, INVERSE_PI, -high)
    middle = angle * INVERSE_PI_LOW
    rest = multiply_add(angle, INVERSE_PI_LOWEST, multiply_add(angle, INVERSE_PI_LOW, -middle))
    return fraction(fraction(high) + (fraction(low) + (fraction(middle) + rest)))


@inlined
def sine(radians: Lanes) -> Lanes:
    """Return sin(t) for any t up to 2**50, with an absolute error below 4.5e-16.

    Computed as a cosine from the nearest crest, because the minimum of Schwefel's function needs it there.
    """
    high = radians * INVERSE_PI
    turns = round_down(high)
    low = multiply_add(radians, INVERSE_PI_LOW, multiply_add(radians, INVERSE_PI, -high))
    from_crest = sine_half_turns(0.5 * ((high - turns - 0.5) + low))
    value = 1.0 - 2.0 * (from_crest * from_crest)
    # The crests of odd half turns are troughs; k/2 is then no integer.
    return choose(round_down(0.5 * turns) == 0.5 * turns, value, -value)


@inlined
def squared_sine(radians: Lanes) -> Lanes:
    """Return sin(t)**2 for any t up to 2**100."""
    value = sine_half_turns(half_turns(radians, 1.0))
    return value * value


@inlined
def one_minus_cosine(radians: Lanes) -> Lanes:
    """Return 1 - cos(t) for any t up to 2**100, with full relative precision where it is small."""
    value = sine_half_turns(half_turns(radians, 0.5))
    return 2.0 * (value * value)


@inlined
def exponential_of_sum(lanes: Lanes, low: Lanes) -> Lanes:
    """Return exp(x + low), where ``low`` is a correction far below x in size."""
    # Asked this way round, the questions let NaN pass.
    bounded = choose(lanes < -760.0, -760.0, choose(lanes > 720.0, 720.0, lanes))
    exponent = round_nearest(bounded * INVERSE_LN2)
    high = multiply_add(exponent, -LN2, bounded)
    low = multiply_add(exponent, -LN2_LOW, low)
    reduced = high + low
    low = low - (reduced - high)
    series = multiply_add(reduced, 2.510038549551032e-08, 2.7620088445409746e-07)
    series = multiply_add(reduced, series, 2.7557268459997064e-06)
    series = multiply_add(reduced, series, 2.4801521295954376e-05)
    series = multiply_add(reduced, series, 0.00019841269863053618)
    series = multiply_add(reduced, series, 0.0013888888917213717)
    series = multiply_add(reduced, series, 0.008333333333330062)
    series = multiply_add(reduced, series, 0.04166666666662413)
    series = multiply_add(reduced, series, 0.16666666666666669)
    series = multiply_add(reduced, series, 0.5000000000000001)
    value = 1.0 + (reduced + multiply_add(reduced * reduced, series, low))
    # Two factors, because 2**k itself leaves the range of a double where the result is subnormal.
    half = round_nearest(0.5 * exponent)
    return value * power_of_two(half) * power_of_two(exponent - half)


@inlined
def exponential(lanes: Lanes) -> Lanes:
    """Return exp(x)."""
    return exponential_of_sum(lanes, spread(0.0))


@inlined
def logarithm_with_error(lanes: Lanes) -> tuple[Lanes, Lanes]:
    """Return (high, low) with ln(x) = high + low to about 60 bits, for positive normal x; NaN for NaN and infinity."""
    mantissa, exponent = split_exponent(lanes)
    numerator = mantissa - 1.0
    denominator = mantissa + 1.0
    denominator_low = (1.0 - denominator) + mantissa
    inverse = 1.0 / denominator
    ratio = numerator * inverse
    residue = multiply_add(-ratio, denominator_low, multiply_add(-ratio, denominator, numerator))
    square = ratio * ratio
    series = multiply_add(square, 0.13086907887965027, 0.13268746195596595)
    series = multiply_add(square, series, 0.15386240708969665)
    series = multiply_add(square, series, 0.18181795621632782)
    series = multiply_add(square, series, 0.22222222391887064)
    series = multiply_add(square, series, 0.2857142857080285)
    series = multiply_add(square, series, 0.4000000000000088)
    series = multiply_add(square, series, 0.6666666666666666)
    tail = multiply_add(2.0 * inverse, residue, ratio * square * series)
    tail = multiply_add(exponent, LN2_LOW, tail)
    # The mantissa of NaN or infinity is an ordinary number; a multiple of zero brings them back.
    main = multiply_add(0.0, lanes, exponent * LN2)
    total = main + 2.0 * ratio
    # The rounding error of that sum, whichever part is the larger.
    part = total - main
    tail = tail + ((main - (total - part)) + (2.0 * ratio - part))
    high = total + tail
    return high, tail - (high - total)


@inlined
def logarithm(lanes: Lanes) -> Lanes:
    """Return ln(x) for positive normal x."""
    high, _ = logarithm_with_error(lanes)
    return high


@inlined
def power(base: Lanes, exponent: Lanes) -> Lanes:
    """Return base ** exponent for a positive normal base."""
    high, low = logarithm_with_error(base)
    product = high * exponent
    error = multiply_add(high, exponent, -product)
    return exponential_of_sum(product, multiply_add(low, exponent, error))
