"""One table, four forms."""

from __future__ import annotations

import csv
import xml.etree.ElementTree as ElementTree

import pytest

from de_gym.evaluation.table import Cell, number, table, to_csv, to_html, to_latex, to_markdown

SAMPLE = table(
    ["method", "APS & more", "place"],
    [
        [Cell("mine_<b>", strong=True), Cell("0.83", 0.8275862068965517, True, "~", "0.1"), number(1, "d")],
        ["a|b 5%", Cell("1.00", 1.0, mark="-"), number(None, "d")],
    ],
)


def test_markdown():
    assert to_markdown(SAMPLE).splitlines() == [
        "| method | APS & more | place |",
        "|---|--:|--:|",
        "| **mine_<b>** | **0.83** (0.1) ~ | 1 |",
        "| a\\|b 5% | 1.00 - |  |",
    ]


def test_latex_escapes_and_breaks_wide_tables_into_blocks():
    text = to_latex(SAMPLE, "100 % of_it, ≈", columns=1)
    assert text.count(r"\begin{tabular}{lr}") == 2
    assert r"\textbf{mine\_<b>} & \textbf{0.83} (0.1) $\approx$ \\" in text
    assert r"method & APS \& more \\" in text
    assert r"a|b 5\% & 1.00 $-$ \\" in text
    assert r"\caption{100 \% of\_it, $\approx$}" in text


def test_csv_has_the_numbers_in_full():
    rows = list(csv.reader(to_csv(SAMPLE).splitlines()))
    assert rows[1:] == [["mine_<b>", "0.8275862068965517", "1"], ["a|b 5%", "1.0", ""]]


def test_html_escapes_and_keeps_what_to_sort_by():
    root = ElementTree.fromstring(to_html(SAMPLE).replace("class=number", 'class="number"'))
    cells = root.findall(".//tbody/tr/td")
    assert [cell.get("data-value") for cell in cells] == [
        "mine_<b>",
        "0.8275862068965517",
        "1",
        "a|b 5%",
        "1.0",
        "inf",
    ]
    assert [cell.get("class") for cell in cells[:3]] == [None, "number", "number"]
    assert (cells[1].find("b").text, cells[1].find("i").text, cells[1].find("small").text) == ("0.83", "≈", "0.1")


def test_columns_that_hold_nothing_are_left_out_on_request():
    sparse = table(["a", "b", "c"], [["1", "", "3"], ["4", "", ""]], "lrl").without_empty_columns()
    assert (sparse.header, sparse.alignment) == (("a", "c"), "ll")
    assert [cell.text for cell in sparse.rows[1]] == ["4", ""]


def test_rows_of_another_length_are_refused():
    with pytest.raises(ValueError, match="must have 2 cells, got 1"):
        table(["a", "b"], [["1"]])
