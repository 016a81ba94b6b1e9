"""The published numbers that reports and tests compare with.

Source: J. Sun, X. Liu, T. Baeck, Z. Xu, "Learning Adaptive Differential Evolution Algorithm From Optimization
Experiences by Policy Gradient", IEEE Transactions on Evolutionary Computation 25(4), 2021, here "the paper".
``paper_tables.csv`` holds every mean, standard deviation and rank-sum mark of its result tables as printed (51
runs each; the cell-size study under names such as ``lde-n50-cell2000``), ``paper_rankings.csv`` its average
performance scores. Functions carry their official numbers; algorithms the names of ``de_gym.optimizers.METHODS``.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from de_gym.arrays import FloatArray
from de_gym.problems.own_suites import find_problems, is_own
from de_gym.problems.suites import paper_number
from de_gym.registry import unknown_name_message

LABELS = {
    "lde": "LDE",
    "de": "DE",
    "jade": "JADE w/o archive",
    "jade-archive": "JADE with archive",
    "jso": "jSO",
    "cobide": "CoBiDE",
    "cobide-pcm": "CoBiDE-PCM",
    "cde": "cDE",
    "cde-pcm": "cDE-PCM",
    "hses": "HSES",
}
"""Names in this package, in the order of the paper's columns, and what the paper prints."""

NUM_RUNS = 51


@dataclass(frozen=True)
class PaperColumn:
    """One algorithm's column of a table of the paper; all arrays have shape (P,)."""

    mean: FloatArray
    std: FloatArray
    marks: tuple[str, ...]


def paper_column(table: str, algorithm: str, functions: Sequence[int]) -> PaperColumn | None:
    """Return what the paper prints for an algorithm, or None where it does not print all these functions.

    Args:
        table: ``"cec2013-10d"``, ``"cec2013-10d-50g"`` (50 generations), ``"cec2013-30d"``, ``"cec2017-10d"`` or
            ``"cec2017-30d"``.
        algorithm: A key of ``LABELS``, or a cell size such as ``"lde-n50-cell500"``.
        functions: Official function numbers.
    """
    rows = _tables()
    if table not in {name for name, _, _ in rows}:
        raise ValueError(unknown_name_message("table", table, sorted({name for name, _, _ in rows})))
    found = [rows.get((table, algorithm, function)) for function in functions]
    present = [row for row in found if row is not None]
    if not present or len(present) < len(found):
        return None
    return PaperColumn(
        mean=np.array([row[0] for row in present]),
        std=np.array([row[1] for row in present]),
        marks=tuple(row[2] for row in present),
    )


def has_table(table: str) -> bool:
    """Return whether the paper has a table of this name."""
    return any(name == table for name, _, _ in _tables())


def paper_algorithms(table: str) -> list[str]:
    """Return the algorithms of a table in the paper's column order; all of them where it has no such table."""
    if not has_table(table):
        return list(LABELS)
    return [algorithm for algorithm in LABELS if any(key[:2] == (table, algorithm) for key in _tables())]


def paper_scores(table: str) -> dict[str, float]:
    """Return the paper's average performance score of each algorithm, empty where it has no ranking."""
    return {row["algorithm"]: float(row["aps"]) for row in _read("paper_rankings.csv") if row["table"] == table}


def function_label(suite: str, number: int) -> str:
    """Return a function's official number, in brackets the paper's where it is another: CEC'17 without its second.

    The user's own problems have their own names.

    >>> function_label("cec2017", 30), function_label("cec2017", 1), function_label("cec2013", 21)
    ('f30 (F29)', 'f1', 'f21')
    """
    if is_own(suite):
        return find_problems(suite)[number].name
    return f"f{number} (F{paper_number(suite, number)})" if suite == "cec2017" and number > 2 else f"f{number}"


@cache
def _tables() -> dict[tuple[str, str, int], tuple[float, float, str]]:
    """Return (mean, std, mark) by (table, algorithm, official function number)."""
    return {
        (row["table"], row["algorithm"], int(row["function"])): (float(row["mean"]), float(row["std"]), row["mark"])
        for row in _read("paper_tables.csv")
    }


def _read(name: str) -> list[dict[str, str]]:
    with files("de_gym.evaluation").joinpath(name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))
