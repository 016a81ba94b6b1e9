"""AdaptiveDE: L-SRTDE by ask and tell, equal to its environment, with and without a controller."""

from __future__ import annotations

import numpy as np
import pytest

from de_gym import Problem, make_suite, minimize
from de_gym.controllers import ResidualController
from de_gym.controllers.residual import num_numbers
from de_gym.envs import AdaptiveDEControlEnv
from de_gym.optimizers import METHODS, AdaptiveDE, AdaptiveDESettings, run
from de_gym.optimizers.adaptive import CONTROL_NAMES, FEATURE_NAMES

PROBLEM = make_suite("cec2013", 10)[12]


def make_controller(seed: int = 0) -> ResidualController:
    vectors = np.random.default_rng(seed).normal(0.0, 0.3, (1, num_numbers(len(CONTROL_NAMES))))
    return ResidualController.from_vectors(FEATURE_NAMES, CONTROL_NAMES, vectors)


@pytest.mark.parametrize("controller", [None, make_controller()], ids=["alone", "controlled"])
def test_runs_equal_the_environment_with_the_same_start_and_key(controller):
    optimizer = AdaptiveDE(AdaptiveDESettings(population_size=60), controller)
    optimizer.start(PROBLEM.lower[None], PROBLEM.upper[None], [np.random.default_rng(3)], 4000)
    initial = optimizer.ask()
    optimizer.tell(PROBLEM.evaluate(initial.points))
    env = AdaptiveDEControlEnv(functions=[12], max_evaluations=4000, population_size=60)
    observation, _ = env.reset(seed=0, options={"initial_population": initial.points})
    env._state.shell_runs["key"] = optimizer._state.runs["key"]
    terminated = False
    while not terminated:
        action = np.zeros(len(CONTROL_NAMES)) if controller is None else controller(observation[None])[0]
        observation, _, terminated, _, info = env.step(action)
        while optimizer.evaluations[0] < info["evaluations"]:
            optimizer.tell(PROBLEM.evaluate(optimizer.ask().points))
        assert info["evaluations"] == optimizer.evaluations[0]
        assert info["best_fitness"] == optimizer.best_fitness[0]
        assert terminated == optimizer.has_ended[0]
    np.testing.assert_array_equal(info["best_position"], optimizer.best_position[0])
    assert optimizer.evaluations[0] == 4000


def test_a_run_in_a_batch_equals_the_run_alone():
    seeds, controller = np.random.SeedSequence(1).spawn(4), make_controller(2)
    together = run(AdaptiveDE(controller=controller), PROBLEM, seeds=seeds, max_evaluations=3000)
    alone = run(AdaptiveDE(controller=controller), PROBLEM, seeds=seeds[2:3], max_evaluations=3000)
    assert together.errors[2] == alone.errors[0]
    np.testing.assert_array_equal(together.best_positions[2], alone.best_positions[0])


def test_it_is_a_method_like_any_other():
    result = minimize(
        lambda x: float(((x - 1) ** 2).sum()), [(-5, 5)] * 4, method="L-SRTDE", max_evaluations=8000, seed=0
    )
    assert result.fun < 1e-8
    assert result.nfev <= 8000
    assert METHODS["l-srtde"].title == "L-SRTDE"


def test_a_constant_shift_of_a_control_changes_the_run():
    vector = np.zeros((1, num_numbers(len(CONTROL_NAMES))))
    vector[0, 0] = 1.0  # the constant input of the first control, mean F
    shifted = ResidualController.from_vectors(FEATURE_NAMES, CONTROL_NAMES, vector)
    optimizer = AdaptiveDE(controller=shifted)
    run(optimizer, PROBLEM, num_runs=2, max_evaluations=2000)
    plain = AdaptiveDE()
    run(plain, PROBLEM, num_runs=2, max_evaluations=2000)
    assert (optimizer.last_parameters.scale_factors > plain.last_parameters.scale_factors).all()


def test_the_first_size_is_the_controllers_choice():
    vector = np.zeros((1, num_numbers(len(CONTROL_NAMES))))
    vector[0, -2] = -2.0
    smaller = AdaptiveDE(controller=ResidualController.from_vectors(FEATURE_NAMES, CONTROL_NAMES, vector))
    sizes = []
    for optimizer in (smaller, AdaptiveDE(), AdaptiveDE(AdaptiveDESettings(population_size=33))):
        optimizer.start(PROBLEM.lower[None], PROBLEM.upper[None], [np.random.default_rng(0)], 10_000)
        sizes.append(len(optimizer.ask().points))
    assert sizes[0] < sizes[1]
    assert sizes[2] == 33


def test_a_controller_of_other_features_is_refused():
    controller = make_controller()
    other = ResidualController(
        controller.features[::-1], controller.controls, controller.weights, controller.size_weights
    )
    with pytest.raises(ValueError, match="A controller of this algorithm has the features"):
        AdaptiveDE(controller=other)


@pytest.mark.parametrize("dimension", [1, 2, 60])
def test_any_dimension_and_small_budgets(dimension):
    problem = Problem.from_function(lambda x: float(np.abs(x).sum()), -1.0, 2.0, dimension=dimension)
    for budget in (12, 100):
        result = run(AdaptiveDE(controller=make_controller()), problem, num_runs=2, max_evaluations=budget)
        assert (result.evaluations == budget).all()


@pytest.mark.parametrize(
    ("residuals", "message"),
    [
        (np.zeros((1, 14)), r"Actions must have shape \(1, 15\), got \(1, 14\)"),
        (np.full((1, 15), np.nan), "got NaN"),
    ],
)
def test_residuals_of_an_own_rule_are_checked(residuals, message):
    with pytest.raises(ValueError, match=message):
        run(AdaptiveDE(controller=lambda observations: residuals), PROBLEM, num_runs=1, max_evaluations=300)


class SizingRule:
    """A rule that adjusts nothing but the size of the first population."""

    def __init__(self, residuals):
        self.residuals = residuals

    def __call__(self, observations):
        return np.zeros((len(observations), len(CONTROL_NAMES)))

    def size_residuals(self, dimension, budgets):
        return self.residuals


@pytest.mark.parametrize(
    ("residuals", "error", "message"),
    [
        ([0.0], ValueError, r"^Size residuals must have shape \(2,\), got \(1,\)\.$"),
        (0.5, ValueError, r"^Size residuals must have shape \(2,\), got \(\)\.$"),
        ([0.0, np.nan], ValueError, r"^Size residuals must be numbers in \[-1, 1\], got NaN\.$"),
        (["a", "b"], TypeError, "^Size residuals must be real numbers"),
    ],
)
def test_first_sizes_of_an_own_rule_are_checked(residuals, error, message):
    with pytest.raises(error, match=message):
        run(AdaptiveDE(controller=SizingRule(residuals)), PROBLEM, num_runs=2, max_evaluations=300)


def test_first_sizes_of_an_own_rule_are_clipped():
    outside, border = (
        run(AdaptiveDE(controller=SizingRule([number] * 2)), PROBLEM, num_runs=2, max_evaluations=2000)
        for number in (-7.0, -1.0)
    )
    assert outside.best_positions.tobytes() == border.best_positions.tobytes()
