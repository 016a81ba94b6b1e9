"""Whole runs as trainings make them: the same as those of the optimiser that people use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from de_gym import make_suite
from de_gym.controllers import ResidualController
from de_gym.controllers.residual import num_numbers
from de_gym.evolution import two_population
from de_gym.optimizers import AdaptiveDE
from de_gym.optimizers.adaptive import CONTROL_NAMES, FEATURE_NAMES, initial_sizes
from de_gym.optimizers.whole_runs import final_errors


class KeyedGenerator:
    """Gives an optimiser the key and the first points that whole runs have by their key."""

    def __init__(self, key: np.uint64, size: int, dimension: int) -> None:
        bounds = np.zeros((1, dimension)), np.ones((1, dimension))
        self.key = key
        self.points, _ = two_population.draw_initial_points(np.array([key]), np.array([size]), *bounds)

    def random(self, out: np.ndarray) -> None:
        out[:] = self.points

    def integers(self, low: int, high: int, dtype: type) -> np.uint64:
        return self.key


def optimizers_errors(problem, budgets, keys, controller):
    errors = []
    for key, budget in zip(keys, budgets, strict=True):
        size = initial_sizes(
            problem.dimension, np.array([budget]), controller.size_residuals(problem.dimension, np.array([budget]))
        )[0]
        optimizer = AdaptiveDE(controller=controller)
        rngs = [KeyedGenerator(key, size, problem.dimension)]
        optimizer.start(problem.lower[None], problem.upper[None], rngs, int(budget))
        while not optimizer.has_ended[0]:
            optimizer.tell(problem.evaluate(optimizer.ask().points))
        error = optimizer.best_fitness[0] - problem.optimum
        errors.append(0.0 if error < 1e-8 else error)
    return np.array(errors)


def adventurous_controller(share):
    """Return a controller that lets populations begin anew, and descents begin late."""
    vectors = np.random.default_rng(0).normal(0.0, 0.2, (1, num_numbers(len(CONTROL_NAMES))))
    restarts = CONTROL_NAMES.index("restart_probability")
    vectors.reshape(1, -1)[0, restarts * (vectors.shape[1] // len(CONTROL_NAMES))] = 2.0
    controller = ResidualController.from_vectors(FEATURE_NAMES, CONTROL_NAMES, vectors)
    return replace(controller, descent_shares=np.full((1, 1), share))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("number", [4, 5, 21])
def test_they_are_the_runs_of_the_optimiser(number, share):
    problem, controller = make_suite("cec2017", 10)[number], adventurous_controller(share)
    keys, budgets = np.arange(1, 7, dtype=np.uint64), np.array([700, 700, 1500, 1500, 4000, 4000])
    errors = final_errors([problem] * 6, budgets, keys, controller, np.zeros(6, np.int64))
    np.testing.assert_array_equal(errors, optimizers_errors(problem, budgets, keys, controller))
