"""The front door: results, stopping, determinism, workers, errors, and fuzzing."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, NonlinearConstraint, OptimizeResult

from de_gym import minimize
from de_gym.controllers import RandomController
from de_gym.minimizing.endings import Endings, Limits
from de_gym.optimizers import PAPER_METHODS

BOX = [(-5.0, 3.0), (-1.0, 4.0), (-2.0, 2.0)]


def sphere(x):
    return float(np.sum((x - 0.5) ** 2))


def shifted(x, centre, scale):
    return scale * float(np.sum((x - centre) ** 2))


def controlled(size: int = 20) -> RandomController:
    return RandomController(size)


@pytest.mark.parametrize("method", PAPER_METHODS)
def test_every_method_solves_a_sphere_and_says_what_it_did(method):
    seen = []

    def counted(x):
        seen.append(np.array(x))
        return sphere(x)

    result = minimize(counted, BOX, method=method, max_evaluations=15_000, seed=3)
    assert isinstance(result, OptimizeResult)
    assert result.fun == pytest.approx(0.0, abs=1e-3)
    assert result.fun == sphere(result.x)
    assert result.nfev == len(seen) <= 15_000
    assert result.success
    assert result.message.startswith(("The budget is spent.", "The population has converged"))
    assert len(result.history["best_fitness"]) == result.nit + 1
    assert (np.diff(result.history["best_fitness"]) <= 0).all()
    assert result.history["evaluations"][-1] == result.nfev
    assert (np.diff(result.population_fitness) >= 0).all()
    assert any((row == result.x).all() for row in seen)


def test_controlled_method_solves_a_sphere():
    result = minimize(sphere, BOX, controller=controlled(), max_evaluations=6000, seed=0)
    assert result.fun < 1e-6
    assert result.population.shape == (20, 3)
    assert result.population_fitness[0] == result.fun
    assert 0.3 < np.nanmean(result.history["scale_factor"]) < 0.7
    assert np.isnan(result.history["scale_factor"][0])


def test_same_seed_same_result():
    one, two, other = (
        minimize(sphere, BOX, controller=controlled(), max_evaluations=500, seed=seed) for seed in (7, 7, 8)
    )
    np.testing.assert_array_equal(one.x, two.x)
    assert one.fun == two.fun != other.fun
    generator = minimize(sphere, BOX, controller=controlled(), max_evaluations=500, seed=np.random.default_rng(7))
    assert generator.fun == one.fun


def test_vectorised_workers_and_plain_functions_give_the_same_result():
    def many(points):
        return np.array([sphere(point) for point in points])

    plain = minimize(sphere, BOX, controller=controlled(), max_evaluations=400, seed=1)
    vectorised = minimize(many, BOX, controller=controlled(), max_evaluations=400, seed=1, vectorized=True)
    mapped = minimize(sphere, BOX, controller=controlled(), max_evaluations=400, seed=1, workers=map)
    pooled = minimize(sphere, BOX, controller=controlled(), max_evaluations=400, seed=1, workers=2)
    for result in (vectorised, mapped, pooled):
        assert result.fun == plain.fun
        assert result.nfev == plain.nfev == 400
        np.testing.assert_array_equal(result.x, plain.x)


def test_bounds_and_further_arguments():
    result = minimize(shifted, Bounds([-5, -1, -2], [3, 4, 2]), (0.5, 2.0), method="jade", max_evaluations=4000, seed=0)
    assert result.fun < 1e-6
    same = minimize(shifted, BOX, (0.5, 2.0), method="jade", max_evaluations=4000, seed=0)
    assert result.fun == same.fun


def test_bounds_may_be_pairs_that_are_made_one_by_one():
    options = {"method": "jade", "max_evaluations": 200, "seed": 0}
    made = minimize(sphere, zip([-5, -1, -2], [3, 4, 2], strict=True), **options)
    assert made.fun == minimize(sphere, BOX, **options).fun


def test_a_truth_value_is_a_constraint_where_its_bounds_tell_both_apart():
    right = NonlinearConstraint(lambda x: x[0] > 1.0, 1.0, np.inf)
    result = minimize(sphere, BOX, method="jade", max_evaluations=2000, seed=0, constraints=right)
    assert 1.0 < result.x[0] < 1.01
    assert result.maxcv == 0.0


def test_target_ends_the_run():
    result = minimize(sphere, BOX, controller=controlled(), max_evaluations=5000, seed=0, target=0.01)
    assert result.success
    assert result.fun <= 0.01
    assert result.nfev < 5000
    assert result.message == "The target 0.01 was reached."
    missed = minimize(sphere, BOX, controller=controlled(), max_evaluations=60, seed=0, target=-1.0)
    assert not missed.success
    assert "was not reached" in missed.message


@pytest.mark.parametrize("method", ["learned", "jso"])
def test_a_value_equal_to_the_target_reaches_it(method):
    choice = {"controller": controlled()} if method == "learned" else {"method": method}
    result = minimize(lambda x: 7.0, BOX, max_evaluations=5000, seed=0, target=7.0, **choice)
    assert (result.success, result.nit) == (True, 0)
    assert result.nfev < 1000
    assert result.message == "The target 7 was reached."


@pytest.mark.parametrize("method", ["learned", "jso", "hses"])
def test_starting_point_is_evaluated_first(method):
    seen = []

    def recorded(x):
        seen.append(np.array(x))
        return sphere(x)

    start = np.array([0.5, 0.5, 0.5])
    options = {"controller": controlled()} if method == "learned" else {}
    result = minimize(recorded, BOX, method=method, max_evaluations=600, seed=0, x0=start, **options)
    np.testing.assert_array_equal(seen[0], start)
    assert result.fun == 0.0


def test_callback_sees_progress_and_stops_by_either_way():
    seen = []

    def stop_by_exception(intermediate_result):
        seen.append(intermediate_result.nfev)
        if len(seen) == 3:
            raise StopIteration

    result = minimize(sphere, BOX, controller=controlled(), max_evaluations=5000, callback=stop_by_exception, seed=0)
    assert seen == [40, 60, 80]
    assert result.nfev == 80
    assert not result.success
    assert result.message == "The callback stopped the run."
    by_value = minimize(
        sphere, BOX, controller=controlled(), max_evaluations=5000, seed=0, callback=lambda result: result.nit == 3
    )
    assert by_value.fun == result.fun


def test_interruption_returns_the_best_so_far():
    calls = [0]

    def interrupted(x):
        calls[0] += 1
        if calls[0] == 50:
            raise KeyboardInterrupt
        return sphere(x)

    result = minimize(interrupted, BOX, controller=controlled(), max_evaluations=5000, seed=0)
    assert not result.success
    assert "interrupted" in result.message
    assert result.fun == sphere(result.x)
    assert result.nfev == 49


def test_nan_is_never_preferred_and_no_finite_value_is_no_success():
    def half_defined(x):
        return np.nan if x[0] < 0 else float(x[0])

    result = minimize(half_defined, BOX, controller=controlled(), max_evaluations=3000, seed=0)
    assert 0 <= result.fun < 1e-3
    nothing = minimize(lambda x: np.nan, BOX, controller=controlled(), max_evaluations=200, seed=0)
    assert not nothing.success
    assert np.isinf(nothing.fun)
    assert "no finite value" in nothing.message


def test_failing_function_is_named_with_its_cause():
    def broken(x):
        raise ZeroDivisionError("no")

    with pytest.raises(RuntimeError, match="broken") as caught:
        minimize(broken, BOX, controller=controlled(), max_evaluations=200, seed=0)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bounds": [(0, 1, 2)]}, r"one \(lower, upper\) pair per coordinate, got shape \(1, 3\)"),
        ({"bounds": []}, "pair per coordinate"),
        ({"bounds": [("a", "b")]}, "pairs of numbers"),
        ({"bounds": [(0, np.inf)] * 2}, "finite"),
        ({"bounds": [(1, 0)] * 2}, "lower bound above the upper bound, got 1 and 0 in coordinate 0"),
        ({"method": "jos"}, "Unknown method 'jos'. Did you mean 'jso'"),
        ({"max_evaluations": 0}, "positive whole number, got 0"),
        ({"max_evaluations": 10.5}, "positive whole number, got 10.5"),
        ({"population_size": 30}, "trained for 20 individuals, got `population_size` 30"),
        ({"method": "hses", "controller": "default", "population_size": 30}, "sets its own population sizes"),
        ({"method": "jade", "controller": "default", "population_size": 2}, "population_size"),
        ({"target": np.nan}, "`target` must be a number or None, got NaN"),
        ({"workers": 0}, "`workers` must be -1, a positive whole number or a map-like callable, got 0"),
        ({"workers": 2, "vectorized": True}, "exclude each other"),
        ({"x0": [0.0]}, r"points of 3 coordinates, got shape \(1,\)"),
        ({"x0": [9.0, 0.0, 0.0]}, "inside the bounds"),
        ({"x0": [np.nan, 0.0, 0.0]}, "inside the bounds"),
        ({"seed": -1}, "`seed` must be what numpy.random.default_rng takes, got -1"),
        ({"max_evaluations": "many"}, "`max_evaluations` must be a positive whole number, got 'many'"),
        ({"controller": "no-such-controller"}, "Unknown controller 'no-such-controller'"),
    ],
)
def test_bad_arguments_are_named(changes, message):
    arguments = {"bounds": BOX, "controller": controlled(), "max_evaluations": 1000} | changes
    with pytest.raises(ValueError, match=message):
        minimize(sphere, **arguments)


@pytest.mark.parametrize(
    ("fun", "message"),
    [
        (3, "must be callable, got int"),
        (lambda x: "high", "real numbers"),
        (lambda x: (1.0, 2.0 * x), r"real numbers, got tuple: \(1.0, array"),
    ],
)
def test_bad_functions_are_type_errors(fun, message):
    with pytest.raises(TypeError, match=message):
        minimize(fun, BOX, controller=controlled(), max_evaluations=1000)


def test_wrong_shape_is_named():
    with pytest.raises(ValueError, match="must return one number for a point"):
        minimize(lambda x: x, BOX, controller=controlled(), max_evaluations=1000)


MISBEHAVIOURS = {
    "smooth": lambda x: float(np.sum(x**2)),
    "constant": lambda x: 1.0,
    "huge": lambda x: 1e308 * float(np.sign(x[0])),
    "sometimes nan": lambda x: np.nan if x[0] > 0 else float(x[0]),
    "sometimes infinite": lambda x: -np.inf if x[0] > 1e8 else np.inf,
    "integer": lambda x: int(np.sum(x > 0)),
    "array of one": lambda x: np.array([np.float32(x[0])]),
    "vector": lambda x: x,
    "text": lambda x: "text",
    "raises": lambda x: 1 / 0,
}


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    low=st.lists(st.floats(-1e9, 1e9, width=32), min_size=1, max_size=6),
    width=st.floats(0.0, 1e6, width=32),
    budget=st.integers(-5, 900),
    method=st.sampled_from(["learned", *PAPER_METHODS]),
    behaviour=st.sampled_from(sorted(MISBEHAVIOURS)),
    seed=st.integers(0, 2**32),
)
def test_only_documented_exceptions_and_always_a_point_inside(low, width, budget, method, behaviour, seed):
    bounds = [(value, value + width) for value in low]
    values = []

    def recorded(x):
        value = MISBEHAVIOURS[behaviour](x)
        values.append((x.copy(), value))
        return value

    options = {"controller": RandomController(6)} if method == "learned" else {}
    try:
        result = minimize(recorded, bounds, method=method, max_evaluations=budget, seed=seed, **options)
    except (ValueError, TypeError, RuntimeError):
        return
    lower, upper = np.transpose(bounds)
    assert ((result.x >= lower) & (result.x <= upper)).all()
    assert result.nfev == len(values) <= budget
    expected = float(np.asarray(MISBEHAVIOURS[behaviour](result.x)).item())
    assert result.fun == (np.inf if np.isnan(expected) else expected)


@pytest.mark.parametrize("is_local", [False, True])
def test_points_of_a_local_search_are_no_population_that_has_converged(is_local):
    optimizer, agreeing = SimpleNamespace(is_searching_locally=is_local), np.ones(5)
    record = SimpleNamespace(optimizer=optimizer, merits=lambda: agreeing)
    endings = Endings(record, Limits(relative_tolerance=0.01))
    assert endings._has_converged(SimpleNamespace(values=agreeing)) is not is_local
