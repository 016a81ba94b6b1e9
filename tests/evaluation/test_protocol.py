from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from de_gym.evaluation.paper import has_table
from de_gym.evaluation.protocol import PROTOCOLS, SEED_RULE, Protocol


def _numbers(seeds):
    return [np.random.default_rng(seed).random() for seed in seeds]


def test_protocols_are_the_paper_s():
    protocol = PROTOCOLS["paper-cec17-10d"]
    assert (protocol.num_runs, protocol.budget, protocol.target_error) == (51, 100_000, 1e-8)
    assert protocol.functions == (1, *range(3, 31))
    assert PROTOCOLS["paper-cec17-30d"].budget == 300_000
    assert PROTOCOLS["paper-cec13-10d"].functions == tuple(range(21, 29))
    assert PROTOCOLS["paper-cec13-10d-T"].max_generations == 50
    assert all(has_table(protocol.table) for name, protocol in PROTOCOLS.items() if name.startswith("paper"))
    assert not any(has_table(protocol.table) for name, protocol in PROTOCOLS.items() if name.startswith("small"))
    assert PROTOCOLS["ladder-cec17-10d"] == PROTOCOLS["paper-cec17-10d"]
    assert (PROTOCOLS["ladder-cec17-50d"].budget, PROTOCOLS["ladder-cec17-50d"].dimension) == (500_000, 50)


def test_other_limits_do_not_pass_for_the_paper_s():
    assert Protocol("cec2017", 10, (1,), max_evaluations=100_000).table == "cec2017-10d"
    assert Protocol("cec2017", 10, (1,), max_evaluations=5_000).table == "cec2017-10d-5000e"
    assert not has_table("cec2017-10d-5000e")


def test_every_run_function_protocol_and_root_has_its_own_numbers():
    protocol = Protocol("cec2017", 10, (1, 3))
    others = [{"seed": 1}, {"suite": "cec2013"}, {"dimension": 30}, {"max_evaluations": 500}, {"max_generations": 50}]
    draws = [*_numbers(protocol.run_seeds(1, range(3))), *_numbers(protocol.run_seeds(3, range(3)))]
    draws += [number for other in others for number in _numbers(replace(protocol, **other).run_seeds(1, range(3)))]
    assert len(set(draws)) == 3 * (2 + len(others))


def test_a_run_s_seed_does_not_depend_on_its_neighbours():
    protocol = Protocol("cec2017", 10, (1, 3))
    alone = Protocol("cec2017", 10, (3,), num_runs=8)
    assert _numbers(protocol.run_seeds(3, range(51)))[7] == _numbers(alone.run_seeds(3, [7]))[0]


def test_seeds_follow_the_written_rule_from_a_stable_hash():
    # Not Python's own hash, which differs between processes; the large number is CRC-32 of "cec2017-10d".
    rule = SEED_RULE.replace("SeedSequence", "np.random.SeedSequence").replace("crc32(table)", "2706708922")
    expected = eval(rule, {"np": np, "seed": 4, "function": 1, "run": 6})
    assert _numbers(Protocol("cec2017", 10, (1,), seed=4).run_seeds(1, [6])) == _numbers([expected])


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
        ({"functions": ()}, "`functions` must have at least one entry, got"),
        ({"functions": (1, 1)}, "`functions` must be distinct"),
        ({"num_runs": 0}, "`num_runs` must be at least 1, got 0"),
        ({"dimension": 0}, "`dimension` must be at least 1, got 0"),
        ({"max_evaluations": 0}, "`max_evaluations` must be at least 1, got 0"),
        ({"max_generations": -1}, "`max_generations` must be at least 1, got -1"),
        ({"target_error": -1.0}, "`target_error` must be a finite number of at least 0, got -1.0"),
        ({"functions": 7}, "`functions` must be a sequence of numbers, got 7"),
        ({"functions": ("a",)}, "`functions` must be a whole number, got 'a'"),
        ({"num_runs": "51"}, "`num_runs` must be a whole number, got '51'"),
        ({"seed": -1}, "`seed` must be at least 0, got -1"),
    ],
)
def test_impossible_rules_are_refused(changes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Protocol(**{"suite": "cec2017", "dimension": 10, "functions": (1,), **changes})
