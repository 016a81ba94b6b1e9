"""Choices among individuals are uniform and distinct, and rankings stable."""

from __future__ import annotations

import numpy as np
import pytest

from de_gym.machine.ordering import rank_by_fitness
from de_gym.machine.picks import pick_distinct, pick_index


@pytest.mark.parametrize(("population_size", "num_picks", "pool_size"), [(4, 2, 4), (4, 3, 4), (5, 4, 5), (6, 2, 9)])
def test_picked_indices_are_distinct_and_uniform(rng, population_size, num_picks, pool_size):
    counts = np.zeros((num_picks, population_size, pool_size))
    repeats = 3000
    for _ in range(repeats):
        picked = pick_distinct(rng.random((num_picks, population_size)), pool_size)
        everyone = np.vstack([np.arange(population_size), picked])
        for individual in range(population_size):
            assert len(set(everyone[:, individual])) == num_picks + 1
        for pick in range(num_picks):
            counts[pick, np.arange(population_size), picked[pick]] += 1
    for pick in range(num_picks):
        reachable = pool_size if pick == num_picks - 1 else population_size
        assert counts[pick, :, reachable:].sum() == 0
        for individual in range(population_size):
            others = np.delete(np.arange(reachable), individual)
            assert counts[pick, individual, individual] == 0
            if pick == 0 or reachable == population_size:
                np.testing.assert_allclose(
                    counts[pick, individual, others] / repeats, 1 / (reachable - 1), atol=5 / np.sqrt(repeats)
                )


def test_largest_uniform_stays_inside_the_population():
    almost_one = np.nextafter(1.0, 0.0)
    assert pick_index(almost_one, 50) == 49
    picked = pick_distinct(np.full((2, 50), almost_one), 50)
    assert picked.max() == 49


def test_ranking_is_stable_and_puts_infinity_last():
    order = rank_by_fitness(np.array([2.0, np.inf, 1.0, 2.0, np.inf, 1.0]))
    np.testing.assert_array_equal(order, [2, 5, 0, 3, 1, 4])
