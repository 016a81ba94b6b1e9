"""Problem: shapes, bounds and Python functions, and the sentences that reject bad ones."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from de_gym.problems import Problem, make_suite


def total(point):
    return point.sum()


@pytest.fixture
def suite_problem() -> Problem:
    return make_suite("cec2017", 10)[5]


@pytest.mark.parametrize("shape", [(10,), (1, 10), (7, 10), (0, 10), (2, 3, 10), (2, 0, 10)])
def test_values_have_the_shape_of_the_points_without_their_last_axis(suite_problem, rng, shape):
    assert suite_problem.evaluate(rng.uniform(-100.0, 100.0, shape)).shape == shape[:-1]


def test_lists_and_other_number_types_are_taken(suite_problem, rng):
    points = rng.integers(-100, 100, (4, 10))
    expected = suite_problem.evaluate(points.astype(np.float64))
    np.testing.assert_array_equal(suite_problem.evaluate(points.tolist()), expected)
    np.testing.assert_array_equal(suite_problem.evaluate(points.astype(np.float32)), expected)
    np.testing.assert_array_equal(suite_problem.evaluate(np.asfortranarray(points)), expected)


def test_evaluation_leaves_the_points_alone(suite_problem, rng):
    points = rng.uniform(-100.0, 100.0, (4, 10))
    kept = points.copy()
    suite_problem.evaluate(points)
    np.testing.assert_array_equal(points, kept)


@pytest.mark.parametrize("shape", [(9,), (11,), (10, 9), (), (10, 1)])
def test_points_with_the_wrong_last_axis_are_rejected(suite_problem, shape):
    with pytest.raises(ValueError, match=r"'cec2017_f5' must have 10 coordinates in their last axis, got shape"):
        suite_problem.evaluate(np.zeros(shape))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_points_that_are_not_finite_are_rejected(suite_problem, bad):
    with pytest.raises(ValueError, match="'cec2017_f5' must be finite"):
        suite_problem.evaluate([[0.0] * 9 + [bad]])


def test_function_of_one_point_is_called_for_each():
    problem = Problem.from_function(total, [-1.0, -2.0, -3.0], 5.0, optimum=-6.0)
    assert (problem.name, problem.dimension, problem.optimum) == ("total", 3, -6.0)
    assert problem.suite is None
    assert problem.number is None
    assert problem.optimal_position is None
    assert problem.lower.tolist() == [-1.0, -2.0, -3.0]
    assert problem.upper.tolist() == [5.0, 5.0, 5.0]
    np.testing.assert_array_equal(problem.evaluate([[[1.0, 2.0, 3.0]], [[0.0, 0.0, 1.0]]]), [[6.0], [1.0]])


def test_vectorized_function_is_called_once():
    calls = []

    def fun(points):
        calls.append(points.shape)
        return points.sum(axis=1)

    problem = Problem.from_function(fun, 0.0, 1.0, dimension=2, vectorized=True, name="sums")
    assert problem.name == "sums"
    assert problem.evaluate(np.ones((2, 3, 2))).tolist() == [[2.0] * 3] * 2
    assert calls == [(6, 2)]


@pytest.mark.parametrize("vectorized", [False, True])
def test_function_cannot_change_the_callers_points(vectorized):
    def fun(points):
        points *= 0.0
        return points.sum(axis=-1)

    points = np.ones((3, 2))
    Problem.from_function(fun, 0.0, 1.0, dimension=2, vectorized=vectorized).evaluate(points)
    assert (points == 1.0).all()


@pytest.mark.parametrize("vectorized", [False, True])
def test_nan_from_a_function_counts_as_infinite(vectorized):
    def fun(points):
        return np.where(points[..., 0] < 0.0, np.nan, points[..., 0])

    problem = Problem.from_function(fun, -1.0, 1.0, dimension=2, vectorized=vectorized)
    assert problem.evaluate([[-0.5, 0.0], [0.5, 0.0]]).tolist() == [np.inf, 0.5]


@pytest.mark.parametrize("vectorized", [False, True])
def test_failing_function_is_named_with_the_point(vectorized):
    def fragile(points):
        raise KeyError("lost")

    problem = Problem.from_function(fragile, -1.0, 1.0, dimension=2, vectorized=vectorized)
    with pytest.raises(RuntimeError, match=r"Function 'fragile' raised KeyError\('lost'\) .*\[0\.25 0\.5 \]") as caught:
        problem.evaluate([[0.25, 0.5]])
    assert isinstance(caught.value.__cause__, KeyError)


def test_wrong_shape_from_a_function_is_rejected():
    one_by_one = Problem.from_function(lambda point: point, -1.0, 1.0, dimension=2, name="echo")
    with pytest.raises(ValueError, match=r"'echo' must return one number for a point, got shape \(2,\)"):
        one_by_one.evaluate([0.0, 0.0])
    at_once = Problem.from_function(lambda points: 1.0, -1.0, 1.0, dimension=2, vectorized=True, name="constant")
    with pytest.raises(ValueError, match=r"'constant' must return shape \(3,\) for 3 points, .*rows.*got \(\)"):
        at_once.evaluate(np.zeros((3, 2)))


@pytest.mark.parametrize("result", [None, "1.0", 1j])
def test_result_that_is_no_real_number_is_rejected(result):
    problem = Problem.from_function(lambda point: result, -1.0, 1.0, dimension=2, name="odd")
    with pytest.raises(TypeError, match="'odd' must return real numbers, got"):
        problem.evaluate([0.0, 0.0])


def test_objective_must_be_callable():
    with pytest.raises(TypeError, match="`fun` must be callable, got int"):
        Problem.from_function(3, 0.0, 1.0, dimension=2)


def test_plain_bounds_need_a_dimension():
    with pytest.raises(ValueError, match="`dimension` is needed"):
        Problem.from_function(total, 0.0, 1.0)


@pytest.mark.parametrize(
    ("lower", "upper", "dimension"),
    [([0.0, 0.0], [1.0, 1.0, 1.0], None), ([0.0, 0.0], 1.0, 3), ([[0.0, 0.0]], 1.0, None)],
)
def test_bounds_of_different_shapes_are_rejected(lower, upper, dimension):
    with pytest.raises(ValueError, match=r"Bounds must be plain numbers or vectors of one length.*got shapes"):
        Problem.from_function(total, lower, upper, dimension=dimension)


@pytest.mark.parametrize("dimension", [0, -1])
def test_problem_needs_a_coordinate(dimension):
    with pytest.raises(ValueError, match=f"`dimension` must be at least 1, got {dimension}"):
        Problem.from_function(total, 0.0, 1.0, dimension=dimension)


@pytest.mark.parametrize("upper", [0.0, -1.0])
def test_lower_bound_must_be_below_the_upper(upper):
    with pytest.raises(ValueError, match=rf"got 0\.0 >= {upper} in coordinate 1"):
        Problem.from_function(total, [0.0, 0.0], [1.0, upper])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bounds_must_be_finite(bad):
    with pytest.raises(ValueError, match="Bounds must be finite"):
        Problem.from_function(total, 0.0, [1.0, bad])


def test_width_of_bounds_must_be_finite():
    with pytest.raises(ValueError, match=r"finite number, got -1e\+308 to 1e\+308 in coordinate 1\."):
        Problem.from_function(total, [0.0, -1e308], [1.0, 1e308])
    assert Problem.from_function(total, -8e307, 8e307, dimension=2).dimension == 2


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_optimum_must_be_finite(bad):
    with pytest.raises(ValueError, match="`optimum` must be a finite number, got"):
        Problem.from_function(total, 0.0, 1.0, dimension=2, optimum=bad)


def test_problem_of_an_importable_function_can_be_pickled():
    problem = pickle.loads(pickle.dumps(Problem.from_function(total, 0.0, 1.0, dimension=2)))
    assert problem.evaluate([0.25, 0.5]) == 0.75
