"""Runs of different sizes and budgets in one batch, and shells with controllers they were not made for."""

from __future__ import annotations

import numpy as np
import pytest

from de_gym.controllers.bimodal import Bimodal
from de_gym.controllers.competing import Competing
from de_gym.controllers.constant import Constant
from de_gym.controllers.parameter_rule import ParameterRule
from de_gym.controllers.success_history import CONTROLS, SuccessHistory
from de_gym.controllers.success_means import SuccessMeans
from de_gym.evolution.current_to_pbest import CurrentToPbest
from de_gym.evolution.populations import PLAN
from de_gym.evolution.rand_and_best import RandAndBest
from de_gym.optimizers import METHODS, PAPER_METHODS, ControlledOptimizer, run

SHELLS = {
    "pbest": CurrentToPbest(24),
    "l-shade": CurrentToPbest(24, archive_fraction=1.0),
    "leaving": CurrentToPbest(24, archive_fraction=2.0, archive_rule="random-leaving", strictly=True),
    "rand-best": RandAndBest(24, num_others=4),
    "eigen": RandAndBest(24, num_others=4, repair="mirror-once", eigen_probability=0.5),
}
RULES = {
    "constant": Constant,
    "success-means": SuccessMeans,
    "success-history": SuccessHistory,
    "bimodal": Bimodal,
    "competing": Competing,
}


def rastrigin_values(points):
    return np.sum(points**2 - 10.0 * np.cos(2.0 * np.pi * points) + 10.0, axis=-1)


def start(optimizer, seeds, budgets, dimension=5):
    upper = np.full((len(seeds), dimension), 100.0)
    optimizer.start(-upper, upper, [np.random.default_rng(seed) for seed in seeds], budgets)
    return optimizer


def finish(optimizer):
    while not optimizer.has_ended.all():
        optimizer.tell(rastrigin_values(optimizer.ask().points))
    return optimizer


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("rule", RULES)
def test_every_rule_controls_every_shell(shell, rule, sphere):
    optimizer = ControlledOptimizer("own", lambda settings, dimension: (SHELLS[shell], RULES[rule]()))
    result = run(optimizer, sphere, num_runs=3, max_evaluations=4_000)
    assert np.all(result.errors < 30.0)  # of about 10^4 at the start
    assert np.all(result.evaluations <= 4_000)


class OwnRule(ParameterRule):
    """A rule from outside the package, which sets anything."""

    def __init__(self, **changes):
        self.changes = changes

    def __call__(self, view):
        self.parameters.scale_factors[:], self.parameters.crossover_rates[:] = 0.5, 0.9
        return self.parameters._replace(**self.changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scale_factors": np.ones((3, 7))}, r"`scale_factors` of .* shape \(3, 24\), got float64 of shape \(3, 7\)"),
        ({"crossover_rates": np.ones((1, 24))}, r"`crossover_rates` of .* got float64 of shape \(1, 24\)"),
        ({"pbest_weights": [0.5] * 24}, "`pbest_weights` of .* got list"),
        ({"strategies": np.full((3, 24), "rand/1")}, "`strategies` of .* got <U6 of shape"),
        ({"scale_factors": np.full((3, 24), np.nan)}, "`scale_factors` of a controller must be finite"),
        ({"plans": np.zeros(2, PLAN)}, r"`plans` of .* shape \(3,\), got .* of shape \(2,\)"),
        ({"plans": np.zeros(3)}, "`plans` of .* got float64"),
        ({"plans": np.zeros(3, PLAN)}, "leaves fewer individuals than a trial is made of"),
    ],
)
def test_parameters_of_an_own_rule_are_checked(changes, message, sphere):
    optimizer = ControlledOptimizer("own", lambda settings, dimension: (SHELLS["pbest"], OwnRule(**changes)))
    with pytest.raises(ValueError, match=message):
        run(optimizer, sphere, num_runs=3, max_evaluations=400)


def test_parameters_of_an_own_rule_may_be_any_numbers(sphere):
    wanted, others = (np.full((2, 24), 0.5, kind) for kind in (np.float64, np.float32))
    rules = [OwnRule(scale_factors=factors) for factors in (wanted, others, np.asfortranarray(wanted))]
    results = [
        run(ControlledOptimizer("own", lambda *_, rule=rule: (SHELLS["pbest"], rule)), sphere, 2, max_evaluations=400)
        for rule in rules
    ]
    for result in results[1:]:
        np.testing.assert_array_equal(result.best_positions, results[0].best_positions)


@pytest.mark.parametrize("name", list(PAPER_METHODS))
def test_runs_of_different_budgets_share_a_batch_and_equal_the_runs_alone(name):
    budgets = np.array([3_000, 900, 2_000])
    together = finish(start(METHODS[name](), range(3), budgets))
    for index, budget in enumerate(budgets):
        alone = finish(start(METHODS[name](), [index], int(budget)))
        assert together.best_fitness[index] == alone.best_fitness[0]
        assert together.evaluations[index] == alone.evaluations[0]
        np.testing.assert_array_equal(together.best_position[index], alone.best_position[0])


def test_runs_that_have_ended_ask_for_nothing_and_stay_what_they_were():
    optimizer = start(METHODS["jso"](), range(2), np.array([200, 2_000]))
    while not optimizer.has_ended[0]:
        optimizer.tell(rastrigin_values(optimizer.ask().points))
    before = optimizer.population[1][0, : optimizer._runs[0]["size"]].copy()
    trials = optimizer.ask()
    assert trials.starts[1] == 0 < trials.starts[2]
    optimizer.tell(rastrigin_values(trials.points))
    assert optimizer.population[1][0, : len(before)].tolist() == before.tolist()
    finish(optimizer)
    assert len(optimizer.ask().points) == 0


def test_populations_of_different_sizes_are_filled_up_for_reports():
    optimizer = start(METHODS["jso"](), range(2), np.array([1_000, 20_000]))
    for _ in range(6):
        optimizer.tell(rastrigin_values(optimizer.ask().points))
    small, large = optimizer._runs["size"]
    positions, fitness = optimizer.population
    assert small < large == fitness.shape[1]
    assert np.isnan(positions[0, small:]).all()
    assert np.isinf(fitness[0, small:]).all()
    assert np.isfinite(fitness[0, :small]).all()
    np.testing.assert_array_equal(rastrigin_values(positions[1]), fitness[1])
    factors = optimizer.last_parameters.scale_factors
    assert np.isnan(factors[0]).sum() > 0 == np.isnan(factors[1]).sum()


def test_residuals_let_every_run_shrink_at_its_own_pace():
    optimizer = start(METHODS["jso"](), range(3), 20_000)
    residuals = np.zeros((3, len(CONTROLS)))
    residuals[:, -1] = [-1.0, 0.0, 1.0]
    alone = start(METHODS["jso"](), [1], 20_000)
    for _ in range(30):
        optimizer.controller.set_residuals(residuals)
        optimizer.tell(rastrigin_values(optimizer.ask().points))
        alone.tell(rastrigin_values(alone.ask().points))
    sizes = optimizer._runs["size"]
    assert sizes[0] < sizes[1] < sizes[2]
    assert optimizer.best_fitness[1] == alone.best_fitness[0]


def test_a_budget_below_the_first_population_of_any_run_is_an_error():
    with pytest.raises(ValueError, match="`max_evaluations` must be at least 30"):
        start(METHODS["jade"](), range(2), np.array([1_000, 29]))
