from __future__ import annotations

import numpy as np
import pytest

from de_gym.evaluation.paper import has_table
from de_gym.evaluation.protocol import PROTOCOLS, Protocol


def _numbers(seeds):
    return [np.random.default_rng(seed).random() for seed in seeds]


def test_protocols_are_the_paper_s():
    protocol = PROTOCOLS["paper-cec17-10d"]
    assert (protocol.num_runs, protocol.budget, protocol.target_error) == (51, 100_000, 1e-8)
    assert protocol.functions == (1, *range(3, 31))
    assert PROTOCOLS["paper-cec17-30d"].budget == 300_000
    assert PROTOCOLS["paper-cec13-10d"].functions == tuple(range(21, 29))
    assert PROTOCOLS["paper-cec13-10d-T"].max_generations == 50
    assert all(has_table(protocol.table) == name.startswith("paper") for name, protocol in PROTOCOLS.items())


def test_other_limits_do_not_pass_for_the_paper_s():
    assert Protocol("cec2017", 10, (1,), max_evaluations=100_000).table == "cec2017-10d"
    assert Protocol("cec2017", 10, (1,), max_evaluations=5_000).table == "cec2017-10d-5000e"
    assert not has_table("cec2017-10d-5000e")


def test_every_run_function_method_and_root_has_its_own_numbers():
    protocol = Protocol("cec2017", 10, (1, 3))
    other_root = Protocol("cec2017", 10, (1, 3), seed=1)
    other_suite = Protocol("cec2013", 10, (1, 3))
    draws = [
        *_numbers(protocol.run_seeds(1, range(3), "jso")),
        *_numbers(protocol.run_seeds(3, range(3), "jso")),
        *_numbers(protocol.run_seeds(1, range(3), "jade")),
        *_numbers(other_root.run_seeds(1, range(3), "jso")),
        *_numbers(other_suite.run_seeds(1, range(3), "jso")),
    ]
    assert len(set(draws)) == 15


def test_a_run_s_seed_does_not_depend_on_its_neighbours():
    protocol = Protocol("cec2017", 10, (1, 3))
    alone = Protocol("cec2017", 10, (3,), num_runs=8)
    assert _numbers(protocol.run_seeds(3, range(51), "jso"))[7] == _numbers(alone.run_seeds(3, [7], "jso"))[0]


def test_seeds_come_from_a_stable_hash_of_the_names():
    # Not Python's own, which differs between processes; the two large numbers are CRC-32 of "cec2017" and "jso".
    expected = np.random.SeedSequence(0, spawn_key=(2704305525, 10, 1, 6, 1662959896))
    assert _numbers(Protocol("cec2017", 10, (1,)).run_seeds(1, [6], "jso")) == _numbers([expected])


def test_convergence_grid_spans_the_budget():
    grid = Protocol("cec2017", 10, (1,)).grid
    assert grid[0] == 1
    assert grid[-1] == 100_000
    assert (np.diff(grid) > 0).all()
    assert {2_000, 50_000} <= set(grid.tolist())
    assert Protocol("cec2017", 10, (1,), max_evaluations=60).grid[-1] == 60


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"functions": ()}, "`functions` must be distinct function numbers, got"),
        ({"functions": (1, 1)}, "`functions` must be distinct"),
        ({"num_runs": 0}, "`num_runs` must be at least 1, got 0"),
        ({"dimension": 0}, "`dimension` must be at least 1, got 0"),
        ({"max_evaluations": 0}, "`max_evaluations` must be at least 1 or None, got 0"),
        ({"max_generations": -1}, "`max_generations` must be at least 1 or None, got -1"),
        ({"target_error": -1.0}, "`target_error` must not be negative, got -1.0"),
        ({"seed": -1}, "`seed` must not be negative, got -1"),
    ],
)
def test_impossible_rules_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Protocol(**{"suite": "cec2017", "dimension": 10, "functions": (1,), **changes})
