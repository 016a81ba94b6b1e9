"""The project's results from the raw files in the package: ``python -m de_gym.evaluation.published``.

It rewrites the results section of the README in the current folder, and writes the long form, with a report of every
table, to ``results/published``. Nothing is run: every number follows from a file that comes with the package.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from de_gym.controllers import available, load
from de_gym.evaluation.comparison import Z_LIMIT, Comparison, compare
from de_gym.evaluation.figures import score_bars
from de_gym.evaluation.paper import paper_algorithms, paper_column, paper_scores
from de_gym.evaluation.protocol import PROTOCOLS, Protocol
from de_gym.evaluation.report import write_report
from de_gym.evaluation.results import MethodResults, Results, shipped_results
from de_gym.evaluation.statistics import MarkCounts, count_marks, rank_sum_marks
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
    "two-numbers": "one mean F and one mean CR: `--num-knots 1`",
    "no-baseline": "plain returns: `--baseline none`",
    "untrained-deviation-0.1": "the untrained network with a deviation of 0.1 instead of 0.5",
}
"""What the stored controllers are, and the arguments of ``train.py`` by which they differ from its defaults."""


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
    """Return one row per controller, each compared alone with the algorithms, by ascending score.

    The first row is the paper's LDE with its printed score.
    """
    algorithms, controllers = stored_methods(protocol)
    random = next((method for method in controllers if method.name == "random"), None)
    rows = []
    for method in controllers:
        comparison = compare_alone(method, algorithms, protocol)
        marks = "" if random is None or method is random else str(_counts_against(random, method))
        score = f"{comparison.scores[method.name]:.2f}"
        rows.append([_described(method.name), score, str(place(comparison)), marks])
    rows.sort(key=lambda row: float(row[1]))
    printed = paper_scores(protocol.table)
    if "lde" in printed:
        better = sum(score < printed["lde"] for score in printed.values())
        rows.insert(0, ["LDE, as printed in the paper", f"{printed['lde']:.2f}", str(better + 1), ""])
    header = ["controller", "score", f"place of {len(algorithms) + 1}", "better/similar/worse than `random`"]
    return markdown_table(header, rows)


def _described(name: str) -> str:
    return f"`{name}`: {DESCRIPTIONS[name]}" if name in DESCRIPTIONS else f"`{name}`"


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
        results = Results(protocol, (*controllers, *algorithms), reference=_main_controller(controllers).name)
        write_report(results, folder / name, command="python -m de_gym.evaluation.published")
        parts.append(f"[All methods together]({name}/report.html)")
    return "\n\n".join(parts) + "\n"


def _scores(protocol: Protocol) -> list[str]:
    learned = _main_controller(stored_methods(protocol)[1]).name
    return [
        "Each controller in turn among the algorithms:",
        controllers_table(protocol),
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
            config.readme.write_text(replace_section(config.readme.read_text(encoding="utf-8"), readme_section()))
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
