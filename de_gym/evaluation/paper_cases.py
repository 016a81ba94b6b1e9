"""The paper's own controllers function by function: its figures, ours of the same case, and the difference."""

from __future__ import annotations

import re

from de_gym.arrays import FloatArray
from de_gym.evaluation.comparison import Z_LIMIT
from de_gym.evaluation.comparison_tables import scientific, z_text
from de_gym.evaluation.paper import NUM_RUNS, PaperColumn, function_label, paper_column
from de_gym.evaluation.protocol import Protocol
from de_gym.evaluation.results import MethodResults
from de_gym.evaluation.score_tables import stored_methods
from de_gym.evaluation.statistics import z_scores
from de_gym.evaluation.table import Cell, Table, table
from de_gym.registry import lookup

CASES: dict[str, tuple[tuple[str, str], ...]] = {
    "cec2013-10d": (
        ("lde-n50-cell500", "paper-500-cells"),
        ("lde-n50-cell1000", "paper-1000-cells"),
        ("lde-n50-cell1500", ""),
        ("lde-n50-cell2000", "paper-10d"),
        ("lde-n50-cell2500", ""),
        ("lde-n50-cell3000", ""),
    ),
    "cec2013-30d": (
        ("lde-n100-cell2000", ""),
        ("lde-n100-cell3000", "quick-30d"),
        ("lde-n100-cell3500", ""),
        ("lde-n150-cell3000", ""),
        ("lde-n200-cell1500", ""),
    ),
    "cec2013-10d-50g": (("lde", "paper-10d"), ("lde", "script-10d")),
    "cec2017-10d": (("lde", "paper-10d"), ("lde", "quick-10d-untrained")),
    "cec2017-30d": (("lde", "quick-30d"),),
}
"""Columns of the paper by table, each with the stored method that repeats it or comes nearest to it, or nothing."""


def cases_table(protocol: Protocol) -> Table:
    """Return means (deviations) of every case, the paper's first, then ours and z where there is one.

    z is the difference of the means in standard errors of both, emphasised beyond the limit of reports.
    """
    stored = {method.name: method for method in stored_methods(protocol)[1]}
    header, columns = ["function"], [[Cell(function_label(protocol.suite, number)) for number in protocol.functions]]
    for algorithm, name in CASES[protocol.table]:
        printed = paper_column(protocol.table, algorithm, protocol.functions)
        assert printed is not None, f"The paper's table {protocol.table} has no column {algorithm!r}."
        if f"paper: {case_title(algorithm)}" not in header:
            header.append(f"paper: {case_title(algorithm)}")
            columns.append(_figures(printed.mean, printed.std))
        if name:
            header += [f"`{name}`", "z"]
            columns += _own_columns(lookup("controller", name, stored), printed)
    return table(header, list(zip(*columns, strict=True)))


def case_title(algorithm: str) -> str:
    """Return a case of the paper in words.

    >>> case_title("lde"), case_title("lde-n50-cell500")
    ('LDE', 'N = 50, 500 cells')
    """
    sizes = re.fullmatch(r"lde-n(\d+)-cell(\d+)", algorithm)
    return "LDE" if sizes is None else f"N = {sizes[1]}, {sizes[2]} cells"


def _own_columns(method: MethodResults, printed: PaperColumn) -> list[list[Cell]]:
    summary = method.summary
    distances = z_scores(summary, method.num_runs, printed.mean, printed.std, NUM_RUNS)
    marks = [Cell(z_text(z), float(z), strong=abs(z) > Z_LIMIT) for z in distances]
    return [_figures(summary.mean, summary.std), marks]


def _figures(means: FloatArray, deviations: FloatArray) -> list[Cell]:
    pairs = zip(means, deviations, strict=True)
    return [Cell(scientific(mean), float(mean), note=scientific(deviation)) for mean, deviation in pairs]
