"""Which methods solve standard and engineering problems with 1000 evaluations per coordinate.

A problem counts as solved where the median run ends within a tolerance of the best known value. Engineering problems
are given as plain functions, constraints as penalties, so that every method can take part.

Run: python tests/benchmarks/bench_solved.py [--runs 5] [--methods learned l-srtde jso cma minion-arrde] [--largest 50]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from bench_constraints import Design, pressure_vessel, speed_reducer, spring, welded_beam
from bench_minimize import nan_sphere, noisy_sphere, rastrigin, rosenbrock, sphere

from de_gym import minimize

PER_COORDINATE, DIMENSIONS = 1000, (2, 5, 10, 20, 30, 50)
TOLERANCE, RELATIVE_TOLERANCE = 1e-6, 1e-3
INFEASIBLE = 1e7


class Task(NamedTuple):
    name: str
    function: Callable[[np.ndarray], float]
    bounds: list[tuple[float, float]]
    solved_below: float


def cantilever() -> Design:
    """Fleury and Braibant (1986): widths of five hollow blocks."""

    def inequalities(x):
        return [float(np.sum(np.array([61.0, 37.0, 19.0, 7.0, 1.0]) / np.asarray(x) ** 3)) - 1.0]

    def cost(x):
        return 0.0624 * float(np.sum(x))

    return Design("cantilever", cost, inequalities, lambda x: [], [(0.01, 100.0)] * 5, [False] * 5, 1.339956)


def three_bar_truss() -> Design:
    """Nowacki (1973)."""
    root = math.sqrt(2.0)

    def inequalities(x):
        a, b = x
        below = root * a**2 + 2.0 * a * b + 1e-12
        return [2.0 * (root * a + b) / below - 2.0, 2.0 * b / below - 2.0, 2.0 / (a + root * b + 1e-12) - 2.0]

    def cost(x):
        return (2.0 * root * x[0] + x[1]) * 100.0

    return Design("three-bar truss", cost, inequalities, lambda x: [], [(0.0, 1.0)] * 2, [False] * 2, 263.895843)


def penalised(design: Design) -> Callable[[np.ndarray], float]:
    """Return the cost, or a number above all costs that grows with the violation; whole variables are rounded."""
    whole = np.array(design.integrality)

    def value(x: np.ndarray) -> float:
        rounded = np.where(whole, np.round(x), x)
        violation = sum(max(0.0, excess) for excess in design.inequalities(rounded))
        return float(design.cost(rounded)) if violation <= 0.0 else INFEASIBLE + violation

    return value


def tasks(largest: int) -> Iterator[Task]:
    """Yield all problems."""
    for function in (sphere, rosenbrock, rastrigin, noisy_sphere, nan_sphere):
        for dimension in (n for n in DIMENSIONS if n <= largest):
            bounds = [(-5.0, 5.0)] * dimension
            yield Task(f"{function.__name__}, n = {dimension}", lambda x, f=function: float(f(x)), bounds, TOLERANCE)
    for make in (pressure_vessel, welded_beam, spring, speed_reducer, cantilever, three_bar_truss):
        design = make()
        limit = design.best_known + RELATIVE_TOLERANCE * abs(design.best_known)
        yield Task(f"{design.name}, n = {len(design.bounds)}", penalised(design), design.bounds, limit)


def main() -> None:
    """Print a table of medians, solved ones in bold, and the problems that only others solve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--methods", nargs="+", default=["learned", "l-srtde", "jso", "cma", "minion-arrde"])
    parser.add_argument("--largest", type=int, default=50)
    options = parser.parse_args()
    print(f"| problem | {' | '.join(options.methods)} |\n|---|{'---|' * len(options.methods)}")
    missed = []
    for task in tasks(options.largest):
        budget = PER_COORDINATE * len(task.bounds)
        medians = [_median(task, method, budget, options.runs) for method in options.methods]
        solved = [median <= task.solved_below for median in medians]
        cells = [f"**{value:.4g}**" if done else f"{value:.4g}" for value, done in zip(medians, solved, strict=True)]
        print(f"| {task.name} | {' | '.join(cells)} |", flush=True)
        if any(solved) and not solved[0]:
            missed.append(task.name)
    print(f"\nSolved by another method but not by {options.methods[0]!r}: {', '.join(missed) or 'none'}.")


def _median(task: Task, method: str, budget: int, num_runs: int) -> float:
    options = {"max_evaluations": budget, "tol": None, "atol": None}
    values = [minimize(task.function, task.bounds, method=method, seed=seed, **options).fun for seed in range(num_runs)]
    return float(np.median(values))


if __name__ == "__main__":
    main()
