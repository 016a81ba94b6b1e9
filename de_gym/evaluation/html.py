"""The report as one HTML file: no network, pictures and script inline, light and dark."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from de_gym.evaluation.comparison import Z_LIMIT, Comparison
from de_gym.evaluation.paper import LABELS
from de_gym.evaluation.results import MethodResults
from de_gym.evaluation.tables import best_methods, function_name, scientific, suite_title, z_text

_MARK_CLASSES = {"+": "better", "~": "similar", "-": "worse"}
_MARK_SIGNS = {"+": "+", "~": "≈", "-": "−"}  # noqa: RUF001  # the minus sign as the paper prints it


@dataclass(frozen=True)
class Picture:
    """One figure of the report, drawn for light and for dark pages."""

    title: str
    caption: str
    light: bytes
    dark: bytes


@dataclass(frozen=True)
class Cell:
    """A table cell: what is shown (HTML) and what it is sorted by."""

    content: str
    value: float | str

    def __str__(self) -> str:
        number = isinstance(self.value, float)
        return f'<td{" class=number" if number else ""} data-value="{escape(str(self.value))}">{self.content}</td>'


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
        _section("Ranking", _RANKING_NOTE, _ranking(comparison)),
        *(_picture(picture) for picture in pictures[:1]),
        _section("Errors", _errors_note(comparison), _errors(comparison)),
    ]
    if comparison.paper:
        sections.append(_section("Beside the paper", _PAPER_NOTE, _paper(comparison)))
    sections += [_picture(picture) for picture in pictures[1:]]
    sections.append(_section("How it was made", "", _making(comparison, command)))
    resources = files("de_gym.evaluation")
    return _PAGE.format(
        title=escape(
            f"{suite_title(protocol.suite)}, n = {protocol.dimension}: {len(comparison.results.methods)} methods"
        ),
        style=resources.joinpath("report.css").read_text(encoding="utf-8"),
        script=resources.joinpath("report.js").read_text(encoding="utf-8"),
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
{sections}
</main>
<script>{script}</script>
</body>
</html>
"""

_RANKING_NOTE = (
    "APS, the average performance score, is the mean number of methods that are significantly better on a function: "
    "smaller is better. Friedman ranks compare mean errors; p is against the reference, corrected by Holm's rule. "
    "Better / similar / worse counts functions on which a method beats, equals and loses to the reference. "
    f"The column before the runs counts functions whose mean lies within {Z_LIMIT} standard errors of the paper's."
)
_PAPER_NOTE = (
    "Mean error here and in the paper, and their distance z in standard errors of both; "
    f"0 within the rounding of the printed digits, highlighted beyond {Z_LIMIT}."
)


def _errors_note(comparison: Comparison) -> str:
    return (
        "Mean error with its standard deviation below, the smallest means in bold. "
        f"+ is significantly better than {comparison.results.reference_results.label}, ≈ similar, "
        "− worse (rank-sum test, 5 %). Click a heading to sort."  # noqa: RUF001
    )


def _ranking(comparison: Comparison) -> str:
    header = ["method", "APS", "APS, paper", "Friedman rank", "p (Holm)", "better / similar / worse"]
    header += ["like the paper", "runs", "origin"]
    rows = []
    for method in comparison.ranking:
        name, counts = method.name, comparison.counts.get(method.name)
        balance = "reference" if counts is None else f"{counts.better} / {counts.similar} / {counts.worse}"
        agreement = comparison.within_limit(name) if name in comparison.z_scores else None
        rows.append(
            [
                _name_cell(comparison, method),
                _number(comparison.scores[name], ".3f"),
                _number(comparison.paper_scores.get(name), ".3f"),
                _number(comparison.mean_rank(name), ".2f"),
                _number(comparison.holm.get(name), ".2g"),
                Cell(balance, 0.0 if counts is None else float(counts.better - counts.worse)),
                Cell(f"{agreement} of {len(method.errors)}", float(agreement))
                if agreement is not None
                else _number(None, ""),
                _number(float(method.num_runs), ".0f"),
                Cell(escape(method.origin), method.origin),
            ]
        )
    return _table(header, rows)


def _errors(comparison: Comparison) -> str:
    methods = [comparison.results.reference_results, *comparison.results.compared]
    rows = []
    for index in range(len(comparison.results.protocol.functions)):
        best, row = best_methods(comparison, index), [_function_cell(comparison, index)]
        for method in methods:
            mean, std = float(method.summary.mean[index]), float(method.summary.std[index])
            shown = f"<b>{scientific(mean)}</b>" if method.name in best else scientific(mean)
            mark = comparison.marks[method.name][index] if method.name in comparison.marks else ""
            sign = f' <i class="{_MARK_CLASSES[mark]}">{_MARK_SIGNS[mark]}</i>' if mark else ""
            row.append(Cell(f"{shown}{sign}<small>{scientific(std)}</small>", mean))
        rows.append(row)
    return _table(["function", *(method.label for method in methods)], rows)


def _paper(comparison: Comparison) -> str:
    methods = [method for method in comparison.results.methods if method.name in comparison.paper]
    header = ["function"]
    for method in methods:
        printed = LABELS.get(method.paper_name or "", "")
        header += [method.label, "paper" if printed == method.label else f"paper: {printed}", "z"]
    rows = []
    for index in range(len(comparison.results.protocol.functions)):
        row = [_function_cell(comparison, index)]
        for method in methods:
            z_score = float(comparison.z_scores[method.name][index])
            text = f"<mark>{z_text(z_score)}</mark>" if abs(z_score) > Z_LIMIT else z_text(z_score)
            for mean in (method.summary.mean[index], comparison.paper[method.name].mean[index]):
                row.append(Cell(scientific(mean), float(mean)))
            row.append(Cell(text, z_score))
        rows.append(row)
    return _table(header, rows, kind="triples")


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
        f"<pre>{escape(json.dumps(dict(method.settings), indent=2, default=str))}</pre></details>"
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


def _table(header: Sequence[str], rows: Sequence[Sequence[Cell]], kind: str = "") -> str:
    columns = [" class=number" if isinstance(cell.value, float) else "" for cell in rows[0]]
    head = "".join(
        f'<th scope="col"{column}><button type="button">{escape(title)}</button></th>'
        for title, column in zip(header, columns, strict=True)
    )
    body = "\n".join(f"<tr>{''.join(map(str, row))}</tr>" for row in rows)
    table = f'<table class="sortable {kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="scroll">{table}</div>'


def _name_cell(comparison: Comparison, method: MethodResults) -> Cell:
    label = escape(method.label)
    return Cell(f"<b>{label}</b>" if method.name == comparison.results.reference else label, method.label)


def _function_cell(comparison: Comparison, index: int) -> Cell:
    number, name = comparison.results.protocol.functions[index], function_name(comparison, index)
    official = "" if name[1:] == str(number) else f"<small>official {number}</small>"
    return Cell(f"{name}{official}", float(number))


def _number(value: float | None, form: str) -> Cell:
    return Cell("", float("inf")) if value is None else Cell(format(value, form), float(value))
