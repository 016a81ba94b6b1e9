"""Table: header, rows and which cells matter; and the four forms in which it is printed."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

_HTML_MARKS = {"+": ("better", "+"), "~": ("similar", "≈"), "-": ("worse", "−")}  # noqa: RUF001  # a minus sign
_LATEX_MARKS = {"+": "$+$", "~": r"$\approx$", "-": "$-$"}
_LATEX_ESCAPES = str.maketrans({sign: f"\\{sign}" for sign in "_&%#$"} | {"~": r"\textasciitilde{}", "≈": r"$\approx$"})


@dataclass(frozen=True)
class Cell:
    """One entry of a table.

    Attributes:
        text: What is shown.
        value: What stands behind it, in full precision: sorting and CSV take it instead of the text, if there is one.
        strong: Whether it is emphasised.
        mark: "+", "~" or "-": significantly better than the reference, similar, or worse; or nothing.
        note: A second, less important figure.
    """

    text: str
    value: float | None = None
    strong: bool = False
    mark: str = ""
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table that can be printed in every form; make one with ``table``.

    Attributes:
        header: Titles of the columns.
        rows: As many cells each.
        alignment: A letter per column, "l" for words and "r" for numbers.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    alignment: str

    def columns(self, places: Iterable[int]) -> Table:
        """Return the table of some columns."""
        chosen = list(places)
        return Table(
            tuple(self.header[place] for place in chosen),
            tuple(tuple(row[place] for place in chosen) for row in self.rows),
            "".join(self.alignment[place] for place in chosen),
        )

    def without_empty_columns(self) -> Table:
        """Return the table without the columns that hold nothing."""
        return self.columns(place for place in range(len(self.header)) if any(row[place].text for row in self.rows))

    def blocks(self, width: int) -> list[Table]:
        """Return tables of the first column and up to ``width`` others each."""
        starts = range(1, max(2, len(self.header)), width)
        return [self.columns([0, *range(start, min(start + width, len(self.header)))]) for start in starts]


def table(header: Sequence[str], rows: Iterable[Sequence[Cell | str]], alignment: str = "") -> Table:
    """Return a table; by default the first column is of words and the others are of numbers."""
    cells = tuple(tuple(Cell(cell) if isinstance(cell, str) else cell for cell in row) for row in rows)
    for row in cells:
        if len(row) != len(header):
            raise ValueError(f"A row of a table must have {len(header)} cells, got {len(row)}.")
    return Table(tuple(header), cells, alignment or "l" + "r" * (len(header) - 1))


def number(value: float | None, form: str, *, strong: bool = False) -> Cell:
    """Return the cell of a number, empty where there is none.

    >>> number(0.8275, ".2f").text, number(None, ".2f").text
    ('0.83', '')
    """
    if value is None:
        return Cell("")
    return Cell(format(value, form), value if isinstance(value, int) else float(value), strong)


def interval_text(low: float, high: float) -> str:
    r"""Return an interval that is never broken into two lines.

    >>> interval_text(0.5, 0.75)
    '0.50‑0.75'
    """
    return f"{low:.2f}\u2011{high:.2f}"


def to_markdown(content: Table) -> str:
    r"""Return a table in Markdown.

    >>> print(to_markdown(table(["method", "score"], [["a|b", Cell("1", strong=True, mark="+", note="0.5")]])))
    | method | score |
    |---|--:|
    | a\|b | **1** (0.5) + |
    """
    rows = [
        [_joined(f"**{cell.text}**" if cell.strong else cell.text, cell, cell.mark) for cell in row]
        for row in content.rows
    ]
    lines = [f"| {' | '.join(text.replace('|', chr(92) + '|') for text in row)} |" for row in [content.header, *rows]]
    lines.insert(1, f"|{'|'.join({'l': '---', 'r': '--:'}[side] for side in content.alignment)}|")
    return "\n".join(lines)


def to_latex(content: Table, caption: str, columns: int = 100) -> str:
    """Return a table in LaTeX, in blocks of so many columns below each other."""
    blocks = []
    for block in content.blocks(columns):
        rows = [
            [
                _joined(
                    f"\\textbf{{{_latex(cell.text)}}}" if cell.strong else _latex(cell.text),
                    cell,
                    _LATEX_MARKS.get(cell.mark, ""),
                )
                for cell in row
            ]
            for row in block.rows
        ]
        lines = [" & ".join(row) + r" \\" for row in [[_latex(title) for title in block.header], *rows]]
        parts = [
            f"\\begin{{tabular}}{{{block.alignment}}}",
            "\\hline",
            lines[0],
            "\\hline",
            *lines[1:],
            "\\hline",
            "\\end{tabular}",
        ]
        blocks.append("\n".join(parts))
    body = "\n\n\\vspace{1em}\n".join(blocks)
    return f"\\begin{{table*}}[htbp]\n\\caption{{{_latex(caption)}}}\n\\centering\n{body}\n\\end{{table*}}\n"


def to_csv(content: Table) -> str:
    """Return a table as comma-separated values: the numbers behind the cells in full precision."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(content.header)
    writer.writerows([cell.text if cell.value is None else repr(cell.value) for cell in row] for row in content.rows)
    return file.getvalue()


def to_html(content: Table) -> str:
    """Return a table in HTML whose headings sort it, given the script of the report."""
    sides = {"l": "", "r": " class=number"}
    head = "".join(
        f'<th scope="col"{sides[side]}><button type="button">{escape(title)}</button></th>'
        for title, side in zip(content.header, content.alignment, strict=True)
    )
    rows = []
    for row in content.rows:
        cells = zip(row, content.alignment, strict=True)
        rows.append(f"<tr>{''.join(_html_cell(cell, sides[side]) for cell, side in cells)}</tr>")
    body = "\n".join(rows)
    return (
        f'<div class="scroll"><table class="sortable"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _html_cell(cell: Cell, side: str) -> str:
    # Where a column of numbers has none, the row is sorted behind all others.
    missing = "inf" if side and not cell.text else cell.text
    value = missing if cell.value is None else repr(cell.value)
    text = f"<b>{escape(cell.text)}</b>" if cell.strong else escape(cell.text)
    if cell.mark:
        kind, sign = _HTML_MARKS[cell.mark]
        text += f' <i class="{kind}">{sign}</i>'
    if cell.note:
        text += f"<small>{escape(cell.note)}</small>"
    return f'<td{side} data-value="{escape(value)}">{text}</td>'


def _joined(text: str, cell: Cell, mark: str) -> str:
    return " ".join(part for part in (text, f"({cell.note})" if cell.note else "", mark) if part)


def _latex(text: str) -> str:
    return text.translate(_LATEX_ESCAPES)
