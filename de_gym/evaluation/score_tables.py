"""Tables of stored results: the controllers' scores among the algorithms of the paper, and all errors."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from de_gym.controllers import RecurrentController, available, load
from de_gym.evaluation.comparison import Z_LIMIT, Comparison, compare, shared_place
from de_gym.evaluation.comparison_tables import run_length, scientific, suite_title
from de_gym.evaluation.paper import (
    PaperColumn,
    function_label,
    has_table,
    paper_algorithms,
    paper_column,
    paper_scores,
)
from de_gym.evaluation.protocol import Protocol
from de_gym.evaluation.result_files import RESULTS, STUDIES
from de_gym.evaluation.results import MethodResults, Results, equal_runs, shipped_results
from de_gym.evaluation.statistics import Summary, count_marks, rank_sum_marks
from de_gym.evaluation.table import Cell, Table, number, table
from de_gym.registry import lookup

CONTROLLERS = "controller"
"""The study that everything belongs to that is in no other."""


def studies() -> dict[str, dict[str, str]]:
    """Return what was compared, by heading: the names of controllers, and in words what they are."""
    path = STUDIES / "descriptions.json"
    described: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {CONTROLLERS: {}} | described


def stored_methods(protocol: Protocol) -> tuple[list[MethodResults], list[MethodResults]]:
    """Return what is stored under a protocol: the algorithms of the paper's table, and the controllers."""
    stored = shipped_results(protocol, [RESULTS, STUDIES])
    algorithms = [method for method in stored if method.name in paper_algorithms(protocol.table)]
    controllers = [method for method in stored if method.settings.get("kind") == "controller"]
    return algorithms, controllers


def compare_alone(method: MethodResults, algorithms: Sequence[MethodResults], protocol: Protocol) -> Comparison:
    """Return the comparison of one method with the algorithms alone, equally many runs of each, as the paper does."""
    return compare(Results(protocol, equal_runs((method, *algorithms), protocol.num_runs), reference=method.name))


def title(protocol: Protocol) -> str:
    """Return a table's heading.

    >>> from de_gym.evaluation.protocol import PROTOCOLS
    >>> title(PROTOCOLS["paper-cec13-10d-T"])
    'CEC 2013, 10 dimensions, 50 generations'
    """
    return f"{suite_title(protocol.suite)}, {protocol.dimension} dimensions, {run_length(protocol)}"


def study_table(protocols: Sequence[Protocol], study: str) -> Table:
    """Return one row per controller: its score among the algorithms of each protocol, and its place.

    The best under the first protocol stand on top; above all controllers, the paper's LDE with its printed scores.

    Args:
        protocols: The columns.
        study: A heading of ``studies()``.
    """
    described = dict(studies()[study])
    if study == CONTROLLERS:
        elsewhere = {name for names in studies().values() for name in names}
        stored = [method.name for protocol in protocols for method in stored_methods(protocol)[1]]
        described |= {name: "" for name in stored if name not in elsewhere}
    columns = [_score_cells(protocol, described) for protocol in protocols]
    first = {method.name: method for method in stored_methods(protocols[0])[1]}
    rows = []
    for name, description in described.items():
        cells = [column.get(name, Cell("")) for column in columns]
        if any(cell.text for cell in cells):
            label = f"`{name}`: {description}" if description else f"`{name}`"
            rows.append([Cell(label), *cells, _marks_against_random(first, name)])
    rows.sort(key=lambda row: math.inf if row[1].value is None else row[1].value)
    printed = [_printed_cell(protocol) for protocol in protocols]
    if study == CONTROLLERS and any(cell.text for cell in printed):
        rows.insert(0, [Cell("LDE, as printed in the paper"), *printed, Cell("")])
    marks = "better/similar/worse than `random` in the first column"
    return table([study, *(_short_title(protocol) for protocol in protocols), marks], rows)


def _score_cells(protocol: Protocol, names: Mapping[str, str]) -> dict[str, Cell]:
    """Return score and place of each of these controllers that is stored, each alone with the algorithms."""
    algorithms, controllers = stored_methods(protocol)
    cells = {}
    for method in controllers:
        if method.name in names:
            comparison = compare_alone(method, algorithms, protocol)
            score = comparison.scores[method.name]
            cells[method.name] = Cell(f"{score:.2f} ({comparison.place_text(method.name)})", score)
    return cells


def _printed_cell(protocol: Protocol) -> Cell:
    """Return the paper's score and place of LDE, or nothing where it prints none."""
    printed = paper_scores(protocol.table)
    if "lde" not in printed:
        return Cell("")
    return Cell(f"{printed['lde']:.2f} ({shared_place(printed['lde'], printed.values())})", printed["lde"])


def _marks_against_random(stored: Mapping[str, MethodResults], name: str) -> Cell:
    """Return on how many functions a controller is better than, similar to and worse than the random one."""
    if name == "random" or not {"random", name} <= set(stored):
        return Cell("")
    random, compared = equal_runs((stored["random"], stored[name]), stored[name].num_runs)
    return Cell(str(count_marks(rank_sum_marks(random.errors, compared.errors))))


def _short_title(protocol: Protocol) -> str:
    """Return a column's heading, as in ``CEC'13, 50 generations, of 5``."""
    algorithms = stored_methods(protocol)[0]
    return f"CEC'{protocol.suite[-2:]}, {run_length(protocol)}, of {len(algorithms) + 1}"


def algorithms_table(protocol: Protocol, name: str) -> Table:
    """Return the ranking of one controller among the algorithms, the paper's scores beside, and how far means agree."""
    algorithms, controllers = stored_methods(protocol)
    learned = lookup("controller", name, {method.name: method for method in controllers})
    comparison = compare_alone(learned, algorithms, protocol)
    rows = []
    for method in comparison.ranking:
        agreeing = comparison.within_limit(method.name) if method.name in comparison.z_scores else None
        scores = (comparison.scores[method.name], comparison.paper_scores.get(method.name))
        rows.append([Cell(method.label), *(number(score, ".2f") for score in scores), number(agreeing, "d")])
    agreement = f"of {len(protocol.functions)} means within {Z_LIMIT} s.e. of the paper's"
    return table(["method", "score", "paper's score", agreement], rows).without_empty_columns()


def all_errors_table(protocol: Protocol) -> Table:
    """Return mean and deviation of every stored method on every function, the paper's LDE first."""
    algorithms, controllers = stored_methods(protocol)
    paper = paper_column(protocol.table, "lde", protocol.functions) if has_table(protocol.table) else None
    columns: dict[str, Summary | PaperColumn] = {} if paper is None else {"LDE, paper": paper}
    return _summaries_table(protocol, columns | {method.label: method.summary for method in controllers + algorithms})


def _summaries_table(protocol: Protocol, columns: Mapping[str, Summary | PaperColumn]) -> Table:
    rows = []
    for index, function in enumerate(protocol.functions):
        figures = [(float(column.mean[index]), scientific(column.std[index])) for column in columns.values()]
        cells = [Cell(scientific(mean), mean, note=deviation) for mean, deviation in figures]
        rows.append([Cell(function_label(protocol.suite, function)), *cells])
    return table(["function", *columns], rows)


def returns_table() -> Table:
    """Return the mean returns that were measured with the shipped controllers, from the files of their weights."""
    rows = []
    for name in available():
        controller = load(name)
        results = controller.info.results if isinstance(controller, RecurrentController) else {}
        for kind, measured in results.items():
            means, p_values = measured["mean_return"], measured["p_against_trained"]  # type: ignore[index]
            row = [f"`{name}`, {kind} functions", f"{means['trained']:.3f}"]
            row += [f"{means[other]:.3f} (p {p_values[other]:.0e})" for other in ("untrained", "random", "constant")]
            rows.append(row)
    return table(["controller", "trained", "untrained", "random", "constant"], rows)
