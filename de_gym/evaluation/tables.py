"""Tables of a comparison as CSV and Markdown, and how their numbers and names are printed."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

from de_gym.evaluation.comparison import Comparison
from de_gym.evaluation.paper import paper_function_name


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


def errors_csv(comparison: Comparison) -> str:
    """Return one row per function and method: all summaries, the mark, the paper's numbers and the z-score."""
    protocol = comparison.results.protocol
    header = [
        "suite",
        "dimension",
        "function",
        "paper_function",
        "method",
        "runs",
        "mean",
        "std",
        "median",
        "best",
        "worst",
        "mark",
    ]
    header += ["paper_mean", "paper_std", "paper_mark", "z"]
    rows: list[list[object]] = []
    for index, function in enumerate(protocol.functions):
        for method in comparison.results.methods:
            summary, paper = method.summary, comparison.paper.get(method.name)
            values = (summary.mean, summary.std, summary.median, summary.best, summary.worst)
            row: list[object] = [protocol.suite, protocol.dimension, function, function_name(comparison, index)]
            row += [method.name, method.num_runs, *(repr(float(value[index])) for value in values)]
            row.append(comparison.marks[method.name][index] if method.name in comparison.marks else "")
            if paper is None:
                row += ["", "", "", ""]
            else:
                z_score = float(comparison.z_scores[method.name][index])
                row += [
                    scientific(paper.mean[index]),
                    scientific(paper.std[index]),
                    paper.marks[index],
                    f"{z_score:.4g}",
                ]
            rows.append(row)
    return _csv(header, rows)


def ranking_csv(comparison: Comparison) -> str:
    """Return one row per method: scores, ranks, marks against the reference and agreement with the paper."""
    header = [
        "method",
        "aps",
        "paper_aps",
        "friedman_rank",
        "holm_p",
        "better",
        "similar",
        "worse",
        "paper_agreement",
        "functions",
        "origin",
    ]
    rows: list[list[object]] = []
    for method in comparison.ranking:
        name, counts = method.name, comparison.counts.get(method.name, ("", "", ""))
        rank, p_value = comparison.mean_rank(name), comparison.holm.get(name)
        row: list[object] = [name, f"{comparison.scores[name]:.4f}", comparison.paper_scores.get(name, "")]
        row += ["" if rank is None else f"{rank:.4f}", "" if p_value is None else f"{p_value:.4g}", *counts]
        row.append(comparison.within_limit(name) if name in comparison.z_scores else "")
        rows.append([*row, len(method.errors), method.origin])
    return _csv(header, rows)


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""Return a Markdown table whose first column is text and whose other columns are right-aligned.

    >>> print(markdown_table(["method", "score"], [["a|b", "1"]]))
    | method | score |
    |---|--:|
    | a\|b | 1 |
    """
    lines = [list(header), ["---", *["--:"] * (len(header) - 1)], *map(list, rows)]
    escaped = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    texts = [f"| {' | '.join(line)} |" for line in escaped]
    texts[1] = f"|{'|'.join(escaped[1])}|"
    return "\n".join(texts)


def suite_title(suite: str) -> str:
    """Return a suite's name as it is printed.

    >>> suite_title("cec2017")
    'CEC 2017'
    """
    return re.sub(r"([A-Z])(\d)", r"\1 \2", suite.upper())


def function_name(comparison: Comparison, index: int) -> str:
    """Return the paper's name of a function, or its official one where the paper leaves it out."""
    protocol = comparison.results.protocol
    number = protocol.functions[index]
    if protocol.suite in ("cec2013", "cec2017") and (protocol.suite, number) != ("cec2017", 2):
        return paper_function_name(protocol.suite, number)
    return f"f{number}"


def best_methods(comparison: Comparison, index: int) -> set[str]:
    """Return the methods whose mean on a function is the smallest, to the digits that are printed."""
    means = {method.name: float(scientific(method.summary.mean[index])) for method in comparison.results.methods}
    return {name for name, mean in means.items() if mean == min(means.values())}


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return file.getvalue()
