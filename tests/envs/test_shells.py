"""How many individuals may be p-best."""

from __future__ import annotations

import pytest

from de_gym.envs.shells import CONSTANT_PBEST, PBEST_SCHEDULES, num_pbest


@pytest.mark.parametrize(("share_spent", "expected"), [(0.0, 50), (0.5, 26), (1.0, 2)])
def test_linear_schedule_falls_from_everybody_to_the_best_two(share_spent, expected):
    # p = 1, (1 + 2/50) / 2, 2/50
    assert num_pbest(PBEST_SCHEDULES["linear"], 0.0, share_spent, 50) == expected


@pytest.mark.parametrize(("fraction", "expected"), [(0.1, 5), (0.11, 6), (0.001, 1), (1.0, 50)])
def test_constant_fraction_rounds_up_and_never_falls_below_one(fraction, expected):
    assert num_pbest(CONSTANT_PBEST, fraction, 0.5, 50) == expected


def test_rounding_of_a_whole_product_adds_no_candidate():
    assert num_pbest(CONSTANT_PBEST, 0.07, 0.0, 100) == 7  # 0.07 * 100 is 7.000000000000001
