"""The tables of a comparison, and how their numbers and names are printed."""

from __future__ import annotations

import re

from de_gym.evaluation.comparison import Z_LIMIT, Comparison
from de_gym.evaluation.paper import LABELS, function_label
from de_gym.evaluation.protocol import Protocol
from de_gym.evaluation.table import Cell, Table, number, table
from de_gym.problems.own_suites import is_own


def scientific(value: float) -> str:
    """Return a number as the paper prints it.

    >>> scientific(235.0), scientific(0.0)
    ('2.35E+02', '0.00E+00')
    """
    return f"{value:.2E}"


def z_text(value: float) -> str:
    """Return a z-score with its sign; agreement within rounding is a plain 0.

    >>> z_text(0.0), z_text(1.26), z_text(-0.01), z_text(float('-inf'))
    ('0', '+1.3', '0.0', '-inf')
    """
    if value == 0:
        return "0"
    return "0.0" if abs(value) < 0.05 else f"{value:+.1f}"


def suite_title(suite: str) -> str:
    """Return a suite's name as it is printed; the user's own have names of their own.

    >>> suite_title("cec2017"), suite_title("my_problems:bridges")
    ('CEC 2017', 'bridges')
    """
    if is_own(suite):
        return suite.rpartition(":")[2]
    return re.sub(r"([A-Z])(\d)", r"\1 \2", suite.upper())


def run_length(protocol: Protocol) -> str:
    """Return how long a run lasts."""
    if protocol.max_generations is not None:
        return f"{protocol.max_generations} generations"
    return f"{protocol.budget:,} evaluations"


def ranking_table(comparison: Comparison) -> Table:
    """Return one row per method, the best first: scores, ranks, marks against the reference, the paper's scores."""
    header = ["method", "APS", "APS, paper", "Friedman rank", "p (Holm)", "better", "similar", "worse"]
    header += ["U-score", "accuracy + speed", "P(better)", "P(equivalent)", "P(worse)"]
    header += [f"means within {Z_LIMIT} s.e. of the paper's", "runs", "origin"]
    rows = []
    for method in comparison.ranking:
        name, counts = method.name, comparison.counts.get(method.name, (None, None, None))
        row = [
            Cell(method.label, strong=name == comparison.results.reference),
            number(comparison.scores[name], ".3f"),
            number(comparison.paper_scores.get(name), ".3f"),
            number(comparison.mean_rank(name), ".2f"),
            number(comparison.holm.get(name), ".2g"),
            *(number(count, "d") for count in counts),
            number(comparison.u_scores[name], ",.0f"),
            number(comparison.competition_scores.get(name), ",.0f"),
            *(number(chance, ".2f") for chance in comparison.probabilities.get(name, (None, None, None))),
            number(comparison.within_limit(name) if name in comparison.z_scores else None, "d"),
            number(method.num_runs, "d"),
            Cell(method.origin),
        ]
        rows.append(row)
    return table(header, rows, "l" + "r" * 14 + "l").without_empty_columns()


def errors_table(comparison: Comparison) -> Table:
    """Return means, deviations and rank-sum marks on every function, the smallest means emphasised."""
    methods = [comparison.results.reference_results, *comparison.results.compared]
    rows = []
    for index, label in enumerate(_functions(comparison)):
        best, row = _best_methods(comparison, index), [label]
        for method in methods:
            mean = float(method.summary.mean[index])
            mark = comparison.marks[method.name][index] if method.name in comparison.marks else ""
            note = scientific(method.summary.std[index])
            row.append(Cell(scientific(mean), mean, method.name in best, mark, note))
        rows.append(row)
    return table(["function", *(method.label for method in methods)], rows)


def paper_table(comparison: Comparison) -> Table:
    """Return our means, the paper's and their distance z, three columns per method; far ones are emphasised."""
    methods = [method for method in comparison.results.methods if method.name in comparison.paper]
    header = ["function"]
    for method in methods:
        printed = LABELS.get(method.paper_name or "", "")
        header += [method.label, "paper" if printed == method.label else f"paper: {printed}", "z"]
    rows = []
    for index, label in enumerate(_functions(comparison)):
        row = [label]
        for method in methods:
            z_score = float(comparison.z_scores[method.name][index])
            means = (method.summary.mean[index], comparison.paper[method.name].mean[index])
            row += [Cell(scientific(mean), float(mean)) for mean in means]
            row.append(Cell(z_text(z_score), z_score, strong=abs(z_score) > Z_LIMIT))
        rows.append(row)
    return table(header, rows)


def records_table(comparison: Comparison) -> Table:
    """Return one row per function and method, for programs: all summaries, the mark, the paper's numbers."""
    header = ["suite", "dimension", "function", "method", "runs", "mean", "std", "median", "best", "worst", "mark"]
    header += ["paper_mean", "paper_std", "paper_mark", "z"]
    protocol, rows = comparison.results.protocol, []
    for index, function in enumerate(protocol.functions):
        for method in comparison.results.methods:
            name, summary = method.name, method.summary
            row = [protocol.suite, str(protocol.dimension), str(function), name, str(method.num_runs)]
            values = (summary.mean, summary.std, summary.median, summary.best, summary.worst)
            row += [repr(float(value[index])) for value in values]
            row.append(comparison.marks[name][index] if name in comparison.marks else "")
            if (paper := comparison.paper.get(name)) is None:
                row += [""] * 4
            else:
                printed = [scientific(paper.mean[index]), scientific(paper.std[index]), paper.marks[index]]
                row += [*printed, f"{comparison.z_scores[name][index]:.4g}"]
            rows.append(row)
    return table(header, rows)


def _functions(comparison: Comparison) -> list[Cell]:
    """Return the cells of the first column."""
    protocol = comparison.results.protocol
    return [Cell(function_label(protocol.suite, function), function) for function in protocol.functions]


def _best_methods(comparison: Comparison, index: int) -> set[str]:
    """Return the methods whose mean on a function is the smallest, to the digits that are printed."""
    means = {method.name: float(scientific(method.summary.mean[index])) for method in comparison.results.methods}
    return {name for name, mean in means.items() if mean == min(means.values())}
