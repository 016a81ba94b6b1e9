"""How many individuals may be p-best."""

from __future__ import annotations

import numpy as np

from de_gym.envs.pbest import num_pbest


def test_linear_schedule_falls_from_everybody_to_the_best_two():
    progress = np.array([0.0, 0.5, 1.0])
    # p = 1, (1 + 2/50) / 2, 2/50
    np.testing.assert_array_equal(num_pbest("linear", progress, 50), [50, 26, 2])


def test_constant_fraction_rounds_up_and_never_falls_below_one():
    progress = np.zeros(1)
    assert num_pbest(0.1, progress, 50)[0] == 5
    assert num_pbest(0.11, progress, 50)[0] == 6
    assert num_pbest(0.001, progress, 50)[0] == 1


def test_rounding_of_a_whole_product_adds_no_candidate():
    assert num_pbest(0.07, np.zeros(1), 100)[0] == 7  # 0.07 * 100 is 7.000000000000001
