"""minimize() beside scipy's differential_evolution: overhead per evaluation, and values at equal evaluations.

Run: python tests/benchmarks/bench_minimize.py            (the overhead, as a ratio measured in one run)
     python tests/benchmarks/bench_minimize.py --problems (a table of values on standard problems)
     python tests/benchmarks/bench_minimize.py --jso      (single runs of jSO beside minionpy's, same function)
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from scipy.optimize import differential_evolution

from de_gym import minimize

BUDGET_PER_DIMENSION = 10_000  # the default of minimize
SEEDS = range(5)


def sphere(points):
    return np.sum((points - 0.7) ** 2, axis=-1)


def rosenbrock(points):
    return np.sum(100.0 * (points[..., 1:] - points[..., :-1] ** 2) ** 2 + (1.0 - points[..., :-1]) ** 2, axis=-1)


def rastrigin(points):
    moved = points - 0.7
    return np.sum(moved**2 - 10.0 * np.cos(2.0 * np.pi * moved) + 10.0, axis=-1)


def noisy_sphere(points):
    # Noise that is a function of the point, so that every method meets the same one and runs repeat.
    noise = np.sin(1e6 * points.sum(axis=-1))
    return sphere(points) * (1.0 + 0.1 * noise)


def nan_sphere(points):
    return np.where(points[..., 0] < 0.0, np.nan, sphere(points))


def pressure_vessel(points):
    """Cost of a cylindrical vessel (Sandgren, 1990), continuous, constraints as quadratic penalties."""
    shell, head, radius, length = np.moveaxis(points, -1, 0)
    cost = 0.6224 * shell * radius * length + 1.7781 * head * radius**2
    cost = cost + 3.1661 * shell**2 * length + 19.84 * shell**2 * radius
    volume = np.pi * radius**2 * length + 4.0 / 3.0 * np.pi * radius**3
    violations = [0.0193 * radius - shell, 0.00954 * radius - head, (1_296_000.0 - volume) / 1e4, length - 240.0]
    return cost + sum(1e6 * np.maximum(violation, 0.0) ** 2 for violation in violations)


PROBLEMS: list[tuple[str, Callable, list[tuple[float, float]]]] = [
    (f"{function.__name__}, n = {dimension}", function, [(-5.0, 5.0)] * dimension)
    for function in (sphere, rosenbrock, rastrigin, noisy_sphere, nan_sphere)
    for dimension in (2, 5, 10, 30, 50)
]
PROBLEMS.append(
    ("pressure vessel, n = 4", pressure_vessel, [(0.0625, 6.1875), (0.0625, 6.1875), (10.0, 200.0), (10.0, 200.0)])
)


def run_scipy(function: Callable, bounds: list[tuple[float, float]], budget: int, seed: int, popsize: int = 15):
    """Return scipy's result after the same number of evaluations, without its early stop and polishing."""
    size = max(5, popsize * len(bounds))
    return differential_evolution(
        lambda columns: np.nan_to_num(function(columns.T), nan=1e300),
        bounds,
        popsize=popsize,
        maxiter=budget // size - 1,
        tol=0.0,
        polish=False,
        rng=np.random.default_rng(seed),
        vectorized=True,
        updating="deferred",
    )


def print_values() -> None:
    """Print the median best value of each method after the same number of evaluations."""
    print(f"Median of {len(SEEDS)} runs, {BUDGET_PER_DIMENSION} evaluations per coordinate\n")
    print("| problem | learned | jso | scipy |\n|---|---|---|---|")
    for name, function, bounds in PROBLEMS:
        budget = BUDGET_PER_DIMENSION * len(bounds)
        options = {"max_evaluations": budget, "vectorized": True}
        learned = [minimize(function, bounds, seed=seed, **options).fun for seed in SEEDS]
        jso = [minimize(function, bounds, method="jso", seed=seed, **options).fun for seed in SEEDS]
        scipy = [run_scipy(function, bounds, budget, seed).fun for seed in SEEDS]
        print(f"| {name} | " + " | ".join(f"{np.median(values):.3g}" for values in (learned, jso, scipy)) + " |")


def print_overhead() -> None:
    """Print CPU time per evaluation of both, on one vectorised function, and their ratio.

    scipy runs with its default of 150 individuals and with the 50 of the controller: the fewer, the more a generation's
    fixed cost weighs.
    """
    bounds, budget = [(-5.0, 5.0)] * 10, 20_000
    methods = {
        "minimize, 50 individuals": lambda seed: minimize(
            rosenbrock, bounds, max_evaluations=budget, seed=seed, vectorized=True
        ),
        "scipy, 150 individuals": lambda seed: run_scipy(rosenbrock, bounds, budget, seed),
        "scipy, 50 individuals": lambda seed: run_scipy(rosenbrock, bounds, budget, seed, popsize=5),
    }
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    for seed in range(8):
        for name, method in methods.items():
            start = time.process_time()
            method(seed)
            seconds[name].append(time.process_time() - start)
    medians = {name: np.median(values[1:]) for name, values in seconds.items()}  # the first run compiles
    ours = medians["minimize, 50 individuals"]
    for name, median in medians.items():
        print(f"{name}: {median / budget * 1e6:.2f} us per evaluation, {ours / median:.2f} of it is minimize's time")


def print_jso() -> None:
    """Print CPU time per evaluation of single runs of jSO, ours and minionpy's, on one vectorised function."""
    from minionpy import Minimizer

    for dimension in (10, 30):
        bounds, budget = [(-5.0, 5.0)] * dimension, 2000 * dimension
        seconds: dict[str, list[float]] = {"minimize": [], "minionpy": []}
        for seed in range(6):
            start = time.process_time()
            minimize(rosenbrock, bounds, method="jso", max_evaluations=budget, seed=seed, vectorized=True, tol=None)
            middle = time.process_time()
            objective = lambda points, _=None: rosenbrock(np.asarray(points)).tolist()  # noqa: E731
            Minimizer(func=objective, bounds=bounds, algo="jSO", maxevals=budget, seed=seed).optimize()
            seconds["minimize"].append(middle - start)
            seconds["minionpy"].append(time.process_time() - middle)
        ours, theirs = (np.median(seconds[name][1:]) / budget * 1e6 for name in seconds)
        print(
            f"n = {dimension}: minimize {ours:.2f} us per evaluation, minionpy {theirs:.2f}, {theirs / ours:.2f} times"
        )


if __name__ == "__main__":
    if "--jso" in sys.argv:
        print_jso()
    else:
        print_values() if "--problems" in sys.argv else print_overhead()
