from __future__ import annotations

import sys

import numpy as np
import pytest

from de_gym.optimizers import METHODS, run

PEERS = [name for name, method in METHODS.items() if method.package is not None]
EVERY_PEER = pytest.mark.parametrize("name", PEERS)


@pytest.fixture(autouse=True)
def _needs_the_packages():
    pytest.importorskip("cma")
    pytest.importorskip("minionpy")


@EVERY_PEER
def test_sphere_is_solved_and_the_run_stops_there(name, sphere):
    result = run(METHODS[name](), sphere, num_runs=2, max_evaluations=30_000)
    assert np.array_equal(result.errors, [0.0, 0.0])
    assert np.all(result.evaluations < 30_000)
    assert np.all(sphere.evaluate(result.best_positions) < 1e-8)
    assert np.array_equal(result.convergence[:, -1], result.errors)


@EVERY_PEER
def test_the_budget_is_used_and_never_exceeded(name, rastrigin):
    result = run(METHODS[name](), rastrigin, num_runs=2, max_evaluations=1_000, target_error=None)
    assert np.array_equal(result.evaluations, [1_000, 1_000])
    assert np.allclose(rastrigin.evaluate(result.best_positions), result.errors)


@EVERY_PEER
def test_a_run_depends_on_its_seed_alone_and_leaves_numpys_global_state_alone(name, rastrigin):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    seeds = np.random.SeedSequence(4).spawn(3)
    together = run(METHODS[name](), rastrigin, seeds=seeds, max_evaluations=600)
    alone = run(METHODS[name](), rastrigin, seeds=seeds[1:2], max_evaluations=600)
    assert together.errors[1] == alone.errors[0]
    assert np.array_equal(together.convergence[1], alone.convergence[0])
    assert len(set(together.errors)) == 3
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("name", ["cma", "minion-arrde"])
def test_runs_that_are_not_kept_leave_the_others_alone(name, rastrigin):
    seeds = np.random.SeedSequence(1).spawn(2)
    alone = run(METHODS[name](), rastrigin, seeds=seeds[1:], max_evaluations=400, target_error=None)
    optimizer = METHODS[name]()
    bounds = np.tile(rastrigin.lower, (2, 1)), np.tile(rastrigin.upper, (2, 1))
    optimizer.start(*bounds, [np.random.default_rng(seed) for seed in seeds], 400)
    optimizer.tell(rastrigin.evaluate(optimizer.ask().points))
    optimizer.keep(np.array([1]))
    while not optimizer.has_ended.all():
        optimizer.tell(rastrigin.evaluate(optimizer.ask().points))
    assert optimizer.best_fitness[0] == alone.errors[0]


@pytest.mark.parametrize(("name", "package"), [("cma", "cma"), ("minion-lshade", "minionpy")])
def test_a_missing_package_is_named_with_its_extra(monkeypatch, sphere, name, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        ImportError, match=rf"Method '{name}' needs the package '{package}': pip install 'de-gym\[peers\]'"
    ):
        run(METHODS[name](), sphere, num_runs=1)


def test_what_goes_wrong_inside_a_package_is_told(rastrigin):
    from de_gym.optimizers.peers import PeerOptimizer, PeerSettings

    with pytest.raises((RuntimeError, ValueError)):
        run(PeerOptimizer("unknown", PeerSettings("minionpy", "no-such-algorithm")), rastrigin, num_runs=1)
