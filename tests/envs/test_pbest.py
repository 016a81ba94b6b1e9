"""How many individuals may be p-best."""

from __future__ import annotations

import numpy as np

from de_gym.envs.pbest import num_pbest


def test_linear_schedule_falls_from_everybody_to_the_best_two():
    spent = np.array([0, 50_000, 100_000])
    # p = 1, (1 + 2/50) / 2, 2/50
    np.testing.assert_array_equal(num_pbest("linear", spent, 100_000, 50), [50, 26, 2])


def test_constant_fraction_rounds_up_and_never_falls_below_one():
    spent = np.zeros(1, np.int64)
    assert num_pbest(0.1, spent, 1000, 50)[0] == 5
    assert num_pbest(0.11, spent, 1000, 50)[0] == 6
    assert num_pbest(0.001, spent, 1000, 50)[0] == 1
    assert num_pbest(1.0, spent, 1000, 50)[0] == 50


def test_rounding_of_a_whole_product_adds_no_candidate():
    assert num_pbest(0.07, np.zeros(1, np.int64), 1000, 100)[0] == 7  # 0.07 * 100 is 7.000000000000001
