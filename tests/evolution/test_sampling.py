from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from de_gym.baselines.steps import (
    best_1_donors,
    rand_1_donors,
    sample_cauchy,
    sample_clipped_normal,
    sample_positive_cauchy,
    select_not_worse,
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_cauchy_numbers_follow_the_distribution(rng):
    samples = sample_cauchy(rng.random(20_000), np.full(20_000, 0.65), 0.1)
    assert stats.kstest(samples, stats.cauchy(0.65, 0.1).cdf).pvalue > 0.01


@pytest.mark.parametrize("location", [0.5, 0.05])
def test_positive_cauchy_numbers_equal_redrawing_until_positive(rng, location):
    samples = sample_positive_cauchy(rng.random(20_000), np.full(20_000, location), 0.1)
    redrawn = stats.cauchy(location, 0.1).rvs(60_000, random_state=rng)
    redrawn = np.minimum(redrawn[redrawn > 0.0][:20_000], 1.0)
    assert samples.min() > 0.0
    assert samples.max() == 1.0
    assert stats.ks_2samp(samples, redrawn).pvalue > 0.01


def test_positive_cauchy_numbers_stay_positive_at_the_ends_of_the_uniforms():
    ends = np.array([0.0, np.nextafter(1.0, 0.0)])
    samples = sample_positive_cauchy(ends, np.array([0.5, 0.5]), 0.1)
    assert samples[0] == 1.0
    assert 0.0 < samples[1] < 1e-12


def test_normals_are_scaled_shifted_and_clipped():
    samples = sample_clipped_normal(np.array([1.0, -1.0, 9.0, -9.0]), np.full(4, 0.5), 0.1)
    assert np.allclose(samples, [0.6, 0.4, 1.0, 0.0])


def test_rand_1_adds_the_scaled_difference_of_two_others_to_a_third():
    # Distinct powers of two make every donor reveal its three sources.
    positions = np.array([[1.0], [2.0], [4.0], [8.0]])
    uniforms = np.zeros(12)  # always the first row not yet taken
    donors = rand_1_donors(positions, np.full(4, 0.5), uniforms)
    assert np.array_equal(donors[:, 0], [2.0 + 0.5 * (4.0 - 8.0), 1.0 - 2.0, 1.0 + 0.5 * (2.0 - 8.0), 1.0 - 1.0])


def test_best_1_adds_the_scaled_difference_of_two_others_to_the_best():
    positions = np.array([[1.0], [2.0], [4.0]])
    donors = best_1_donors(positions, 2, np.full(3, 0.5), np.zeros(6))
    assert np.array_equal(donors[:, 0], [4.0 + 0.5 * (2.0 - 4.0), 4.0 + 0.5 * (1.0 - 4.0), 4.0 + 0.5 * (1.0 - 2.0)])


def test_selection_takes_better_and_equal_trials_and_keeps_better_parents():
    positions, trials = np.zeros((1, 3, 1)), np.ones((1, 3, 1))
    fitness, trial_fitness = np.array([[1.0, 2.0, 3.0]]), np.array([[2.0, 2.0, 2.0]])
    next_positions, next_fitness, replaced = select_not_worse(positions, fitness, trials, trial_fitness)
    assert np.array_equal(next_positions[0, :, 0], [0.0, 1.0, 1.0])
    assert np.array_equal(next_fitness, [[1.0, 2.0, 2.0]])
    assert np.array_equal(replaced, [[False, True, True]])
    assert np.array_equal(positions, np.zeros((1, 3, 1)))
