import numpy as np
import pytest

from agents.episodes import discounted_returns, policy_gradient_weights, subtract_group_means

REWARDS = np.array([[1.0, 0.0], [2.0, 10.0], [4.0, 100.0]])


def test_reward_to_go_by_hand():
    np.testing.assert_allclose(discounted_returns(REWARDS, "to_go", 0.5), [[3.0, 30.0], [4.0, 60.0], [4.0, 100.0]])


def test_total_return_is_the_same_at_every_step():
    np.testing.assert_allclose(discounted_returns(REWARDS, "total", 1.0), [[7.0, 110.0]] * 3)
    np.testing.assert_allclose(discounted_returns(REWARDS, "total", 0.5), [[3.0, 30.0]] * 3)


def test_baseline_is_the_mean_of_the_same_function_and_step():
    returns = np.array([[1.0, 3.0, 10.0, 30.0], [2.0, 2.0, 0.0, 4.0]])
    active = np.ones((2, 4), dtype=bool)
    centred = subtract_group_means(returns, active, np.array([7, 7, 3, 3]))
    np.testing.assert_allclose(centred, [[-1.0, 1.0, -10.0, 10.0], [0.0, 0.0, -2.0, 2.0]])


def test_baseline_ignores_runs_that_have_ended():
    returns = np.array([[1.0, 3.0, 8.0], [2.0, 6.0, 99.0]])
    active = np.array([[True, True, True], [True, True, False]])
    centred = subtract_group_means(returns, active, np.zeros(3, dtype=np.int64))
    np.testing.assert_allclose(centred[0], [-3.0, -1.0, 4.0])
    np.testing.assert_allclose(centred[1, :2], [-2.0, 2.0])


def test_standardised_weights_have_mean_square_one_for_every_function():
    rng = np.random.default_rng(0)
    rewards = rng.random((6, 10)) * np.repeat([1.0, 100.0], 5)
    active = np.arange(6)[:, None] < np.array([6, 6, 3, 6, 6, 6, 2, 6, 6, 6])
    groups = np.repeat([0, 1], 5)
    weights = policy_gradient_weights(rewards, active, groups, kind="to_go", gamma=0.9, baseline="standardised")
    plain = policy_gradient_weights(rewards, active, groups, kind="to_go", gamma=0.9, baseline="function")
    for group in (0, 1):
        counted = active[:, groups == group]
        assert np.mean(weights[:, groups == group][counted] ** 2) == pytest.approx(1.0)
        ratios = plain[:, groups == group][counted] / weights[:, groups == group][counted]
        np.testing.assert_allclose(ratios, ratios[0])
    equal = policy_gradient_weights(
        np.ones((2, 3)), np.ones((2, 3), dtype=bool), np.zeros(3), kind="total", gamma=1.0, baseline="standardised"
    )
    np.testing.assert_array_equal(equal, 0.0)


@pytest.mark.parametrize("baseline", ["none", "function"])
def test_steps_after_the_end_have_no_weight_and_their_rewards_do_not_count(baseline):
    active = np.array([[True, True], [True, False], [True, False]])
    groups = np.zeros(2, dtype=np.int64)
    weights = policy_gradient_weights(REWARDS, active, groups, kind="to_go", gamma=1.0, baseline=baseline)
    expected = {"none": [[7.0, 0.0], [6.0, 0.0], [4.0, 0.0]], "function": [[3.5, -3.5], [0.0, 0.0], [0.0, 0.0]]}
    np.testing.assert_allclose(weights, expected[baseline])
