"""Descents: the way down is found, in few evaluations, and runs do not disturb each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize as scipys_minimize
from scipy.optimize import rosen

from de_gym import make_suite
from de_gym.controllers import ResidualController
from de_gym.controllers.residual import num_numbers
from de_gym.evolution.populations import Trials
from de_gym.machine.descents import POINT
from de_gym.optimizers import AdaptiveDE, AdaptiveDESettings, run
from de_gym.optimizers.adaptive import CONTROL_NAMES, FEATURE_NAMES
from de_gym.optimizers.local_search import Descents

Function = Callable[[np.ndarray], float]


class Descent:
    """The descent of one run.

    Attributes:
        points: What it wants evaluated next; None where it is over.
        count: How many points it has been told of.
    """

    def __init__(self, point: np.ndarray, value: float, lower: np.ndarray, upper: np.ndarray) -> None:
        self.descents, self.count = Descents(np.array([10**9]), lower[None], upper[None], np.ones(1)), 0
        self.descents.begin(0, point, value, 0)
        self._ask()

    @property
    def value(self) -> float:
        return float(self.descents._state.runs["value"][0])

    @property
    def point(self) -> np.ndarray:
        return self.descents._state.vectors[0, POINT]

    def tell(self, values: np.ndarray) -> None:
        self.count += len(values)
        self.descents.tell(self.trials, values, np.zeros(1, np.int64))
        self._ask()

    def _ask(self) -> None:
        self.trials: Trials = self.descents.ask(np.array([0, self.descents.num_points[0]]))
        self.points = self.trials.points if len(self.trials.points) else None


def descend(function: Function, start: np.ndarray, width: float = 5.0, most: int = 100_000) -> tuple[Descent, int]:
    """Return the descent after its end, and how many points it asked for."""
    search = Descent(start, function(start), np.full(len(start), -width), np.full(len(start), width))
    while search.points is not None and search.count < most:
        assert (np.abs(search.points) <= width).all()
        search.tell(np.array([function(point) for point in search.points]))
    return search, search.count


def ellipsoid(x: np.ndarray) -> float:
    return float(np.sum(10.0 ** (6.0 * np.arange(len(x)) / (len(x) - 1)) * (x - 0.3) ** 2))


# Not with two coordinates, where looking along a direction costs as much as a gradient.
@pytest.mark.parametrize("dimension", [5, 10, 30])
@pytest.mark.parametrize("function", [rosen, ellipsoid])
def test_it_needs_hardly_more_evaluations_than_scipys_l_bfgs_b(function, dimension):
    start = np.random.default_rng(dimension).uniform(-2.0, 2.0, dimension)
    search, count = descend(function, start)
    theirs = scipys_minimize(function, start, method="L-BFGS-B", bounds=[(-5, 5)] * dimension, tol=1e-12)
    assert search.value <= max(1e-7, 2.0 * theirs.fun)
    assert count <= 1.5 * theirs.nfev
    assert search.value == function(search.point)


def test_it_knows_that_a_steps_curvature_is_that_of_the_change_of_gradients():
    # A quadratic of two coordinates is over after few steps, however its axes lie.
    turned = np.array([[0.8, -0.6], [0.6, 0.8]])
    search, count = descend(lambda x: float(np.sum((turned @ (x - 0.5)) ** 2 * [1.0, 1e4])), np.array([-3.0, 2.0]))
    assert search.value < 1e-9
    assert count < 60


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_minimum_on_a_bound_is_found_and_the_bound_is_left_where_that_leads_down(sign):
    slope, _ = descend(lambda x: float(sign * x[0] + (x[1] - 1.0) ** 2), np.array([0.0, -4.0]))
    np.testing.assert_allclose(slope.point, [-5.0 * sign, 1.0], atol=1e-4)
    inside, _ = descend(lambda x: float(np.sum((x - 1.0) ** 2)), np.array([-5.0, 5.0]))
    np.testing.assert_allclose(inside.point, [1.0, 1.0], atol=1e-4)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_no_numbers_end_it(value):
    search = Descent(np.zeros(3), 1.0, -np.ones(3), np.ones(3))
    search.tell(np.array([0.5, value, 0.5]))
    assert search.points is None
    assert search.value == 1.0


def test_a_step_to_where_there_is_no_value_is_shortened():
    search, _ = descend(lambda x: float(np.sum(x**2)) if x[0] > 0.0 else np.nan, np.array([3.0, 3.0]))
    assert search.value < 1e-2


@pytest.mark.parametrize("width", [1e-3, 1e-7, 1e-9, 1e-12])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_no_point_leaves_a_narrow_box_far_from_zero(width, share):
    lower = np.full(3, 1e6)
    upper = lower + width
    search, most = Descent(lower + share * (upper - lower), 1.0, lower, upper), 200
    while search.points is not None and most:
        assert ((search.points >= lower) & (search.points <= upper)).all()
        search.tell(np.array([float(np.sum((point - 1e6 - 0.3 * width) ** 2)) for point in search.points]))
        most -= 1


def test_a_plateau_ends_it_after_one_gradient():
    _, count = descend(lambda x: 1.0, np.zeros(4))
    assert count == 4


def test_noise_ends_it_soon():
    rng = np.random.default_rng(0)
    _, count = descend(lambda x: float(np.sum(x**2) + rng.normal()), np.full(10, 2.0))
    assert count < 500


def hump(x: np.ndarray) -> float:
    return float(1.0 - np.exp(-np.sum((x - 0.3) ** 2) / 3.0))


@pytest.mark.parametrize("unit", [1.0, 1000.0, 2.0**-20, 1e-100, 1e100])
def test_the_unit_of_the_function_does_not_matter_even_where_it_first_bends_upwards(unit):
    for seed in range(5):
        start = np.random.default_rng(seed).uniform(-3.0, 3.0, 10)
        search, _ = descend(lambda x: unit * hump(x), start)
        assert search.value < 1e-9 * unit


@pytest.mark.parametrize("spread", [20, 40, 200])
def test_the_units_of_the_coordinates_do_not_matter(spread):
    units = 2.0 ** np.round(np.linspace(-spread / 2, spread / 2, 5))
    lower = -5.0 * units
    search = Descent(0.5 * lower, rosen(np.full(5, -2.5)), lower, -lower)
    while search.points is not None:
        search.tell(np.array([rosen(point / units) for point in search.points]))
    plain, _ = descend(rosen, np.full(5, -2.5))
    np.testing.assert_array_equal(search.point / units, plain.point)


@pytest.mark.parametrize("width", [1e150, 1e154, 1e200, 8e307])
@pytest.mark.parametrize("penalty", [1e100, 1e300, np.inf])
def test_no_point_is_infinite_or_nan(width, penalty):
    def walled(x: np.ndarray) -> float:
        return penalty if np.sum(x / width) > 0.2 else float(-np.sum(x / width) + np.sum((x / width - 0.2) ** 2))

    for seed in range(3):
        start = np.random.default_rng(seed).uniform(-0.5, 0.0, 3) * width
        descend(walled, start, width, most=2000)


@pytest.mark.parametrize("slope", [1e-300, 1e-200, 1e200, 1e300])
def test_slopes_that_are_hardly_numbers_are_followed_or_end_it(slope):
    search, count = descend(lambda x: float(np.sum(slope * x)), np.zeros(3), most=2000)
    assert count < 2000
    assert np.isfinite(search.point).all()


def make_controller(share: float) -> ResidualController:
    vectors = np.random.default_rng(0).normal(0.0, 0.1, (1, num_numbers(len(CONTROL_NAMES))))
    controller = ResidualController.from_vectors(FEATURE_NAMES, CONTROL_NAMES, vectors)
    return replace(controller, descent_shares=np.full((1, 1), share))


def test_a_descent_begins_late_and_ends_before_the_run_does():
    problem, optimizer, lonely = make_suite("cec2017", 10)[1], AdaptiveDE(controller=make_controller(0.3)), []
    optimizer.start(problem.lower[None], problem.upper[None], [np.random.default_rng(1)], 3000)
    while not optimizer.has_ended[0]:
        points = optimizer.ask().points
        if optimizer._descents.are_under_way:
            lonely.append(int(optimizer.evaluations[0]))
        optimizer.tell(problem.evaluate(points))
    assert 0.7 * 3000 <= lonely[0] < 0.75 * 3000
    assert optimizer.evaluations[0] == 3000
    # What the descent spent counts for the plan of sizes: the populations shrink to the end.
    assert optimizer._state.runs["evaluations"][0] == 3000
    assert optimizer._state.runs["size"][0] == 4


def test_descents_pay_where_the_function_is_smooth():
    problem, errors = make_suite("cec2017", 10)[4], {}  # Rosenbrock's, turned
    for share in (0.0, 0.3):
        errors[share] = run(AdaptiveDE(controller=make_controller(share)), problem, 11, max_evaluations=5000).errors
    assert np.median(errors[0.3]) < 0.1 * np.median(errors[0.0])


@pytest.mark.parametrize("function", [4, 21])
def test_runs_with_descents_do_not_depend_on_who_shares_their_batch(function):
    problem, seeds = make_suite("cec2017", 10)[function], np.random.SeedSequence(3).spawn(4)
    optimizer = AdaptiveDE(AdaptiveDESettings(population_size=30), make_controller(0.4))
    together = run(optimizer, problem, seeds=seeds, max_evaluations=2000)
    for number, seed in enumerate(seeds):
        alone = run(optimizer, problem, seeds=[seed], max_evaluations=2000)
        assert alone.errors[0] == together.errors[number]
        np.testing.assert_array_equal(alone.best_positions[0], together.best_positions[number])


@pytest.mark.parametrize("coordinate", [0, 1])
def test_other_points_than_it_asked_for_end_a_descent(coordinate):
    problem, optimizer = make_suite("cec2017", 10)[4], AdaptiveDE(controller=make_controller(0.5))
    optimizer.start(problem.lower[None], problem.upper[None], [np.random.default_rng(1)], 2000)
    while not optimizer._descents.are_under_way:
        optimizer.tell(problem.evaluate(optimizer.ask().points))
    trials = optimizer.ask()
    trials.points[0, coordinate] += 1.0
    optimizer.tell(problem.evaluate(trials.points))
    assert not optimizer._descents.are_under_way
    assert not optimizer.has_ended[0]


def test_populations_that_begin_anew_descend_again():
    bounds, both = (-np.ones((2, 3)), np.ones((2, 3))), np.array([True, True])
    descents = Descents(np.array([3000, 3000]), *bounds, np.full(2, 0.3))
    # One that is still to come is not put off.
    descents.begin_anew(both)
    assert descents.begins.tolist() == [2100, 2100]
    descents.is_due[:] = False
    descents.begin_anew(np.array([True, False]))
    assert descents.is_due.tolist() == [True, False]
    assert descents.begins.tolist() == [2700, 2100]


def test_shares_are_interpolated_between_maps_and_kept_in_the_file():
    parts = {(-1.0, 0.0): make_controller(0.4), (0.0, 0.0): make_controller(0.0)}
    controller = ResidualController.joined(parts, {})
    budgets = np.array([1000, 10_000, 100_000])
    halfway = controller.find_descent_shares(10, np.array([int(10**4.5)]))[0]
    np.testing.assert_allclose(controller.find_descent_shares(10, budgets), [0.4, 0.4, 0.0])
    assert halfway == pytest.approx(0.2, rel=1e-4)
    with pytest.raises(ValueError, match=r"`descent_shares` must lie in \[0, 1\], got"):
        replace(controller, descent_shares=np.full((1, 2), 1.5))
    with pytest.raises(TypeError, match="`descent_shares` must consist of real numbers, got 'most'"):
        replace(controller, descent_shares="most")
    assert replace(controller, descent_shares=[[0.5, 0.0]]).descent_shares.shape == (1, 2)


def test_descents_of_one_batch_go_the_ways_that_they_go_alone():
    rng, num_runs, dimension = np.random.default_rng(1), 5, 11
    starts = rng.uniform(-2.0, 2.0, (num_runs, dimension))
    bounds = np.full((num_runs, dimension), -5.0), np.full((num_runs, dimension), 5.0)
    together = Descents(np.full(num_runs, 10**6), *bounds, np.ones(num_runs))
    for run_number in (0, 2, 3):
        together.begin(run_number, starts[run_number], rosen(starts[run_number]), 0)
    assert together.num_points.tolist() == [dimension, 0, dimension, dimension, 0]
    # Those that are left go on as if nobody had been there.
    for step in range(40):
        if step == 20:
            together.keep(np.array([3, 1, 0]))
        trials = together.ask(np.append(0, np.cumsum(together.num_points)))
        together.tell(trials, np.array([rosen(point) for point in trials.points]), np.zeros(len(together.num_points)))
    for place, run_number in ((0, 3), (2, 0)):
        alone, _ = descend(rosen, starts[run_number])
        lonely = Descent(
            starts[run_number], rosen(starts[run_number]), np.full(dimension, -5.0), np.full(dimension, 5.0)
        )
        for _ in range(40):
            lonely.tell(np.array([rosen(point) for point in lonely.points]))
        np.testing.assert_array_equal(together._state.vectors[place, POINT], lonely.point)
        assert lonely.value > alone.value


@pytest.mark.parametrize("bottom", [0.25, 0.03])
def test_a_parabola_says_where_along_the_direction_to_look_next(bottom):
    # The first step is a hundredth of the box, 0.1; the next point is where the parabola is lowest, farther or nearer.
    search, asked = Descent(np.zeros(1), bottom**2, np.full(1, -5.0), np.full(1, 5.0)), []
    for _ in range(3):
        asked.append(float(search.points[0, 0]))
        search.tell(np.array([(asked[-1] - bottom) ** 2]))
    np.testing.assert_allclose(asked[1:], [0.1, bottom], rtol=1e-4)


def test_no_step_is_longer_than_the_box_and_long_ones_keep_their_direction():
    search = Descent(np.zeros(2), 0.0, np.full(2, -5.0), np.full(2, 5.0))
    search.descents._state.runs["has_scale"] = 1
    steps = np.diag(search.points) / 10.0
    search.tell(np.array([-1000.0, -1.0]) * steps)
    np.testing.assert_allclose(search.points[0], [5.0, 0.01], rtol=1e-6)


def test_a_descent_that_cannot_be_paid_for_leaves_its_evaluations_to_the_populations():
    problem, optimizer = make_suite("cec2017", 10)[4], AdaptiveDE(controller=make_controller(0.003))
    optimizer.start(problem.lower[None], problem.upper[None], [np.random.default_rng(1)], 3000)
    while not optimizer.has_ended[0]:
        optimizer.tell(problem.evaluate(optimizer.ask().points))
        assert not optimizer.is_searching_locally
    assert optimizer.evaluations[0] == 3000
