from __future__ import annotations

import numpy as np
import pytest

from de_gym.controllers.success_means import SuccessMeansSettings, follow_successes, sample_around_means

STARTS = np.array([0, 3, 6])


def test_means_follow_the_lehmer_mean_of_f_and_the_mean_of_cr():
    improvements = np.array([[1.0, -1.0, 2.0], [0.0, -1.0, -1.0]])  # a tie is no success
    factors = np.array([[0.2, 0.9, 0.6], [0.1, 0.1, 0.1]])
    rates = np.array([[0.1, 0.9, 0.5], [0.1, 0.1, 0.1]])
    means = np.full((2, 2), 0.5)
    follow_successes(improvements, STARTS, factors, rates, 0.1, means)
    assert means[0] == pytest.approx([0.9 * 0.5 + 0.1 * (0.04 + 0.36) / 0.8, 0.9 * 0.5 + 0.1 * 0.3])
    assert means[1].tolist() == [0.5, 0.5]


def test_parameters_are_drawn_around_the_means():
    means = np.array([[0.4, 0.7]])
    factors, rates = np.zeros((1, 2)), np.zeros((1, 2))
    # The median of the positive part of a Cauchy distribution lies a little above its location.
    sample_around_means(means, 0.1, np.full((1, 2), 0.5), np.array([[1.0, 9.0]]), np.array([0, 2]), factors, rates)
    assert factors[0] == pytest.approx([0.413, 0.413], abs=0.001)
    assert rates[0] == pytest.approx([0.8, 1.0])


def test_settings_out_of_range_are_errors():
    with pytest.raises(ValueError, match="`min_pbest` must be at least 1, got 0"):
        SuccessMeansSettings(min_pbest=0)
    with pytest.raises(ValueError, match=r"`learning_rate` must be a number in \[0, 1\]"):
        SuccessMeansSettings(learning_rate=-0.1)
