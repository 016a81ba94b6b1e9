"""The project's results from the raw files in the package: ``python -m de_gym.evaluation.published``.

It rewrites the results section of the README in the current folder, and writes the long form, with a report of every
table, to ``results/published``. Nothing is run: every number follows from a file that comes with the package.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from de_gym.controllers import available, load
from de_gym.evaluation.comparison import Z_LIMIT, Comparison, compare
from de_gym.evaluation.figures import score_bars
from de_gym.evaluation.paper import PaperColumn, paper_algorithms, paper_column, paper_scores
from de_gym.evaluation.protocol import PROTOCOLS, Protocol
from de_gym.evaluation.report import write_report
from de_gym.evaluation.results import MethodResults, Results, shipped_results
from de_gym.evaluation.statistics import MarkCounts, Summary, count_marks, rank_sum_marks
from de_gym.evaluation.tables import function_name, markdown_table, scientific, suite_title
from de_gym.registry import lookup

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
"""What the generated section of the README stands between."""

DESCRIPTIONS = {
    "random": "F and CR uniform in [0, 1], nothing learned",
    "constant": "F = 0.5, CR = 0.9",
    "quick-10d": "the default training, 500 generations",
    "long-10d": "trained on whole runs: `--preset long`",
    "long-10d-mean": "`long-10d` acting by its means instead of sampling",
    "quick-10d-mean": "`quick-10d` acting by its means instead of sampling",
    "quick-10d-untrained": "the network of `quick-10d` before its training",
    "quick-30d": "the default training: `--dimension 30 --population-size 100`",
    "paper-10d": "the paper's sizes, 2000 cells: `--preset paper-10d`",
    "paper-10d-mean": "`paper-10d` acting by its means instead of sampling",
    "paper-10d-untrained": "the network of `paper-10d` before its training",
    "paper-10d-all": "the same on all 28 functions, 100 updates: `--functions 1 ... 28 --updates 100`",
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


@dataclass(frozen=True)
class PublishedConfig:
    """Where the results go.

    Attributes:
        readme: File whose results section is rewritten; skipped where there is none.
        picture: The README's picture of the scores at 10 dimensions.
        out: Folder of the long form.
    """

    readme: Path = Path("README.md")
    picture: Path = Path(".github/images/scores.png")
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


def title(protocol: Protocol) -> str:
    """Return a table's heading.

    >>> title(PROTOCOLS["paper-cec13-10d-T"])
    'CEC 2013, 10 dimensions, 50 generations'
    """
    limit = f"{protocol.budget:,} evaluations"
    if protocol.max_generations is not None:
        limit = f"{protocol.max_generations} generations"
    return f"{suite_title(protocol.suite)}, {protocol.dimension} dimensions, {limit}"


def controllers_table(protocol: Protocol) -> str:
    """Return one row per controller that is not part of a study, by ascending score.

    The first row is the paper's LDE with its printed score.
    """
    algorithms, controllers = stored_methods(protocol)
    studied = {*ABLATIONS, *CELL_SIZES.values()} - set(DESCRIPTIONS)
    rows = _score_rows(protocol, [method.name for method in controllers if method.name not in studied], DESCRIPTIONS)
    printed = paper_scores(protocol.table)
    if "lde" in printed:
        better = sum(score < printed["lde"] for score in printed.values())
        rows.insert(0, ["LDE, as printed in the paper", f"{printed['lde']:.2f}", str(better + 1), ""])
    return markdown_table(_score_header("controller", algorithms), rows)


def ablations_table(protocol: Protocol) -> str:
    """Return one row per ablation, by ascending score."""
    return markdown_table(
        _score_header("default training, but", stored_methods(protocol)[0]), _score_rows(protocol, ABLATIONS, ABLATIONS)
    )


def cell_sizes_table(protocol: Protocol) -> str:
    """Return one row per number of cells, by ascending score."""
    described = {name: f"{size} cells" for size, name in CELL_SIZES.items()}
    return markdown_table(
        _score_header("the paper's sizes, but", stored_methods(protocol)[0]),
        _score_rows(protocol, described, described),
    )


def _score_header(first: str, algorithms: Sequence[MethodResults]) -> list[str]:
    return [first, "score", f"place of {len(algorithms) + 1}", "better/similar/worse than `random`"]


def _score_rows(protocol: Protocol, names: Iterable[str], descriptions: Mapping[str, str]) -> list[list[str]]:
    """Return a row for each of these controllers that is stored, each compared alone with the algorithms."""
    algorithms, controllers = stored_methods(protocol)
    stored = {method.name: method for method in controllers}
    random = stored.get("random")
    rows = []
    for method in (stored[name] for name in names if name in stored):
        comparison = compare_alone(method, algorithms, protocol)
        marks = "" if random is None or method is random else str(_counts_against(random, method))
        description = f": {descriptions[method.name]}" if method.name in descriptions else ""
        score = f"{comparison.scores[method.name]:.2f}"
        rows.append([f"`{method.name}`{description}", score, str(place(comparison)), marks])
    return sorted(rows, key=lambda row: float(row[1]))


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


def _counts_against(reference: MethodResults, method: MethodResults) -> MarkCounts:
    return count_marks(rank_sum_marks(reference.errors, method.errors))


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
    return markdown_table(header, rows)


def errors_table(protocol: Protocol) -> str:
    """Return mean and deviation of every stored method on every function, the paper's LDE first."""
    algorithms, controllers = stored_methods(protocol)
    methods = [*controllers, *algorithms]
    comparison = compare(Results(protocol, tuple(methods), reference=methods[0].name))
    paper = paper_column(protocol.table, "lde", protocol.functions)
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


def readme_section() -> str:
    """Return the short form: the scores on CEC'17, and the returns."""
    parts = []
    for name in ("paper-cec17-10d", "paper-cec17-30d"):
        if stored_methods(PROTOCOLS[name])[1]:
            parts += [f"**{title(PROTOCOLS[name])}**", *_scores(PROTOCOLS[name])]
    return "\n\n".join([*parts, *_returns()])


def long_form(folder: Path) -> str:
    """Return the long form, after writing a report of every table into a folder of its own in ``folder``."""
    parts = ["# Results", "Every number follows from the raw errors in the package.", *_returns()]
    for name, protocol in PROTOCOLS.items():
        algorithms, controllers = stored_methods(protocol)
        if not controllers:
            continue
        parts += [f"## {title(protocol)}", *_scores(protocol), "Mean errors (deviations):", errors_table(protocol)]
        if name == "paper-cec13-10d":
            parts += [
                "The paper's study of the number of cells, mean errors (deviations):",
                cell_errors_table(protocol),
            ]
        results = Results(protocol, (*controllers, *algorithms), reference=_main_controller(controllers).name)
        write_report(results, folder / name, command="python -m de_gym.evaluation.published")
        parts.append(f"[All methods together]({name}/report.html)")
    return "\n\n".join(parts) + "\n"


def _scores(protocol: Protocol) -> list[str]:
    controllers = stored_methods(protocol)[1]
    learned = _main_controller(controllers).name
    names = {method.name for method in controllers}
    parts = ["Each controller in turn among the algorithms:", controllers_table(protocol)]
    if len(names & set(ABLATIONS)) > 1:
        parts.append(ablations_table(protocol))
    if len(names & set(CELL_SIZES.values())) > 1:
        parts.append(cell_sizes_table(protocol))
    return [
        *parts,
        f"The algorithms beside `{learned}`:",
        ranking_table(protocol, learned),
    ]


def _returns() -> list[str]:
    return ["**Returns** of an episode, mean over 51 seeds per function:", returns_table()]


def _main_controller(controllers: Sequence[MethodResults]) -> MethodResults:
    """Return the first shipped controller among those of a table, or else the first of all."""
    return next((method for method in controllers if method.name in available()), controllers[0])


def replace_section(text: str, section: str) -> str:
    r"""Return ``text`` with what stands between the two marks replaced.

    >>> replace_section(f"a {BEGIN} old {END} b", "new") == f"a {BEGIN}\nnew\n{END} b"
    True
    """
    if BEGIN not in text or END not in text:
        raise ValueError(f"The file has no section between {BEGIN!r} and {END!r}.")
    return re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{section}\n{END}", text, flags=re.DOTALL)


def main(config: PublishedConfig) -> int:
    """Write both forms."""
    config.out.mkdir(parents=True, exist_ok=True)
    page = config.out / "results.md"
    page.write_text(long_form(config.out), encoding="utf-8")
    print(f"Long form: {page}")
    if config.readme.exists():
        try:
            text = replace_section(config.readme.read_text(encoding="utf-8"), readme_section())
            config.readme.write_text(text, encoding="utf-8")
        except ValueError as error:
            print(f"{config.readme}: {error}", file=sys.stderr)
            return 1
        print(f"Results section: {config.readme}")
        algorithms, controllers = stored_methods(PROTOCOLS["paper-cec17-10d"])
        if controllers:
            comparison = compare_alone(_main_controller(controllers), algorithms, PROTOCOLS["paper-cec17-10d"])
            config.picture.parent.mkdir(parents=True, exist_ok=True)
            config.picture.write_bytes(score_bars(comparison))
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(PublishedConfig)))
