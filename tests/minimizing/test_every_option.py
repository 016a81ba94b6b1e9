"""Every method of the registry, those of other packages included, with every option of the front door."""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint
from scipy.optimize import minimize as scipy_minimize

from de_gym import Optimizer, minimize, scipy_method
from de_gym.optimizers import METHODS

BOX = [(-5.0, 3.0), (-1.0, 4.0), (-2.0, 2.0)]
BUDGET = 400  # of which the largest first population, that of "hses", takes half
STARTS = [[0.25, 0.5, 0.75], [1.0, 1.0, 1.0]]


def sphere(x):
    return float(np.sum((x - 0.5) ** 2))


class Noted:
    """A function that remembers where it was called, and may give up."""

    __name__ = "sphere"

    def __init__(self, num_calls=BUDGET):
        self.points, self.num_calls = [], num_calls

    def __call__(self, x):
        if len(self.points) == self.num_calls:
            raise OSError("gone")
        self.points.append(x.copy())
        return sphere(x)


def solve(method, fun=sphere, bounds=BOX, **options):
    return minimize(fun, bounds, method=method, **({"max_evaluations": BUDGET, "seed": 3, "tol": None} | options))


@functools.cache
def plain(method):
    return solve(method)


def assert_same(one, other):
    np.testing.assert_array_equal(one.x, other.x)
    np.testing.assert_array_equal(one.population, other.population)
    assert (one.fun, one.nfev, one.nit) == (other.fun, other.nfev, other.nit)


def has_constraints(method):
    fun = Noted()
    inside = [NonlinearConstraint(lambda x: x @ x, -np.inf, 4.0), LinearConstraint([[1, 0, 0]], 0.25, np.inf)]
    result = solve(method, fun, constraints=inside)
    points = np.array(fun.points)
    assert len(points) < result.nfev <= BUDGET
    assert ((points**2).sum(axis=1) <= 4.0).all()
    assert (points[:, 0] >= 0.25).all()
    assert result.maxcv == 0.0
    assert len(result.constr) == 2
    assert result.fun == min(map(sphere, points))


def has_whole_numbers(method):
    fun = Noted()
    result = solve(method, fun, integrality=[True, False, True])
    points = np.array(fun.points)
    np.testing.assert_array_equal(points[:, [0, 2]], np.rint(points[:, [0, 2]]))
    assert (points[:, 1] != np.rint(points[:, 1])).any()
    assert any((result.x == point).all() for point in points)


def has_fixed_coordinates(method):
    fun = Noted()
    result = solve(method, fun, [(-5.0, 3.0), (1.5, 1.5), (-2.0, 2.0)])
    assert (np.array(fun.points)[:, 1] == 1.5).all()
    assert (result.x[1], result.population[:, 1].tolist()) == (1.5, [1.5] * len(result.population))


def has_tolerance(method):
    result = solve(method, tol=1e9)
    assert (result.nit, result.success) == (1, True)
    assert "converged" in result.message
    absolute = solve(method, atol=1e9)
    assert (absolute.fun, absolute.nit) == (result.fun, 1)


def has_maxiter(method):
    result = solve(method, maxiter=1)
    assert (result.nit, result.message) == (1, "The maximum of 1 generations was reached.")


def has_target(method):
    result = solve(method, target=3.0)
    assert result.success
    assert result.fun <= 3.0
    assert result.message == "The target 3 was reached."


def has_starting_points(method):
    for name in ("init", "x0"):
        fun = Noted()
        result = solve(method, fun, **{name: STARTS})
        np.testing.assert_array_equal(fun.points[:2], STARTS)
        assert result.fun <= sphere(np.array(STARTS[0]))
        assert result.nfev <= BUDGET


def has_progress_bar(method):
    assert_same(solve(method, disp=True), plain(method))


def has_polishing(method):
    fun = Noted()
    result = solve(method, fun, polish=True)
    assert result.nfev == len(fun.points) <= BUDGET
    assert result.fun == min(map(sphere, fun.points)) < 1e-10


def has_callback(method):
    seen = []
    result = solve(method, callback=lambda intermediate_result: seen.append(intermediate_result.nit) or "enough")
    assert seen == [1]
    assert (result.nit, result.success, result.message) == (1, False, "The callback stopped the run.")


def has_time_limit(method):
    result = solve(method, max_time=0.0)
    assert (result.nfev, result.success) == (1, False)
    assert result.message.startswith("The time of 0 seconds is over.")


def has_workers(method):
    assert_same(solve(method, workers=2), plain(method))
    with ThreadPoolExecutor(2) as threads:
        assert_same(solve(method, workers=threads.map), plain(method))


def has_vectorized_functions(method):
    result = solve(method, lambda points: np.array([sphere(point) for point in points]), vectorized=True)
    assert_same(result, plain(method))


def has_checkpoints(method, folder):
    path, before, after = folder / "run.log", Noted(77), Noted(BUDGET - 77)
    with pytest.raises(RuntimeError) as caught:
        solve(method, before, checkpoint=path)
    assert caught.value.result.nfev == len(before.points) == 77
    assert_same(solve(method, after, checkpoint=path), plain(method))
    assert len(after.points) == plain(method).nfev - 77


def has_ask_and_tell(method, folder):
    first = Optimizer(BOX, method=method, max_evaluations=BUDGET, seed=3)
    points = first.ask()
    first.tell(points[1:], [sphere(point) for point in points[1:]])
    first.save(folder / "run.npz")
    first.close()
    with closing(Optimizer.load(folder / "run.npz")) as loaded:
        np.testing.assert_array_equal(loaded.outstanding, points[:1])
        loaded.tell(points[0], sphere(points[0]))
        while not loaded.has_ended:
            points = loaded.ask()
            loaded.tell(points, [sphere(point) for point in points])
        assert_same(loaded.result, plain(method))


def has_scipys_door(method):
    result = scipy_minimize(
        sphere,
        STARTS[0],
        bounds=BOX,
        method=scipy_method(method, seed=3),
        options={"max_evaluations": BUDGET, "tol": None},
    )
    assert_same(result, solve(method, x0=STARTS[0]))


def has_few_evaluations(method):
    for budget in (1, 2, 7):
        fun = Noted()
        assert solve(method, fun, max_evaluations=budget).nfev == len(fun.points) <= budget


CLAIMS = [claim for name, claim in list(globals().items()) if name.startswith("has_")]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.__name__)
@pytest.mark.parametrize("method", ["learned", *METHODS])
def test_method(method, claim, tmp_path):
    if method in METHODS and (package := METHODS[method].package):
        pytest.importorskip(package)
    claim(method, tmp_path) if "folder" in claim.__code__.co_varnames else claim(method)
