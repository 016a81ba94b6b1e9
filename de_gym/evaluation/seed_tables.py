"""What trainings that differ in their seed alone reach: the scores of several controllers, and their interval."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from de_gym.evaluation.protocol import Protocol
from de_gym.evaluation.result_files import STUDIES
from de_gym.evaluation.results import MethodResults, shipped_results
from de_gym.evaluation.score_tables import compare_alone, stored_methods, title
from de_gym.evaluation.statistics import bootstrap_interval
from de_gym.evaluation.table import Table, table

SEEDS = STUDIES / "seeds"
"""Where the errors of these controllers are."""

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


def _by_preset(methods: Sequence[MethodResults]) -> dict[str, list[MethodResults]]:
    """Return the trainings of every preset, by seed."""
    found: dict[str, dict[int, MethodResults]] = {}
    for method in methods:
        if match := _NAME.fullmatch(method.name):
            found.setdefault(match["preset"], {})[int(match["seed"])] = method
    return {preset: [trained[seed] for seed in sorted(trained)] for preset, trained in found.items()}
