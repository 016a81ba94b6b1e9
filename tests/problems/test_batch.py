"""ProblemBatch: mixtures of problems in one call, bit for bit what each gives alone."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from de_gym.machine import kernel
from de_gym.problems import Problem, ProblemBatch, make_suite


@pytest.fixture(scope="module")
def mixture() -> ProblemBatch:
    """Every function of both suites in 10 dimensions, interleaved, some twice in a row."""
    older, newer = list(make_suite("cec2013", 10)), list(make_suite("cec2017", 10, range(1, 31)))
    problems = [problem for pair in zip(older, newer, strict=False) for problem in pair]
    return ProblemBatch([*problems, newer[-1], newer[-1], older[0]])


def _points(batch: ProblemBatch, rng: np.random.Generator, num_points: int) -> np.ndarray:
    return rng.uniform(-100.0, 100.0, (len(batch), num_points, batch.dimension))


@pytest.mark.parametrize("num_points", [1, 5, 50])
def test_mixture_equals_each_problem_alone_bit_for_bit(mixture, rng, num_points):
    points = _points(mixture, rng, num_points)
    alone = [problem.evaluate(row) for problem, row in zip(mixture.problems, points, strict=True)]
    np.testing.assert_array_equal(mixture.evaluate(points), alone)


def test_a_point_has_one_value_whatever_its_neighbours(mixture, rng):
    points = _points(mixture, rng, 21)
    order = rng.permutation(21)
    np.testing.assert_array_equal(mixture.evaluate(points[:, order]), mixture.evaluate(points)[:, order])


def test_runs_with_different_numbers_of_points_get_the_values_of_their_problems(mixture, rng):
    counts = rng.integers(0, 20, len(mixture))
    # Neighbouring runs of one problem, one of them without points, and empty runs at both ends.
    counts[[0, -3, -1]], counts[[-4, -2]] = 0, [5, 3]
    starts = np.append(0, counts.cumsum())
    points = rng.uniform(-100.0, 100.0, (starts[-1], 10))
    values = mixture.evaluate_ragged(points, starts)
    assert values.shape == (starts[-1],)
    for problem, first, end in zip(mixture.problems, starts, starts[1:], strict=False):
        np.testing.assert_array_equal(values[first:end], problem.evaluate(points[first:end]))


def test_runs_of_python_functions_may_have_different_numbers_of_points(rng):
    calls = []

    def total(points):
        calls.append(points.shape)
        return points.sum(axis=1)

    own = Problem.from_function(total, -1.0, 1.0, dimension=10, vectorized=True)
    suite = make_suite("cec2017", 10)
    batch = ProblemBatch([own, suite[5], own, suite[1], own, suite[5]])
    starts = np.array([0, 3, 7, 7, 9, 10, 10])
    points = rng.uniform(-1.0, 1.0, (10, 10))
    values = batch.evaluate_ragged(points, starts)
    assert calls == [(4, 10)]
    np.testing.assert_array_equal(values[[0, 1, 2, 9]], points[[0, 1, 2, 9]].sum(axis=1))
    np.testing.assert_array_equal(values[3:7], suite[5].evaluate(points[3:7]))
    np.testing.assert_array_equal(values[7:9], suite[1].evaluate(points[7:9]))
    assert batch.evaluate_ragged(np.empty((0, 10)), np.zeros(7, np.int64)).shape == (0,)
    assert calls == [(4, 10)]


@pytest.mark.parametrize("dimension", [30, 100])
def test_mixture_in_more_dimensions_equals_each_problem_alone(dimension, rng):
    batch = ProblemBatch([*make_suite("cec2013", dimension, range(1, 29)), *make_suite("cec2017", dimension)])
    points = _points(batch, rng, 3)
    alone = [problem.evaluate(row) for problem, row in zip(batch.problems, points, strict=True)]
    np.testing.assert_array_equal(batch.evaluate(points), alone)


def test_threads_give_the_values_of_one_thread(mixture, rng):
    blocks = [_points(mixture, rng, 13) for _ in range(16)]
    expected = [mixture.evaluate(points) for points in blocks]
    with ThreadPoolExecutor(2) as pool:
        np.testing.assert_array_equal(list(pool.map(mixture.evaluate, blocks)), expected)


def test_kernel_releases_the_interpreter_lock():
    assert kernel.evaluate_programs.targetoptions["nogil"]


def test_batch_stacks_bounds_and_optima(sphere):
    unknown = Problem.from_function(np.sum, -1.0, [2.0, 3.0], vectorized=False)
    batch = ProblemBatch([sphere, unknown, sphere])
    assert len(batch) == 3
    assert batch.dimension == 2
    assert batch.lower.tolist() == [[-4.0, -2.0], [-1.0, -1.0], [-4.0, -2.0]]
    assert batch.upper.tolist() == [[6.0, 8.0], [2.0, 3.0], [6.0, 8.0]]
    np.testing.assert_array_equal(batch.optimum, [0.0, np.nan, 0.0])


def test_batch_takes_a_suite_or_any_other_iterable():
    suite = make_suite("cec2013", 10, [4, 2])
    assert ProblemBatch(suite).problems == ProblemBatch(problem for problem in suite).problems == (suite[4], suite[2])


def test_python_functions_and_suite_functions_share_a_batch(rng):
    calls = []

    def total(points):
        calls.append(points.shape)
        return points.sum(axis=1)

    own = Problem.from_function(total, -1.0, 1.0, dimension=10, vectorized=True)
    per_point = Problem.from_function(lambda point: point[0] * 2.0, -1.0, 1.0, dimension=10)
    suite = make_suite("cec2017", 10)
    batch = ProblemBatch([own, suite[5], per_point, own, suite[30]])
    points = rng.uniform(-1.0, 1.0, (5, 4, 10))
    values = batch.evaluate(points)
    assert calls == [(8, 10)]
    np.testing.assert_array_equal(values[[0, 3]], points[[0, 3]].sum(axis=2))
    np.testing.assert_array_equal(values[2], points[2, :, 0] * 2.0)
    np.testing.assert_array_equal(values[1], suite[5].evaluate(points[1]))
    np.testing.assert_array_equal(values[4], suite[30].evaluate(points[4]))


def test_taking_runs_keeps_their_problems_and_values(mixture, sphere, rng):
    runs = np.array([40, 3, 3, 17])
    taken = mixture.take(runs)
    points = _points(mixture, rng, 6)
    np.testing.assert_array_equal(taken.evaluate(points[runs]), mixture.evaluate(points)[runs])
    assert taken.problems == tuple(mixture.problems[run] for run in runs)
    np.testing.assert_array_equal(taken.lower, mixture.lower[runs])
    np.testing.assert_array_equal(taken.optimum, mixture.optimum[runs])


def test_taking_from_a_batch_with_python_functions_keeps_them_apart(rng):
    own = Problem.from_function(np.sum, -1.0, 1.0, dimension=10)
    suite = make_suite("cec2013", 10)
    batch = ProblemBatch([own, suite[1], own, suite[2]])
    points = rng.uniform(-1.0, 1.0, (4, 3, 10))
    for runs in ([1, 3], [0, 2], [3, 0]):
        np.testing.assert_array_equal(batch.take(np.array(runs)).evaluate(points[runs]), batch.evaluate(points)[runs])


def test_taking_no_run_gives_an_empty_batch(mixture):
    empty = mixture.take(np.array([], dtype=np.int64))
    assert len(empty) == 0
    assert empty.evaluate(np.empty((0, 50, 10))).shape == (0, 50)


def test_any_array_of_the_right_shape_is_taken(mixture, rng):
    points = _points(mixture, rng, 6).astype(np.float32)
    expected = mixture.evaluate(points.astype(np.float64))
    np.testing.assert_array_equal(mixture.evaluate(points), expected)
    np.testing.assert_array_equal(mixture.evaluate(np.asfortranarray(points)), expected)
    frozen = points.astype(np.float64)
    frozen.setflags(write=False)
    np.testing.assert_array_equal(mixture.evaluate(frozen), expected)
    np.testing.assert_array_equal(mixture.evaluate(np.repeat(points, 2, axis=1)[:, ::2]), expected)
    assert mixture.evaluate(points[:, :0]).shape == (len(mixture), 0)


def test_one_compiled_form_serves_every_input(mixture, rng):
    test_any_array_of_the_right_shape_is_taken(mixture, rng)
    assert len(kernel.evaluate_programs.signatures) == 1


def test_coordinates_that_are_no_numbers_give_infinity(mixture, rng):
    points = _points(mixture, rng, 2)
    expected = mixture.evaluate(points)
    points[:, 1, 3] = np.nan
    values = mixture.evaluate(points)
    np.testing.assert_array_equal(values[:, 0], expected[:, 0])
    assert (values[:, 1] == np.inf).all()


def test_pickle_carries_the_problems_only(mixture, rng):
    pickled = pickle.dumps(mixture)
    assert len(pickled) < 4000
    points = _points(mixture, rng, 2)
    np.testing.assert_array_equal(pickle.loads(pickled).evaluate(points), mixture.evaluate(points))


@pytest.mark.parametrize("shape", [(3, 5, 9), (2, 5, 10), (3, 10), (3, 5, 1, 10)])
def test_points_of_the_wrong_shape_are_rejected(shape):
    batch = ProblemBatch(list(make_suite("cec2013", 10, [1, 2, 3])))
    with pytest.raises(ValueError, match=r"must have shape \(3, N, 10\), got"):
        batch.evaluate(np.zeros(shape))


@pytest.mark.parametrize("shape", [(5, 9), (1, 5, 10), (10,)])
def test_ragged_points_of_the_wrong_shape_are_rejected(shape):
    batch = ProblemBatch(list(make_suite("cec2013", 10, [1, 2])))
    with pytest.raises(ValueError, match=r"must have shape \(T, 10\), got"):
        batch.evaluate_ragged(np.zeros(shape), np.array([0, 2, 5]))


@pytest.mark.parametrize("starts", [[0, 5], [0, 2, 4, 5], [0.0, 2.0, 5.0], 0, [[0, 2, 5]]])
def test_starts_that_are_not_one_integer_per_run_and_the_end_are_rejected(starts):
    batch = ProblemBatch(list(make_suite("cec2013", 10, [1, 2])))
    with pytest.raises(ValueError, match=r"`starts` must be 3 integers, one per run and the end, got .* of shape"):
        batch.evaluate_ragged(np.zeros((5, 10)), np.array(starts))


@pytest.mark.parametrize("starts", [[1, 2, 5], [0, 2, 6], [0, 2, 4], [0, 6, 5], [0, -1, 5]])
def test_starts_that_do_not_rise_over_all_points_are_rejected(starts):
    batch = ProblemBatch(list(make_suite("cec2013", 10, [1, 2])))
    with pytest.raises(ValueError, match=r"`starts` must rise from 0 to the number of points 5, got \["):
        batch.evaluate_ragged(np.zeros((5, 10)), starts)


def test_empty_and_uneven_batches_are_rejected():
    with pytest.raises(ValueError, match="at least one problem"):
        ProblemBatch([])
    with pytest.raises(ValueError, match=r"one dimension, got \[10, 30\]"):
        ProblemBatch([make_suite("cec2013", 10)[1], make_suite("cec2013", 30)[1]])
