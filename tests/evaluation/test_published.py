"""The results pages: small made-up files in, known rows out; and the README is what the shipped files give."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from de_gym.evaluation import paper_cases, published, score_tables, seed_tables
from de_gym.evaluation.protocol import PROTOCOLS
from de_gym.evaluation.result_files import StoredRuns, add_runs
from de_gym.evaluation.table import to_markdown

ROOT = Path(__file__).parents[2]
PROTOCOL = PROTOCOLS["paper-cec13-10d"]
STUDIES = {
    "controller": {"random": "nothing learned", "quick-10d": "the default"},
    "default, but": {"quick-10d": "nothing changed", "two-numbers": "`--num-knots 1`"},
    "paper's sizes, but": {"paper-500-cells": "500 cells", "paper-10d": "2000 cells"},
}


def _lines(content):
    return to_markdown(content).splitlines()


def _write(folder, name, level, kind):
    """Store 20 runs around ``level`` on every function: bands that do not overlap differ significantly."""
    errors = level + np.random.default_rng(0).random((8, 20))
    settings = {"kind": kind, "paper_counterpart": "lde"} if kind == "controller" else {"kind": kind}
    runs = StoredRuns(PROTOCOL.functions, errors, np.full(errors.shape, 9), settings, {})
    add_runs(PROTOCOL, {name: runs}, folder)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(score_tables, "RESULTS", tmp_path)
    monkeypatch.setattr(score_tables, "STUDIES", tmp_path / "studies")
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "descriptions.json").write_text(json.dumps(STUDIES))
    for name, level in (("jade", 1.0), ("jso", 5.0), ("cobide", 0.0)):  # the paper's table has no CoBiDE
        _write(tmp_path, name, level, "baseline")
    for name, level in (("mine", 3.0), ("random", 7.0), ("other", 7.0)):
        _write(tmp_path, name, level, "controller")
    return tmp_path


def test_every_controller_is_ranked_alone_among_the_algorithms_of_the_paper_s_table(folder):
    rows = _lines(score_tables.study_table([PROTOCOL], "controller"))[2:]
    assert rows[0] == "| LDE, as printed in the paper | 1.25 (2) |  |"
    # Alone among JADE and jSO: only JADE is better than "mine", both are better than the others.
    assert rows[1:] == [
        "| `mine` | 1.00 (2) | 8/0/0 |",
        "| `random`: nothing learned | 2.00 (3) |  |",
        "| `other` | 2.00 (3) | 0/8/0 |",
    ]


def test_what_belongs_to_a_study_alone_stands_in_its_own_table(folder):
    for name, level in (("quick-10d", 0.0), ("two-numbers", 3.0), ("paper-500-cells", 7.0), ("paper-10d", 3.0)):
        _write(folder, name, level, "controller")
    listed = [row.split("`")[1] for row in _lines(score_tables.study_table([PROTOCOL], "controller"))[3:]]
    assert listed == ["quick-10d", "mine", "random", "other"]
    assert _lines(score_tables.study_table([PROTOCOL], "default, but"))[2:] == [
        "| `quick-10d`: nothing changed | 0.00 (1) | 8/0/0 |",
        "| `two-numbers`: `--num-knots 1` | 1.00 (2) | 8/0/0 |",
    ]
    assert _lines(score_tables.study_table([PROTOCOL], "paper's sizes, but"))[2:] == [
        "| `paper-10d`: 2000 cells | 1.00 (2) | 8/0/0 |",
        "| `paper-500-cells`: 500 cells | 2.00 (3) | 0/8/0 |",
    ]


def test_a_table_of_scores_has_a_column_for_every_protocol(folder):
    header, _, *rows = _lines(score_tables.study_table([PROTOCOL, PROTOCOLS["paper-cec17-10d"]], "controller"))
    assert header.split(" | ")[1:3] == ["CEC'13, 100,000 evaluations, of 3", "CEC'17, 100,000 evaluations, of 1"]
    assert rows[0] == "| LDE, as printed in the paper | 1.25 (2) | 1.24 (3) |  |"
    assert rows[1] == "| `mine` | 1.00 (2) |  | 8/0/0 |"


def test_the_paper_s_cases_have_its_figures_ours_and_the_difference_in_standard_errors(folder, monkeypatch):
    _write(folder, "paper-500-cells", 399.7, "controller")
    cases = (("lde-n50-cell500", "paper-500-cells"), ("lde-n50-cell1500", ""), ("lde-n50-cell500", "mine"))
    monkeypatch.setitem(paper_cases.CASES, PROTOCOL.table, cases)
    content = paper_cases.cases_table(PROTOCOL)
    names = ("paper: N = 50, 500 cells", "`paper-500-cells`", "z", "paper: N = 50, 1500 cells", "`mine`", "z")
    assert content.header == ("function", *names)
    function, printed, own, z, other, *_ = content.rows[1]
    assert (function.text, printed.text, printed.note) == ("f22", "3.15E+02", "1.06E+02")
    assert other.text == "2.95E+01"
    spread = np.random.default_rng(0).random((8, 20))[1]
    mean, deviation = 399.7 + spread.mean(), spread.std()
    assert own.value == pytest.approx(mean)
    assert z.value == pytest.approx((mean - 315.5) / np.sqrt(106.0**2 / 51 + deviation**2 / 20))
    assert z.strong


def test_a_ranking_has_the_paper_s_scores_beside_ours(folder):
    rows = _lines(score_tables.algorithms_table(PROTOCOL, "mine"))[2:]
    assert [row.split(" | ")[:3] for row in rows] == [
        ["| JADE w/o archive", "0.00", "1.38"],
        ["| mine", "1.00", "1.25"],
        ["| jSO", "2.00", "0.62"],
    ]
    with pytest.raises(ValueError, match=r"Unknown controller 'mien'\. Did you mean 'mine'"):
        score_tables.algorithms_table(PROTOCOL, "mien")


def test_the_command_writes_reports_and_replaces_only_its_sections(folder, tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(published, "write_report", lambda results, place, **_: written.append((results, place)))
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- scores-10: begin -->\nold\n<!-- scores-10: end -->\nafter\n")
    assert published.main(published.PublishedConfig(tmp_path, tmp_path / "out")) == 0
    text = readme.read_text()
    assert text.startswith("before\n<!-- scores-10: begin -->\n| controller |")
    assert text.endswith("<!-- scores-10: end -->\nafter\n")
    assert "old" not in text
    assert (tmp_path / ".github" / "images" / "ladder.png").exists()
    page = (tmp_path / "out" / "results.md").read_text()
    assert "## CEC 2013, 10 dimensions, 100,000 evaluations" in page
    assert "| f21 | 2.35E+02 (9.04E+01) |" in page
    assert [(place.name, len(results.methods)) for results, place in written] == [("paper-cec13-10d", 5)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing here", "has no section such as"),
        ("<!-- laddder: begin --> <!-- laddder: end -->", "must be one of .*, ladder, .*; got laddder"),
    ],
)
def test_a_page_without_a_known_section_is_refused_in_one_sentence(text, message, tmp_path, capsys):
    readme = tmp_path / "README.md"
    readme.write_text(text)
    assert published.main(published.PublishedConfig(tmp_path, reports=False)) == 1
    assert re.search(message, capsys.readouterr().err)
    assert readme.read_text() == text


@pytest.mark.parametrize("page", published.PAGES, ids=str)
def test_every_number_of_a_page_follows_from_the_shipped_files(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert published.rewritten(text) == text


def test_every_section_is_on_some_page():
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in published.PAGES)
    assert {match["name"] for match in published.SECTION.finditer(text)} == set(published.SECTIONS)


def test_several_seeds_of_a_preset_are_one_row_with_its_interval(folder, monkeypatch):
    monkeypatch.setattr(seed_tables, "SEEDS", folder / "seeds")
    (folder / "seeds").mkdir()
    # Alone among JADE and jSO: better than both, behind one, behind two.
    for seed, level in ((10, 0.0), (2, 3.0), (0, 7.0)):
        _write(folder / "seeds", f"quick-reinforce-seed{seed}-1", level, "controller")
    _write(folder / "seeds", "something-else", 0.0, "controller")
    (row,) = _lines(seed_tables.seeds_table([PROTOCOL]))[2:]
    where = "CEC 2013, 10 dimensions, 100,000 evaluations, of 3"
    assert row == f"| `--preset quick` | {where} | 1.00 | 0.00 to 2.00 | 2.00, 1.00, 0.00 |"
