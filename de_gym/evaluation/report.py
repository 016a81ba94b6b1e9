"""Write a comparison to a folder: report.html, summary.md, tables (CSV, LaTeX) and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from de_gym.evaluation.comparison import Z_LIMIT, Comparison, compare
from de_gym.evaluation.comparison_tables import (
    errors_table,
    paper_table,
    ranking_table,
    records_table,
    run_length,
    suite_title,
)
from de_gym.evaluation.figures import (
    DARK,
    LIGHT,
    convergence_curves,
    parameter_curves,
    runtime_curves,
    score_bars,
)
from de_gym.evaluation.page import Picture, report_html
from de_gym.evaluation.parameters import ParameterTrace
from de_gym.evaluation.results import Results
from de_gym.evaluation.statistics import fewest_runs
from de_gym.evaluation.table import to_csv, to_latex, to_markdown
from de_gym.files import remove_abandoned, replacing


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
    pictures = _pictures(comparison)
    inlined = _traced_picture(traces, traced_function) if traces else {}
    headline = headline_sentences(comparison)
    files: dict[str, str | bytes] = {
        "report.html": report_html(comparison, headline, list(inlined.values()), command),
        "summary.md": _summary(comparison, headline, [*pictures, *inlined], command),
        "tables/errors.csv": to_csv(records_table(comparison)),
        "tables/ranking.csv": to_csv(ranking_table(comparison)),
        **_latex_tables(comparison),
        **{f"figures/{name}.png": picture for name, picture in pictures.items()},
        **{f"figures/{name}.png": picture.light for name, picture in inlined.items()},
    }
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(path.parent, path.name)
        with replacing(path) as file:
            file.write(content if isinstance(content, bytes) else content.encode())
    return folder / "report.html"


def headline_sentences(comparison: Comparison) -> list[str]:
    """Return the main results in words."""
    results = comparison.results
    reference, protocol = results.reference_results, results.protocol
    sentences = [
        f"{_count(len(results.methods), 'method')} on {_count(len(protocol.functions), 'function')} of "
        f"{suite_title(protocol.suite)}, dimension {protocol.dimension}, {_count(reference.num_runs, 'run')} each.",
        _place_sentence(comparison)
        if (needed := fewest_runs()) <= reference.num_runs
        else f"No rank-sum test of so few runs is ever significant, so all scores are 0: at least {needed} are needed.",
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


def _place_sentence(comparison: Comparison) -> str:
    """Return the reference's place, and who is first and last; a place that is shared is said to be."""
    reference, scores = comparison.results.reference_results, comparison.scores
    own, best, worst = scores[reference.name], min(scores.values()), max(scores.values())

    def holders(score: float) -> str:
        return _listed([method.label for method in comparison.ranking if scores[method.name] == score])

    sharing = [method.label for method in comparison.results.compared if scores[method.name] == own]
    sentence = f"{reference.label} has place {comparison.place(reference.name)} of {len(scores)}"
    sentence += f", shared with {_listed(sharing)}," if sharing else ""
    sentence += f" by average performance score ({own:.2f})"
    sentence += f"; first is {holders(best)} ({best:.2f})" if best < own else ""
    sentence += f"; last is {holders(worst)} ({worst:.2f})" if worst > own else ""
    return f"{sentence}."


def _pictures(comparison: Comparison) -> dict[str, bytes]:
    """Return the pictures of what the page draws itself, by file name."""
    pictures = {"scores": score_bars(comparison)}
    if any(method.curves is not None for method in comparison.results.methods):
        pictures["runtimes"] = runtime_curves(comparison.results)
        pictures["convergence"] = convergence_curves(comparison)
    return pictures


def _traced_picture(traces: Sequence[ParameterTrace], function: str) -> dict[str, Picture]:
    """Return the picture that the page shows as it is."""
    caption = (
        f"One run on {function}. In every generation the population is split into three clusters of similar fitness; "
        "the curves are the mean F and CR of each cluster. Where a controller adjusts the rules of an adaptive "
        "algorithm, the residuals that moved most are below."
    )
    light, dark = (parameter_curves(traces, theme) for theme in (LIGHT, DARK))
    return {"parameters": Picture("Parameters along a run", caption, light, dark)}


def _summary(comparison: Comparison, headline: Sequence[str], pictures: Sequence[str], command: str) -> str:
    """Return the report as Markdown."""
    results = comparison.results
    parts = [
        f"# {suite_title(results.protocol.suite)}, n = {results.protocol.dimension}",
        "\n".join(f"- {sentence}" for sentence in headline),
        *([f"Made by `{command}`."] if command else []),
        "## Ranking",
        to_markdown(ranking_table(comparison)),
        "## Mean errors (deviations)",
        f'"+": significantly better than {results.reference_results.label}, "~": similar, "-": worse.',
        to_markdown(errors_table(comparison)),
    ]
    if comparison.paper:
        parts += ["## Beside the paper, distances z in standard errors", to_markdown(paper_table(comparison))]
    parts += ["## Pictures", "\n".join(f"![{name}](figures/{name}.png)" for name in pictures)]
    return "\n\n".join(parts) + "\n"


def _latex_tables(comparison: Comparison) -> dict[str, str]:
    """Return the files of LaTeX."""
    protocol, reference = comparison.results.protocol, comparison.results.reference_results.label
    caption = f"{suite_title(protocol.suite)}, n = {protocol.dimension}, {run_length(protocol)}."
    marks = "+, ≈, -: significantly better than, similar to and worse than"
    files = {
        "errors": to_latex(errors_table(comparison), f"{caption} Mean errors (deviations); {marks} {reference}.", 5),
        "ranking": to_latex(ranking_table(comparison), f"{caption} Ranking by average performance score (APS)."),
    }
    if comparison.paper:
        means = f"{caption} Our means beside the paper's; z in standard errors, 0 within rounding."
        files["paper"] = to_latex(paper_table(comparison), means, 9)
    return {f"tables/{name}.tex": text for name, text in files.items()}


def _listed(names: Sequence[str]) -> str:
    """Return names as a sentence lists them, at most three.

    >>> _listed(["a"]), _listed(["a", "b"]), _listed(["a", "b", "c", "d"])
    ('a', 'a and b', 'a, b and 2 others')
    """
    shown = list(names) if len(names) <= 3 else [*names[:2], f"{len(names) - 2} others"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
