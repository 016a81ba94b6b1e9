"""Action maps: what an agent's few numbers become for every individual."""

from __future__ import annotations

import numpy as np
import pytest

from de_gym.envs.actions import ACTIONS, check_actions
from de_gym.envs.state import RUN


def make_runs(num_runs: int, size: int):
    runs = np.zeros(num_runs, RUN)
    runs["key"], runs["size"] = np.arange(num_runs), size
    return runs


def test_by_rank_changes_nothing():
    actions = np.random.default_rng(0).random((3, 8))
    np.testing.assert_array_equal(ACTIONS["by_rank"].expand(actions, make_runs(3, 4), 4), actions)


def test_knots_lie_on_straight_lines_from_the_best_to_the_worst():
    actions = np.array([[0.0, 0.1, 0.2, 0.3, 0.4, 1.0, 0.8, 0.6, 0.4, 0.2]])
    expanded = ACTIONS["knots"].expand(actions, make_runs(1, 9), 9)[0]
    np.testing.assert_allclose(expanded[:9], np.linspace(0.0, 0.4, 9))
    np.testing.assert_allclose(expanded[9:], np.linspace(1.0, 0.2, 9))


def test_knots_follow_the_living():
    actions = np.array([[0.0, 0.1, 0.2, 0.3, 0.4] * 2])
    expanded = ACTIONS["knots"].expand(actions, make_runs(1, 5), 9)[0]
    np.testing.assert_allclose(expanded[:5], [0.0, 0.1, 0.2, 0.3, 0.4])


def test_mean_and_spread_are_those_of_the_individuals():
    runs = make_runs(2, 4000)
    expanded = ACTIONS["mean_and_spread"].expand(np.array([[0.4, 0.2, 0.6, 0.0], [0.5, 0.1, 0.5, 0.1]]), runs, 4000)
    factors, rates = expanded[0, :4000], expanded[0, 4000:]
    assert factors.mean() == pytest.approx(0.4, abs=0.01)
    assert factors.std() == pytest.approx(0.1, abs=0.005)
    np.testing.assert_array_equal(rates, 0.6)
    assert abs(np.corrcoef(expanded[1, :4000], expanded[1, 4000:])[0, 1]) < 0.06


def test_the_draw_follows_the_run_and_the_generation_alone():
    actions, runs = np.full((2, 4), 0.5), make_runs(2, 6)
    expand = ACTIONS["mean_and_spread"].expand
    both = expand(actions, runs, 6)
    np.testing.assert_array_equal(expand(actions[1:], runs[1:], 6)[0], both[1])
    runs["generation"] = 1
    assert not np.isin(expand(actions, runs, 6), both).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_any_kind_of_number_is_taken_and_clipped(dtype):
    checked = np.empty((2, 3))
    check_actions(np.array([[0, 1, 2], [1, 0, 1]]).astype(dtype), checked)
    np.testing.assert_array_equal(checked, [[0, 1, 1], [1, 0, 1]])


@pytest.mark.parametrize("actions", [np.zeros((2, 4)), np.zeros(6), np.full((2, 3), np.nan), np.zeros((2, 3), complex)])
def test_anything_else_is_refused(actions):
    with pytest.raises((ValueError, TypeError), match="Actions must"):
        check_actions(actions, np.empty((2, 3)))
