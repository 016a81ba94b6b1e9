"""AdaptiveJSO: jSO itself at zero, equal to its environment under any controller."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from de_gym import make_suite, minimize
from de_gym.controllers import ResidualController, from_policy
from de_gym.controllers.jso import JSOSettings
from de_gym.controllers.residual import num_numbers
from de_gym.envs import AdaptiveDEControlEnv, AdaptiveDEControlVectorEnv
from de_gym.envs.success_history_shell import SuccessHistoryShell
from de_gym.optimizers import METHODS, AdaptiveDE, AdaptiveJSO, make_controlled_optimizer, run

PROBLEM = make_suite("cec2013", 10)[12]
FEATURES, CONTROLS = SuccessHistoryShell.features, SuccessHistoryShell.controls


def make_controller(scale: float, seed: int = 0) -> ResidualController:
    vectors = np.random.default_rng(seed).normal(0.0, scale, (1, num_numbers(len(CONTROLS))))
    return ResidualController.from_vectors(FEATURES, CONTROLS, vectors)


def test_residuals_of_zero_are_jso_bit_for_bit():
    plain = run(METHODS["jso"](), PROBLEM, num_runs=3, max_evaluations=5000)
    controlled = run(AdaptiveJSO(make_controller(0.0)), PROBLEM, num_runs=3, max_evaluations=5000)
    bent = run(AdaptiveJSO(make_controller(0.5)), PROBLEM, num_runs=3, max_evaluations=5000)
    assert plain.errors.tobytes() == controlled.errors.tobytes()
    assert plain.best_positions.tobytes() == controlled.best_positions.tobytes()
    assert (bent.errors != plain.errors).all()


@pytest.mark.parametrize("num_runs", [1, 3])
def test_runs_equal_the_vector_environment_with_the_same_start_and_numbers(num_runs):
    controller = make_controller(0.3)
    optimizer = AdaptiveJSO(controller, JSOSettings(population_size=40))
    bounds = np.tile(PROBLEM.lower, (num_runs, 1)), np.tile(PROBLEM.upper, (num_runs, 1))
    optimizer.start(*bounds, [np.random.default_rng(seed) for seed in range(num_runs)], 3000)
    initial = optimizer.ask().points
    optimizer.tell(PROBLEM.evaluate(initial))
    envs = AdaptiveDEControlVectorEnv(
        num_runs, functions=[12], shell="jso", max_evaluations=3000, population_size=40, target_error=0.0
    )
    observations, _ = envs.reset(seed=0, options={"initial_population": initial.reshape(num_runs, 40, -1)})
    envs._state.generators[:] = copy.deepcopy(optimizer._rngs)
    for _ in range(40):
        observations, *_, infos = envs.step(controller(observations))
        optimizer.tell(PROBLEM.evaluate(optimizer.ask().points))
        np.testing.assert_array_equal(infos["best_fitness"], optimizer.best_fitness)
        np.testing.assert_array_equal(infos["evaluations"], optimizer.evaluations)


def test_a_run_in_a_batch_equals_the_run_alone():
    seeds, controller = np.random.SeedSequence(1).spawn(4), make_controller(0.3)
    together = run(AdaptiveJSO(controller), [PROBLEM] * 4, seeds=seeds, max_evaluations=3000)
    alone = run(AdaptiveJSO(controller), PROBLEM, seeds=seeds[2:3], max_evaluations=3000)
    assert together.errors[2] == alone.errors[0]


class Remembering:
    """A policy that counts its decisions about each run."""

    def reset(self, rngs):
        self.counts = np.zeros(len(rngs))

    def keep(self, runs):
        self.counts = self.counts[runs]

    def __call__(self, observations, runs):
        self.counts[runs] += 1
        return np.zeros((len(runs), len(CONTROLS)))


def test_policies_of_the_environment_control_jso():
    env = AdaptiveDEControlEnv(functions=[1], shell="jso", observation=["spent", lambda view: view.fitness[0]])
    policy = Remembering()
    optimizer = make_controlled_optimizer(from_policy(policy, env))
    assert isinstance(optimizer, AdaptiveJSO)
    solved = make_suite("cec2013", 10)[1]
    result = run(optimizer, [solved, PROBLEM], num_runs=2, max_evaluations=40_000)
    plain = run(METHODS["jso"](), [solved, PROBLEM], num_runs=2, max_evaluations=40_000)
    assert result.errors.tobytes() == plain.errors.tobytes()
    assert len(policy.counts) == 1  # the solved run was not kept
    assert isinstance(make_controlled_optimizer(make_controller(0.1)), AdaptiveJSO)


def test_minimize_takes_a_controller_of_jso():
    def bowl(x):
        return float(((x - 1) ** 2).sum())

    options = {"max_evaluations": 4000, "seed": 0}
    controlled = minimize(bowl, [(-5, 5)] * 4, controller=make_controller(0.0), **options)
    assert controlled.fun == minimize(bowl, [(-5, 5)] * 4, method="jso", **options).fun


def test_controllers_of_other_controls_are_refused():
    with pytest.raises(ValueError, match="A controller of jSO has the controls"):
        AdaptiveJSO(
            ResidualController.from_vectors(FEATURES, CONTROLS[::-1], np.zeros((1, num_numbers(len(CONTROLS)))))
        )
    with pytest.raises(ValueError, match="A controller of this algorithm has the features"):
        AdaptiveDE(controller=make_controller(0.1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        # Numpy would spread a single number over all controls.
        (lambda residuals: residuals[:, :1], rf"Actions must have shape \(1, {len(CONTROLS)}\), got \(1, 1\)"),
        (lambda residuals: residuals * np.nan, "got NaN"),
    ],
)
def test_residuals_of_an_own_rule_are_checked(change, message):
    optimizer = AdaptiveJSO(lambda observations: change(np.zeros((len(observations), len(CONTROLS)))))
    with pytest.raises(ValueError, match=message):
        run(optimizer, PROBLEM, num_runs=1, max_evaluations=1000)
