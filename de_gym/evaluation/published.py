"""The project's results from the stored errors: ``python -m de_gym.evaluation.published``, in the repository.

It rewrites the results section of the README in the current folder, and writes the long form, with a report of every
table, to ``results/published``. Nothing is run: every number follows from a file in ``results/`` or ``studies/``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from de_gym.evaluation.figures import score_bars
from de_gym.evaluation.protocol import PROTOCOLS, Protocol
from de_gym.evaluation.report import write_report
from de_gym.evaluation.results import MethodResults, Results
from de_gym.evaluation.score_tables import (
    algorithms_table,
    all_errors_table,
    compare_alone,
    errors_by_cells_table,
    returns_table,
    stored_methods,
    studies,
    study_table,
    title,
)
from de_gym.evaluation.table import to_markdown

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
"""What the generated section of the README stands between."""

README_TABLES = {
    10: ("paper-cec17-10d", "small-cec17-10d", "paper-cec13-10d", "paper-cec13-10d-T"),
    30: ("paper-cec17-30d", "small-cec17-30d", "paper-cec13-30d"),
}
"""Protocols of the README's tables, by number of dimensions."""


MAIN_CONTROLLERS = {
    (10, True): "short-10d",
    (10, False): "long-10d",
    (30, True): "short-30d",
    (30, False): "quick-30d",
}
"""The recurrent controller that tables show beside the algorithms, by dimension and whether runs are short."""


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


def readme_section() -> str:
    """Return the short form: all scores, the ranking of the algorithms on CEC'17, and the returns."""
    parts = []
    for dimension, names in README_TABLES.items():
        protocols = [PROTOCOLS[name] for name in names if stored_methods(PROTOCOLS[name])[1]]
        if protocols:
            parts += [f"**{dimension} dimensions**, score (place, = where it is shared):", *_scores(protocols)]
    return "\n\n".join([*parts, *_returns()])


def long_form(folder: Path) -> str:
    """Return the long form, after writing a report of every table into a folder of its own in ``folder``."""
    parts = ["# Results", "Every number follows from the stored errors.", *_returns()]
    for name in (name for names in README_TABLES.values() for name in names):
        protocol = PROTOCOLS[name]
        algorithms, controllers = stored_methods(protocol)
        if not controllers:
            continue
        parts += [f"## {title(protocol)}", *_scores([protocol]), "Mean errors (deviations):"]
        parts.append(to_markdown(all_errors_table(protocol)))
        if name == "paper-cec13-10d":
            parts.append("The paper's study of the number of cells, mean errors (deviations):")
            parts.append(to_markdown(errors_by_cells_table(protocol)))
        results = Results(protocol, (*controllers, *algorithms), reference=_main_controller(protocol).name)
        write_report(results, folder / name, command="python -m de_gym.evaluation.published")
        parts.append(f"[All methods together]({name}/report.html)")
    return "\n\n".join(parts) + "\n"


def _scores(protocols: Sequence[Protocol]) -> list[str]:
    """Return every controller's scores, and those of the algorithms beside one of them on CEC'17."""
    tables = [study_table(protocols, study) for study in studies()]
    # A single row is no study.
    parts = [to_markdown(content) for content in tables if len(content.rows) > 1]
    for protocol in protocols:
        if protocol.suite == "cec2017" or len(protocols) == 1:
            learned = _main_controller(protocol).name
            parts.append(f"The algorithms beside `{learned}`, {title(protocol)}:")
            parts.append(to_markdown(algorithms_table(protocol, learned)))
    return parts


def _returns() -> list[str]:
    return ["**Returns** of an episode, mean over 51 seeds per function:", to_markdown(returns_table())]


def _main_controller(protocol: Protocol) -> MethodResults:
    """Return the recurrent controller made for the protocol's length of run, or the first where it is not stored."""
    controllers = stored_methods(protocol)[1]
    chosen = MAIN_CONTROLLERS[protocol.dimension, protocol.budget < 1000 * protocol.dimension]
    return next((method for method in controllers if method.name == chosen), controllers[0])


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
        protocol = PROTOCOLS["paper-cec17-10d"]
        algorithms, controllers = stored_methods(protocol)
        if controllers:
            comparison = compare_alone(_main_controller(protocol), algorithms, protocol)
            config.picture.parent.mkdir(parents=True, exist_ok=True)
            config.picture.write_bytes(score_bars(comparison))
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(PublishedConfig)))
