"""Tables of stored results: the controllers' scores among the algorithms of the paper, and all errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from de_gym.controllers import available, load
from de_gym.evaluation.comparison import Z_LIMIT, Comparison, compare
from de_gym.evaluation.paper import PaperColumn, has_table, paper_algorithms, paper_column, paper_scores
from de_gym.evaluation.protocol import Protocol
from de_gym.evaluation.result_files import RESULTS, STUDIES
from de_gym.evaluation.results import MethodResults, Results, shipped_results
from de_gym.evaluation.statistics import Summary, count_marks, rank_sum_marks
from de_gym.evaluation.tables import function_name, markdown_table, scientific, suite_title
from de_gym.registry import lookup

DESCRIPTIONS = {
    "random": "F and CR uniform in [0, 1], nothing learned",
    "constant": "F = 0.5, CR = 0.9",
    "short-10d": "trained on runs of 2550 evaluations: `--preset short`",
    "short-10d-mean": "`short-10d` acting by its means instead of sampling",
    "short-10d-untrained": "the network of `short-10d` before its training",
    "quick-10d": "the default training, runs of 25,050 evaluations",
    "long-10d": "trained on whole runs: `--preset long`",
    "long-10d-mean": "`long-10d` acting by its means instead of sampling",
    "quick-10d-mean": "`quick-10d` acting by its means instead of sampling",
    "quick-10d-untrained": "the network of `quick-10d` before its training",
    "short-30d": "trained on runs of 5100 evaluations: `--preset short --dimension 30 --population-size 100`",
    "short-30d-mean": "`short-30d` acting by its means instead of sampling",
    "short-30d-untrained": "the network of `short-30d` before its training",
    "quick-30d": "the default training: `--dimension 30 --population-size 100`",
    "paper-10d": "the paper's sizes, 2000 cells: `--preset paper-10d`",
    "paper-10d-mean": "`paper-10d` acting by its means instead of sampling",
    "paper-10d-untrained": "the network of `paper-10d` before its training",
    "paper-50-cells-all": "50 cells, trained on all 28 functions of CEC'13: `--functions 1 2 ... 28`",
    "script-10d": "as the authors' script, 50 cells: `--preset script-10d`",
}
"""What the stored controllers are, and the arguments of ``train.py`` by which they differ from its defaults."""

ABLATIONS = {
    "quick-10d": "nothing changed",
    "pbest-0.1": "p-best always among the best tenth: `--pbest 0.1`",
    "two-numbers": "one mean F and one mean CR: `--num-knots 1`",
    "all-ranks": "2N means, one for every rank: `--num-knots None`",
    "no-baseline": "plain returns: `--baseline none`",
    "50-generations": "`--max-generations 50 --max-evaluations None --episodes-per-function 20`",
    "untrained-deviation-0.1": "untrained, with a deviation of 0.1 instead of 0.5",
}
"""What was changed in the default training, one thing at a time."""

CELL_SIZES = {
    50: "paper-50-cells",
    128: "paper-128-cells",
    500: "paper-500-cells",
    1000: "paper-1000-cells",
    2000: "paper-10d",
}
"""Controllers of ``--preset paper-10d --cell-size``, up to 128 with the paper's ``--learning-rate 0.005``."""


def stored_methods(protocol: Protocol) -> tuple[list[MethodResults], list[MethodResults]]:
    """Return what the package holds under a protocol: the algorithms of the paper's table, and the controllers."""
    stored = shipped_results(protocol, [RESULTS, STUDIES])
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


def title(protocol: Protocol) -> str:
    """Return a table's heading.

    >>> from de_gym.evaluation.protocol import PROTOCOLS
    >>> title(PROTOCOLS["paper-cec13-10d-T"])
    'CEC 2013, 10 dimensions, 50 generations'
    """
    return f"{suite_title(protocol.suite)}, {protocol.dimension} dimensions, {limit(protocol)}"


def limit(protocol: Protocol) -> str:
    """Return how long a run lasts."""
    if protocol.max_generations is not None:
        return f"{protocol.max_generations} generations"
    return f"{protocol.budget:,} evaluations"


def scores_table(protocols: Sequence[Protocol], first: str, descriptions: Mapping[str, str]) -> str:
    """Return one row per controller: its score among the algorithms of each protocol, and its place.

    The best under the first protocol stand on top.

    Args:
        protocols: The columns.
        first: Heading of the first column.
        descriptions: The controllers' names, and what they are; those that are not stored are left out.
    """
    columns = [_score_cells(protocol, descriptions) for protocol in protocols]
    stored = {method.name: method for method in stored_methods(protocols[0])[1]}
    rows = []
    for name, description in descriptions.items():
        cells = [column.get(name, "") for column in columns]
        if any(cells):
            label = f"`{name}`: {description}" if description else f"`{name}`"
            rows.append([label, *cells, _marks_against_random(stored, name)])
    rows.sort(key=lambda row: float(row[1].split()[0]) if row[1] else math.inf)
    marks = "better/similar/worse than `random` in the first column"
    return markdown_table([first, *(_short_title(protocol) for protocol in protocols), marks], rows)


def controllers_table(protocols: Sequence[Protocol]) -> str:
    """Return the scores of all controllers but those of the studies, the paper's LDE with its printed ones on top."""
    studied = {*ABLATIONS, *CELL_SIZES.values()} - set(DESCRIPTIONS)
    stored = [method.name for protocol in protocols for method in stored_methods(protocol)[1]]
    described = DESCRIPTIONS | {name: "" for name in stored if name not in {*DESCRIPTIONS, *studied}}
    header, line, *rows = scores_table(protocols, "controller", described).splitlines()
    printed = [_printed_cell(protocol) for protocol in protocols]
    if any(printed):
        rows.insert(0, f"| LDE, as printed in the paper | {' | '.join(printed)} |  |")
    return "\n".join([header, line, *rows])


def ablations_table(protocols: Sequence[Protocol]) -> str:
    """Return the scores of the ablations."""
    return scores_table(protocols, "default training, but", ABLATIONS)


def cell_sizes_table(protocols: Sequence[Protocol]) -> str:
    """Return the scores by number of cells."""
    return scores_table(protocols, "paper's sizes, but", {name: f"{size} cells" for size, name in CELL_SIZES.items()})


def _score_cells(protocol: Protocol, names: Iterable[str]) -> dict[str, str]:
    """Return score and place of each of these controllers that is stored, each alone with the algorithms."""
    algorithms, controllers = stored_methods(protocol)
    chosen = set(names)
    cells = {}
    for method in controllers:
        if method.name in chosen:
            comparison = compare_alone(method, algorithms, protocol)
            cells[method.name] = f"{comparison.scores[method.name]:.2f} ({place(comparison)})"
    return cells


def _printed_cell(protocol: Protocol) -> str:
    """Return the paper's score and place of LDE, or nothing where it prints none."""
    printed = paper_scores(protocol.table)
    if "lde" not in printed:
        return ""
    return f"{printed['lde']:.2f} ({1 + sum(score < printed['lde'] for score in printed.values())})"


def _marks_against_random(stored: Mapping[str, MethodResults], name: str) -> str:
    """Return on how many functions a controller is better than, similar to and worse than the random one."""
    if name == "random" or not {"random", name} <= set(stored):
        return ""
    return str(count_marks(rank_sum_marks(stored["random"].errors, stored[name].errors)))


def _short_title(protocol: Protocol) -> str:
    """Return a column's heading, as in ``CEC'13, 50 generations, of 5``."""
    algorithms = stored_methods(protocol)[0]
    return f"CEC'{protocol.suite[-2:]}, {limit(protocol)}, of {len(algorithms) + 1}"


def cell_errors_table(protocol: Protocol) -> str:
    """Return mean and deviation on every function by number of cells, the paper's figures beside ours."""
    _, controllers = stored_methods(protocol)
    stored = {method.name: method for method in controllers}
    columns: dict[str, Summary | PaperColumn] = {}
    for size, name in CELL_SIZES.items():
        if name in stored:
            columns[f"{size} cells"] = stored[name].summary
        paper = paper_column(protocol.table, f"lde-n50-cell{size}", protocol.functions)
        if paper is not None:
            columns[f"{size} cells, paper"] = paper
    rows = []
    for index, function in enumerate(protocol.functions):
        rows.append([f"f{function}", *(_mean_and_deviation(column, index) for column in columns.values())])
    return markdown_table(["function", *columns], rows)


def _mean_and_deviation(column: Summary | PaperColumn, index: int) -> str:
    return f"{scientific(column.mean[index])} ({scientific(column.std[index])})"


def ranking_table(protocol: Protocol, name: str) -> str:
    """Return the ranking of one controller among the algorithms, the paper's scores beside, and how far means agree."""
    algorithms, controllers = stored_methods(protocol)
    learned = lookup("controller", name, {method.name: method for method in controllers})
    comparison = compare_alone(learned, algorithms, protocol)
    printed = paper_scores(protocol.table)
    rows = []
    for method in comparison.ranking:
        paper = printed.get(method.paper_name or "")
        agreeing = f"{comparison.within_limit(method.name)}" if method.name in comparison.z_scores else ""
        score = f"{comparison.scores[method.name]:.2f}"
        rows.append([method.label, score, "" if paper is None else f"{paper:.2f}", agreeing])
    functions = len(protocol.functions)
    header = ["method", "score", "paper's score", f"of {functions} means within {Z_LIMIT} s.e. of the paper's"]
    shown = len(header) if has_table(protocol.table) else 2
    return markdown_table(header[:shown], [row[:shown] for row in rows])


def errors_table(protocol: Protocol) -> str:
    """Return mean and deviation of every stored method on every function, the paper's LDE first."""
    algorithms, controllers = stored_methods(protocol)
    methods = [*controllers, *algorithms]
    comparison = compare(Results(protocol, tuple(methods), reference=methods[0].name))
    paper = paper_column(protocol.table, "lde", protocol.functions) if has_table(protocol.table) else None
    rows = []
    for index in range(len(protocol.functions)):
        row = [function_name(comparison, index)]
        row.append("" if paper is None else _mean_and_deviation(paper, index))
        row += [_mean_and_deviation(method.summary, index) for method in methods]
        rows.append(row)
    return markdown_table(["function", "LDE, paper", *(method.label for method in methods)], rows)


def returns_table() -> str:
    """Return the mean returns that were measured with the shipped controllers, from the files of their weights."""
    rows = []
    for name in available():
        for kind, measured in load(name).info.results.items():
            means, p_values = measured["mean_return"], measured["p_against_trained"]  # type: ignore[index]
            row = [f"`{name}`, {kind} functions", f"{means['trained']:.3f}"]
            row += [f"{means[other]:.3f} (p {p_values[other]:.0e})" for other in ("untrained", "random", "constant")]
            rows.append(row)
    return markdown_table(["controller", "trained", "untrained", "random", "constant"], rows)
