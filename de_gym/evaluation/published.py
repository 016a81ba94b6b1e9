"""The project's results from the stored errors: ``python -m de_gym.evaluation.published``, in the repository.

It rewrites the generated sections of the README, of the results page and of the model cards in the current folder,
draws their pictures, and writes the long form, with a report of every table, to ``results/published``. Nothing is run:
every number follows from a file in ``results/``, ``studies/`` or ``weights/``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from de_gym.controllers import DEFAULT
from de_gym.evaluation.figures import score_bars
from de_gym.evaluation.held_out import read_held_out
from de_gym.evaluation.held_out_tables import content_sentence, pooled_table, table_by_dimension
from de_gym.evaluation.insight import insight_table, read_insight
from de_gym.evaluation.insight_figure import insight_chart
from de_gym.evaluation.ladder import ladder_table, places_table, stored_ladders
from de_gym.evaluation.ladder_figure import ladder_chart
from de_gym.evaluation.model_cards import controllers_table, model_cards
from de_gym.evaluation.paper_cases import cases_table
from de_gym.evaluation.protocol import PROTOCOLS, Protocol
from de_gym.evaluation.report import write_report
from de_gym.evaluation.results import MethodResults, Results, equal_runs
from de_gym.evaluation.score_tables import (
    algorithms_table,
    all_errors_table,
    compare_alone,
    returns_table,
    stored_methods,
    studies,
    study_table,
    title,
)
from de_gym.evaluation.seed_tables import (
    SEEDS_HELD_OUT,
    held_out_residuals_table,
    residuals_table,
    seeds_sentence,
    seeds_table,
)
from de_gym.evaluation.table import to_markdown

PAGES = (Path("README.md"), Path(".github/docs/results.md"), Path(".github/docs/controllers.md"))
"""Files with generated sections, in the repository."""

SECTION = re.compile(r"<!-- (?P<name>[a-z0-9-]+): begin -->.*?<!-- (?P=name): end -->", re.DOTALL)
"""What a generated section stands between."""

SCORE_TABLES = {
    10: ("paper-cec17-10d", "small-cec17-10d", "paper-cec13-10d", "paper-cec13-10d-T"),
    30: ("paper-cec17-30d", "small-cec17-30d", "paper-cec13-30d"),
}
"""Protocols of the tables of scores, by number of dimensions."""


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
        root: The repository, whose pages and pictures are rewritten.
        out: Folder of the long form.
        reports: Whether to write the long form too, which takes most of the time.
    """

    root: Path = Path(".")
    out: Path = Path("results/published")
    reports: bool = True


def _scores_section(dimension: int) -> str:
    protocols = [PROTOCOLS[name] for name in SCORE_TABLES[dimension] if stored_methods(PROTOCOLS[name])[1]]
    return "\n\n".join(_scores(protocols)) if protocols else "Nothing is stored."


def _held_out() -> str:
    content = read_held_out()
    return f"{to_markdown(pooled_table(content))}\n\n{content_sentence(content)}"


def _held_out_residuals() -> str:
    return to_markdown(held_out_residuals_table(read_held_out(), read_held_out(SEEDS_HELD_OUT)))


def _places() -> str:
    """Return the places of the default, and how often it is better than the algorithm whose rules it adjusts."""
    return to_markdown(places_table(stored_ladders(), DEFAULT, "l-srtde"))


SECTIONS: Mapping[str, Callable[[], str]] = {
    "held-out": _held_out,
    "held-out-by-dimension": lambda: to_markdown(table_by_dimension(read_held_out())),
    "held-out-residuals": _held_out_residuals,
    "places": _places,
    "ladder": lambda: to_markdown(ladder_table(stored_ladders())),
    "residuals": lambda: to_markdown(residuals_table(stored_ladders())),
    "insight": lambda: to_markdown(insight_table(read_insight())),
    "scores-10": lambda: _scores_section(10),
    "scores-30": lambda: _scores_section(30),
    "five-seeds": lambda: seeds_sentence([PROTOCOLS[name] for name in SCORE_TABLES[10]]),
    "seeds": lambda: to_markdown(seeds_table([PROTOCOLS[name] for name in SCORE_TABLES[10]])),
    "cells-10": lambda: to_markdown(cases_table(PROTOCOLS["paper-cec13-10d"])),
    "lde-50-generations": lambda: to_markdown(cases_table(PROTOCOLS["paper-cec13-10d-T"])),
    "cells-30": lambda: to_markdown(cases_table(PROTOCOLS["paper-cec13-30d"])),
    "lde-10": lambda: to_markdown(cases_table(PROTOCOLS["paper-cec17-10d"])),
    "lde-30": lambda: to_markdown(cases_table(PROTOCOLS["paper-cec17-30d"])),
    "returns": lambda: to_markdown(returns_table()),
    "controllers": lambda: to_markdown(controllers_table()),
    "cards": lambda: model_cards(stored_ladders()),
}
"""The generated sections of all pages by name."""


def rewritten(text: str) -> str:
    r"""Return a page with all its sections made anew.

    >>> rewritten("no section")
    Traceback (most recent call last):
    ValueError: The page has no section such as '<!-- ladder: begin --> ... <!-- ladder: end -->'.
    """
    names = [match["name"] for match in SECTION.finditer(text)]
    if not names:
        raise ValueError("The page has no section such as '<!-- ladder: begin --> ... <!-- ladder: end -->'.")
    if unknown := [name for name in names if name not in SECTIONS]:
        raise ValueError(f"A section must be one of {', '.join(SECTIONS)}; got {', '.join(unknown)}.")
    return SECTION.sub(lambda match: _section(match["name"]), text)


def _section(name: str) -> str:
    return f"<!-- {name}: begin -->\n{SECTIONS[name]()}\n<!-- {name}: end -->"


def long_form(folder: Path) -> str:
    """Return the long form, after writing a report of every table into a folder of its own in ``folder``."""
    parts = ["# Results", "Every number follows from the stored errors.", to_markdown(returns_table())]
    for name in (name for names in SCORE_TABLES.values() for name in names):
        protocol = PROTOCOLS[name]
        algorithms, controllers = stored_methods(protocol)
        if not controllers:
            continue
        parts += [f"## {title(protocol)}", *_scores([protocol]), "Mean errors (deviations):"]
        parts.append(to_markdown(all_errors_table(protocol)))
        methods = equal_runs([*controllers, *algorithms], protocol.num_runs)
        results = Results(protocol, methods, reference=_main_controller(protocol).name)
        write_report(results, folder / name, command="python -m de_gym.evaluation.published")
        parts.append(f"[All methods together]({name}/report.html)")
    return "\n\n".join(parts) + "\n"


def _scores(protocols: Sequence[Protocol]) -> list[str]:
    """Return every controller's scores, and those of the algorithms beside one of them on CEC'17."""
    tables = [study_table(protocols, study) for study in studies()]
    # A single row is no study.
    parts = [to_markdown(content) for content in tables if len(content.rows) > 1]
    for protocol in protocols:
        learned = _main_controller(protocol).name
        parts.append(f"The algorithms beside `{learned}`, {title(protocol)}:")
        parts.append(to_markdown(algorithms_table(protocol, learned)))
    return parts


def _main_controller(protocol: Protocol) -> MethodResults:
    """Return the recurrent controller made for the protocol's length of run, or the first where it is not stored."""
    controllers = stored_methods(protocol)[1]
    short = protocol.max_generations is not None or protocol.budget < 1000 * protocol.dimension
    chosen = MAIN_CONTROLLERS[protocol.dimension, short]
    return next((method for method in controllers if method.name == chosen), controllers[0])


def pictures() -> dict[str, bytes]:
    """Return the pictures of the pages by file name."""
    drawn = {"ladder.png": ladder_chart(stored_ladders()), "insight.png": insight_chart(read_insight())}
    protocol = PROTOCOLS["paper-cec17-10d"]
    algorithms, controllers = stored_methods(protocol)
    if controllers:
        drawn["scores.png"] = score_bars(compare_alone(_main_controller(protocol), algorithms, protocol))
    return drawn


def main(config: PublishedConfig) -> int:
    """Rewrite the pages, draw the pictures and write the long form."""
    for page in (config.root / name for name in PAGES):
        if not page.exists():
            continue
        try:
            page.write_text(rewritten(page.read_text(encoding="utf-8")), encoding="utf-8")
        except ValueError as error:
            print(f"{page}: {error}", file=sys.stderr)
            return 1
        print(f"Sections: {page}")
    images = config.root / ".github" / "images"
    images.mkdir(parents=True, exist_ok=True)
    for name, content in pictures().items():
        (images / name).write_bytes(content)
    if config.reports:
        config.out.mkdir(parents=True, exist_ok=True)
        page = config.out / "results.md"
        page.write_text(long_form(config.out), encoding="utf-8")
        print(f"Long form: {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(PublishedConfig)))
