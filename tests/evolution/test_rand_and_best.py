"""Donors, crossover and repairs on small populations whose answers are worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from de_gym.evolution.eigenvectors import learn_eigenvectors, rotate_rows
from de_gym.evolution.rand_and_best import REPAIRS, STRATEGIES, RandAndBest, cross, repair_points, write_donors
from de_gym.evolution.shell import make_parameters

POSITIONS = np.array([[0.0, 0.0], [1.0, 2.0], [3.0, -1.0], [5.0, 4.0]])
LOWER, UPPER = np.array([-10.0, -10.0]), np.array([10.0, 10.0])


def donors_of(positions, strategies, others, best, factor):
    donors = np.empty_like(positions)
    codes = np.array([STRATEGIES[strategy] for strategy in strategies])
    write_donors(positions, best, np.array(others), codes, np.full(len(positions), factor), donors)
    return donors


def test_rules_are_known_in_any_case_and_others_are_named():
    assert RandAndBest(20, repair="Mirror", archive_rule="OVERWRITE") == RandAndBest(20, repair="mirror")
    with pytest.raises(ValueError, match=r"Unknown repair 'miror'\. Did you mean 'mirror'"):
        RandAndBest(20, repair="miror")
    with pytest.raises(ValueError, match="Unknown archive rule 'random'"):
        RandAndBest(20, archive_rule="random")


def test_each_strategy_makes_its_donors():
    # Distinct powers of two make every donor reveal its sources.
    positions = 2.0 ** np.arange(6)[:, None]  # 1, 2, 4, ..., 32
    others = np.array([[1, 0, 0, 0, 0, 0], [2, 2, 1, 1, 1, 1], [3, 3, 3, 2, 2, 2], [4, 4, 4, 4, 3, 3]])
    strategies = ["rand/1", "best/1", "best/2", "rand/1", "best/1", "best/2"]
    donors = donors_of(positions, strategies, others, 5, 0.5)[:, 0]
    assert donors[0] == 2.0 + 0.5 * (4.0 - 8.0)
    assert donors[1] == 32.0 + 0.5 * (1.0 - 4.0)
    assert donors[2] == 32.0 + 0.5 * (1.0 + 2.0 - 8.0 - 16.0)
    assert donors[3] == 1.0 + 0.5 * (2.0 - 4.0)


@pytest.mark.parametrize(("strategy", "num_others"), [("rand/1", 2), ("best/2", 3)])
def test_a_strategy_that_needs_more_others_than_are_drawn_is_an_error(strategy, num_others):
    with pytest.raises(ValueError, match="needs more individuals than the shell draws"):
        donors_of(POSITIONS, [strategy] * 4, np.zeros((num_others, 4), int), 0, 0.5)


def crossed(rates, forced, uniforms, only_empty=False):
    trials = np.ones_like(uniforms)
    cross(np.zeros_like(trials), np.array(rates), np.array(forced), uniforms, only_empty, trials)
    return trials


def test_crossover_takes_a_coordinate_where_the_uniform_does_not_exceed_the_rate():
    uniforms = np.array([[0.2, 0.5, 0.8], [0.2, 0.5, 0.8]])
    assert crossed([0.5, 0.1], [0.9, 0.0], uniforms).tolist() == [[1, 1, 1], [1, 0, 0]]


def test_crossover_rate_zero_takes_exactly_the_forced_coordinate():
    uniforms = np.zeros((2, 2))  # zeros are the hardest case: they do not exceed a rate of zero
    for only_empty in (False, True):
        assert crossed([0.0, 0.0], [0.2, 0.7], uniforms, only_empty).tolist() == [[1, 0], [0, 1]]


def test_a_coordinate_is_forced_only_where_crossover_takes_none():
    uniforms = np.array([[0.9, 0.4, 0.7], [0.9, 0.8, 0.7]])
    assert crossed([0.5, 0.5], [0.0, 0.0], uniforms, only_empty=True).tolist() == [[0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_crossover_share_matches_the_rate(rng, rate):
    trials = crossed(np.full(20_000, rate), rng.random(20_000), rng.random((20_000, 5)))
    assert trials.mean() == pytest.approx(1 / 5 + rate * 4 / 5, abs=0.005)


@njit
def repair_in_place(points, parents, lower, upper, repair):
    repair_points(points, parents, lower, upper, repair)


@njit
def learned(positions, rows):
    return learn_eigenvectors(positions, rows)


def repaired(value, parent, repair):
    points = np.array([[value, 0.0]])
    repair_in_place(points, np.array([[parent, 0.0]]), LOWER, UPPER, REPAIRS[repair])
    assert points[0, 1] == 0.0
    return points[0, 0]


@pytest.mark.parametrize(("value", "parent", "moved"), [(-30.0, -4.0, -7.0), (12.0, 6.0, 8.0), (7.0, 0.0, 7.0)])
def test_midpoint_repair_lands_between_parent_and_violated_bound(value, parent, moved):
    assert repaired(value, parent, "midpoint") == moved


@pytest.mark.parametrize(
    ("value", "mirrored"), [(12.0, 8.0), (-11.0, -9.0), (31.0, -9.0), (-35.0, 5.0), (50.0, 10.0), (10.0, 10.0)]
)
def test_mirror_repair_mirrors_as_often_as_needed(value, mirrored):
    assert repaired(value, 0.0, "mirror") == pytest.approx(mirrored)


@pytest.mark.parametrize(
    ("value", "mirrored"), [(11.0, 9.0), (-13.0, -7.0), (31.0, -10.0), (-40.0, 10.0), (3.0, 3.0), (10.0, 10.0)]
)
def test_single_reflection_stops_at_the_other_bound(value, mirrored):
    assert repaired(value, 0.0, "mirror-once") == mirrored


def test_eigenvectors_are_those_of_the_given_rows(rng):
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    positions = rng.normal(size=(60, 4)) * [1.0, 5.0, 20.0, 100.0] @ rotation.T
    positions[30:] = rng.normal(size=(30, 4)) * 1e4  # the others would spoil it
    basis = learned(positions, np.arange(30))
    diagonal = basis.T @ np.cov(positions[:30], rowvar=False) @ basis
    assert np.allclose(basis.T @ basis, np.eye(4), atol=1e-12)
    assert np.allclose(diagonal, np.diag(np.diag(diagonal)), atol=1e-8 * diagonal.max())
    np.testing.assert_allclose(rotate_rows(positions, basis), positions @ basis)


def test_eigen_crossover_of_one_coordinate_changes_along_one_eigenvector(rng):
    from de_gym.evolution.populations import RUN, Trials
    from de_gym.machine.draws import DrawLayout, GenerationDraws

    shell = RandAndBest(20, eigen_probability=1.0)
    state = shell.start(np.zeros(1, RUN), 3)
    points, values = rng.normal(size=(20, 3)) @ rng.normal(size=(3, 3)), rng.random(20)
    shell.settle(state, Trials(points, np.array([0, 20])), values)
    parameters = make_parameters(1, 20)
    parameters.scale_factors[:] = 0.5  # the rates are zero, so only the forced coordinate crosses
    draws = GenerationDraws([rng], 20, DrawLayout(0, *shell.num_uniforms(3), 0))
    draws.draw(np.array([0, 20]))
    trials = shell.breed(state, parameters, draws, np.full((1, 3), -100.0), np.full((1, 3), 100.0)).points
    best_half = points[np.argsort(values)[:10]]
    basis = np.linalg.eigh(np.cov(best_half, rowvar=False))[1]
    changes = np.abs((trials - points) @ basis) > 1e-9
    assert changes.sum(axis=1).tolist() == [1] * 20
    assert np.mean(np.abs(trials - points) > 1e-9) > 0.9
