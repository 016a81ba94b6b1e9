"""Operators on small populations whose answers are worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from de_gym.evolution.operators import (
    cross_binomial,
    force_when_empty,
    mutate_from_base,
    repair_midpoint,
    repair_reflect,
    repair_reflect_once,
)

POSITIONS = np.array([[0.0, 0.0], [1.0, 2.0], [3.0, -1.0], [5.0, 4.0]])
LOWER, UPPER = np.array([-10.0, -10.0]), np.array([10.0, 10.0])


def indices(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def test_rand_1_adds_one_scaled_difference_to_a_random_base():
    donors = mutate_from_base(
        POSITIONS, np.full(4, 2.0), indices(1, 2, 3, 0), indices(2, 3, 0, 1)[None], indices(3, 0, 1, 2)[None]
    )
    # x_1 + 2 (x_2 - x_3)
    np.testing.assert_allclose(donors[0], [1.0 + 2.0 * (3.0 - 5.0), 2.0 + 2.0 * (-1.0 - 4.0)])


def test_best_2_adds_two_scaled_differences_to_the_best():
    population = np.vstack([POSITIONS, [[2.0, 2.0]]])
    donors = mutate_from_base(
        population,
        np.full(5, 0.5),
        indices(4, 4, 4, 4, 4),
        np.array([[0] * 5, [1] * 5]),
        np.array([[2] * 5, [3] * 5]),
    )
    # x_4 + 0.5 (x_0 + x_1 - x_2 - x_3)
    np.testing.assert_allclose(donors[0], [2.0 + 0.5 * (0 + 1 - 3 - 5), 2.0 + 0.5 * (0 + 2 + 1 - 4)])


def test_crossover_takes_a_coordinate_where_the_uniform_does_not_exceed_the_rate():
    parents, donors = np.zeros((2, 3)), np.ones((2, 3))
    uniforms = np.array([[0.2, 0.5, 0.8], [0.2, 0.5, 0.8]])
    trials = cross_binomial(parents, donors, np.array([0.5, 0.1]), uniforms, indices(2, -1))
    np.testing.assert_array_equal(trials, [[1, 1, 1], [0, 0, 0]])


def test_crossover_rate_zero_takes_exactly_the_forced_coordinate():
    uniforms = np.zeros((4, 2))  # zeros are the hardest case: they do not exceed a rate of zero
    trials = cross_binomial(POSITIONS, POSITIONS + 1.0, np.zeros(4), uniforms, indices(0, 1, 0, 1))
    np.testing.assert_array_equal(trials - POSITIONS, [[1, 0], [0, 1], [1, 0], [0, 1]])


def test_crossover_rate_one_takes_the_whole_donor(rng):
    trials = cross_binomial(POSITIONS, POSITIONS + 1.0, np.ones(4), rng.random((4, 2)), indices(0, 0, 0, 0))
    np.testing.assert_array_equal(trials, POSITIONS + 1.0)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_crossover_share_matches_the_rate(rng, rate):
    parents, donors = np.zeros((20_000, 5)), np.ones((20_000, 5))
    forced = rng.integers(5, size=20_000)
    trials = cross_binomial(parents, donors, np.full(20_000, rate), rng.random((20_000, 5)), forced)
    assert trials.mean() == pytest.approx(1 / 5 + rate * 4 / 5, abs=0.005)


def test_midpoint_repair_lands_between_parent_and_violated_bound():
    trials = np.array([[-30.0, 5.0], [7.0, 12.0]])
    parents = np.array([[-4.0, 0.0], [0.0, 6.0]])
    np.testing.assert_array_equal(repair_midpoint(trials, parents, LOWER, UPPER), [[-7.0, 5.0], [7.0, 8.0]])


@pytest.mark.parametrize(
    ("value", "mirrored"), [(12.0, 8.0), (-11.0, -9.0), (31.0, -9.0), (-35.0, 5.0), (50.0, 10.0), (10.0, 10.0)]
)
def test_reflect_repair_mirrors_as_often_as_needed(value, mirrored):
    repaired = repair_reflect(np.array([[value, 0.0]]), LOWER, UPPER)
    np.testing.assert_allclose(repaired, [[mirrored, 0.0]])


@pytest.mark.parametrize(
    ("value", "mirrored"), [(11.0, 9.0), (-13.0, -7.0), (31.0, -10.0), (-40.0, 10.0), (3.0, 3.0), (10.0, 10.0)]
)
def test_single_reflection_stops_at_the_other_bound(value, mirrored):
    repaired = repair_reflect_once(np.array([[value, 0.0]]), LOWER, UPPER)
    np.testing.assert_array_equal(repaired, [[mirrored, 0.0]])


def test_a_coordinate_is_forced_only_where_crossover_takes_none():
    uniforms = np.array([[0.9, 0.4], [0.9, 0.8], [0.0, 0.0]])
    forced = force_when_empty(uniforms, np.array([0.5, 0.5, 0.0]), np.array([0.9, 0.9, 0.2]))
    np.testing.assert_array_equal(forced, [-1, 1, 0])
