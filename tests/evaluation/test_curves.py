from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from de_gym.evaluation import results
from de_gym.evaluation.curves import TARGETS, add_curves, curve_file, make_curves, read_curves
from de_gym.evaluation.protocol import Protocol
from de_gym.evaluation.results import Convergence, MethodResults, add_to_result_file, shipped_results

PROTOCOL = Protocol("cec2017", 10, (1, 3), num_runs=3, max_evaluations=100)
GRID = np.array([1, 10, 100])


def method(level=1.0, settings=None, name="jso"):
    errors = level * np.array([[[np.inf, 10.0, 1.0], [np.inf, 20.0, 2.0], [np.inf, 30.0, 3.0]]] * 2)
    counts = np.full((2, 3), 100)
    making = {"seed": 0, "seed_rule": "by hand", "package_version": "0"}
    return MethodResults(
        name, errors[..., -1], counts, Convergence(GRID, errors), settings=settings or {"kind": "a"}, making=making
    )


def test_curves_are_quartiles_over_runs_and_shares_of_targets():
    curves = method().curves
    assert curves.grid.tolist() == [1, 10, 100]
    assert curves.quartiles[:, 0, 1].tolist() == [10.0, 20.0, 30.0]
    assert np.isinf(curves.quartiles[:, :, 0]).all()
    reached = [np.mean(final <= TARGETS) for final in (1.0, 2.0, 3.0)]
    assert curves.shares[0] == pytest.approx(
        [0.0, np.mean([np.mean(e <= TARGETS) for e in (10, 20, 30)]), np.mean(reached)]
    )
    assert curves.num_runs == 3


def test_a_curve_has_few_points_and_ends_at_the_budget():
    grid = np.arange(1, 1001)
    curves = make_curves(grid, np.ones((1, 2, 1000)))
    assert len(curves.grid) <= 33
    assert (curves.grid[0], curves.grid[-1]) == (1, 1000)


def test_stored_methods_come_back_with_their_curves(tmp_path):
    add_to_result_file([method()], PROTOCOL, tmp_path)
    (stored,) = shipped_results(PROTOCOL, [tmp_path])
    assert stored.convergence is None
    assert np.allclose(stored.curves.quartiles, method().curves.quartiles)
    (part,) = shipped_results(replace(PROTOCOL, functions=(3,)), [tmp_path])
    assert part.curves.shares.shape == (1, 3)
    assert stored.part([1], 2).curves.quartiles.shape == (3, 1, 3)


def test_curves_of_other_settings_are_not_shown(tmp_path):
    add_to_result_file([method()], PROTOCOL, tmp_path)
    results.add_curves_of([method(settings={"kind": "b"})], PROTOCOL, tmp_path)
    assert shipped_results(PROTOCOL, [tmp_path])[0].curves is None


def test_curves_are_added_to_those_of_others_and_never_mixed(tmp_path):
    results.add_curves_of([method()], PROTOCOL, tmp_path)
    results.add_curves_of([method(2.0, name="jade")], PROTOCOL, tmp_path)
    assert list(read_curves(PROTOCOL, tmp_path)) == ["jso", "jade"]
    other = replace(method().curves, grid=np.array([1, 10, 99]))
    with pytest.raises(ValueError, match="another grid"):
        add_curves(PROTOCOL, {"cde": (other, {})}, tmp_path)


def test_damage_is_noticed(tmp_path):
    results.add_curves_of([method()], PROTOCOL, tmp_path)
    path = curve_file(PROTOCOL, tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="curves is damaged"):
        read_curves(PROTOCOL, tmp_path)
