"""Write a comparison to a folder: report.html, summary.md, tables (CSV, LaTeX) and pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from de_gym.evaluation.comparison import Z_LIMIT, Comparison, compare
from de_gym.evaluation.figures import (
    DARK,
    LIGHT,
    Theme,
    convergence_curves,
    parameter_curves,
    runtime_curves,
    score_bars,
)
from de_gym.evaluation.html import Picture, report_html
from de_gym.evaluation.latex import errors_latex, paper_latex, ranking_latex
from de_gym.evaluation.parameters import ParameterTrace
from de_gym.evaluation.results import Results
from de_gym.evaluation.tables import (
    best_methods,
    errors_csv,
    function_name,
    markdown_table,
    ranking_csv,
    scientific,
    suite_title,
    z_text,
)


def write_report(
    results: Results,
    folder: str | Path,
    *,
    traces: Sequence[ParameterTrace] = (),
    traced_function: str = "",
    command: str = "",
) -> Path:
    """Write the report of ``results`` and return the path of its HTML page.

    Args:
        results: What to compare and show.
        folder: Where files go; it is made where missing, and files of an earlier report there are replaced.
        traces: F and CR along one run of some methods.
        traced_function: Name of the function on which they were taken.
        command: The command that made the results, to be shown.
    """
    folder = Path(folder)
    comparison = compare(results)
    pictures = _pictures(comparison, traces, traced_function)
    headline = headline_sentences(comparison)
    files: dict[str, str | bytes] = {
        "report.html": report_html(comparison, headline, list(pictures.values()), command),
        "summary.md": _summary(comparison, headline, list(pictures), command),
        "tables/errors.csv": errors_csv(comparison),
        "tables/ranking.csv": ranking_csv(comparison),
        "tables/errors.tex": errors_latex(comparison),
        "tables/ranking.tex": ranking_latex(comparison),
        **{f"figures/{name}.png": picture.light for name, picture in pictures.items()},
    }
    if comparison.paper:
        files["tables/paper.tex"] = paper_latex(comparison)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / "report.html"


def headline_sentences(comparison: Comparison) -> list[str]:
    """Return the main results in words."""
    results = comparison.results
    reference, protocol = results.reference_results, results.protocol
    ranking = [method.name for method in comparison.ranking]
    sentences = [
        f"{_count(len(results.methods), 'method')} on {_count(len(protocol.functions), 'function')} of "
        f"{suite_title(protocol.suite)}, dimension {protocol.dimension}, {_runs_text(results)} runs each.",
        f"{reference.label} has rank {ranking.index(reference.name) + 1} of {len(ranking)} by average performance "
        f"score ({comparison.scores[reference.name]:.2f}); first is {comparison.ranking[0].label} "
        f"({comparison.scores[ranking[0]]:.2f}), last {comparison.ranking[-1].label} "
        f"({comparison.scores[ranking[-1]]:.2f}).",
    ]
    shown = [method for method in results.compared if method.name in ("random", "constant")]
    for method in shown:
        counts = comparison.counts[method.name]
        sentences.append(
            f"Against the {method.label} controller it is better on {_count(counts.worse, 'function')}, "
            f"similar on {counts.similar} and worse on {counts.better}."
        )
    if comparison.paper:
        agreeing = [f"{results[name].label} {comparison.within_limit(name)}" for name in comparison.paper]
        sentences.append(
            f"Means within {Z_LIMIT} standard errors of the paper's, functions of {len(protocol.functions)}: "
            f"{', '.join(agreeing)}."
        )
    return sentences


def _pictures(comparison: Comparison, traces: Sequence[ParameterTrace], traced_function: str) -> dict[str, Picture]:
    """Return all pictures of a report by file name."""
    results = comparison.results
    recorded = any(method.convergence is not None for method in results.methods)
    pictures = {
        "scores": _draw(
            "Average performance scores",
            "Bars: this comparison. Diamonds: the paper's own comparison, which has other methods in it.",
            lambda theme: score_bars(comparison, theme),
        )
    }
    if recorded:
        pictures["runtimes"] = _draw(
            "Runtime distributions",
            "Share of 51 error targets between 10² and 10⁻⁸, over all functions and runs, reached within a number of "
            "evaluations. Methods whose convergence was not kept are left out.",
            lambda theme: runtime_curves(results, theme),
        )
        pictures["convergence"] = _draw(
            "Convergence",
            "Median error of all runs; the band around the reference spans the quartiles.",
            lambda theme: convergence_curves(comparison, theme),
        )
    if traces:
        pictures["parameters"] = _draw(
            "F and CR along a run",
            f"One run on {traced_function}. In every generation the population is split into three clusters of "
            "similar fitness; the curves are the mean F and CR of each cluster.",
            lambda theme: parameter_curves(traces, theme),
        )
    return pictures


def _draw(title: str, caption: str, draw: Callable[[Theme], bytes]) -> Picture:
    return Picture(title, caption, light=draw(LIGHT), dark=draw(DARK))


def _summary(comparison: Comparison, headline: Sequence[str], pictures: Sequence[str], command: str) -> str:
    """Return the report as Markdown."""
    results = comparison.results
    columns = [results.reference_results, *results.compared]
    parts = [
        f"# {suite_title(results.protocol.suite)}, n = {results.protocol.dimension}",
        "\n".join(f"- {sentence}" for sentence in headline),
        *([f"Made by `{command}`."] if command else []),
        "## Ranking",
        markdown_table(
            ["method", "APS", "APS, paper", "Friedman rank", "p (Holm)", "+/~/-", f"|z| <= {Z_LIMIT}"],
            _ranking_rows(comparison),
        ),
        f'"+" counts functions on which a method is significantly better than {results.reference_results.label}.',
        "## Mean errors",
        markdown_table(["function", *(method.label for method in columns)], _error_rows(comparison)),
    ]
    if comparison.paper:
        header = ["function", *(f"{results[name].label} z" for name in comparison.paper)]
        parts += ["## Distance from the paper's means in standard errors", markdown_table(header, _z_rows(comparison))]
    parts += ["## Pictures", "\n".join(f"![{name}](figures/{name}.png)" for name in pictures)]
    return "\n\n".join(parts) + "\n"


def _ranking_rows(comparison: Comparison) -> list[list[str]]:
    rows = []
    for method in comparison.ranking:
        name, rank = method.name, comparison.mean_rank(method.name)
        paper, p_value = comparison.paper_scores.get(name), comparison.holm.get(name)
        row = [method.label, f"{comparison.scores[name]:.3f}", "" if paper is None else f"{paper:.3f}"]
        row += ["" if rank is None else f"{rank:.2f}", "" if p_value is None else f"{p_value:.2g}"]
        row.append(str(comparison.counts[name]) if name in comparison.counts else "reference")
        row.append(f"{comparison.within_limit(name)} of {len(method.errors)}" if name in comparison.z_scores else "")
        rows.append(row)
    return rows


def _error_rows(comparison: Comparison) -> list[list[str]]:
    results, rows = comparison.results, []
    for index in range(len(results.protocol.functions)):
        best, row = best_methods(comparison, index), [function_name(comparison, index)]
        for method in [results.reference_results, *results.compared]:
            mean = scientific(method.summary.mean[index])
            mark = comparison.marks[method.name][index] if method.name in comparison.marks else ""
            row.append(f"{f'**{mean}**' if method.name in best else mean} {mark}".strip())
        rows.append(row)
    return rows


def _z_rows(comparison: Comparison) -> list[list[str]]:
    return [
        [function_name(comparison, index), *(z_text(float(z[index])) for z in comparison.z_scores.values())]
        for index in range(len(comparison.results.protocol.functions))
    ]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _runs_text(results: Results) -> str:
    numbers = sorted({method.num_runs for method in results.methods})
    return " to ".join(str(number) for number in dict.fromkeys([numbers[0], numbers[-1]]))
