from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from de_gym.controllers.success_history import CONTROLS, SuccessHistory, SuccessHistorySettings, success_weight
from de_gym.evolution.populations import RUN, make_population
from de_gym.evolution.shell import Feedback, View
from de_gym.machine.draws import DrawLayout, GenerationDraws

# As after half of the schedules: neither floor nor ceiling nor a weight.
FREE = SuccessHistorySettings(
    crossover_rate_floors=((1.0, 0.0),), scale_factor_ceilings=((1.0, 1.0),), pbest_weights=((1.0, 1.0),)
)
CONTROL_NAMES = [control.name for control in CONTROLS]


def begin(settings=FREE, size=100, num_runs=1, progress=0.0, budget=10_000, memory=None):
    """Return a rule and what it sees of runs that have spent a share of their budget."""
    runs = np.zeros(num_runs, RUN)
    runs["size"], runs["max_evaluations"], runs["evaluations"] = size, budget, round(progress * budget)
    population, rule = make_population(runs, size, 0, 1), SuccessHistory(settings)
    rule.reset(population)
    if memory is not None:
        rule.memory[:] = np.array(memory)[None, :, None]
    rngs = [np.random.default_rng(seed) for seed in range(num_runs)]
    draws = GenerationDraws(rngs, size, DrawLayout(rule.num_uniforms, 0, 0, rule.num_normals))
    draws.draw(np.arange(num_runs + 1) * size)
    return rule, View(population, draws)


def learn(rule, improvements, factors, rates):
    size = len(improvements)
    parameters = rule.parameters._replace(scale_factors=np.array([factors]), crossover_rates=np.array([rates]))
    rule.learn(Feedback(np.array([improvements]), np.array([0, size]), parameters))


def test_memory_entry_is_averaged_with_the_gain_weighted_lehmer_mean():
    rule, _ = begin(replace(FREE, memory_size=2, initial_scale_factor=0.3, initial_crossover_rate=0.3), size=3)
    learn(rule, [1.0, 3.0, 0.0], [0.2, 0.6, 0.9], [0.5, 1.0, 0.3])
    lehmer_factor = (0.25 * 0.04 + 0.75 * 0.36) / (0.25 * 0.2 + 0.75 * 0.6)
    lehmer_rate = (0.25 * 0.25 + 0.75 * 1.0) / (0.25 * 0.5 + 0.75 * 1.0)
    assert rule.memory[0, 0] == pytest.approx([0.5 * (0.3 + lehmer_factor), 0.3])
    assert rule.memory[0, 1] == pytest.approx([0.5 * (0.3 + lehmer_rate), 0.3])


def test_entries_are_written_in_turn():
    rule, _ = begin(replace(FREE, memory_size=2, initial_scale_factor=0.5), size=1)
    for factor in (0.1, 0.3, 0.9):
        learn(rule, [1.0], [factor], [0.5])
    assert rule.memory[0, 0] == pytest.approx([0.5 * (0.5 * (0.5 + 0.1) + 0.9), 0.5 * (0.5 + 0.3)])


def test_successes_with_zero_rates_remember_minus_one_and_no_success_changes_nothing():
    rule, _ = begin(replace(FREE, memory_size=2, initial_crossover_rate=0.6), size=2)
    learn(rule, [0.0, -1.0], [0.5, 0.5], [1.0, 1.0])
    assert rule.memory[0].tolist() == [[0.3, 0.3], [0.6, 0.6]]
    learn(rule, [1.0, -1.0], [0.5, 0.5], [0.0, 0.0])
    assert rule.memory[0, 1] == pytest.approx([0.5 * (0.6 - 1.0), 0.6])


def test_infinite_gains_outweigh_finite_ones_and_count_alike():
    assert [success_weight(gain, np.inf) for gain in (np.inf, 4.0, 0.0, -1.0)] == [1.0, 0.0, 0.0, 0.0]
    assert [success_weight(gain, 4.0) for gain in (4.0, 1.0, 0.0, -np.inf)] == [1.0, 0.25, 0.0, 0.0]


def test_negative_remembered_rates_mean_zero_and_the_last_entry_is_fixed():
    rule, view = begin(size=2000, memory=(0.3, -0.1))
    view.draws.normals[:] = 0.0
    parameters = rule(view)
    # Four entries are negative, hence rate 0; the fifth always reads 0.9.
    rates, factors = parameters.crossover_rates[0], parameters.scale_factors[0]
    assert set(rates) == {0.0, 0.9}
    assert np.mean(rates == 0.9) == pytest.approx(0.2, abs=0.03)
    assert np.median(factors[rates == 0.0]) == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize(
    ("progress", "floor", "ceiling", "weight", "other"),
    [
        (0.0, 0.7, 0.7, 0.7, True),
        (0.2, 0.7, 0.7, 0.8, True),
        (0.25, 0.6, 0.7, 0.8, True),
        (0.4, 0.6, 0.7, 1.2, True),
        (0.5, 0.0, 0.7, 1.2, False),
        (0.6, 0.0, 1.0, 1.2, False),
    ],
)
def test_limits_follow_the_budget(progress, floor, ceiling, weight, other):
    rule, view = begin(SuccessHistorySettings(), size=1000, progress=progress, memory=(0.5, 0.3))
    parameters = rule(view)
    assert parameters.crossover_rates.min() == floor
    assert parameters.scale_factors.max() == ceiling
    np.testing.assert_array_equal(parameters.pbest_weights, weight * parameters.scale_factors)
    assert parameters.plans["other_pbest"].tolist() == [other]


def test_the_plan_is_linear_and_candidates_are_counted_when_the_size_changes():
    rule, view = begin(SuccessHistorySettings(), size=100, progress=0.5)
    plans, runs = rule(view).plans, view.population.runs
    assert plans["num_pbest"].tolist() == [25]  # as at the start, since the size is that of the start
    assert plans["next_size"].tolist() == [int(100 - 96 * 0.51 + 0.5)]
    runs["size"] = 60
    view.draws.draw(np.array([0, 60]))
    assert rule(view).plans["num_pbest"].tolist() == [int(60 * (0.25 - 0.125 * 0.5) + 0.5)]


def changed_by(name, residual, progress=0.5):
    """Return the parameters of many individuals without and with one residual."""
    results = []
    for value in (0.0, residual):
        rule, view = begin(size=4000, progress=progress, budget=10**6, memory=(0.5, 0.5))
        residuals = np.zeros((1, len(CONTROLS)))
        residuals[0, CONTROL_NAMES.index(name)] = value
        rule.set_residuals(residuals)
        results.append(rule(view))
    return results


@pytest.mark.parametrize("residual", [-1.0, 0.5, 1.0])
def test_residuals_move_means(residual):
    before, after = changed_by("mean_scale_factor", residual)
    shift = np.median(after.scale_factors) - np.median(before.scale_factors)
    assert shift == pytest.approx(0.3 * residual, abs=0.06)
    assert after.crossover_rates.tobytes() == before.crossover_rates.tobytes()
    before, after = changed_by("mean_crossover_rate", residual)
    shift = np.median(after.crossover_rates) - np.median(before.crossover_rates)
    assert shift == pytest.approx(0.3 * residual, abs=0.06)


def spread(numbers):
    low, high = np.percentile(numbers, [30, 45])
    return high - low


@pytest.mark.parametrize(("name", "scale"), [("scale_factor_spread", 3.0), ("crossover_rate_spread", 2.5)])
def test_residuals_stretch_spreads_up_to_a_limit(name, scale):
    field = "scale_factors" if name.startswith("scale") else "crossover_rates"
    for residual in (-0.6, -0.2, 0.2):
        before, after = (spread(getattr(parameters, field)) for parameters in changed_by(name, residual))
        assert after / before == pytest.approx(np.exp(scale * residual), rel=0.15)
    at_limit, beyond = (getattr(changed_by(name, residual)[1], field) for residual in (0.9, 1.0))
    np.testing.assert_array_equal(at_limit, beyond)


@pytest.mark.parametrize("residual", [-1.0, 0.3, 1.0])
def test_residuals_scale_candidates_weight_and_size_plan(residual):
    before, after = changed_by("pbest_share", residual)
    expected = min(int(1000 * np.exp(1.5 * residual) + 0.5), 4000)
    assert (before.plans["num_pbest"][0], after.plans["num_pbest"][0]) == (1000, expected)
    before, after = changed_by("pbest_weight", residual)
    np.testing.assert_allclose(after.pbest_weights, np.exp(0.6 * residual) * before.pbest_weights)
    before, after = changed_by("size_plan", residual)
    linear = 4000 - 3996 * 0.504
    assert before.plans["next_size"][0] == int(linear + 0.5)
    assert after.plans["next_size"][0] == int(4 + (linear - 4) * np.exp(1.2 * residual) + 0.5)


def test_zero_residuals_change_no_bit():
    (rule, view), (other, same) = (begin(SuccessHistorySettings(), num_runs=2) for _ in range(2))
    other.set_residuals(np.zeros((2, len(CONTROLS))))
    for one, two in zip(rule(view), other(same), strict=True):
        assert one.tobytes() == two.tobytes()


def test_residuals_of_another_shape_or_range_are_errors():
    rule, _ = begin(num_runs=2)
    with pytest.raises(ValueError, match=r"`residuals` must have shape \(2, 7\), got \(7,\)"):
        rule.set_residuals(np.zeros(7))
    for wrong in (1.1, np.nan):
        with pytest.raises(ValueError, match=r"`residuals` must lie in \[-1, 1\]"):
            rule.set_residuals(np.full((2, 7), wrong))


def test_kept_runs_keep_memory_and_residuals():
    rule, _ = begin(num_runs=3)
    rule.memory[:] = np.arange(3.0)[:, None, None]
    rule.set_residuals(np.tile([[0.0], [0.1], [0.2]], (1, 7)))
    rule.keep(np.array([2, 0]))
    assert rule.memory[:, 0, 0].tolist() == [2.0, 0.0]
    assert rule.residuals[:, 0].tolist() == [0.2, 0.0]
    assert rule.parameters.scale_factors.shape == (2, 100)


def test_settings_out_of_range_are_errors():
    with pytest.raises(ValueError, match="`min_pbest` must be at least 2, got 1"):
        SuccessHistorySettings(min_pbest=1)
