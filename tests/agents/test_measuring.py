import csv

import gymnasium as gym
import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from agents.measuring import (
    Measurement,
    comparison_table,
    measure_controller,
    pooled_p_value,
    seed_table,
    summarize_seeds,
    write_measurements,
)
from de_gym.controllers import ConstantController, RandomController

SETTINGS = {"suite": "cec2013", "dimension": 10, "population_size": 8, "max_generations": 5}


def test_a_run_depends_on_its_seed_and_function_alone():
    controller = RandomController(8)
    many = measure_controller(controller, SETTINGS, [1, 5, 11], 4, seed=2)
    few = measure_controller(controller, SETTINGS, [5], 2, seed=2)
    np.testing.assert_array_equal(few.returns[0], many.returns[1, :2])
    np.testing.assert_array_equal(few.errors[0], many.errors[1, :2])
    other = measure_controller(controller, SETTINGS, [5], 2, seed=3)
    assert not np.array_equal(other.errors, few.errors)


def test_returns_add_up_to_the_improvement_of_the_error():
    measured = measure_controller(ConstantController(population_size=8), SETTINGS, [1], 3, seed=0)
    seeds = [int(np.random.SeedSequence([0, 1, run]).generate_state(1)[0] % 2**31) for run in range(3)]
    for run, seed in enumerate(seeds):
        env = gym.make("de_gym:DEParamControl-v0", **SETTINGS)
        _, info = env.reset(seed=seed, options={"function": 1})
        total, previous, ended = 0.0, info["best_error"], False
        while not ended:
            _, _, terminated, truncated, info = env.step(np.repeat([0.5, 0.9], 8).astype(np.float32))
            total += (previous - info["best_error"]) / previous
            previous, ended = info["best_error"], terminated or truncated
        assert measured.returns[0, run] == pytest.approx(total, rel=1e-6)
        assert measured.errors[0, run] == pytest.approx(previous, rel=1e-6)


def test_an_episode_that_ends_early_counts_until_its_end():
    settings = SETTINGS | {"target_error": 1e9}
    measured = measure_controller(ConstantController(population_size=8), settings, [1, 11], 2, seed=0)
    one_step = measure_controller(
        ConstantController(population_size=8), SETTINGS | {"max_generations": 1}, [1, 11], 2, seed=0
    )
    np.testing.assert_array_equal(measured.returns, one_step.returns)
    np.testing.assert_array_equal(measured.errors, one_step.errors)


def test_functions_that_their_suite_leaves_out_can_be_measured_too():
    settings = SETTINGS | {"suite": "cec2017"}
    measured = measure_controller(ConstantController(population_size=8), settings, [2, 3], 2, seed=0)
    assert np.isfinite(measured.errors).all()


def measurement(returns, errors=None):
    returns = np.array(returns)
    return Measurement((1, 2), returns, np.ones_like(returns) if errors is None else np.array(errors))


def test_pooled_p_value_is_the_rank_sum_test_over_all_runs():
    rng = np.random.default_rng(0)
    first, second = rng.random((2, 30)), rng.random((2, 30)) + 0.2
    p = pooled_p_value(measurement(first), measurement(second))
    reference = mannwhitneyu(first.ravel(), second.ravel(), method="asymptotic", use_continuity=False).pvalue
    assert p == pytest.approx(reference)
    assert p < 0.01


def test_table_shows_every_function_and_the_pooled_figures():
    table = comparison_table(
        {
            "trained": measurement([[1.0, 2.0], [3.0, 4.0]], [[10.0, 30.0], [1.0, 1.0]]),
            "random": measurement([[0.0, 1.0], [0.0, 0.5]]),
        }
    ).splitlines()
    assert table[2] == "| f1 | 1.500 | 2.000e+01 | 0.500 | 1.000e+00 |"
    assert table[4] == "| mean | 2.500 | | 0.375 | |"
    assert table[5].startswith("| p against trained | | | ")
    assert len({line.count("|") for line in table}) == 1


def test_every_run_is_written_exactly(tmp_path):
    write_measurements(tmp_path / "m.csv", {"trained": measurement([[0.1, 1 / 3], [3.0, 4.0]])})
    with (tmp_path / "m.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4
    assert rows[1] == {
        "controller": "trained", "function": "1", "run": "1", "return": repr(1 / 3), "error": "1.0"
    }  # fmt: skip


def test_the_interquartile_mean_ignores_the_outer_quarters():
    found = summarize_seeds([100.0, 2.0, 3.0, -50.0])
    assert found.mean == 13.75
    assert found.interquartile_mean == 2.5
    assert found.lower <= 2.5 <= found.upper


def test_the_bootstrap_interval_has_the_width_of_the_standard_error():
    values = np.random.default_rng(0).normal(5.0, 1.0, 400)
    found = summarize_seeds(values)
    # The interquartile mean of a normal sample has 1.09 times the standard error of its mean.
    assert found.upper - found.lower == pytest.approx(2 * 1.96 * 1.09 / 20, rel=0.15)
    assert found.lower < 5.0 < found.upper
    assert summarize_seeds(values) == found


def test_the_table_of_seeds_shows_both_kinds_of_functions():
    results = [
        {kind: {"mean_return": {"trained": value, "random": 0.0}} for kind in ("training", "test")}
        for value in (1.0, 2.0, 3.0)
    ]
    table = seed_table(results).splitlines()
    assert table[0].startswith("| return, 3 seeds |")
    assert table[2].startswith("| training functions | 2.000 | 2.000 | 1.000 to 3.000 | 1.000, 2.000, 3.000 |")
    assert table[3].startswith("| test functions |")
