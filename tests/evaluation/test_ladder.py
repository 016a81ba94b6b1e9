from __future__ import annotations

import numpy as np
import pytest

from de_gym.controllers import DEFAULT, available
from de_gym.evaluation import ladder
from de_gym.evaluation.ladder import ladder_table, make_ladder, places_table, stored_ladders
from de_gym.evaluation.ladder_figure import NUM_SHOWN, ladder_chart, shown_methods
from de_gym.evaluation.model_cards import controllers_table, model_cards, training_commands
from de_gym.evaluation.protocol import PROTOCOLS
from de_gym.evaluation.result_files import StoredRuns, add_runs
from de_gym.evaluation.seed_tables import residuals_table
from de_gym.evaluation.table import to_markdown

PROTOCOL = PROTOCOLS["small-cec17-10d"]
LEVELS = {"jso": 5.0, "jade": 5.0, "adaptive": 9.0, "jso-lde-paper": 0.0}


def write(folder, levels, num_runs=20):
    errors = np.random.default_rng(0).random((29, num_runs))
    making = {"seed": 0, "seed_rule": "by hand", "package_version": "0"}
    runs = {
        name: StoredRuns(PROTOCOL.functions, level + errors, np.full(errors.shape, 9), {}, making)
        for name, level in levels.items()
    }
    add_runs(PROTOCOL, runs, folder)


@pytest.fixture
def ladders(tmp_path, monkeypatch):
    monkeypatch.setattr(ladder, "RESULTS", tmp_path)
    write(tmp_path, LEVELS)
    return stored_ladders()


def test_scores_count_who_is_better_and_ties_share_a_place(ladders):
    (only,) = ladders
    assert only.title == "n = 10, 250 n"
    assert {name: (rung.score, rung.place) for name, rung in only.rungs.items()} == {
        "jso": (0.0, "1="),
        "jade": (0.0, "1="),
        "adaptive": (2.0, "3"),
    }


def test_a_shared_first_place_is_not_emphasised(ladders):
    cells = {row[0].text: row[1] for row in ladder_table(ladders).rows}
    assert cells["jSO"].note == "0.00\u20110.00;\u00a01="
    assert not any(cell.strong for cell in cells.values())


@pytest.mark.parametrize(
    ("name", "other", "cell"),
    [("jade", "adaptive", "1= of 3 (29/0/0)"), ("adaptive", "jso", "3 of 3 (0/0/29)"), ("jso", "hses", "1= of 3")],
)
def test_a_place_stands_beside_the_functions_on_which_a_method_beats_another(ladders, name, other, cell):
    header, _, row = to_markdown(places_table(ladders, name, other)).splitlines()
    assert (header, row) == ("| evaluations | n = 10 |", f"| 250 n | {cell} |")


def test_protocols_without_results_are_left_out(ladders):
    assert make_ladder(PROTOCOLS["small-cec17-50d"]).rungs == {}
    assert len(ladders) == 1


def test_the_default_is_shown_wherever_it_stands(tmp_path, monkeypatch):
    monkeypatch.setattr(ladder, "RESULTS", tmp_path)
    names = ("de", "jade", "jade-archive", "jso", "cobide", "cobide-pcm", "cde", "cde-pcm", "hses")
    write(tmp_path, {name: float(place) for place, name in enumerate(names)} | {"adaptive": 99.0})
    shown = shown_methods(make_ladder(PROTOCOL))
    assert len(shown) == NUM_SHOWN
    assert shown[-1] == "adaptive"
    assert ladder_chart([make_ladder(PROTOCOL)]).startswith(b"\x89PNG")


def test_every_shipped_controller_has_a_row_a_card_and_a_command(ladders):
    assert controllers_table().rows[0][0].text == "**`adaptive`**"
    assert len(controllers_table().rows) == len(available())
    cards = model_cards(ladders)
    assert all(f"## {name}\n" in cards for name in available())
    assert set(training_commands()) == set(available())
    assert "place 3 of 3" in cards


def test_in_its_own_place_the_default_scores_what_the_ladder_says():
    ladders = [ladder for ladder in stored_ladders() if DEFAULT in ladder.rungs]
    rows = residuals_table(ladders).rows
    assert rows[0][0].text == "seed 1, the default"
    assert [cell.value for cell in rows[0][1:]] == [pytest.approx(ladder.rungs[DEFAULT].score) for ladder in ladders]
    assert [cell.note for cell in rows[0][1:]] == [
        cell.note for row in places_table(ladders, DEFAULT, "l-srtde").rows for cell in row[1:] if cell.text
    ]
