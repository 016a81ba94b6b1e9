"""What the suites do to a point before a landscape sees it, on rows of a buffer of ``Lanes``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from de_gym.machine.compiling import shared
from de_gym.machine.elementary import exponential, logarithm, power, sine
from de_gym.machine.lanes import (
    WIDTH,
    absolute,
    choose,
    load,
    multiply_add,
    round_down,
    spread,
    square_root,
    store,
    with_sign_of,
)

if TYPE_CHECKING:
    from de_gym.machine.lanes import Pointer


@shared
def shift(buffer: Pointer[float], source: int, target: int, length: int, data: Pointer[float], at: int) -> None:
    """Write rate * (x_i - o_i), the rate at ``data[at]`` and the shift o behind it."""
    rate = data[at]
    for i in range(length):
        store(buffer, target + i, (load(buffer, source + i) - data[at + 1 + i]) * rate)


@shared
def rotate(buffer: Pointer[float], source: int, target: int, length: int, data: Pointer[float], at: int) -> None:
    """Write M v, each sum from left to right and without fused operations, as the official code computes it."""
    row = 0
    while row + 5 <= length:
        sum_a = spread(0.0)
        sum_b = spread(0.0)
        sum_c = spread(0.0)
        sum_d = spread(0.0)
        sum_e = spread(0.0)
        entry = at + row * length
        for j in range(length):
            v = load(buffer, source + j)
            sum_a = sum_a + data[entry + j] * v
            sum_b = sum_b + data[entry + length + j] * v
            sum_c = sum_c + data[entry + 2 * length + j] * v
            sum_d = sum_d + data[entry + 3 * length + j] * v
            sum_e = sum_e + data[entry + 4 * length + j] * v
        store(buffer, target + row, sum_a)
        store(buffer, target + row + 1, sum_b)
        store(buffer, target + row + 2, sum_c)
        store(buffer, target + row + 3, sum_d)
        store(buffer, target + row + 4, sum_e)
        row += 5
    for last in range(row, length):
        total = spread(0.0)
        for j in range(length):
            total = total + data[at + last * length + j] * load(buffer, source + j)
        store(buffer, target + last, total)


@shared
def shuffle(buffer: Pointer[float], source: int, target: int, length: int, data: Pointer[float], at: int) -> None:
    """Write v in the order of the positions in ``data``."""
    for i in range(length):
        store(buffer, target + i, load(buffer, source + int(data[at + i])))


@shared
def bend(buffer: Pointer[float], source: int, target: int, length: int, data: Pointer[float], at: int) -> None:
    """Write v_i + a_i sin(b_i v_{i-1}), the first coordinate as it is; pairs (a_i, b_i) follow each other.

    A valley along one coordinate then winds in the next; the origin stays where it is.
    """
    previous = load(buffer, source)
    store(buffer, target, previous)
    for i in range(1, length):
        v = load(buffer, source + i)
        store(buffer, target + i, v + data[at + 2 * i] * sine(data[at + 2 * i + 1] * previous))
        previous = v


@shared
def scale(buffer: Pointer[float], source: int, target: int, length: int, data: Pointer[float], at: int) -> None:
    """Write c_i v_i."""
    for i in range(length):
        store(buffer, target + i, load(buffer, source + i) * data[at + i])


@shared
def round_steps(buffer: Pointer[float], source: int, target: int, length: int, data: Pointer[float], at: int) -> None:
    """Write v_i rounded to multiples of one half where abs(v_i) > 1/2."""
    for i in range(length):
        v = load(buffer, source + i)
        store(buffer, target + i, choose(absolute(v) > 0.5, 0.5 * round_down(2.0 * v + 0.5), v))


@shared
def oscillate(buffer: Pointer[float], source: int, target: int, length: int, data: Pointer[float], at: int) -> None:
    """Write v with its first and last coordinate made to oscillate around the identity.

    NOTE: the report oscillates every coordinate; the official code only these two, and so do we.
    """
    for i in range(length):
        v = load(buffer, source + i)
        if i == 0 or i == length - 1:
            log_size = logarithm(absolute(v))
            wave = sine(choose(v > 0.0, 10.0, 5.5) * log_size) + sine(choose(v > 0.0, 7.9, 3.1) * log_size)
            oscillated = with_sign_of(exponential(multiply_add(0.049, wave, log_size)), v)
            v = choose(v == 0.0, v, oscillated)
        store(buffer, target + i, v)


@shared
def skew(buffer: Pointer[float], source: int, target: int, length: int, data: Pointer[float], at: int) -> None:
    """Write v_i ** (1 + c_i sqrt(v_i)) where v_i > 0 and leave the target as it is elsewhere.

    NOTE: the report keeps v_i <= 0; the official code leaves the old content of its output vector there, which
    is usually something else. So do we: a program puts it into the target first.
    """
    for i in range(length):
        v = load(buffer, source + i)
        skewed = v
        if data[at + i] > 0.0:
            skewed = power(v, 1.0 + data[at + i] * square_root(v))
        store(buffer, target + i, choose(v > 0.0, skewed, load(buffer, target + i)))


@shared
def skew_exactly(buffer: Pointer[float], source: int, target: int, length: int, data: Pointer[float], at: int) -> None:
    """Do the same as ``skew`` with the C library's ``pow``, including its square root, to the last bit.

    Ackley's function multiplies a last bit by up to 1e19 far from the optimum, so its values follow the official
    code's only where this does. The exponent 0.5 comes from ``data``: a literal one would become a square root.
    """
    half = data[at + length]
    for i in range(length):
        for lane in range(WIDTH):
            v = buffer[(source + i) * WIDTH + lane]
            if v > 0.0:
                buffer[(target + i) * WIDTH + lane] = math.pow(v, 1.0 + data[at + i] * math.pow(v, half))
