"""Every method of our own through the same contract: budget, batch independence, bad input, whole runs."""

from __future__ import annotations

import numpy as np
import pytest

from de_gym import Problem, ProblemBatch
from de_gym.optimizers import METHODS, PAPER_METHODS, Optimizer, run

EVERY_METHOD = pytest.mark.parametrize("name", list(PAPER_METHODS))


def start_runs(optimizer: Optimizer, num_runs: int = 2, dimension: int = 5, max_evaluations: int = 50_000) -> None:
    upper = np.full((num_runs, dimension), 100.0)
    rngs = [np.random.default_rng(seed) for seed in range(num_runs)]
    optimizer.start(-upper, upper, rngs, max_evaluations)


@EVERY_METHOD
def test_sphere_is_solved_and_reported_as_exactly_zero(name, sphere):
    result = run(METHODS[name](), sphere, num_runs=4, seed=1)
    assert np.array_equal(result.errors, np.zeros(4))
    assert np.all(np.abs(result.best_positions) < 1e-3)
    assert np.all(result.evaluations < 50_000)
    assert np.array_equal(result.convergence[:, -1], result.errors)


@EVERY_METHOD
def test_a_run_is_bit_identical_alone_and_in_a_batch(name, sphere, rastrigin):
    # Sphere runs end early and leave the batch, so the others also go through `keep`.
    seeds = np.random.SeedSequence(7).spawn(5)
    mixed = [rastrigin, sphere, rastrigin, sphere, rastrigin]
    batch = run(METHODS[name](), mixed, seeds=seeds, max_evaluations=30_000)
    assert len(set(batch.evaluations)) > 1
    for index, problem in enumerate(mixed):
        alone = run(METHODS[name](), problem, seeds=[seeds[index]], max_evaluations=30_000)
        assert alone.errors[0] == batch.errors[index]
        assert alone.evaluations[0] == batch.evaluations[index]
        assert np.array_equal(alone.best_positions[0], batch.best_positions[index])
        assert np.array_equal(alone.convergence[0], batch.convergence[index])


@EVERY_METHOD
def test_the_order_of_the_runs_does_not_matter(name, rastrigin):
    seeds = np.random.SeedSequence(3).spawn(4)
    forward = run(METHODS[name](), rastrigin, seeds=seeds, max_evaluations=3_000)
    backward = run(METHODS[name](), rastrigin, seeds=seeds[::-1], max_evaluations=3_000)
    assert np.array_equal(forward.errors, backward.errors[::-1])
    assert len(set(forward.errors)) == 4


@EVERY_METHOD
def test_the_budget_is_never_exceeded_and_nearly_used(name, rastrigin):
    result = run(METHODS[name](), rastrigin, num_runs=2, max_evaluations=5_000, target_error=None)
    assert np.all(result.evaluations <= 5_000)
    assert np.all(result.evaluations > 5_000 - 200)


@EVERY_METHOD
def test_every_evaluated_point_lies_in_its_box(name):
    lower, upper = np.array([-1.0, 0.0, 1e3, -5e-3]), np.array([0.0, 1e-2, 2e3, 7.0])

    def corner_seeker(points):
        assert np.all(points >= lower)
        assert np.all(points <= upper)
        return np.sum((points - lower) / (upper - lower), axis=1)

    problem = Problem.from_function(corner_seeker, lower, upper, 0.0, vectorized=True)
    result = run(METHODS[name](), problem, num_runs=2, max_evaluations=25_000)
    assert np.all(result.errors < 0.1)


@EVERY_METHOD
def test_convergence_never_rises_and_ends_at_the_error(name, rastrigin):
    result = run(METHODS[name](), rastrigin, num_runs=2, max_evaluations=10_000)
    assert result.grid[-1] == 10_000
    finite = np.where(np.isinf(result.convergence), 1e300, result.convergence)
    assert np.all(np.diff(finite, axis=1) <= 0.0)
    assert np.array_equal(result.convergence[:, -1], result.errors)
    values = rastrigin.evaluate(result.best_positions)
    assert np.allclose(values, result.errors, rtol=0.0, atol=1e-8)


@EVERY_METHOD
def test_generations_can_be_limited(name, rastrigin):
    optimizer = METHODS[name]()
    start_runs(optimizer)
    first = optimizer.ask().starts[1]
    result = run(METHODS[name](), rastrigin, num_runs=2, max_generations=0)
    assert np.array_equal(result.evaluations, [first, first])


@EVERY_METHOD
def test_one_dimension_works(name):
    problem = Problem.from_function(lambda points: (points[:, 0] - 3.0) ** 2, [-10.0], [10.0], 0.0, vectorized=True)
    result = run(METHODS[name](), problem, num_runs=5)
    # Five individuals of a greedy strategy may collapse early; most runs must not.
    assert np.median(result.errors) == 0.0
    assert np.all(result.errors < 10.0)


@EVERY_METHOD
def test_nan_counts_as_infinity_and_is_never_the_best(name):
    def half_undefined(points):
        return np.where(points[:, 0] > 0.0, np.nan, np.sum((points + 1.0) ** 2, axis=1))

    problem = Problem.from_function(half_undefined, -5.0, 5.0, 0.0, dimension=3, vectorized=True)
    result = run(METHODS[name](), problem, num_runs=2)
    assert np.all(result.errors < 1e-3)


@EVERY_METHOD
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_objective_without_any_value_ends_with_an_infinite_error(name, value):
    optimizer = METHODS[name]()
    start_runs(optimizer, dimension=2, max_evaluations=25_000)
    while not optimizer.has_ended.all():
        optimizer.tell(np.full(len(optimizer.ask().points), value))
    assert np.all(np.isinf(optimizer.best_fitness))
    assert np.all(np.isfinite(optimizer.best_position))


@EVERY_METHOD
def test_a_value_of_minus_infinity_is_the_best(name):
    optimizer = METHODS[name]()
    start_runs(optimizer, num_runs=1)
    for generation in range(20):
        values = np.sum(optimizer.ask().points ** 2, axis=-1)
        if generation == 10:
            values[3] = -np.inf
        optimizer.tell(values)
    assert optimizer.best_fitness[0] == -np.inf


@EVERY_METHOD
def test_a_budget_below_the_first_population_is_an_error(name, sphere):
    with pytest.raises(ValueError, match="`max_evaluations` must be at least"):
        run(METHODS[name](), sphere, num_runs=1, max_evaluations=3)


@EVERY_METHOD
def test_infinite_bounds_are_an_error(name):
    upper = np.array([[1.0, np.inf]])
    with pytest.raises(ValueError, match="Bounds must be finite"):
        METHODS[name]().start(-upper, upper, [np.random.default_rng(0)], 10_000)


def test_bounds_whose_width_overflows_are_an_error():
    upper = np.array([[1.0, 1e308]])
    with pytest.raises(ValueError, match=r"The width of every bound must be a finite number, got -1e\+308 to 1e\+308"):
        METHODS["de"]().start(-upper, upper, [np.random.default_rng(0)], 10_000)


@EVERY_METHOD
def test_wrong_order_of_calls_is_an_error(name):
    optimizer = METHODS[name]()
    with pytest.raises(RuntimeError, match="Call `start` before"):
        optimizer.ask()
    start_runs(optimizer)
    with pytest.raises(RuntimeError, match="`tell` was called before `ask`"):
        optimizer.tell(np.zeros(20))
    trials = optimizer.ask()
    with pytest.raises(RuntimeError, match="`ask` was called twice"):
        optimizer.ask()
    with pytest.raises(RuntimeError, match="between `ask` and `tell`"):
        optimizer.keep(np.array([0]))
    with pytest.raises(ValueError, match="`values` must have shape"):
        optimizer.tell(np.zeros(len(trials.points) + 1))


def test_swapped_bounds_and_missing_generators_are_errors():
    upper = np.ones((1, 2))
    with pytest.raises(ValueError, match="Every lower bound must be below"):
        METHODS["de"]().start(upper, -upper, [np.random.default_rng(0)], 10_000)
    with pytest.raises(ValueError, match="one generator per run, got 0 for 1 runs"):
        METHODS["de"]().start(-upper, upper, [], 10_000)
    with pytest.raises(ValueError, match=r"two arrays of one shape \(R, D\)"):
        METHODS["de"]().start(-upper[0], upper[0], [np.random.default_rng(0)], 10_000)


def test_seeds_are_the_children_of_the_seed(sphere):
    spawned = np.random.SeedSequence(11).spawn(3)
    by_seed = run(METHODS["de"](), sphere, num_runs=3, seed=11, max_evaluations=1_000)
    by_seeds = run(METHODS["de"](), sphere, seeds=spawned, max_evaluations=1_000)
    assert np.array_equal(by_seed.errors, by_seeds.errors)


def test_the_default_budget_is_ten_thousand_per_dimension_and_51_runs(rastrigin):
    result = run(METHODS["de"](), rastrigin, max_generations=1)
    assert result.errors.shape == (51,)
    assert result.grid[-1] == 50_000


def test_an_unknown_optimum_reports_values_and_never_stops_early():
    problem = Problem.from_function(
        lambda points: np.sum(points**2, axis=1), -1.0, 1.0, None, dimension=2, vectorized=True
    )
    result = run(METHODS["jade"](), problem, num_runs=1, max_evaluations=6_000)
    assert 0.0 < result.errors[0] < 1e-8
    assert result.evaluations[0] == 6_000


def test_a_stated_optimum_that_is_none_is_said_and_ends_no_run():
    problem = Problem.from_function(lambda x: float(x @ x) - 5.0, -1.0, 1.0, 0.0, dimension=2)
    with pytest.warns(RuntimeWarning, match=r"found in 2 run\(s\): the `optimum` of the problem is wrong"):
        result = run(METHODS["jade"](), problem, num_runs=2, max_evaluations=300)
    assert (result.evaluations == 300).all()
    assert (result.errors < -4.0).all()


def test_runs_on_different_problems_take_their_own_optimum(sphere):
    shifted = Problem.from_function(
        lambda points: np.sum(points**2, axis=1) + 500.0, -100.0, 100.0, 500.0, dimension=5, vectorized=True
    )
    result = run(METHODS["jade"](), ProblemBatch([sphere, shifted]), seed=5)
    assert np.array_equal(result.errors, [0.0, 0.0])


def test_counts_that_do_not_match_are_errors(sphere):
    with pytest.raises(ValueError, match="one problem per run, got 2 problems for 3 runs"):
        run(METHODS["de"](), [sphere, sphere], num_runs=3)
    with pytest.raises(ValueError, match="`num_runs` must be at least 1, got 0"):
        run(METHODS["de"](), sphere, num_runs=0)
