"""The project's results from the raw files in the package: ``python -m de_gym.evaluation.published``.

It rewrites the results section of the README in the current folder, and writes the long form, with a report of every
table, to ``results/published``. Nothing is run: every number follows from a file that comes with the package.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from de_gym.baselines import BASELINES
from de_gym.controllers import available, load
from de_gym.evaluation.comparison import Z_LIMIT, Comparison, compare
from de_gym.evaluation.paper import paper_algorithms, paper_column, paper_scores
from de_gym.evaluation.protocol import PROTOCOLS, Protocol
from de_gym.evaluation.report import write_report
from de_gym.evaluation.results import MethodResults, Results, shipped_results
from de_gym.evaluation.statistics import count_marks, rank_sum_marks
from de_gym.evaluation.tables import function_name, markdown_table, scientific, suite_title

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
"""What the generated section of the README stands between."""


@dataclass(frozen=True)
class PublishedConfig:
    """Where the results go.

    Attributes:
        readme: File whose results section is rewritten; skipped where there is none.
        out: Folder of the long form.
    """

    readme: Path = Path("README.md")
    out: Path = Path("results/published")


def stored_methods(protocol: Protocol) -> tuple[list[MethodResults], list[MethodResults]]:
    """Return what the package holds under a protocol: the algorithms of the paper's table, and the controllers."""
    stored = shipped_results(protocol)
    algorithms = [method for method in stored if method.name in paper_algorithms(protocol.table)]
    controllers = [method for method in stored if method.settings.get("kind") == "controller"]
    return algorithms, controllers


def compare_alone(method: MethodResults, algorithms: Sequence[MethodResults], protocol: Protocol) -> Comparison:
    """Return the comparison of one method with the algorithms alone, as the paper makes it for LDE."""
    return compare(Results(protocol, (method, *algorithms), reference=method.name))


def place(comparison: Comparison) -> int:
    """Return the rank of the reference by average performance score; equal scores share the better one."""
    own = comparison.scores[comparison.results.reference]
    return 1 + sum(score < own for score in comparison.scores.values())


def controllers_table(protocol: Protocol) -> str:
    """Return one row per controller: its score and place among the algorithms, and how it compares with random control.

    The paper's LDE stands in the first row with its printed score.
    """
    algorithms, controllers = stored_methods(protocol)
    random = next((method for method in controllers if method.name == "random"), None)
    rows = []
    printed = paper_scores(protocol.table)
    if "lde" in printed:
        better = sum(score < printed["lde"] for name, score in printed.items() if name != "lde")
        rows.append(["LDE as printed in the paper", f"{printed['lde']:.2f}", str(better + 1), "", ""])
    for method in controllers:
        comparison = compare_alone(method, algorithms, protocol)
        marks = "" if random is None or method is random else str(_counts_against(random, method))
        agreeing = f"{comparison.within_limit(method.name)}" if method.name in comparison.z_scores else ""
        rows.append([method.name, f"{comparison.scores[method.name]:.2f}", str(place(comparison)), marks, agreeing])
    rows[1:] = sorted(rows[1:], key=lambda row: float(row[1]))
    header = ["controller", "APS", f"place of {len(algorithms) + 1}", "against random: +/~/-", "means as LDE's"]
    return markdown_table(header, rows)


def _counts_against(reference: MethodResults, method: MethodResults) -> object:
    return count_marks(rank_sum_marks(reference.errors, method.errors))


def ranking_table(protocol: Protocol, name: str) -> str:
    """Return the ranking of one controller among the algorithms beside the paper's."""
    algorithms, controllers = stored_methods(protocol)
    learned = next(method for method in controllers if method.name == name)
    comparison = compare_alone(learned, algorithms, protocol)
    printed = paper_scores(protocol.table)
    rows = []
    for method in comparison.ranking:
        paper = printed.get(method.paper_name or "")
        agreeing = f"{comparison.within_limit(method.name)}" if method.name in comparison.z_scores else ""
        score = f"{comparison.scores[method.name]:.2f}"
        rows.append([method.label, score, "" if paper is None else f"{paper:.2f}", agreeing])
    header = ["method", "APS", "APS in the paper", f"means within {Z_LIMIT} s.e. of the paper's"]
    return markdown_table(header, rows)


def errors_table(protocol: Protocol, names: Sequence[str] | None = None) -> str:
    """Return mean and deviation of every stored method (or those named) on every function, the paper's LDE beside."""
    algorithms, controllers = stored_methods(protocol)
    methods = [method for method in [*controllers, *algorithms] if names is None or method.name in names]
    results = Results(protocol, tuple(methods), reference=methods[0].name)
    comparison = compare(results)
    paper = paper_column(protocol.table, "lde", protocol.functions)
    rows = []
    for index in range(len(protocol.functions)):
        row = [function_name(comparison, index)]
        row.append("" if paper is None else f"{scientific(paper.mean[index])} ({scientific(paper.std[index])})")
        for method in methods:
            row.append(f"{scientific(method.summary.mean[index])} ({scientific(method.summary.std[index])})")
        rows.append(row)
    return markdown_table(["function", "LDE, paper", *(method.label for method in methods)], rows)


def returns_table() -> str:
    """Return the mean returns that were measured with the shipped controllers, from the files of their weights."""
    rows = []
    for name in available():
        for kind, measured in load(name).info.results.items():
            means, p_values = measured["mean_return"], measured["p_against_trained"]  # type: ignore[index]
            row = [name, f"{kind} functions", f"{means['trained']:.3f}"]
            row += [f"{means[other]:.3f} (p {p_values[other]:.0e})" for other in ("untrained", "random", "constant")]
            rows.append(row)
    return markdown_table(["controller", "on its", "trained", "untrained", "random", "constant"], rows)
