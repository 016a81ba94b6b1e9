"""Rewards by hand."""

from __future__ import annotations

import numpy as np
import pytest

from de_gym.envs.rewards import REWARDS, reward
from de_gym.machine.compiling import compiled, switch

BEFORE, AFTER, INITIAL = np.array([4.0, 1e-9, 0.0]), np.array([1.0, 0.0, 0.0]), np.array([8.0, 2.0, 0.0])


def rewards_of(name: str, *errors: np.ndarray) -> np.ndarray:
    return np.array([reward(list(REWARDS).index(name), *row) for row in zip(*errors, strict=True)])


def test_relative_reward_is_the_share_of_the_error_removed():
    np.testing.assert_allclose(rewards_of("relative", BEFORE, AFTER, INITIAL), [0.75, 1.0, 0.0])


def test_log_reward_counts_decades_down_to_the_floor():
    before, after = np.array([100.0, 1e-7, 1e-9]), np.array([1.0, 1e-12, 0.0])
    np.testing.assert_allclose(rewards_of("log", before, after, before), [2.0, 1.0, 0.0])


def test_initial_gap_reward_is_the_share_of_the_first_error():
    np.testing.assert_allclose(rewards_of("initial_gap", BEFORE, AFTER, INITIAL), [3.0 / 8.0, 0.5e-9, 0.0])


@pytest.mark.parametrize("name", REWARDS)
def test_every_reward_is_zero_without_improvement_and_finite_from_infinity(name):
    same = np.array([3.0, 0.0, np.inf, np.inf])
    after = np.array([3.0, 0.0, np.inf, 1.0])
    np.testing.assert_array_equal(rewards_of(name, same, after, same), np.zeros(4))


@pytest.mark.parametrize("name", REWARDS)
def test_every_reward_rises_with_improvement(name):
    before = np.full(3, 5.0)
    rewards = rewards_of(name, before, np.array([4.0, 3.0, 1.0]), before)
    assert (np.diff(rewards) > 0).all()
    assert rewards[0] > 0


def test_a_reward_is_a_function_and_an_entry():
    @compiled
    def halve_error(before: float, after: float, initial: float) -> float:
        return 1.0 if after <= 0.5 * before else 0.0

    extended = switch([*REWARDS.values(), halve_error])
    assert extended(len(REWARDS), 4.0, 2.0, 8.0) == 1.0
    assert extended(len(REWARDS), 4.0, 3.0, 8.0) == 0.0
    assert extended(list(REWARDS).index("initial_gap"), 4.0, 2.0, 8.0) == 0.25
