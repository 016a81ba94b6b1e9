"""The report as one HTML page: no network, data, pictures and script inline, light and dark."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from de_gym.evaluation.comparison import Z_LIMIT, Comparison
from de_gym.evaluation.comparison_tables import errors_table, paper_table, ranking_table, suite_title
from de_gym.evaluation.report_data import report_data
from de_gym.evaluation.table import to_html


@dataclass(frozen=True)
class Picture:
    """One figure of the report, drawn for light and for dark pages."""

    title: str
    caption: str
    light: bytes
    dark: bytes


def report_html(comparison: Comparison, headline: Sequence[str], pictures: Sequence[Picture], command: str) -> str:
    """Return the whole page.

    Args:
        comparison: What is reported.
        headline: Sentences that say the main results, plain text.
        pictures: Figures in the order of the page.
        command: The command that made the results, or an empty string.
    """
    protocol = comparison.results.protocol
    sections = [
        _section("Ranking", "", _RANKING_NOTE + to_html(ranking_table(comparison))),
        _section("Average performance scores", _scores_note(comparison), _score_bars(comparison)),
    ]
    if any(method.curves is not None for method in comparison.results.methods):
        sections.append(_section("Runtime distributions", _runtime_note(comparison), '<div id="runtimes"></div>'))
        sections.append(_section("Convergence", _CONVERGENCE_NOTE, '<div id="overview" class="panels"></div>'))
    sections.append(_section("One function", _FUNCTION_NOTE, _FUNCTION_PAGE))
    sections.append(_section("Errors", _errors_note(comparison), to_html(errors_table(comparison))))
    if comparison.paper:
        sections.append(_section("Beside the paper", _PAPER_NOTE, to_html(paper_table(comparison))))
    sections += [_picture(picture) for picture in pictures]
    sections.append(_section("How it was made", "", _making(comparison, command)))
    resources = files("de_gym.evaluation")
    return _PAGE.format(
        title=escape(
            f"{suite_title(protocol.suite)}, n = {protocol.dimension}: {len(comparison.results.methods)} methods"
        ),
        style=resources.joinpath("report.css").read_text(encoding="utf-8"),
        data=report_data(comparison),
        script="\n".join(resources.joinpath(name).read_text(encoding="utf-8") for name in ("charts.js", "report.js")),
        headline="".join(f"<li>{escape(sentence)}</li>" for sentence in headline),
        sections="\n".join(sections),
    )


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
<header><h1>{title}</h1><ul>{headline}</ul></header>
<nav id="methods" aria-label="Shown methods"></nav>
{sections}
</main>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""

_RANKING_NOTE = (
    "<details><summary>What the columns mean</summary>APS, the average performance score, is the mean number of "
    "methods that are significantly better on a function: smaller is better. Friedman ranks compare mean errors; "
    "p is against the reference, corrected by Holm's rule. Better, similar and worse count functions, by rank-sum "
    "tests at 5 % against the reference. The U-score counts pairs of runs of different methods in which the "
    "method's is better, accuracy + speed (CEC'26) those in which it ends better and those in which it is "
    "earlier; more is better. The probabilities that a method is better than the reference, equivalent (a chance "
    "to win between 0.44 and 0.56) or worse are those of a Bayesian signed-rank test.</details>"
)
_PAPER_NOTE = (
    "Mean error here and in the paper, and their distance z in standard errors of both; "
    f"0 within the rounding of the printed digits, bold beyond {Z_LIMIT}."
)


_CONVERGENCE_NOTE = (
    "Median error of the runs against evaluations, both on log scales; the band around the reference spans the "
    "quartiles. Click a panel for the function's page."
)
_FUNCTION_NOTE = (
    "Move over a chart to read it. Every dot is the final error of one run; those that reached the target stand on "
    "the left edge."
)
_FUNCTION_PAGE = (
    '<div class="choice"><button type="button" id="previous" aria-label="Previous function">&#8592;</button>'
    '<select id="function" aria-label="Function"></select>'
    '<button type="button" id="next" aria-label="Next function">&#8594;</button></div>'
    '<div id="course"></div><div id="runs"></div><div id="figures" class="scroll"></div>'
)


def _scores_note(comparison: Comparison) -> str:
    printed = " Diamonds: the paper's own comparison, which has other methods in it." if comparison.paper_scores else ""
    return f"How many methods are significantly better, on average over the functions.{printed}"


def _runtime_note(comparison: Comparison) -> str:
    methods = comparison.results.methods
    missing = [method.label for method in methods if method.curves is None]
    fewer = {
        method.curves.num_runs
        for method in methods
        if method.curves is not None and method.curves.num_runs != method.num_runs
    }
    note = (
        "Share of 51 error targets between 10² and 10⁻⁸, over all functions and runs, reached within a number of "
        "evaluations."
    )
    note += f" Stored curves are of {' or '.join(map(str, sorted(fewer)))} runs." if fewer else ""
    return note + (f" Without a stored curve: {', '.join(missing)}." if missing else "")


def _score_bars(comparison: Comparison) -> str:
    """Return a bar per method with its number at its root, and a diamond and a number for the paper's."""
    scale = 100.0 / max([1.0, *comparison.scores.values(), *comparison.paper_scores.values()])
    rows = []
    for method in comparison.ranking:
        score, printed = comparison.scores[method.name], comparison.paper_scores.get(method.name)
        kind = "reference" if method.name == comparison.results.reference else str(method.settings.get("kind", ""))
        mark = f'<i style="left:{printed * scale:.2f}%"></i>' if printed is not None else ""
        beside = f"paper {printed:.2f}" if printed is not None else ""
        rows.append(
            f'<div class="score {escape(kind)}" data-label="{escape(method.label)}"><span>{escape(method.label)}</span>'
            f'<b>{score:.2f}</b><span class="track"><span style="width:{score * scale:.2f}%"></span>{mark}</span>'
            f"<small>{beside}</small></div>"
        )
    return f'<div class="scores">{"".join(rows)}</div>'


def _errors_note(comparison: Comparison) -> str:
    return (
        "Mean error with its standard deviation below, the smallest means in bold. "
        f"+ is significantly better than {comparison.results.reference_results.label}, ≈ similar, "
        "− worse (rank-sum test, 5 %). Click a heading to sort."  # noqa: RUF001
    )


def _making(comparison: Comparison, command: str) -> str:
    protocol = comparison.results.protocol
    generations = "no limit" if protocol.max_generations is None else str(protocol.max_generations)
    facts: Mapping[str, str] = {
        "suite": f"{protocol.suite}, {len(protocol.functions)} functions, dimension {protocol.dimension}",
        "a run ends": f"after {protocol.budget} evaluations (generations: {generations}) "
        f"or below an error of {protocol.target_error:g}, which counts as 0",
        "root seed": str(protocol.seed),
        **({"command": command} if command else {}),
    }
    lines = "".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in facts.items())
    details = "".join(
        f"<details><summary>{escape(method.label)}</summary>"
        f"<pre>{escape(json.dumps({**method.settings, **method.making}, indent=2, default=str))}</pre></details>"
        for method in comparison.results.methods
        if method.settings
    )
    return f"<dl>{lines}</dl>{details}"


def _section(title: str, note: str, body: str) -> str:
    paragraph = f"<p>{escape(note)}</p>" if note else ""
    return f"<section><h2>{escape(title)}</h2>{paragraph}{body}</section>"


def _picture(picture: Picture) -> str:
    light, dark = (f"data:image/png;base64,{b64encode(data).decode()}" for data in (picture.light, picture.dark))
    body = (
        f'<figure><picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img alt="{escape(picture.title)}" width="{_display_width(picture.light)}" src="{light}"></picture></figure>'
    )
    return _section(picture.title, picture.caption, body)


def _display_width(png: bytes) -> int:
    """Return the width at which a picture's 150 dots per inch meet a page's 100, from the PNG header."""
    return int.from_bytes(png[16:20], "big") * 2 // 3
