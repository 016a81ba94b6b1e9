"""Every function of both suites against the official evaluators and against independent implementations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from de_gym.arrays import FloatArray
from de_gym.problems import Problem, make_suite
from de_gym.problems.suites import SUITES

REFERENCE = Path(__file__).parent.parent / "reference"
CASES = [
    (table.name, number, dimension) for table in SUITES.values() for number in table.numbers for dimension in (10, 30)
]
ALL_DIMENSIONS = [(table.name, dimension) for table in SUITES.values() for dimension in table.dimensions]


@pytest.fixture(scope="module")
def official():
    return {name: np.load(REFERENCE / f"{name}_official.npz", allow_pickle=False) for name in SUITES}


def assert_agree(values: FloatArray, expected: FloatArray, tolerance: float = 1e-9) -> None:
    errors = np.abs(values - expected) / np.maximum(1.0, np.abs(expected))
    assert errors.max() <= tolerance, f"error {errors.max():.2e} at point {errors.argmax()}"


def every_function(suite: str, dimension: int) -> list[Problem]:
    """Return all functions with data in this dimension, also those left out by default."""
    table = SUITES[suite]
    numbers = [number for number in table.numbers if dimension in table.supported_dimensions(number)]
    return list(make_suite(suite, dimension, numbers))


@pytest.mark.parametrize(("suite", "number", "dimension"), CASES)
def test_official_values(official, suite, number, dimension):
    problem = make_suite(suite, dimension, [number])[number]
    key = f"f{number:02d}_d{dimension}"
    assert_agree(problem.evaluate(official[suite][f"{key}_x"]), official[suite][f"{key}_y"])


@pytest.mark.parametrize("dimension", [10, 30])
def test_chaotic_ackley_of_cec2013_equals_the_official_values_bit_for_bit(official, dimension):
    values = make_suite("cec2013", dimension)[8].evaluate(official["cec2013"][f"f08_d{dimension}_x"])
    np.testing.assert_array_equal(values, official["cec2013"][f"f08_d{dimension}_y"])


@pytest.mark.parametrize(("suite", "dimension"), ALL_DIMENSIONS)
def test_every_function_takes_its_optimum_exactly_at_its_optimal_position(suite, dimension):
    for problem in every_function(suite, dimension):
        assert problem.evaluate(problem.optimal_position) == problem.optimum, problem
        assert (np.abs(problem.optimal_position) <= 100.0).all(), problem


@pytest.mark.parametrize(("suite", "dimension"), ALL_DIMENSIONS)
def test_no_point_near_an_optimum_lies_below_it(suite, dimension, rng):
    steps = rng.normal(size=(24, dimension)) * 10.0 ** rng.uniform(-9, 0, (24, 1))
    for problem in every_function(suite, dimension):
        assert (problem.evaluate(problem.optimal_position + steps) >= problem.optimum).all(), problem


def test_optima_are_the_published_ones():
    assert [problem.optimum for problem in every_function("cec2013", 10)] == [
        *range(-1400, 0, 100),
        *range(100, 1500, 100),
    ]
    assert [problem.optimum for problem in every_function("cec2017", 10)] == list(range(100, 3001, 100))


@pytest.mark.parametrize(("dimension", "value"), [(10, 901.4426), (30, 903.2595)])
def test_levy_of_cec2017_does_not_take_its_optimum_at_the_shift(dimension, value):
    from de_gym.problems import data

    problem = make_suite("cec2017", dimension)[9]
    assert problem.evaluate(data.shift_2017(9, 0, dimension)) == pytest.approx(value, abs=1e-3)


def spread_points(problem: Problem, rng: np.random.Generator, count: int) -> FloatArray:
    """Return points all over the box and at all distances from the optimum."""
    steps = rng.normal(size=(count, problem.dimension)) * 10.0 ** rng.uniform(-4, 1, (count, 1))
    near = np.clip(problem.optimal_position + steps, problem.lower, problem.upper)
    return np.concatenate([rng.uniform(problem.lower, problem.upper, (count, problem.dimension)), near])


@pytest.mark.parametrize("dimension", [2, 10, 30, 50, 100])
def test_cec2017_equals_minionpy(dimension, rng):
    minionpy = pytest.importorskip("minionpy")
    for problem in every_function("cec2017", dimension):
        if dimension == 2 and problem.number in (21, 22):
            continue  # refused by the peer
        points = spread_points(problem, rng, 20)
        peer = minionpy.CEC2017Functions(problem.number, dimension)
        assert_agree(problem.evaluate(points), np.array(peer(points.tolist())), 1e-12)


# Real exponents in F5, and therefore in F21, are the peer's departure from the official code.
PYGMO_DEPARTS = {5, 21}


@pytest.mark.parametrize("dimension", SUITES["cec2013"].dimensions)
def test_cec2013_equals_pygmo(dimension, rng):
    pygmo = pytest.importorskip("pygmo")
    for problem in every_function("cec2013", dimension):
        if problem.number in PYGMO_DEPARTS and dimension not in (2, 5):
            continue
        points = spread_points(problem, rng, 10)
        peer = pygmo.problem(pygmo.cec2013(prob_id=problem.number, dim=dimension))
        assert_agree(problem.evaluate(points), np.array([peer.fitness(point)[0] for point in points]), 1e-9)


def test_schaffer_of_cec2017_is_not_rotated(rng):
    problem = make_suite("cec2017", 10)[6]
    u = rng.uniform(-50.0, 50.0, (5, 10))
    radius = np.sqrt(u[:, :-1] ** 2 + u[:, 1:] ** 2)
    mean = (np.sqrt(radius) * (1.0 + np.sin(50.0 * radius**0.2) ** 2)).mean(axis=1)
    assert_agree(problem.evaluate(problem.optimal_position + u), mean**2 + 600.0)


def test_points_outside_the_box_are_not_clipped():
    problem = make_suite("cec2013", 10)[1]
    point = problem.optimal_position + 1000.0
    assert problem.evaluate(point) == pytest.approx(10 * 1000.0**2 - 1400.0)
