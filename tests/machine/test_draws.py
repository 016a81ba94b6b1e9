from __future__ import annotations

import copy

import numpy as np

from de_gym.machine.draws import DrawLayout, GenerationDraws

LAYOUT = DrawLayout(controller_uniforms=2, shell_uniforms=3, run_uniforms=1, normals=1)


def generators(num_runs):
    return [np.random.default_rng(seed) for seed in range(num_runs)]


def test_each_run_draws_one_block_of_uniforms_then_normals_from_its_own_generator():
    draws = GenerationDraws(generators(3), 4, LAYOUT)
    draws.draw(np.array([0, 4, 4, 6]))  # four individuals, none, two
    draws.draw(np.array([0, 3, 5, 6]))  # three, two, one
    first, second = (np.random.default_rng(seed) for seed in range(2))
    for size in (4, 3):
        uniforms, normals = first.random(5 * size + 1), first.standard_normal(size)
    np.testing.assert_array_equal(draws.uniforms[0, :16], uniforms)
    np.testing.assert_array_equal(draws.normals[0, :3], normals)
    np.testing.assert_array_equal(draws.uniforms[1, :11], second.random(11))  # nothing was drawn before


def test_kept_runs_go_on_with_their_generators():
    draws, expected = GenerationDraws(generators(3), 2, LAYOUT), np.random.default_rng(2)
    draws.draw(np.array([0, 2, 3, 5]))
    expected.random(11)
    expected.standard_normal(2)
    draws.keep(np.array([2]))
    assert draws.starts.tolist() == [0, 2]
    draws.draw(np.array([0, 2]))
    np.testing.assert_array_equal(draws.uniforms[0], expected.random(11))


def test_a_copy_draws_the_same_numbers_and_leaves_the_original_alone():
    draws, starts = GenerationDraws(generators(2), 2, LAYOUT), np.array([0, 2, 4])
    draws.draw(starts)
    other = copy.deepcopy(draws)
    other.draw(starts)
    copied = other.uniforms.copy()
    assert not np.array_equal(draws.uniforms, copied)
    draws.draw(starts)
    np.testing.assert_array_equal(draws.uniforms, copied)
