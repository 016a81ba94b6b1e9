"""Held-out comparisons: shares by hand, a file that goes on where it stopped, and settings that have changed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from de_gym.evaluation import held_out
from de_gym.evaluation.held_out import Case, HeldOutConfig, HeldOutErrors, read_held_out, write_held_out
from de_gym.evaluation.held_out_tables import content_sentence, pooled_table, table_by_dimension, won_shares
from de_gym.evaluation.methods import make_methods
from de_gym.evaluation.seed_tables import held_out_residuals_table
from de_gym.evaluation.table import to_markdown

CASES = Case(2, 50), Case(5, 50), Case(5, 200)


@pytest.fixture
def content():
    ours = {case: np.ones((2, 3)) for case in CASES}
    better, mixed = np.full((2, 1), 2.0), np.array([[1.0], [0.5]])
    theirs = {CASES[0]: better, CASES[1]: mixed}
    return HeldOutErrors({"adaptive": ours, "jso": theirs}, {"adaptive": {}, "jso": {}})


def config(tmp_path, **changes):
    small = HeldOutConfig(("jso", "adaptive"), (2,), (50,), problems=2, runs=1, jobs=1, out=tmp_path / "errors.npz")
    return dataclasses.replace(small, **changes)


def test_a_tie_is_half_a_win(content):
    assert won_shares(content, "adaptive", "jso", [CASES[0]]) == [1.0, 1.0]
    assert won_shares(content, "adaptive", "jso", [CASES[1]]) == [0.5, 0.0]
    assert won_shares(content, "adaptive", "jso", [CASES[2]]) == []


def test_cells_pool_coordinates_and_a_missing_one_is_empty(content):
    row = pooled_table(content).rows[0]
    assert [cell.text for cell in row] == ["jSO", "0.62", ""]
    assert row[1].value == 0.625
    assert not row[1].strong  # its interval reaches below one half
    rows = to_markdown(table_by_dimension(content)).splitlines()[2:]
    assert rows == ["| 2 | jSO | **1.00** (1.00\u20111.00) |  |", "| 5 | jSO | 0.25 (0.00\u20110.50) |  |"]
    assert content_sentence(content).startswith("2 problems for each n of 2, 5;")


def test_the_default_is_compared_with_its_controls(content):
    seeds = HeldOutErrors({"evolution-strategy-seed2": content.errors["jso"]})
    rows = to_markdown(held_out_residuals_table(content, seeds)).splitlines()[2:]
    assert rows == ["| 2 | seed 2 | **1.00** (1.00\u20111.00) |  |", "| 5 | seed 2 | 0.25 (0.00\u20110.50) |  |"]


def test_a_file_comes_back_as_it_was(content, tmp_path):
    write_held_out(content, tmp_path / "errors.npz")
    read = read_held_out(tmp_path / "errors.npz")
    assert read.settings == content.settings
    for name, cases in content.errors.items():
        assert cases.keys() == read.errors[name].keys()
        assert all(np.array_equal(errors, read.errors[name][case]) for case, errors in cases.items())


def test_a_damaged_file_is_refused_in_one_sentence(content, tmp_path):
    path = tmp_path / "errors.npz"
    write_held_out(content, path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match="held-out errors is damaged"):
        read_held_out(path)


def test_the_command_computes_only_what_is_missing(tmp_path, monkeypatch):
    assert held_out.main(config(tmp_path)) == 0
    first = read_held_out(tmp_path / "errors.npz")
    assert first.errors["jso"][Case(2, 50)].shape == (2, 1)
    computed = []

    def compute(method, protocol, jobs):
        computed.append((method.name, protocol.budget))
        return np.zeros((2, 1))

    monkeypatch.setattr(held_out, "cell_errors", compute)
    held_out.main(config(tmp_path, budgets=(50, 60)))
    assert computed == [("jso", 120), ("adaptive", 120)]
    kept = read_held_out(tmp_path / "errors.npz").errors["jso"]
    assert np.array_equal(kept[Case(2, 50)], first.errors["jso"][Case(2, 50)])


def test_methods_are_paired_and_repeat(tmp_path):
    held_out.main(config(tmp_path))
    held_out.main(config(tmp_path, out=tmp_path / "again.npz"))
    one, two = (read_held_out(tmp_path / name).errors for name in ("errors.npz", "again.npz"))
    assert np.array_equal(one["adaptive"][Case(2, 50)], two["adaptive"][Case(2, 50)])


def test_a_method_with_other_settings_is_computed_anew(content):
    protocol = CASES[0].protocol(2, 1)
    (method,) = make_methods(["jso"], protocol)
    assert not content.has(method, CASES[0], (2, 1))
    content.keep(method, CASES[0], np.zeros((2, 1)))
    assert content.has(method, CASES[0], (2, 1))
    assert not content.has(method, CASES[0], (2, 2))
    assert list(content.errors["jso"]) == [CASES[0]]  # what had other settings is gone


def test_the_shipped_errors_are_of_the_shipped_default():
    shipped = read_held_out()
    (method,) = make_methods(["adaptive"], CASES[0].protocol(1, 1))
    assert {"adaptive", "jso", "l-srtde"} <= shipped.errors.keys()
    assert all(shipped.has(method, case, (60, 3)) for case in shipped.errors["adaptive"])
