"""Random streams inside compiled code: a run's 64-bit key and a generation number determine every uniform.

A population consumes hundreds of uniforms a generation; drawn through numpy they would cost a large part of what the
function evaluations do. Here they come from xoshiro256++ generators, seeded anew for each generation by SplitMix64 as
their authors recommend. Eight of them take turns: each has to wait for its own last state, but vector instructions
advance them side by side. The key is drawn once per run from the run's numpy generator, so one root seed still fixes
every number, and a run's future is a function of its state.

References: Blackman and Vigna, "Scrambled linear pseudorandom number generators" (2021); Steele, Lea and Flood,
"Fast splittable pseudorandom number generators" (2014).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from de_gym.machine.compiling import inlined
from de_gym.machine.lanes import WIDTH, store
from de_gym.machine.words import lanes_of_bits, load_words, spread_word

if TYPE_CHECKING:
    from de_gym.machine.lanes import Pointer

KeyArray = NDArray[np.uint64]

# Generators that take turns.
NUM_STREAMS = WIDTH

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST_FACTOR, _SECOND_FACTOR = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFT_11, _SHIFT_27, _SHIFT_30, _SHIFT_31 = (np.uint64(shift) for shift in (11, 27, 30, 31))

# A double of this size counts in steps of 2^-32.
_OFFSET = 2.0**20
_BITS_OF_OFFSET = np.uint64(np.array(_OFFSET).view(np.uint64))


def draw_keys(rngs: Sequence[np.random.Generator]) -> KeyArray:
    """Return one 64-bit key per run, shape (R,), key r from ``rngs[r]``."""
    return np.array([rng.integers(0, 2**64, dtype=np.uint64) for rng in rngs], dtype=np.uint64)


@inlined
def split_mix(state: np.uint64) -> np.uint64:
    """Return the output of SplitMix64 for a state, which the caller advances by the golden ratio each time."""
    mixed = (state ^ (state >> _SHIFT_30)) * _FIRST_FACTOR
    mixed = (mixed ^ (mixed >> _SHIFT_27)) * _SECOND_FACTOR
    return mixed ^ (mixed >> _SHIFT_31)


@inlined
def seed_streams(key: np.uint64, generation: int, states: Pointer[np.uint64]) -> None:
    """Fill the generators' ``states`` (4, NUM_STREAMS), one per column, for one generation of one run."""
    # Hashed twice, so that neither neighbouring keys nor neighbouring generations have related states.
    counter = split_mix(key + _GOLDEN * np.uint64(generation + 1))
    for index in range(4 * NUM_STREAMS):
        states[index] = split_mix(counter + _GOLDEN * np.uint64(index + 1))


@inlined
def later_uniform(key: np.uint64, generation: int, index: int) -> float:
    """Return a number in [0, 1) that no stream of this generation draws, for choices after the evaluation."""
    counter = split_mix(key + _GOLDEN * np.uint64(generation + 1))
    # The states of the streams took the first outputs.
    return float(split_mix(counter + _GOLDEN * np.uint64(4 * NUM_STREAMS + 1 + index)) >> _SHIFT_11) * 2.0**-53


@inlined
def fill_uniforms(states: Pointer[np.uint64], uniforms: Pointer[float], count: int) -> None:
    """Write numbers in [0, 1), multiples of 2^-32, from xoshiro256++ in ``states`` (4, NUM_STREAMS).

    Each 64-bit output gives two: 32 bits decide a choice among individuals, or a comparison with a crossover rate,
    as well as 52 would. The first half of the numbers are the upper halves of all outputs, the second half the lower
    ones. Their ``count`` must be one that ``whole_turns`` returns.
    """
    first, second = load_words(states, 0), load_words(states, 1)
    third, fourth = load_words(states, 2), load_words(states, 3)
    offset_bits = spread_word(_BITS_OF_OFFSET)
    num_turns = count // (2 * NUM_STREAMS)
    for turn in range(num_turns):
        total = first + fourth
        output = ((total << 23) | (total >> 41)) + first
        # 32 bits become the last ones of a number near the offset: a conversion has no vector form.
        store(uniforms, turn, lanes_of_bits(output >> 32 | offset_bits) - _OFFSET)
        store(uniforms, num_turns + turn, lanes_of_bits(output << 32 >> 32 | offset_bits) - _OFFSET)
        shifted = second << 17
        third = third ^ first
        fourth = fourth ^ second
        second = second ^ third
        first = first ^ fourth
        third = third ^ shifted
        fourth = (fourth << 45) | (fourth >> 19)


@inlined
def whole_turns(count: int) -> int:
    """Return the smallest length of at least ``count`` that ``fill_uniforms`` fills completely."""
    return -(-count // (2 * NUM_STREAMS)) * (2 * NUM_STREAMS)
