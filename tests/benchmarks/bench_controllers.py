"""How often a run of the default controller ends better than one of another method, on random problems held out for it.

Run ``OMP_NUM_THREADS=1 python tests/benchmarks/bench_controllers.py``: problems of seed 20 000, which no training and
no choice has seen; ties count one half; intervals are bootstrapped over the problems.
"""

from __future__ import annotations

import argparse

import numpy as np
from joblib import Parallel, delayed

from de_gym import make_suite
from de_gym.controllers import DEFAULT, load
from de_gym.optimizers import METHODS, AdaptiveDE, run

HELD_OUT_SEED = 20_000


def final_errors(method: str, dimension: int, per_coordinate: int, number: int, num_runs: int) -> np.ndarray:
    """Return the errors of some runs on one held-out problem; all methods get the same seeds."""
    problem = make_suite("random", dimension, [number], seed=HELD_OUT_SEED)[number]
    optimizer = AdaptiveDE(controller=load(DEFAULT)) if method == DEFAULT else METHODS[method]()
    budget = dimension * per_coordinate
    try:
        return run(optimizer, problem, num_runs=num_runs, seed=number, max_evaluations=budget).errors
    except ValueError:
        return np.full(num_runs, np.inf)  # the budget does not pay for the method's first population


def win_shares(ours: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return for each problem the share of pairs of runs in which ours ends better."""
    mine, theirs = ours[:, :, None], others[:, None, :]
    return ((mine < theirs) + 0.5 * (mine == theirs)).mean(axis=(1, 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="*", default=["l-srtde", "jso"])
    parser.add_argument("--dimensions", type=int, nargs="*", default=[2, 5, 10, 20, 30, 50])
    parser.add_argument("--budgets", type=int, nargs="*", default=[50, 200, 1000, 2000], help="per coordinate")
    parser.add_argument("--problems", type=int, default=60)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    with Parallel(n_jobs=arguments.jobs) as parallel:
        for dimension in arguments.dimensions:
            for budget in arguments.budgets:
                errors = {
                    method: np.array(
                        parallel(
                            delayed(final_errors)(method, dimension, budget, number, arguments.runs)
                            for number in range(1, arguments.problems + 1)
                        )
                    )
                    for method in (DEFAULT, *arguments.methods)
                }
                cells = []
                for method in arguments.methods:
                    shares = win_shares(errors[DEFAULT], errors[method])
                    means = rng.choice(shares, (2000, len(shares))).mean(axis=1)
                    low, high = np.percentile(means, [2.5, 97.5])
                    cells.append(f"{method} {shares.mean():.2f} ({low:.2f}-{high:.2f})")
                print(f"n = {dimension}, {budget} n evaluations: " + ", ".join(cells), flush=True)


if __name__ == "__main__":
    main()
