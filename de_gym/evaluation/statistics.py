"""Statistics of error arrays: summaries, rank-sum marks, scores, ranks, probabilities, runtime distributions.

Everything here is a pure function. An error array has the runs in its last axis; ``(P, R)`` means P problems
with R runs each, and the number of runs may differ from method to method. Smaller is better throughout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from de_gym.arrays import FloatArray, IntArray

BETTER, SIMILAR, WORSE = "+", "~", "-"

COMPARED_DECIMALS = 8
"""Of errors, wherever two are compared."""


@dataclass(frozen=True)
class Summary:
    """What a results table prints of R runs; every field has the shape of the errors without their last axis."""

    mean: FloatArray
    std: FloatArray
    median: FloatArray
    best: FloatArray
    worst: FloatArray


class MarkCounts(NamedTuple):
    """On how many problems a method is significantly better than, similar to and worse than the reference."""

    better: int
    similar: int
    worse: int

    def __str__(self) -> str:
        return f"{self.better}/{self.similar}/{self.worse}"


class Probabilities(NamedTuple):
    """How probable it is that a method is better than another, practically equivalent to it, and worse."""

    better: float
    equivalent: float
    worse: float


@dataclass(frozen=True)
class Friedman:
    """Friedman's test: mean rank of each method (1 is best), its statistic and the p-value."""

    mean_ranks: FloatArray
    statistic: float
    p_value: float


def summarize(errors: ArrayLike) -> Summary:
    """Return mean, population standard deviation (ddof 0, as in the paper), median, best and worst over runs."""
    array = _checked_errors(errors)
    return Summary(
        mean=array.mean(axis=-1),
        std=array.std(axis=-1),
        median=np.median(array, axis=-1),
        best=array.min(axis=-1),
        worst=array.max(axis=-1),
    )


def rank_sum(reference: ArrayLike, compared: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the Wilcoxon rank-sum statistic and two-sided p-value of every problem.

    This is the normal approximation *without* correction for ties (``scipy.stats.ranksums``). The paper's own
    marks show that it used this one: with LDE at error 0 in all but four of 51 runs and jSO at 0 in all 51
    (CEC'17 F10, n = 10) it prints "similar" (p = 0.49), where the tie-corrected test has p = 0.04.

    Args:
        reference: Errors of the reference, shape (..., R).
        compared: Errors of the method it is compared with, shape (..., S).

    Returns:
        Statistic (positive where ``compared`` has the smaller errors) and p-value, each of shape (...).
    """
    first, second = _comparable_errors(reference), _comparable_errors(compared)
    if first.shape[:-1] != second.shape[:-1]:
        raise ValueError(
            f"Both methods need errors for the same problems, got shapes {first.shape[:-1]} and {second.shape[:-1]}."
        )
    result = stats.ranksums(first, second, axis=-1)
    return np.asarray(result.statistic, dtype=np.float64), np.asarray(result.pvalue, dtype=np.float64)


def significant_signs(reference: ArrayLike, compared: ArrayLike, significance: float = 0.05) -> IntArray:
    """Return 1 where ``compared`` is significantly better than the reference, -1 where it is worse, 0 elsewhere.

    A difference is significant by the rank-sum test, and its direction is that of the means (of the ranks where the
    means are equal). This is the paper's rule: on CEC'17 at n = 10, ranks and means point in opposite directions in six
    of its significant comparisons that could be repeated, and all six marks follow the means.

    Args:
        reference: Errors of the reference, shape (..., R).
        compared: Errors of the compared method, shape (..., S).
        significance: Level below which a p-value counts.
    """
    statistic, p_value = rank_sum(reference, compared)
    first, second = (_comparable_errors(errors).mean(axis=-1) for errors in (reference, compared))
    by_mean = (first > second).astype(np.int64) - (first < second)
    direction = np.where(by_mean == 0, np.sign(statistic).astype(np.int64), by_mean)
    return np.where(p_value < significance, direction, 0)


def fewest_runs(significance: float = 0.05) -> int:
    """Return how many runs of two methods each their difference needs to be significant at all.

    >>> fewest_runs()
    3
    """
    # Where every run of one method ends before all of the other, p is the smallest there is.
    return next(runs for runs in count(1) if rank_sum(range(runs), range(runs, 2 * runs))[1] < significance)


def rank_sum_marks(reference: ArrayLike, compared: ArrayLike, significance: float = 0.05) -> list[str]:
    """Return one mark per problem, in the paper's sense.

    "+" says that the *compared* method is significantly better than the reference (in the paper: that LDE is
    worse than the compared algorithm), "-" that it is worse, "~" that the two cannot be told apart.

    Args:
        reference: Errors of the reference, shape (P, R).
        compared: Errors of the compared method, shape (P, S).
        significance: Level below which a p-value counts.
    """
    signs = np.atleast_1d(significant_signs(reference, compared, significance))
    return [{1: BETTER, 0: SIMILAR, -1: WORSE}[int(sign)] for sign in signs]


def count_marks(marks: Sequence[str]) -> MarkCounts:
    """Return how often each mark occurs.

    >>> str(count_marks(["+", "~", "~", "-"]))
    '1/2/1'
    """
    return MarkCounts(*(sum(mark == kind for mark in marks) for kind in (BETTER, SIMILAR, WORSE)))


def performance_scores(errors: Sequence[ArrayLike], significance: float = 0.05) -> FloatArray:
    """Return, per method and problem, how many other methods are significantly better: shape (M, P).

    Args:
        errors: One array (P, R) per method.
        significance: Level of the rank-sum test of every pair.
    """
    arrays = [np.atleast_2d(_comparable_errors(method)) for method in errors]
    if not arrays:
        raise ValueError("Performance scores need at least one method, got none.")
    scores = np.zeros((len(arrays), len(arrays[0])))
    for first in range(len(arrays)):
        for second in range(first):
            signs = significant_signs(arrays[first], arrays[second], significance)
            scores[first] += signs > 0
            scores[second] += signs < 0
    return scores


def average_performance_scores(errors: Sequence[ArrayLike], significance: float = 0.05) -> FloatArray:
    """Return the average performance score (APS) of each method over problems; 0 is the best there is.

    Reference: Bader and Zitzler, "HypE", 2011; the paper's ranking tables.
    """
    scores: FloatArray = performance_scores(errors, significance).mean(axis=-1)
    return scores


def friedman(values: ArrayLike) -> Friedman:
    """Return Friedman's test over problems.

    Args:
        values: One number per method and problem (a mean or median error), shape (M, P).
    """
    array = np.asarray(values, dtype=np.float64).round(COMPARED_DECIMALS)
    if array.ndim != 2 or array.shape[0] < 3 or array.shape[1] < 2:
        raise ValueError(f"Friedman's test needs at least 3 methods and 2 problems, got shape {array.shape}.")
    mean_ranks = stats.rankdata(array, axis=0).mean(axis=1)
    if (array == array[0]).all():  # the statistic is 0/0: nothing distinguishes the methods
        return Friedman(mean_ranks, 0.0, 1.0)
    test = stats.friedmanchisquare(*array)
    return Friedman(mean_ranks, float(test.statistic), float(test.pvalue))


def pairwise_rank_tests(mean_ranks: ArrayLike, num_problems: int) -> FloatArray:
    """Return Holm-corrected p-values of all pairs after Friedman's test, symmetric, shape (M, M), 1 on the diagonal.

    A pair is compared by z = (rank_i - rank_j) / sqrt(M (M + 1) / (6 P)).

    Reference: Demsar, "Statistical comparisons of classifiers over multiple data sets", 2006, section 3.2.2.
    """
    ranks = np.asarray(mean_ranks, dtype=np.float64)
    num_methods = len(ranks)
    z_values = (ranks[:, None] - ranks[None, :]) / np.sqrt(num_methods * (num_methods + 1) / (6.0 * num_problems))
    rows, columns = np.triu_indices(num_methods, k=1)
    corrected = np.ones((num_methods, num_methods))
    corrected[rows, columns] = holm(2.0 * stats.norm.sf(np.abs(z_values[rows, columns])))
    return np.minimum(corrected, corrected.T)


def holm(p_values: ArrayLike) -> FloatArray:
    """Return p-values adjusted for multiple testing by Holm's step-down rule.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    raw = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(raw, kind="stable")
    stepped = raw[order] * np.arange(len(raw), 0, -1)
    adjusted = np.empty_like(raw)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return adjusted


def superiority(reference: ArrayLike, compared: ArrayLike) -> FloatArray:
    """Return per problem the probability that a run of ``compared`` beats one of the reference, ties as half.

    Reference: Vargha and Delaney, "A critique and improvement of the CL common language effect size statistics", 2000.
    """
    first, second = _comparable_errors(reference)[..., :, None], _comparable_errors(compared)[..., None, :]
    share: FloatArray = ((second < first) + 0.5 * (second == first)).mean(axis=(-2, -1))
    return share


def bootstrap_interval(values: ArrayLike, num_samples: int = 2000) -> tuple[float, float]:
    """Return the 95 % interval of the mean of some values, by drawing them again with replacement; the seed is fixed.

    >>> bootstrap_interval([0.5, 0.5, 0.5])
    (0.5, 0.5)
    """
    observed = np.asarray(values, dtype=np.float64)
    means = np.random.default_rng(0).choice(observed, (num_samples, len(observed))).mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5]).tolist()
    return low, high


def bayesian_signed_rank(
    differences: ArrayLike, rope: float, num_samples: int = 50_000, prior_weight: float = 0.5
) -> Probabilities:
    """Return the probabilities that a difference is in practice positive, negligible and negative.

    The Bayesian counterpart of Wilcoxon's signed-rank test: a Dirichlet process whose prior is one observation of
    difference 0. The probabilities are shares of Monte Carlo samples of the posterior, with a fixed seed, in which
    most pairs of observations (by weight) have a mean above, within or below the region of practical equivalence.

    Args:
        differences: One number per problem, positive where the method is better.
        rope: Half the width of the region of practical equivalence.
        num_samples: Samples of the posterior.
        prior_weight: Weight of the prior observation; each of the others has 1.

    Reference: Benavoli, Corani, Demsar and Zaffalon, "Time for a change", JMLR 18, 2017, section 4.2.
    """
    observed = np.concatenate([[0.0], np.asarray(differences, dtype=np.float64)])
    sums = observed[:, None] + observed[None, :]
    regions = np.stack([sums > 2.0 * rope, np.abs(sums) <= 2.0 * rope, sums < -2.0 * rope]).astype(np.float64)
    concentration = np.concatenate([[prior_weight], np.ones(len(observed) - 1)])
    weights = np.random.default_rng(0).dirichlet(concentration, num_samples)  # (S, P + 1)
    shares = np.stack([((weights @ region) * weights).sum(axis=1) for region in regions])  # (3, S)
    winners = shares == shares.max(axis=0)
    return Probabilities(*(winners / winners.sum(axis=0)).mean(axis=1).tolist())


def u_scores(errors: Sequence[ArrayLike], evaluations: Sequence[ArrayLike] | None = None) -> FloatArray:
    """Return, per method and problem, in how many pairs one of its runs beats another method's, ties as half: (M, P).

    Of two runs the one with the smaller error is better, and of two that reached the target (error 0), the faster one.
    This is the Mann-Whitney statistic of each method against all others together; more is better.

    Args:
        errors: One array (P, R) per method.
        evaluations: Evaluations of each run, likewise; without them, runs that reached the target are equal.

    Reference: Price, Kumar and Suganthan, "Trial-based dominance for comparing both the speed and accuracy of
    stochastic optimizers with standard non-parametric tests", 2023; the ranking of the CEC competitions since 2022.
    """
    arrays = [np.atleast_2d(_comparable_errors(method)) for method in errors]
    times = [np.zeros_like(array) for array in arrays] if evaluations is None else evaluations
    owners = np.repeat(np.arange(len(arrays)), [array.shape[1] for array in arrays])
    scores = np.empty((len(arrays), len(arrays[0])))
    for problem in range(len(arrays[0])):
        values = np.concatenate([array[problem] for array in arrays])
        needed = np.concatenate([np.atleast_2d(np.asarray(time, dtype=np.float64))[problem] for time in times])
        outcomes = np.stack([values, np.where(values == 0.0, needed, 0.0)], axis=1)
        places = np.unique(outcomes, axis=0, return_inverse=True)[1].reshape(-1)
        ranks = stats.rankdata(-places)  # the worst run has rank 1
        for method, array in enumerate(arrays):
            num_runs = array.shape[1]
            scores[method, problem] = ranks[owners == method].sum() - num_runs * (num_runs + 1) / 2
    return scores


def accuracy_and_speed_scores(convergence: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Return the two scores of the CEC'26 competition, per method and problem, each of shape (M, P); more is better.

    All runs of all methods are compared in pairs, a point for the better one and half a point for both in a tie.
    Accuracy compares final errors. Speed compares when each of the two first reached the worse of both final errors.

    Args:
        convergence: Best error so far at the points of a common record, one array (P, R, G) per method.

    Reference: rules of the IEEE WCCI/CEC 2026 competition on numerical optimization considering accuracy and speed.
    """
    owners = np.repeat(np.arange(len(convergence)), [curves.shape[1] for curves in convergence])
    scores = np.zeros((2, len(convergence), len(convergence[0])))
    for problem in range(len(convergence[0])):
        curves = np.concatenate([method[problem] for method in convergence])  # (N, G), never rising
        final = curves[:, -1]
        levels = np.maximum(final[:, None], final[None, :])  # (N, N)
        # How many points of a curve lie above each level is where it first reaches it.
        reached = np.stack([(-curve).searchsorted(-level) for curve, level in zip(curves, levels, strict=True)])
        for kind, (own, other) in enumerate(((final[:, None], final[None, :]), (reached, reached.T))):
            points = (own < other) + 0.5 * (own == other)
            np.fill_diagonal(points, 0.0)
            np.add.at(scores[kind, :, problem], owners, points.sum(axis=1))
    return scores[0], scores[1]


def z_scores(
    summary: Summary, num_runs: int, printed_mean: ArrayLike, printed_std: ArrayLike, printed_runs: int = 51
) -> FloatArray:
    """Return how many standard errors each of our means lies above the nearest one that is printed so.

    Printed are three digits: a difference within their rounding counts as 0, and a larger one from its edge. Two
    different means without any spread are infinitely far apart.

    Args:
        summary: Our mean and standard deviation per problem, shape (P,).
        num_runs: Runs behind our figures.
        printed_mean: Means as printed, three significant digits, shape (P,).
        printed_std: Standard deviations as printed, shape (P,).
        printed_runs: Runs behind the printed figures.
    """
    other_mean = np.asarray(printed_mean, dtype=np.float64)
    other_std = np.asarray(printed_std, dtype=np.float64)
    difference = summary.mean - other_mean
    # A printed number is not exactly representable, which must not decide a case on the very edge of its rounding.
    beyond = np.abs(difference) - half_unit(other_mean) * (1.0 + 1e-9)
    standard_error = np.sqrt(summary.std**2 / num_runs + other_std**2 / printed_runs)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores: FloatArray = np.where(beyond > 0.0, np.sign(difference) * beyond / standard_error, 0.0)
    return scores


def half_unit(printed: ArrayLike, digits: int = 3) -> FloatArray:
    """Return half a unit in the last of ``digits`` significant digits; 0 is printed only for 0 itself.

    >>> half_unit([2.35e2, 9.75e-2, 0.0]).tolist()
    [0.5, 5e-05, 0.0]
    """
    values = np.abs(np.asarray(printed, dtype=np.float64))
    exponent = np.floor(np.log10(np.where(values > 0, values, 1.0)))
    return np.where(values > 0, 0.5 * 10.0 ** (exponent - (digits - 1)), 0.0)


def round_significant(values: ArrayLike, digits: int) -> FloatArray:
    """Return numbers rounded to so many significant digits; numbers that are equal to these become equal.

    >>> round_significant([0.9949590570932898, 0.994959, 0.0, 123456.7], 6).tolist()
    [0.994959, 0.994959, 0.0, 123457.0]
    """
    array = np.asarray(values, dtype=np.float64)
    return np.array([float(f"{value:.{digits - 1}e}") for value in array.ravel()]).reshape(array.shape)


def runtimes(convergence: FloatArray, grid: FloatArray, targets: FloatArray) -> FloatArray:
    """Return the first recorded evaluation count at which each target was reached, infinity where it was not.

    Args:
        convergence: Best error so far at every grid point, shape (..., G).
        grid: Evaluation counts of the record, ascending, shape (G,).
        targets: Errors to reach, shape (T,).

    Returns:
        Evaluation counts, shape (..., T).
    """
    reached = convergence[..., None, :] <= np.asarray(targets)[:, None]  # (..., T, G)
    first = reached.argmax(axis=-1)
    return np.where(reached.any(axis=-1), np.asarray(grid, dtype=np.float64)[first], np.inf)


def runtime_distribution(times: FloatArray, budgets: FloatArray) -> FloatArray:
    """Return the share of all (problem, run, target) triples solved within each budget, shape (B,)."""
    solved = np.sort(np.ravel(times))
    shares: FloatArray = np.searchsorted(solved, budgets, side="right") / solved.size
    return shares


def _comparable_errors(errors: ArrayLike) -> FloatArray:
    """Return errors of which two are equal where no benchmark would tell them apart.

    An error below 1e-8 counts as none, so a smaller difference counts as none: where all runs of two methods end in the
    same local minimum, only the last bits of its value would decide which method is significantly better.
    """
    return _checked_errors(errors).round(COMPARED_DECIMALS)


def _checked_errors(errors: ArrayLike) -> FloatArray:
    array = np.asarray(errors, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError(f"Errors need at least one run in their last axis, got shape {array.shape}.")
    if np.isnan(array).any():
        raise ValueError("Errors must be numbers, got NaN.")
    return array
