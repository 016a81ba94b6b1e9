"""What scipy checks of its own differential_evolution, asked of ``minimize``: known answers, callbacks, workers."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint, rosen
from scipy.sparse import csr_array

from de_gym import minimize

QUICK = {"method": "l-srtde", "seed": 1}


def solve(fun, bounds, budget, **options):
    return minimize(fun, bounds, max_evaluations=budget, **(QUICK | options))


# Constraints: problems of Lampinen, "A constraint handling approach for the differential evolution algorithm" (2002).


def test_thirteen_coordinates_and_nine_linear_inequalities():
    def fun(x):
        return 5.0 * x[:4].sum() - 5.0 * (x[:4] @ x[:4]) - x[4:].sum()

    rows = np.zeros((9, 13))
    rows[0, [0, 1, 9, 10]] = rows[1, [0, 2, 9, 11]] = rows[2, [1, 2, 10, 11]] = 2, 2, 1, 1
    rows[[3, 4, 5], [0, 1, 2]], rows[[3, 4, 5], [9, 10, 11]] = -8, 1
    rows[6, [3, 4, 9]] = rows[7, [5, 6, 10]] = rows[8, [7, 8, 11]] = -2, -1, 1
    upper = [10, 10, 10, 0, 0, 0, 0, 0, 0]
    box = [(0, 1)] * 9 + [(0, 100)] * 3 + [(0, 1)]
    constraint = LinearConstraint(rows, -np.inf, upper)
    result = solve(fun, box, 60_000, constraints=constraint)
    assert result.success
    assert result.fun == pytest.approx(-15.0, abs=1e-4)
    np.testing.assert_allclose(result.x, [1] * 9 + [3, 3, 3, 1], atol=1e-4)
    assert (rows @ result.x <= np.array(upper)).all()
    sparse = solve(fun, box, 2000, constraints=LinearConstraint(csr_array(rows), -np.inf, upper))
    dense = solve(fun, box, 2000, constraints=constraint)
    assert sparse.fun == dense.fun


def test_two_nonlinear_inequalities_in_two_coordinates():
    # Problem G06 of the CEC 2006 collection: a narrow crescent at the edge of the box.
    def fun(x):
        return (x[0] - 10.0) ** 3 + (x[1] - 20.0) ** 3

    def rings(x):
        return [(x[0] - 5.0) ** 2 + (x[1] - 5.0) ** 2, (x[0] - 6.0) ** 2 + (x[1] - 5.0) ** 2]

    crescent = NonlinearConstraint(rings, [100.0, -np.inf], [np.inf, 82.81])
    result = solve(fun, [(13, 100), (0, 100)], 20_000, constraints=crescent)
    assert result.maxcv == 0.0
    assert result.fun == pytest.approx(-6961.814, abs=0.01)
    np.testing.assert_allclose(result.x, [14.095, 0.843], atol=1e-3)


def test_mixed_kinds_of_constraints_and_each_one_s_violation():
    # The smallest sum of squares with x + y >= 1 and x >= 0.75.
    linear = LinearConstraint([[1.0, 1.0]], 1.0, np.inf)
    bounds = Bounds([0.75, -np.inf], [np.inf, np.inf])
    ring = NonlinearConstraint(lambda x: [x @ x, x[0]], -np.inf, [9.0, 2.0])
    result = solve(lambda x: float(x @ x), [(-3, 3)] * 2, 6000, constraints=(linear, bounds, ring))
    np.testing.assert_allclose(result.x, [0.75, 0.25], atol=1e-5)
    assert [len(violations) for violations in result.constr] == [1, 2, 2]
    assert result.maxcv == 0.0


def test_nonlinear_equality():
    # The point of the unit circle that is nearest to (2, 1).
    circle = NonlinearConstraint(lambda x: x @ x, 1.0, 1.0)
    result = solve(
        lambda x: float((x[0] - 2) ** 2 + (x[1] - 1) ** 2), [(-3, 3)] * 2, 20_000, constraints=circle, polish=True
    )
    assert result.success
    assert result.maxcv <= 1e-6
    np.testing.assert_allclose(result.x, np.array([2, 1]) / np.sqrt(5), atol=1e-4)


def test_a_constraint_that_nothing_meets_names_the_least_violation():
    pair = LinearConstraint([[1, 0], [1, 0]], [-np.inf, 2.0], [1.0, np.inf])
    result = solve(rosen, [(-3, 3)] * 2, 1000, constraints=pair)
    assert not result.success
    assert 0.0 < result.maxcv <= 1.0 + 1e-9
    assert "feasible" in result.message


def test_the_function_is_not_called_where_constraints_are_violated():
    def fun(x):
        assert x[0] >= 0.5
        return rosen(x)

    result = solve(fun, [(0, 2)] * 2, 1500, constraints=NonlinearConstraint(lambda x: x[0], 0.5, np.inf))
    assert result.fun < 1e-2


# Whole numbers.


def test_whole_numbers_of_a_fit():
    times = np.linspace(0.0, 3.0, 60)

    def model(x):
        return x[0] * np.exp(-x[1] * times) + x[2]

    data = model([7.0, 1.25, 3.0])
    result = solve(
        lambda x: float(np.sum((model(x) - data) ** 2)),
        [(0, 20), (0, 5), (-10, 10)],
        9000,
        integrality=[True, False, True],
    )
    np.testing.assert_allclose(result.x, [7.0, 1.25, 3.0], atol=1e-4)
    assert result.x[0] == 7.0
    assert result.x[2] == 3.0


@pytest.mark.parametrize("low", [-3.0, -2.51, 0.49])
def test_bounds_of_whole_numbers_are_taken_inwards(low):
    seen = set()

    def fun(x):
        seen.add(x[0])
        return abs(x[0] - 0.2)

    solve(fun, [(low, 4.2)], 300, integrality=True, method="hses")
    assert seen == set(range(int(np.ceil(low)), 5))


def test_whole_numbers_with_a_constraint():
    # A knapsack: values 10, 13, 7 and weights 3, 4, 2 with 10 to carry.
    values, weights = np.array([10.0, 13.0, 7.0]), np.array([[3.0, 4.0, 2.0]])
    result = solve(
        lambda x: -float(values @ x),
        [(0, 3)] * 3,
        3000,
        integrality=True,
        constraints=LinearConstraint(weights, -np.inf, 10.0),
    )
    assert result.fun == -34.0
    assert weights @ result.x <= 10.0


# Bounds.


def test_optimum_at_a_corner_and_no_point_outside():
    def fun(x):
        assert (np.abs(x) <= 2.0).all()
        return float(np.sum(x))

    result = solve(fun, Bounds([-2, -2, -2], [2, 2, 2]), 3000)
    np.testing.assert_allclose(result.x, -2.0, atol=1e-6)


@pytest.mark.parametrize("bounds", [[(0.0, np.inf)], [(-np.inf, 0.0)], [(np.nan, 1.0)], [(0.0,)], [(2.0, 1.0)]])
def test_bounds_that_are_none(bounds):
    with pytest.raises(ValueError, match="`bounds`"):
        solve(rosen, bounds, 100)


# Starting points.


def test_starting_population_and_point():
    start = np.random.default_rng(0).uniform(0, 2, (12, 2))
    first = []
    solve(lambda x: first.append(x.copy()) or rosen(x), [(0, 2)] * 2, 300, init=start)
    np.testing.assert_array_equal(first[:12], start)
    assert solve(rosen, [(0, 2)] * 2, 300, x0=[1.0, 1.0]).fun == 0.0
    for wrong in ([[0.5, 3.0]], np.zeros((3, 3))):
        with pytest.raises(ValueError, match="`init`"):
            solve(rosen, [(0, 2)] * 2, 300, init=wrong)


# Callbacks.


def test_callbacks_of_both_kinds_see_the_same_run():
    points, results = [], []
    solve(rosen, [(0, 2)] * 2, 900, callback=lambda x, convergence: points.append((x.copy(), convergence)))

    def look(intermediate_result):
        results.append(intermediate_result)

    final = solve(rosen, [(0, 2)] * 2, 900, callback=look)
    np.testing.assert_array_equal([point for point, _ in points], [result.x for result in results])
    assert results[-1].fun == final.fun
    assert results[-1].nit == final.nit == len(results)
    assert {"x", "fun", "nfev", "nit", "population", "population_fitness", "message", "success"} <= set(results[0])


def test_a_callback_cannot_disturb_the_run():
    def vandal(intermediate_result):
        intermediate_result.x[:] = 0.0
        intermediate_result.population[:] = 7.0
        intermediate_result.population_fitness[:] = -1.0

    assert solve(rosen, [(0, 2)] * 2, 900, callback=vandal).fun == solve(rosen, [(0, 2)] * 2, 900).fun


def test_errors_of_a_callback_come_out_with_the_result():
    def failing(intermediate_result):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        solve(rosen, [(0, 2)] * 2, 900, callback=failing)
    assert caught.value.result.nfev > 0


# Workers and vectorisation.


def test_every_kind_of_map():
    expected = solve(rosen, [(0, 2)] * 2, 200)
    with ThreadPoolExecutor(2) as threads, multiprocessing.get_context("fork").Pool(2) as pool:
        for workers in (threads.map, pool.map, pool.imap, lambda fun, points: [fun(point) for point in points]):
            result = solve(rosen, [(0, 2)] * 2, 200, workers=workers)
            assert (result.fun, result.nfev) == (expected.fun, expected.nfev)


def test_vectorised_functions_get_rows_and_are_called_once_a_generation():
    shapes = []

    def many(points):
        shapes.append(points.shape)
        return rosen(points.T)

    result = solve(many, [(0, 2)] * 3, 900, vectorized=True)
    assert len(shapes) == result.nit + 1
    assert sum(rows for rows, _ in shapes) == result.nfev == 900
    assert {columns for _, columns in shapes} == {3}
    plain = solve(rosen, [(0, 2)] * 3, 900)
    assert result.fun == pytest.approx(plain.fun, rel=1e-6)


def test_vectorised_function_with_constraints():
    disc = NonlinearConstraint(lambda x: x @ x, -np.inf, 1.0)
    both = [
        solve(fun, [(-2, 2)] * 2, 1500, constraints=disc, vectorized=vectorized)
        for fun, vectorized in ((lambda x: float(x.sum()), False), (lambda points: points.sum(axis=1), True))
    ]
    assert both[0].fun == both[1].fun == pytest.approx(-np.sqrt(2), abs=1e-3)


@pytest.mark.parametrize("wrong", [lambda points: points, lambda points: 1.0, lambda points: np.zeros(3)])
def test_vectorised_functions_of_another_shape_are_refused(wrong):
    with pytest.raises(ValueError, match="must return shape"):
        solve(wrong, [(0, 2)] * 2, 300, vectorized=True)


# Polishing.


def test_polishing_ends_at_the_optimum_inside_bounds_and_constraints():
    free = solve(rosen, [(-2, 2)] * 3, 3000, polish=True)
    np.testing.assert_allclose(free.x, 1.0, atol=1e-5)
    at_bound = solve(rosen, [(0, 0.9), (-1, 2), (-1, 2)], 3000, polish=True)
    assert at_bound.x[0] <= 0.9
    disc = NonlinearConstraint(lambda x: x @ x, -np.inf, 1.0)
    constrained = solve(rosen, [(-2, 2)] * 2, 3000, constraints=disc, polish=True)
    assert constrained.x @ constrained.x <= 1.0 + 1e-12
    np.testing.assert_allclose(constrained.x, [0.786415, 0.617698], atol=1e-4)
    whole = solve(lambda x: rosen(x - 0.3), [(-2, 2)] * 2, 3000, integrality=[True, False], polish=True)
    assert whole.x[0] == round(whole.x[0])


def test_polishing_never_makes_it_worse():
    def rough(x):
        return float(np.sum(np.abs(x)) + 0.3 * np.sum(np.sin(50 * x) ** 2))

    assert solve(rough, [(-2, 2)] * 3, 900, polish=True).fun <= solve(rough, [(-2, 2)] * 3, 810).fun


# Endings.


def test_iterations_evaluations_and_tolerance():
    assert solve(rosen, [(0, 2)] * 2, 900, maxiter=0).nit == 0
    assert solve(rosen, [(0, 2)] * 2, 77).nfev <= 77
    loose = solve(lambda x: 5.0 + rosen(x), [(0, 2)] * 2, 9000, tol=0.01)
    assert "converged" in loose.message
    assert loose.nfev < 9000
    assert solve(lambda x: 1.0, [(0, 2)] * 2, 900).success


def test_noise_makes_the_mean_the_better_answer():
    errors = []
    for seed in range(10):
        noise = np.random.default_rng(seed)

        def noisy(points, noise=noise):
            return ((points - 0.5) ** 2).sum(axis=1) + noise.standard_normal(len(points))

        result = solve(noisy, [(-5, 5)] * 4, 1000, method="jade", seed=seed, vectorized=True)
        errors.append([np.sum((point - 0.5) ** 2) for point in (result.x, result.population_mean)])
    best, mean = np.mean(errors, axis=0)
    assert mean < 0.5 * best


def test_polishing_meets_equalities_that_the_search_missed():
    spheres = NonlinearConstraint(lambda x: [x @ x, x[0] * x[1] * x[2]], [3.0, 1.0], [3.0, 1.0])
    options = {"constraints": spheres, "method": "jade", "max_evaluations": 1500, "seed": 0}
    assert not minimize(lambda x: float(x[0]), [(-2, 2)] * 3, **options).success
    result = minimize(lambda x: float(x[0]), [(-2, 2)] * 3, polish=True, **options)
    assert result.success
    assert result.maxcv <= 1e-6
    assert np.isfinite(result.fun)


def test_no_value_of_an_infeasible_point_is_returned():
    never = NonlinearConstraint(lambda x: x[0] ** 2 + 1.0, 0.0, 0.0)
    result = solve(rosen, [(-2, 2)] * 2, 600, constraints=never, polish=True)
    assert result.fun == np.inf
    assert not result.success
