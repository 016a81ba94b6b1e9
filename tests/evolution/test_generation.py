"""A whole generation: hand-computed steps, counting, monotony, independence of the runs."""

from __future__ import annotations

import numpy as np
import pytest

from de_gym import Problem, ProblemBatch
from de_gym.evolution import (
    BOUND_REPAIRS,
    Population,
    draw_uniforms,
    initialize,
    num_uniforms,
    propose_trials,
    scale_to_bounds,
    survive,
)
from de_gym.evolution.generation import select_better


def start(problems: ProblemBatch, rngs, size: int) -> Population:
    positions = scale_to_bounds(draw_uniforms(rngs, size, problems.dimension), problems.lower, problems.upper)
    return initialize(positions, problems.evaluate(positions))


def step(population: Population, problems: ProblemBatch, rngs, repair: str = "midpoint", num_pbest: int = 2):
    num_runs, size, dimension = population.positions.shape
    uniforms = draw_uniforms(rngs, num_uniforms(size, dimension, repair))
    factors, rates = np.full((num_runs, size), 0.7), np.full((num_runs, size), 0.6)
    trials = propose_trials(
        population.positions,
        factors,
        rates,
        np.full(num_runs, num_pbest),
        uniforms,
        problems.lower,
        problems.upper,
        BOUND_REPAIRS[repair],
    )
    return survive(population, trials, problems.evaluate(trials))


def test_generation_by_hand():
    positions = np.array([[[0.0], [1.0], [3.0], [7.0]]])
    uniforms = np.zeros((1, num_uniforms(4, 1, "midpoint")))
    # p-best is rank 1 of one candidate; the smallest uniforms pick the first rows that are free: r1 then r2
    trials = propose_trials(
        positions,
        np.full((1, 4), 0.5),
        np.ones((1, 4)),
        np.array([1]),
        uniforms,
        np.array([[-10.0]]),
        np.array([[10.0]]),
        BOUND_REPAIRS["midpoint"],
    )
    # x_i + 0.5 (0 - x_i) + 0.5 (x_r1 - x_r2) with (r1, r2) = (1, 2), (0, 2), (0, 1), (0, 1)
    np.testing.assert_allclose(trials[0, :, 0], [-1.0, 0.5 - 1.5, 1.5 - 0.5, 3.5 - 0.5])


def test_selection_keeps_the_better_accepts_ties_and_sorts():
    positions = np.array([[[1.0], [2.0], [3.0]]])
    trials = np.array([[[10.0], [20.0], [30.0]]])
    fitness, trial_fitness = np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 5.0, 0.5]])
    next_positions, next_fitness, num_successes = select_better(positions, fitness, trials, trial_fitness)
    np.testing.assert_array_equal(next_fitness, [[0.5, 1.0, 2.0]])
    np.testing.assert_array_equal(next_positions[0, :, 0], [30.0, 10.0, 2.0])
    np.testing.assert_array_equal(num_successes, [2])


@pytest.mark.parametrize("repair", BOUND_REPAIRS)
def test_runs_stay_inside_and_never_worsen(sphere, repair):
    problems = ProblemBatch([sphere] * 3)
    rngs = [np.random.default_rng(seed) for seed in range(3)]
    population = start(problems, rngs, 6)
    for generation in range(1, 21):
        following = step(population, problems, rngs, repair)
        assert (following.best_fitness <= population.best_fitness).all()
        assert (np.diff(following.fitness, axis=1) >= 0).all()
        assert (following.positions >= sphere.lower).all()
        assert (following.positions <= sphere.upper).all()
        np.testing.assert_array_equal(following.fitness, problems.evaluate(following.positions))
        np.testing.assert_array_equal(following.evaluations, 6 * (generation + 1))
        np.testing.assert_array_equal(following.generation, generation)
        population = following
    assert (population.best_fitness < 1.0).all()


@pytest.mark.parametrize("repair", BOUND_REPAIRS)
def test_a_run_in_a_batch_equals_the_run_alone(sphere, repair):
    other = Problem.from_function(lambda points: np.abs(points).sum(axis=-1), -5, 5, dimension=2, vectorized=True)
    chosen = [sphere, other, sphere, other]

    def finish(runs: list[int]) -> Population:
        problems = ProblemBatch([chosen[run] for run in runs])
        rngs = [np.random.default_rng(100 + run) for run in runs]
        population = start(problems, rngs, 7)
        for _ in range(15):
            population = step(population, problems, rngs, repair)
        return population

    together = finish([0, 1, 2, 3])
    for run in range(4):
        alone = finish([run])
        np.testing.assert_array_equal(together.positions[run], alone.positions[0])
        np.testing.assert_array_equal(together.fitness[run], alone.fitness[0])


def test_pbest_comes_from_the_leading_individuals_only():
    rng = np.random.default_rng(0)
    positions = np.arange(20.0).reshape(1, 20, 1)
    uniforms = rng.random((1, num_uniforms(20, 1, "clip")))
    uniforms[0, 20:60] = 0.0  # r1 and r2 fixed: the donors differ only through p-best
    arguments = (np.ones((1, 20)), np.ones((1, 20)), np.array([3]), uniforms, np.array([[-99.0]]), np.array([[99.0]]))
    trials = propose_trials(positions, *arguments, BOUND_REPAIRS["clip"])
    # with F = 1 the donor is x_pbest + x_r1 - x_r2, and x_r1 - x_r2 = -1 from the fourth individual on
    assert set(trials[0, 3:, 0] + 1.0) == {0.0, 1.0, 2.0}


def test_flat_function_replaces_every_parent():
    flat = Problem.from_function(lambda points: np.zeros(len(points)), -1, 1, 0.0, dimension=3, vectorized=True)
    problems, rngs = ProblemBatch([flat]), [np.random.default_rng(1)]
    following = step(start(problems, rngs, 5), problems, rngs)
    assert following.num_successes[0] == 5


def test_nan_values_rank_last_and_are_replaced():
    def undefined_left(points):
        return np.where(points[:, 0] < 0, np.nan, points[:, 0])

    problem = Problem.from_function(undefined_left, -1, 1, 0.0, dimension=2, vectorized=True)
    problems, rngs = ProblemBatch([problem]), [np.random.default_rng(2)]
    population = start(problems, rngs, 8)
    assert np.isinf(population.fitness[0, -1])
    for _ in range(40):
        population = step(population, problems, rngs)
    assert np.isfinite(population.fitness).all()
