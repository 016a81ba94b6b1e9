"""How random problems compare with the CEC functions: what is solved, how scattered good points lie, who is ahead.

Run ``OMP_NUM_THREADS=1 python tests/benchmarks/bench_random_problems.py``: ten algorithms on random problems of a seed
that nothing was tuned to, on CEC'13 and on CEC'17.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from de_gym import make_suite
from de_gym.evaluation.statistics import friedman
from de_gym.optimizers import METHODS, run
from de_gym.optimizers.registry import PAPER_METHODS
from de_gym.problems import Problem

HELD_OUT_SEED = 20_000
ALGORITHMS = (*PAPER_METHODS, "l-srtde")
SAMPLE_SIZE, BEST_SHARE = 2000, 0.05


class Cell(NamedTuple):
    """One algorithm on one problem.

    Attributes:
        suite: Which suite the problem is of.
        number: Its number there.
        errors: Final errors, 0 below 1e-8, shape (runs,).
    """

    suite: str
    number: int
    errors: np.ndarray


def find_problem(suite: str, number: int, dimension: int) -> Problem:
    """Return a problem of a suite."""
    seed = HELD_OUT_SEED if suite == "random" else None
    return make_suite(suite, dimension, [number], seed=seed)[number]


def measure(suite: str, number: int, algorithm: str, dimension: int, budget: int, num_runs: int) -> Cell:
    """Return how some runs of an algorithm ended; all algorithms get the same seeds."""
    problem = find_problem(suite, number, dimension)
    result = run(METHODS[algorithm](), problem, num_runs=num_runs, seed=number, max_evaluations=budget)
    return Cell(suite, number, result.errors)


def dispersion(problem: Problem) -> float:
    """Return how far the best of a random sample lie from each other, as a share of the distances of all.

    Near 0 where good points lie in one place, near 1 where they lie anywhere. Reference: Lunacek and Whitley, The
    dispersion metric and the CMA evolution strategy (2006).
    """
    points = np.random.default_rng(0).random((SAMPLE_SIZE, problem.dimension))
    values = problem.evaluate(problem.lower + points * (problem.upper - problem.lower))
    best = points[np.argsort(values)[: int(BEST_SHARE * SAMPLE_SIZE)]]
    return float(pdist(best).mean() / pdist(points).mean())


def quartiles(numbers: np.ndarray) -> str:
    """Return the median and the quartiles in words."""
    low, middle, high = np.percentile(numbers, [25, 50, 75])
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


def describe_suite(suite: str, errors: np.ndarray, dimension: int, numbers: list[int]) -> str:
    """Return a row of the first table, given errors (algorithms, problems, runs)."""
    solved = errors == 0.0
    by_problem = solved.mean(axis=(0, 2))
    decades = np.log10(np.maximum(errors, 1e-8))
    scatter = decades.std(axis=2).mean(axis=0)
    spread = np.ptp(np.median(decades, axis=2), axis=0)
    dispersions = np.array([dispersion(find_problem(suite, number, dimension)) for number in numbers])
    columns = (
        f"{suite} ({len(numbers)})",
        f"{solved.mean():.2f}",
        f"{(by_problem == 1.0).mean():.2f}",
        f"{(by_problem == 0.0).mean():.2f}",
        quartiles(dispersions),
        quartiles(scatter),
        quartiles(spread),
    )
    return f"| {' | '.join(columns)} |"


def print_tables(errors: dict[str, np.ndarray], dimension: int, numbers: dict[str, list[int]]) -> None:
    """Print both tables, given each suite's errors (algorithms, problems, runs)."""
    titles = "suite (problems)", "runs solved", "solved by all", "by none", "dispersion", "decades: runs", "methods"
    print(f"| {' | '.join(titles)} |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for suite in errors:
        print(describe_suite(suite, errors[suite], dimension, numbers[suite]))
    ranks = {suite: friedman(np.median(errors[suite], axis=2)).mean_ranks for suite in errors}
    print(f"\n| algorithm | {' | '.join(f'{suite} rank | solved' for suite in errors)} |")
    print(f"|---|{'--:|' * 2 * len(errors)}")
    for index in np.argsort(ranks["random"]):
        cells = [f"{ranks[suite][index]:.2f} | {(errors[suite][index] == 0.0).mean():.2f}" for suite in errors]
        print(f"| {METHODS[ALGORITHMS[index]].title} | {' | '.join(cells)} |")
    print()
    for suite in list(errors)[1:]:
        print(
            f"Spearman correlation of the ranks, random and {suite}: {spearmanr(ranks['random'], ranks[suite])[0]:.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dimension", type=int, default=10)
    parser.add_argument("--budget", type=int, default=2000, help="evaluations per coordinate")
    parser.add_argument("--problems", type=int, default=25, help="how many random problems")
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    dimension, budget = arguments.dimension, arguments.budget * arguments.dimension
    numbers = {
        "random": list(range(1, arguments.problems + 1)),
        "cec2013": list(range(1, 29)),
        "cec2017": [number for number in range(1, 31) if number != 2],
    }
    cells = Parallel(n_jobs=arguments.jobs)(
        delayed(measure)(suite, number, algorithm, dimension, budget, arguments.runs)
        for suite in numbers
        for algorithm in ALGORITHMS
        for number in numbers[suite]
    )
    errors = {
        suite: np.array([cell.errors for cell in cells if cell.suite == suite]).reshape(
            len(ALGORITHMS), -1, arguments.runs
        )
        for suite in numbers
    }
    print_tables(errors, dimension, numbers)


if __name__ == "__main__":
    main()
