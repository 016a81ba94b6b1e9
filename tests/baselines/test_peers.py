from __future__ import annotations

import sys

import numpy as np
import pytest

from de_gym.baselines.peers import PEERS, run_peer

EVERY_PEER = pytest.mark.parametrize("name", list(PEERS))


@pytest.fixture(autouse=True)
def _needs_the_packages():
    pytest.importorskip("cma")
    pytest.importorskip("minionpy")


@EVERY_PEER
def test_sphere_is_solved_and_the_run_stops_there(name, sphere):
    result = run_peer(name, sphere, num_runs=2, max_evaluations=30_000)
    assert np.array_equal(result.errors, [0.0, 0.0])
    assert np.all(result.evaluations < 30_000)
    assert np.all(sphere.evaluate(result.best_positions) < 1e-8)
    assert np.array_equal(result.convergence[:, -1], result.errors)


@EVERY_PEER
def test_the_budget_is_used_and_never_exceeded(name, rastrigin):
    result = run_peer(name, rastrigin, num_runs=2, max_evaluations=1_000, target_error=None)
    assert np.array_equal(result.evaluations, [1_000, 1_000])
    assert np.allclose(rastrigin.evaluate(result.best_positions), result.errors)


@EVERY_PEER
def test_a_seed_fixes_the_run_and_leaves_numpys_global_state_alone(name, rastrigin):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = run_peer(name, rastrigin, num_runs=2, seed=4, max_evaluations=600)
    again = run_peer(name, rastrigin, seeds=np.random.SeedSequence(4).spawn(2), max_evaluations=600)
    assert np.array_equal(first.errors, again.errors)
    assert first.errors[0] != first.errors[1]
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_a_missing_package_is_named_with_its_extra(monkeypatch, sphere):
    monkeypatch.setitem(sys.modules, "cma", None)
    with pytest.raises(ImportError, match=r"needs the package 'cma': pip install 'de-gym\[peers\]'"):
        run_peer("cma-es", sphere, num_runs=1)


def test_an_unknown_peer_is_an_error(sphere):
    with pytest.raises(ValueError, match=r"Unknown peer 'lshade'\. Did you mean 'l-shade'\?"):
        run_peer("lshade", sphere)
