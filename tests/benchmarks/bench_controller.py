"""What a residual controller costs: whole runs of L-SRTDE with a controller whose residuals are all zero, and without.

Both runs are the same to the last bit, so the ratio of their CPU times is the controller's price alone.

Run: python tests/benchmarks/bench_controller.py
"""

from __future__ import annotations

import time

import numpy as np

from de_gym import make_suite
from de_gym.controllers import ResidualController, load
from de_gym.optimizers import AdaptiveDE, run

REPETITIONS = 5


def without_effect(controller: ResidualController) -> ResidualController:
    """Return a controller of the same size that leaves the rules alone."""
    zeros = np.zeros_like(controller.weights), np.zeros_like(controller.size_weights)
    names, grid = (controller.features, controller.controls), (controller.budgets, controller.dimensions)
    return ResidualController(*names, *zeros, *grid)


def main() -> None:
    """Print the cost per evaluation of runs with and without the controller."""
    controllers = {"without": None, "with": without_effect(load("adaptive"))}
    print("| run | us per evaluation | with the controller |\n|---|--:|--:|")
    for dimension, budget, num_runs in ((10, 20_000, 1), (10, 100_000, 1), (30, 60_000, 1), (10, 20_000, 51)):
        problem = make_suite("cec2017", dimension, [5])[5]
        seconds: dict[str, list[float]] = {name: [] for name in controllers}
        errors = {}
        for _ in range(REPETITIONS):
            for name, controller in controllers.items():
                start = time.process_time()
                errors[name] = run(AdaptiveDE(controller=controller), problem, num_runs, max_evaluations=budget).errors
                seconds[name].append(time.process_time() - start)
        np.testing.assert_array_equal(errors["with"], errors["without"])
        base, whole = (min(seconds[name]) / (budget * num_runs) * 1e6 for name in ("without", "with"))
        print(f"| n = {dimension}, {budget:,} evaluations, {num_runs} at once | {base:.2f} | {whole / base - 1:+.1%} |")


if __name__ == "__main__":
    main()
