"""A controller inside the optimiser equals the same controller in the environment."""

from __future__ import annotations

import numpy as np
import pytest

from de_gym import make_suite
from de_gym.controllers import ConstantController, RandomController
from de_gym.envs import DEParamControlEnv
from de_gym.optimizers import ControlledDE, run


def test_runs_equal_the_environment_with_the_same_start_and_key():
    problem = make_suite("cec2013", 10)[12]
    optimizer = ControlledDE(ConstantController(0.5, 0.9, population_size=50))
    optimizer.start(problem.lower[None], problem.upper[None], [np.random.default_rng(3)], 5000)
    initial = optimizer.ask()
    optimizer.tell(problem.evaluate(initial.points))
    env = DEParamControlEnv(functions=[12], max_evaluations=5000, max_generations=None)
    env.reset(seed=0, options={"initial_population": initial.points})
    env._state.runs["key"] = optimizer._state.runs["key"]
    action = np.repeat([0.5, 0.9], 50)
    for _ in range(99):
        optimizer.tell(problem.evaluate(optimizer.ask().points))
        _, _, terminated, _, info = env.step(action)
        assert info["best_fitness"] == optimizer.best_fitness[0]
        assert terminated == optimizer.has_ended[0]
    assert optimizer.evaluations[0] == 5000


def test_a_run_in_a_batch_equals_the_run_alone():
    problem = make_suite("cec2017", 10)[5]
    seeds = np.random.SeedSequence(1).spawn(4)
    together = run(ControlledDE(RandomController(20)), problem, seeds=seeds, max_evaluations=2000)
    alone = run(ControlledDE(RandomController(20)), problem, seeds=seeds[2:3], max_evaluations=2000)
    assert together.errors[2] == alone.errors[0]
    np.testing.assert_array_equal(together.best_positions[2], alone.best_positions[0])


def test_finished_runs_drop_out_without_touching_the_others():
    problem = make_suite("cec2013", 10)[1]
    seeds = np.random.SeedSequence(2).spawn(5)

    def finish(target):
        optimizer = ControlledDE(RandomController(30), pbest=0.1)
        return run(optimizer, problem, seeds=seeds, max_evaluations=30_000, target_error=target)

    stopped, full = finish(1e-8), finish(1e-30)
    assert len(set(stopped.evaluations.tolist())) > 1
    np.testing.assert_array_equal(stopped.errors, 0.0)
    for row in range(5):
        reached = stopped.grid < stopped.evaluations[row]
        np.testing.assert_array_equal(stopped.convergence[row, reached], full.convergence[row, reached])


def test_constant_controls_are_reported():
    problem = make_suite("cec2013", 10)[1]
    optimizer = ControlledDE(ConstantController(0.4, 0.8, population_size=10))
    optimizer.start(problem.lower[None], problem.upper[None], [np.random.default_rng(0)], 100)
    optimizer.tell(problem.evaluate(optimizer.ask().points))
    assert optimizer.last_parameters is None
    optimizer.tell(problem.evaluate(optimizer.ask().points))
    assert (optimizer.last_parameters.scale_factors == 0.4).all()
    assert (optimizer.last_parameters.crossover_rates == 0.8).all()


def test_unknown_settings_are_refused():
    with pytest.raises(ValueError, match="Unknown schedule for `pbest` 'steps'"):
        ControlledDE(RandomController(10), pbest="steps")


def test_an_own_controller_can_say_in_which_process_it_was_trained(sphere):
    trained = RandomController(10)
    trained.env_settings = {"pbest": 0.5, "bound_repair": "clip"}
    stated, changed, plain = (
        run(optimizer, sphere, num_runs=1, max_evaluations=500).best_positions.tobytes()
        for optimizer in (
            ControlledDE(trained),
            ControlledDE(RandomController(10), pbest=0.5, bound_repair="clip"),
            ControlledDE(RandomController(10)),
        )
    )
    assert stated == changed != plain
    trained.env_settings = {"pbst": 0.5}
    with pytest.raises(ValueError, match=r"Unknown setting of a decision process 'pbst'\. Did you mean 'pbest'"):
        ControlledDE(trained)


def test_population_size_is_for_controllers_of_any_size_and_refused_where_it_differs():
    class AnySize:
        population_size = None

        def reset(self, rngs):
            pass

        def __call__(self, observations):
            return np.full((len(observations), 2 * (observations.shape[1] - 10)), 0.5)

        def keep(self, runs):
            pass

    problem = make_suite("cec2013", 10)[1]
    for chosen, expected in ((None, 50), (12, 12)):
        optimizer = ControlledDE(AnySize(), chosen)
        optimizer.start(problem.lower[None], problem.upper[None], [np.random.default_rng(0)], 500)
        assert optimizer.ask().points.shape == (expected, 10)
    with pytest.raises(ValueError, match="20 individuals, got `population_size` 30"):
        ControlledDE(RandomController(20), 30)
