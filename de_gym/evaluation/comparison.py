"""Comparison: every statistic that a report shows, computed once from the results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from de_gym.arrays import FloatArray
from de_gym.evaluation.paper import NUM_RUNS, PaperColumn, has_table, paper_column, paper_scores
from de_gym.evaluation.results import MethodResults, Results
from de_gym.evaluation.statistics import (
    Friedman,
    MarkCounts,
    Probabilities,
    accuracy_and_speed_scores,
    average_performance_scores,
    bayesian_signed_rank,
    count_marks,
    friedman,
    pairwise_rank_tests,
    rank_sum_marks,
    superiority,
    u_scores,
    z_scores,
)

Z_LIMIT = 3.5
"""A mean further from the paper's than this many standard errors is reported as different."""

SMALL_EFFECT = 0.06
"""A chance of winning that differs from one half by no more is a negligible effect (Vargha and Delaney, 2000)."""


@dataclass(frozen=True)
class Comparison:
    """The statistics of a set of results; mappings go from method name to value.

    Attributes:
        results: What was compared.
        marks: Rank-sum mark per function against the reference, for every other method.
        counts: How often each mark occurs.
        scores: Average performance score among all methods.
        paper_scores: The paper's score, where it ranks the method under this protocol.
        friedman: Friedman's test on the mean errors, ranks in the order of the methods; None below three methods.
        holm: p-value against the reference after Friedman's test, Holm-corrected over all pairs.
        paper: The paper's column, where it has one.
        z_scores: Distance of every mean from the paper's, where it has one, shape (P,).
    """

    results: Results
    marks: Mapping[str, list[str]]
    counts: Mapping[str, MarkCounts]
    scores: Mapping[str, float]
    paper_scores: Mapping[str, float]
    friedman: Friedman | None
    holm: Mapping[str, float]
    paper: Mapping[str, PaperColumn]
    z_scores: Mapping[str, FloatArray]

    @cached_property
    def u_scores(self) -> dict[str, float]:
        """The U-score of each method over all functions, by errors and, where all are known, evaluations."""
        methods = self.results.methods
        counts = [method.evaluations for method in methods if method.evaluations is not None]
        scores = u_scores([method.errors for method in methods], counts if len(counts) == len(methods) else None)
        return {method.name: float(score) for method, score in zip(methods, scores.sum(axis=1), strict=True)}

    @cached_property
    def competition_scores(self) -> dict[str, float]:
        """Accuracy plus speed of the CEC'26 competition, among the methods whose convergence was kept."""
        kept = {method.name: method.convergence.errors for method in self.results.methods if method.convergence}
        if len(kept) < 2:
            return {}
        accuracy, speed = accuracy_and_speed_scores(list(kept.values()))
        return dict(zip(kept, (accuracy + speed).sum(axis=1).tolist(), strict=True))

    @cached_property
    def probabilities(self) -> dict[str, Probabilities]:
        """How probable it is that each method is better than, equivalent to and worse than the reference.

        The differences are by how much the chance that one run beats one of the reference exceeds one half.
        """
        reference = self.results.reference_results.errors
        return {
            method.name: bayesian_signed_rank(superiority(reference, method.errors) - 0.5, SMALL_EFFECT)
            for method in self.results.compared
        }

    @property
    def ranking(self) -> list[MethodResults]:
        """Methods by ascending score, those of equal score in the order of the columns."""
        return sorted(self.results.methods, key=lambda method: self.scores[method.name])

    def place(self, name: str) -> int:
        """Return a method's rank by average performance score; equal scores share the better one."""
        return 1 + sum(score < self.scores[name] for score in self.scores.values())

    def place_text(self, name: str) -> str:
        """Return the place as it is printed: one that is shared carries an equals sign."""
        return shared_place(self.scores[name], self.scores.values())

    def mean_rank(self, name: str) -> float | None:
        """Return a method's mean Friedman rank, or None where there was no test."""
        if self.friedman is None:
            return None
        return float(self.friedman.mean_ranks[[method.name for method in self.results.methods].index(name)])

    def within_limit(self, name: str) -> int:
        """Return on how many functions a method's mean agrees with the paper's."""
        return int((np.abs(self.z_scores[name]) <= Z_LIMIT).sum())


def shared_place(score: float, scores: Iterable[float]) -> str:
    """Return the place of a score among ``scores``, of which it is one; smaller is better.

    >>> shared_place(0.5, [0.5, 0.8]), shared_place(0.8, [0.5, 0.8, 0.8])
    ('1', '2=')
    """
    others = list(scores)
    return f"{1 + sum(other < score for other in others)}{'=' * (others.count(score) > 1)}"


def compare(results: Results) -> Comparison:
    """Return all statistics of ``results``."""
    methods, reference = results.methods, results.reference_results
    marks = {method.name: rank_sum_marks(reference.errors, method.errors) for method in results.compared}
    scores = average_performance_scores([method.errors for method in methods])
    means = np.stack([method.summary.mean for method in methods])
    test = friedman(means) if len(methods) > 2 and means.shape[1] > 1 else None
    holm: dict[str, float] = {}
    if test is not None:
        corrected = pairwise_rank_tests(test.mean_ranks, means.shape[1])[methods.index(reference)]
        holm = {method.name: float(p) for method, p in zip(methods, corrected, strict=True) if method != reference}
    paper = _paper_columns(results)
    printed_scores = paper_scores(results.protocol.table)
    return Comparison(
        results=results,
        marks=marks,
        counts={name: count_marks(column) for name, column in marks.items()},
        scores={method.name: float(score) for method, score in zip(methods, scores, strict=True)},
        paper_scores={
            method.name: printed_scores[method.paper_name] for method in methods if method.paper_name in printed_scores
        },
        friedman=test,
        holm=holm,
        paper=paper,
        z_scores={
            name: z_scores(results[name].summary, results[name].num_runs, column.mean, column.std, NUM_RUNS)
            for name, column in paper.items()
        },
    )


def _paper_columns(results: Results) -> dict[str, PaperColumn]:
    """Return the paper's column of every method that has a counterpart there."""
    protocol = results.protocol
    if not has_table(protocol.table):
        return {}
    columns = {
        method.name: paper_column(protocol.table, method.paper_name, protocol.functions)
        for method in results.methods
        if method.paper_name is not None
    }
    return {name: column for name, column in columns.items() if column is not None}
