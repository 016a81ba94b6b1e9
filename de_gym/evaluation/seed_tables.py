"""What trainings that differ in their seed alone reach: the scores of several controllers, and their interval."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from de_gym.controllers import DEFAULT
from de_gym.evaluation.held_out import HeldOutErrors
from de_gym.evaluation.held_out_tables import table_by_dimension
from de_gym.evaluation.ladder import Ladder, duel, ladder_methods
from de_gym.evaluation.protocol import Protocol
from de_gym.evaluation.result_files import STUDIES
from de_gym.evaluation.results import MethodResults, shipped_results
from de_gym.evaluation.score_tables import compare_alone, stored_methods, title
from de_gym.evaluation.statistics import average_performance_scores, bootstrap_interval
from de_gym.evaluation.table import Cell, Table, table

SEEDS = STUDIES / "seeds"
"""Where the errors of these controllers are."""

SEEDS_HELD_OUT = SEEDS / "held-out.npz"
"""Those on held-out problems."""

ANCHOR = "l-srtde"
"""The algorithm whose rules residual controllers adjust: what they are when all residuals are zero."""

RESIDUALS = {
    DEFAULT: "seed 1, the default",
    "evolution-strategy-seed2": "seed 2",
    "evolution-strategy-seed3": "seed 3",
    "evolution-strategy-untrained": "control: where the search begins",
    "evolution-strategy-constant-seed1": "control: the best constant residuals",
    "random-residuals": "control: random residuals",
}
"""Residual controllers that differ in their seed alone, and what they are compared with."""

_NAME = re.compile(r"(?P<preset>.+)-reinforce-seed(?P<seed>\d+)-\d+")  # as train.py names its folders


def seeds_table(protocols: Sequence[Protocol]) -> Table:
    """Return one row per protocol and preset: score among the paper's algorithms, its interval, and each seed's."""
    rows = []
    for protocol in protocols:
        algorithms, _ = stored_methods(protocol)
        for preset, trained in _by_preset(shipped_results(protocol, [SEEDS])).items():
            scores = [compare_alone(method, algorithms, protocol).scores[method.name] for method in trained]
            low, high = bootstrap_interval(scores)
            each = ", ".join(f"{score:.2f}" for score in scores)
            where = f"{title(protocol)}, of {len(algorithms) + 1}"
            rows.append([f"`--preset {preset}`", where, f"{np.mean(scores):.2f}", f"{low:.2f} to {high:.2f}", each])
    return table(["training", "score on", "mean", "95 % interval", "each seed"], rows)


def seeds_sentence(protocols: Sequence[Protocol]) -> str:
    """Return the mean scores of the table of seeds and their intervals, in one sentence."""
    rows = [[cell.text for cell in row] for row in seeds_table(protocols).rows]
    parts = [f"{preset} with {where.split(', ')[2]} {mean} ({interval})" for preset, where, mean, interval, _ in rows]
    return f"Scores of several training seeds on CEC'17, n = 10, among the paper's algorithms: {', '.join(parts)}."


def held_out_residuals_table(default: HeldOutErrors, others: HeldOutErrors) -> Table:
    """Return how often the default ends better than residual controllers of another seed, or those that control it."""
    errors = {DEFAULT: default.errors.get(DEFAULT, {}), **others.errors}
    return table_by_dimension(HeldOutErrors(errors), label=lambda name: RESIDUALS.get(name, name))


def residuals_table(ladders: Sequence[Ladder]) -> Table:
    """Return one row per residual controller: what it would score in the default's place, and its functions won.

    The latter are those on which it is better, similar and worse than the algorithm that it adjusts.
    """
    taken = [ladder for ladder in ladders if DEFAULT in ladder.rungs]
    columns = [_replacements(ladder.protocol) for ladder in taken]
    rows = [
        [Cell(label), *(column.get(name, Cell("")) for column in columns)]
        for name, label in RESIDUALS.items()
        if any(name in column for column in columns)
    ]
    return table(["residuals", *(ladder.title for ladder in taken)], rows)


def _replacements(protocol: Protocol) -> dict[str, Cell]:
    """Return the score of every stored residual controller among all methods but the default."""
    stored = shipped_results(protocol, [SEEDS])
    stored = [method for method in stored if method.name in RESIDUALS]
    others = [method for method in ladder_methods(protocol, stored) if method.name != DEFAULT]
    cells = {}
    for method in (method for method in ladder_methods(protocol, stored) if method.name in RESIDUALS):
        field = [method, *(other for other in others if other.name not in RESIDUALS)]
        score = average_performance_scores([one.errors for one in field])[0]
        cells[method.name] = Cell(f"{score:.2f}", float(score), note=duel(field, method.name, ANCHOR))
    return cells


def _by_preset(methods: Sequence[MethodResults]) -> dict[str, list[MethodResults]]:
    """Return the trainings of every preset, by seed."""
    found: dict[str, dict[int, MethodResults]] = {}
    for method in methods:
        if match := _NAME.fullmatch(method.name):
            found.setdefault(match["preset"], {})[int(match["seed"])] = method
    return {preset: [trained[seed] for seed in sorted(trained)] for preset, trained in found.items()}
