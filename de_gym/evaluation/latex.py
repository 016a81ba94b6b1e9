"""Tables of a comparison in LaTeX, in the layout of the paper."""

from __future__ import annotations

from collections.abc import Sequence

from de_gym.evaluation.comparison import Z_LIMIT, Comparison
from de_gym.evaluation.paper import LABELS
from de_gym.evaluation.results import MethodResults
from de_gym.evaluation.tables import best_methods, function_name, scientific, suite_title, z_text

_MARKS = {"+": "$+$", "~": r"$\approx$", "-": "$-$"}
_METHODS_PER_BLOCK = 5  # as many as fit the paper's page; the reference counts as one


def errors_latex(comparison: Comparison) -> str:
    """Return the table of means, deviations and rank-sum marks, five methods to a block, as in the paper."""
    reference = comparison.results.reference_results
    columns = [reference, *comparison.results.compared]
    blocks = [columns[start : start + _METHODS_PER_BLOCK] for start in range(0, len(columns), _METHODS_PER_BLOCK)]
    body = "\n\n\\vspace{1em}\n".join(_latex_block(comparison, block) for block in blocks)
    return _latex_table(
        body,
        f"{_caption(comparison)} $+$, $\\approx$ and $-$: significantly better than, similar to "
        f"and worse than {_escaped(reference.label)} (rank-sum test, 5\\,\\%).",
    )


def paper_latex(comparison: Comparison) -> str:
    """Return our means beside the paper's, with z-scores; empty where the paper has nothing under this protocol."""
    methods = [method for method in comparison.results.methods if method.name in comparison.paper]
    if not methods:
        return ""
    blocks = []
    for start in range(0, len(methods), _METHODS_PER_BLOCK):
        block = methods[start : start + _METHODS_PER_BLOCK]
        lines = [f"\\begin{{tabular}}{{c{'|ccc' * len(block)}}}", "\\hline"]
        lines.append(
            " & ".join(["", *(f"\\multicolumn{{3}}{{c}}{{{_paper_label(method)}}}" for method in block)]) + r" \\"
        )
        lines += [" & ".join(["", *["ours", "paper", "$z$"] * len(block)]) + r" \\", "\\hline"]
        for index in range(len(comparison.results.protocol.functions)):
            cells = [_latex_function(comparison, index)]
            for method in block:
                z_score = float(comparison.z_scores[method.name][index])
                text = z_text(z_score).replace("inf", "\\infty")
                cells += [scientific(method.summary.mean[index]), scientific(comparison.paper[method.name].mean[index])]
                cells.append(f"$\\mathbf{{{text}}}$" if abs(z_score) > Z_LIMIT else f"${text}$")
            lines.append(" & ".join(cells) + r" \\")
        agreement = [f"\\multicolumn{{3}}{{c}}{{{comparison.within_limit(method.name)}}}" for method in block]
        lines += ["\\hline", " & ".join([f"$|z| \\le {Z_LIMIT}$", *agreement]) + r" \\", "\\hline", "\\end{tabular}"]
        blocks.append("\n".join(lines))
    caption = f"{_caption(comparison)} Our means beside the paper's; $z$ in standard errors, 0 within rounding."
    return _latex_table("\n\n\\vspace{1em}\n".join(blocks), caption)


def ranking_latex(comparison: Comparison) -> str:
    """Return the ranking by average performance score, ours and the paper's, as in the paper."""
    methods = comparison.ranking
    best = min(comparison.scores.values())
    ours = [_bold_if(f"{comparison.scores[m.name]:.4f}", comparison.scores[m.name] == best) for m in methods]
    lines = [f"\\begin{{tabular}}{{c{'|c' * len(methods)}}}", "\\hline"]
    lines += [" & ".join(["Alg.", *(_escaped(method.label) for method in methods)]) + r" \\", "\\hline"]
    lines.append(" & ".join(["ours", *ours]) + r" \\")
    if comparison.paper_scores:
        paper = [f"{comparison.paper_scores[m.name]:.4f}" if m.name in comparison.paper_scores else "" for m in methods]
        lines.append(" & ".join(["paper", *paper]) + r" \\")
    lines += ["\\hline", "\\end{tabular}"]
    return _latex_table("\n".join(lines), f"{_caption(comparison)} Ranking by average performance score (APS).")


def _latex_block(comparison: Comparison, methods: Sequence[MethodResults]) -> str:
    reference = comparison.results.reference
    widths = [2 if method.name == reference else 3 for method in methods]
    lines = [f"\\begin{{tabular}}{{c{''.join('|' + 'c' * width for width in widths)}}}", "\\hline"]
    titles = [f"\\multicolumn{{{w}}}{{c}}{{{_escaped(m.label)}}}" for m, w in zip(methods, widths, strict=True)]
    heads = [["Mean", "Std. Dev.", "WR"][:width] for width in widths]
    lines += [
        " & ".join(["", *titles]) + r" \\",
        " & ".join(["", *(cell for head in heads for cell in head)]) + r" \\",
        "\\hline",
    ]
    for index in range(len(comparison.results.protocol.functions)):
        best, cells = best_methods(comparison, index), [_latex_function(comparison, index)]
        for method in methods:
            for value in (method.summary.mean[index], method.summary.std[index]):
                cells.append(_bold_if(scientific(value), method.name in best))
            if method.name != reference:
                cells.append(_MARKS[comparison.marks[method.name][index]])
        lines.append(" & ".join(cells) + r" \\")
    legend = r"$+/\approx/-$"
    feet = [
        f"\\multicolumn{{{width}}}{{c}}{{{legend if m.name == reference else comparison.counts[m.name]}}}"
        for m, width in zip(methods, widths, strict=True)
    ]
    lines += ["\\hline", " & ".join(["", *feet]) + r" \\", "\\hline", "\\end{tabular}"]
    return "\n".join(lines)


def _latex_function(comparison: Comparison, index: int) -> str:
    name = function_name(comparison, index)
    return f"${name[0]}_{{{name[1:]}}}$"


def _latex_table(body: str, caption: str) -> str:
    return f"\\begin{{table*}}[htbp]\n\\caption{{{caption}}}\n\\centering\n{body}\n\\end{{table*}}\n"


def _caption(comparison: Comparison) -> str:
    protocol = comparison.results.protocol
    limit = f"{protocol.max_generations} generations" if protocol.max_generations else f"{protocol.budget} evaluations"
    return f"Function error values, {suite_title(protocol.suite)}, $n={protocol.dimension}$, {limit}."


def _paper_label(method: MethodResults) -> str:
    own, printed = method.label, LABELS.get(method.paper_name or "", "")
    return _escaped(own if own == printed else f"{own} (paper: {printed})")


def _bold_if(text: str, bold: bool) -> str:
    return f"\\textbf{{{text}}}" if bold else text


def _escaped(text: str) -> str:
    return text.replace("_", r"\_").replace("&", r"\&").replace("%", r"\%").replace("#", r"\#")
