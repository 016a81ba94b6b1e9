"""The ladder: every stored method in one comparison per number of coordinates and budget, on CEC'17."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from de_gym.evaluation.comparison import shared_place
from de_gym.evaluation.protocol import PROTOCOLS, Protocol
from de_gym.evaluation.result_files import RESULTS
from de_gym.evaluation.results import MethodResults, equal_runs, method_label, shipped_results
from de_gym.evaluation.statistics import bootstrap_interval, count_marks, performance_scores, rank_sum_marks
from de_gym.evaluation.table import Cell, Table, interval_text, table

LADDERS = (
    "small-cec17-10d",
    "small-cec17-30d",
    "small-cec17-50d",
    "ladder-cec17-10d",
    "ladder-cec17-30d",
    "ladder-cec17-50d",
)
"""Protocols of the ladder, those that have no results yet included."""

LEFT_OUT = ("jso-lde-paper",)
"""A second setting of an algorithm would count twice for all that it beats."""


@dataclass(frozen=True)
class Rung:
    """A method under one protocol.

    Attributes:
        score: Its average performance score: the mean number of methods that are significantly better.
        interval: The score's 95 % interval, bootstrapped over the functions.
        place: Its place by score, with an equals sign where it is shared.
    """

    score: float
    interval: tuple[float, float]
    place: str


@dataclass(frozen=True)
class Ladder:
    """All methods under one protocol, by name."""

    protocol: Protocol
    rungs: dict[str, Rung]

    @property
    def title(self) -> str:
        """Coordinates and budget, as in ``n = 10, 250 n``."""
        return f"n = {self.protocol.dimension}, {self.per_coordinate:,} n"

    @property
    def per_coordinate(self) -> int:
        """Evaluations of a run for each coordinate."""
        return self.protocol.budget // self.protocol.dimension


def stored_ladders(names: Sequence[str] = LADDERS) -> list[Ladder]:
    """Return the ladder of every named protocol that has results."""
    ladders = [make_ladder(PROTOCOLS[name]) for name in names]
    return [ladder for ladder in ladders if ladder.rungs]


def make_ladder(protocol: Protocol) -> Ladder:
    """Return the comparison of all methods that come with the package under a protocol."""
    methods = ladder_methods(protocol)
    if len(methods) < 2:
        return Ladder(protocol, {})
    by_function = performance_scores([method.errors for method in methods])
    scores = by_function.mean(axis=1).tolist()
    rungs = {
        method.name: Rung(score, bootstrap_interval(row), shared_place(score, scores))
        for method, score, row in zip(methods, scores, by_function, strict=True)
    }
    return Ladder(protocol, rungs)


def ladder_methods(protocol: Protocol, others: Sequence[MethodResults] = ()) -> tuple[MethodResults, ...]:
    """Return all methods that come with the package under a protocol, and others, with equally many runs of each."""
    stored = [method for method in shipped_results(protocol, [RESULTS]) if method.name not in LEFT_OUT]
    return equal_runs([*stored, *others], protocol.num_runs) if stored else ()


def ladder_table(ladders: Sequence[Ladder]) -> Table:
    """Return one row per method: score, interval and place under every protocol, the best on average on top."""
    rows = []
    for name in _by_mean_place(ladders):
        rungs = [ladder.rungs.get(name) for ladder in ladders]
        rows.append([Cell(method_label(name)), *(_cell(rung) for rung in rungs)])
    return table(["method", *(f"{ladder.title}, of {len(ladder.rungs)}" for ladder in ladders)], rows)


def places_table(ladders: Sequence[Ladder], name: str, other: str) -> Table:
    """Return a method's places by budget and number of coordinates; in brackets how it does against one other method.

    The latter is the number of functions on which it is better, similar and worse.
    """
    taken = [ladder for ladder in ladders if name in ladder.rungs]
    dimensions = sorted({ladder.protocol.dimension for ladder in taken})
    rows: dict[int, dict[int, Cell]] = {}
    for ladder in taken:
        place = f"{ladder.rungs[name].place} of {len(ladder.rungs)}"
        cell = Cell(place, note=duel(shipped_results(ladder.protocol, [RESULTS]), name, other))
        rows.setdefault(ladder.per_coordinate, {})[ladder.protocol.dimension] = cell
    cells = [[Cell(f"{budget:,} n"), *(row.get(n, Cell("")) for n in dimensions)] for budget, row in rows.items()]
    return table(["evaluations", *(f"n = {n}" for n in dimensions)], cells)


def duel(methods: Sequence[MethodResults], name: str, other: str) -> str:
    """Return on how many functions a method is better, similar and worse; nothing where one is missing."""
    errors = {method.name: method.errors for method in methods}
    if not {name, other} <= errors.keys():
        return ""
    return str(count_marks(rank_sum_marks(errors[other], errors[name])))


def _by_mean_place(ladders: Sequence[Ladder]) -> list[str]:
    """Return the names by their mean share of the ladder above them; fewer columns count as much as more."""
    shares: dict[str, list[float]] = {}
    for ladder in ladders:
        for name, rung in ladder.rungs.items():
            above = sum(other.score < rung.score for other in ladder.rungs.values())
            shares.setdefault(name, []).append(above / len(ladder.rungs))
    return sorted(shares, key=lambda name: float(np.mean(shares[name])))


def _cell(rung: Rung | None) -> Cell:
    if rung is None:
        return Cell("")
    low, high = rung.interval
    note = f"{interval_text(low, high)};\u00a0{rung.place}"  # a bracket is never broken into two lines
    return Cell(f"{rung.score:.2f}", rung.score, strong=rung.place == "1", note=note)
