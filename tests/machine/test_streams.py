"""The compiled random streams against published outputs and simple statistics."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy import stats

from de_gym.machine.lanes import pointer_to
from de_gym.machine.streams import NUM_STREAMS, draw_keys, fill_uniforms, seed_streams, split_mix, whole_turns

GOLDEN = 0x9E3779B97F4A7C15


@njit
def seed(key, generation, states):
    seed_streams(key, generation, pointer_to(states))


@njit
def fill(states, uniforms):
    fill_uniforms(pointer_to(states), pointer_to(uniforms), len(uniforms))


def expand(key: int, generation: int, count: int) -> np.ndarray:
    uniforms = np.empty(whole_turns(count))
    fill(seeded(key, generation), uniforms)
    return uniforms


def seeded(key: int, generation: int) -> np.ndarray:
    states = np.empty((4, NUM_STREAMS), np.uint64)
    seed(np.uint64(key), generation, states)
    return states


def outputs_of(states: np.ndarray, num_turns: int) -> np.ndarray:
    """Return the 64-bit outputs of every stream, shape (turns, streams), put together from the uniforms' halves."""
    uniforms = np.empty(2 * num_turns * NUM_STREAMS)
    fill(states, uniforms)
    upper, lower = (uniforms * 2.0**32).astype(np.uint64).reshape(2, num_turns, NUM_STREAMS)
    return upper * np.uint64(2**32) + lower


def test_generator_gives_the_published_outputs_of_xoshiro256_plus_plus():
    outputs = outputs_of(np.repeat(np.array([[1], [2], [3], [4]], np.uint64), NUM_STREAMS, axis=1), 10)
    assert (outputs == outputs[:, :1]).all()  # every stream is this generator
    # Test vector of the rand_xoshiro crate, which took it from the authors' C code.
    assert outputs[:, 0].tolist() == [
        41943041,
        58720359,
        3588806011781223,
        3591011842654386,
        9228616714210784205,
        9973669472204895162,
        14011001112246962877,
        12406186145184390807,
        15849039046786891736,
        10450023813501588000,
    ]


def test_hash_gives_the_published_outputs_of_split_mix():
    # First outputs of SplitMix64 with seed 1234567, as in the test vectors of its Java original.
    with np.errstate(over="ignore"):
        outputs = [int(split_mix(np.uint64((1234567 + GOLDEN * step) % 2**64))) for step in (1, 2, 3)]
    assert outputs == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_keys_come_from_each_runs_own_generator():
    together = draw_keys([np.random.default_rng(seed) for seed in range(3)])
    alone = draw_keys([np.random.default_rng(2)])
    assert together[2] == alone[0]
    assert len(set(together.tolist())) == 3


def test_uniforms_are_uniform_and_uncorrelated_along_and_across_generations():
    key = draw_keys([np.random.default_rng(0)])[0]
    rows = np.stack([expand(key, generation, 1008) for generation in range(300)])
    assert rows.min() >= 0.0
    assert rows.max() < 1.0
    assert stats.kstest(rows.ravel(), "uniform").pvalue > 1e-3
    for lag in (1, 2, 7, NUM_STREAMS, 2 * NUM_STREAMS):
        assert abs(np.corrcoef(rows.ravel()[:-lag], rows.ravel()[lag:])[0, 1]) < 0.01
    assert abs(np.corrcoef(rows[:-1].ravel(), rows[1:].ravel())[0, 1]) < 0.01


def test_streams_do_not_depend_on_their_neighbours():
    states = seeded(7, 4)
    together = outputs_of(states, 5)
    for stream in range(NUM_STREAMS):
        alone = outputs_of(np.repeat(states[:, stream : stream + 1], NUM_STREAMS, axis=1), 5)
        np.testing.assert_array_equal(together[:, stream], alone[:, 0])


def test_streams_of_one_generation_are_unrelated():
    uniforms = (outputs_of(seeded(3, 0), 20_000) >> np.uint64(32)) / 2.0**32
    correlations = np.corrcoef(uniforms, rowvar=False)
    assert np.abs(correlations - np.eye(NUM_STREAMS)).max() < 0.03
    # Pairs of neighbouring streams fill the unit square evenly.
    counts = np.histogram2d(uniforms[:, 0], uniforms[:, 1], bins=10, range=[[0, 1], [0, 1]])[0]
    assert stats.chisquare(counts.ravel()).pvalue > 1e-3


def test_both_halves_of_the_outputs_are_uniform():
    uniforms = expand(11, 2, 64_000)
    for half in np.split(uniforms, 2):
        assert stats.kstest(half, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(*np.split(uniforms, 2))[0, 1]) < 0.02


@pytest.mark.parametrize(("count", "length"), [(1, 16), (16, 16), (17, 32), (700, 704)])
def test_whole_turns_rounds_up(count, length):
    assert whole_turns(count) == length


@pytest.mark.parametrize("change", ["key", "generation"])
def test_neighbouring_keys_and_generations_give_unrelated_states(change):
    other = seeded(6, 0) if change == "key" else seeded(5, 1)
    flipped = sum(bin(int(word)).count("1") for word in (seeded(5, 0) ^ other).ravel())
    bits = 256 * NUM_STREAMS
    assert abs(flipped - bits / 2) < 6 * np.sqrt(bits / 4)  # about half of the bits
