"""Random streams inside compiled code: a run's 64-bit key and a generation number determine every uniform.

A population consumes hundreds of uniforms a generation; drawn through numpy they would cost a large part of what the
function evaluations do. Here they come from a xoshiro256++ generator, seeded anew for each generation by SplitMix64 as
its authors recommend. The key is drawn once per run from the run's numpy generator, so one root seed still fixes
every number, and a run's future is a function of its state.

References: Blackman and Vigna, "Scrambled linear pseudorandom number generators" (2021); Steele, Lea and Flood,
"Fast splittable pseudorandom number generators" (2014).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from de_gym.arrays import FloatArray
from de_gym.compiling import compiled

KeyArray = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST_FACTOR, _SECOND_FACTOR = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFT_12, _SHIFT_17, _SHIFT_19, _SHIFT_20 = np.uint64(12), np.uint64(17), np.uint64(19), np.uint64(20)
_SHIFT_23, _SHIFT_27, _SHIFT_30, _SHIFT_31 = np.uint64(23), np.uint64(27), np.uint64(30), np.uint64(31)
_SHIFT_32, _SHIFT_41, _SHIFT_45 = np.uint64(32), np.uint64(41), np.uint64(45)
_BITS_OF_ONE = np.uint64(0x3FF0000000000000)


def draw_keys(rngs: Sequence[np.random.Generator]) -> KeyArray:
    """Return one 64-bit key per run, shape (R,), key r from ``rngs[r]``."""
    return np.array([rng.integers(0, 2**64, dtype=np.uint64) for rng in rngs], dtype=np.uint64)


@compiled
def split_mix(state: np.uint64) -> np.uint64:
    """Return the output of SplitMix64 for a state, which the caller advances by the golden ratio each time."""
    mixed = (state ^ (state >> _SHIFT_30)) * _FIRST_FACTOR
    mixed = (mixed ^ (mixed >> _SHIFT_27)) * _SECOND_FACTOR
    return mixed ^ (mixed >> _SHIFT_31)


@compiled
def seed_stream(key: np.uint64, generation: int) -> KeyArray:
    """Return the generator's state, shape (4,), for one generation of one run."""
    state = np.empty(4, np.uint64)
    # Hashed twice, so that neither neighbouring keys nor neighbouring generations have related states.
    counter = split_mix(key + _GOLDEN * np.uint64(generation + 1))
    for word in range(4):
        counter += _GOLDEN
        state[word] = split_mix(counter)
    return state


@compiled
def fill_bits(state: KeyArray, bits: KeyArray) -> None:
    """Fill ``bits`` with the outputs of xoshiro256++ that follow ``state`` (4,)."""
    first, second, third, fourth = state
    for index in range(bits.shape[0]):
        total = first + fourth
        bits[index] = ((total << _SHIFT_23) | (total >> _SHIFT_41)) + first
        shifted = second << _SHIFT_17
        third ^= first
        fourth ^= second
        second ^= third
        first ^= fourth
        third ^= shifted
        fourth = (fourth << _SHIFT_45) | (fourth >> _SHIFT_19)


@compiled
def expand_uniforms(key: np.uint64, generation: int, count: int) -> FloatArray:
    """Return ``count`` uniforms in [0, 1), multiples of 2^-32, for one generation of one run.

    Each 64-bit output gives two: 32 bits decide a choice among individuals, or a comparison with a crossover rate,
    as well as 52 would.
    """
    num_words = (count + 1) // 2
    bits = np.empty(2 * num_words, np.uint64)
    fill_bits(seed_stream(key, generation), bits[num_words:])
    # The bits become the fraction of a number in [1, 2): faster than a conversion, which has no vector form.
    for index in range(num_words):
        word = bits[num_words + index]
        bits[index] = ((word >> _SHIFT_32) << _SHIFT_20) | _BITS_OF_ONE
        bits[num_words + index] = ((word << _SHIFT_32) >> _SHIFT_12) | _BITS_OF_ONE
    uniforms = bits.view(np.float64)
    uniforms -= 1.0
    return uniforms[:count]
