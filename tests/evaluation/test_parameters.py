from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from de_gym.evaluation.parameters import ParameterTrace, cluster_by_fitness


def _cost(values, clusters):
    groups = [values[clusters == cluster] for cluster in range(3)]
    return sum(((group - group.mean()) ** 2).sum() for group in groups if len(group))


def test_three_obvious_groups_are_found_whatever_their_order():
    fitness = np.array([10.0, 0.1, 99.0, 0.2, 11.0, 100.0, 0.0])
    assert cluster_by_fitness(fitness).tolist() == [1, 0, 2, 0, 1, 2, 0]


@given(st.lists(st.integers(0, 30), min_size=4, max_size=9))
def test_no_split_into_three_intervals_is_tighter(numbers):
    values = np.sort(np.array(numbers, dtype=float))
    found = _cost(values, cluster_by_fitness(values))
    for first, second in combinations(range(1, len(values)), 2):
        other = np.repeat([0, 1, 2], [first, second - first, len(values) - second])
        assert found <= _cost(values, other) + 1e-9


def test_clusters_of_values_close_to_each_other_far_from_zero():
    fitness = 1e9 + np.array([0.0, 1e-4, 1.0, 1.0001, 2.0, 2.0001])
    assert cluster_by_fitness(fitness).tolist() == [0, 0, 1, 1, 2, 2]


def test_flat_and_infinite_fitness_need_no_third_group():
    assert cluster_by_fitness(np.ones(5)).tolist() == [0] * 5
    assert cluster_by_fitness(np.array([1.0, 2.0, np.inf])).tolist() == [0, 1, 1]
    assert cluster_by_fitness(np.array([np.inf, np.inf])).tolist() == [0, 0]


def test_means_belong_to_the_individuals_of_each_cluster():
    fitness = [np.array([0.0, 50.0, 100.0, 0.1]), np.array([3.0, 2.0, 1.0])]
    factors = [np.array([0.2, 0.5, 0.9, 0.4]), np.array([0.1, 0.2, 0.3])]
    rates = [factor / 2 for factor in factors]
    mean_factors, mean_rates = ParameterTrace("m", fitness, factors, rates).cluster_means()
    assert mean_factors[0] == pytest.approx([0.3, 0.5, 0.9])
    assert mean_factors[1] == pytest.approx([0.3, 0.2, 0.1])
    np.testing.assert_allclose(mean_rates, mean_factors / 2)


def test_a_flat_population_has_only_the_best_cluster():
    mean_factors, _ = ParameterTrace("m", [np.ones(4)], [np.full(4, 0.5)], [np.full(4, 0.9)]).cluster_means()
    assert mean_factors[0, 0] == 0.5
    assert np.isnan(mean_factors[0, 1:]).all()


def test_the_residuals_that_moved_most_are_shown_in_the_order_of_the_controls():
    residuals = {"still": np.zeros(3), "wide": np.array([-1.0, 0.0, 1.0]), "narrow": np.array([0.1, 0.2, 0.3])}
    trace = ParameterTrace("m", [np.ones(4)] * 3, [np.ones(4)] * 3, [np.ones(4)] * 3, residuals)
    assert list(trace.most_moved(2)) == ["wide", "narrow"]
    assert list(trace.most_moved(5)) == ["still", "wide", "narrow"]
