"""Evaluations per CPU-second of the suites, as ratios to minionpy (CEC'17) and pygmo (CEC'13) in the same run.

Usage: python tests/benchmarks/bench_problems.py [--suites cec2013 cec2017] [--dimensions 10 30] [--batches 50 2500]
       [--calls] [--random]

With ``--calls``, the cost of a call instead: one point, and 50 of the cheapest function, where most of the time goes
into arriving at the compiled code. With ``--random``, what it costs to make random problems and to evaluate them.

Each number is CPU time of the whole process (so threads gain nothing), the least of several repetitions in which the
two contestants take turns. Every peer is called in the fastest of the forms it offers, with its input prepared
beforehand.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import numpy as np

from de_gym.problems import Problem, ProblemBatch, make_suite

Call = Callable[[], object]


def peer_calls(problem: Problem, points: np.ndarray) -> list[Call]:
    """Return the peer's ways to evaluate ``points`` (P, D)."""
    if problem.suite == "cec2017":
        from minionpy import CEC2017Functions

        function = CEC2017Functions(problem.number, problem.dimension).cpp_func
        lists = points.tolist()
        return [lambda: function(points), lambda: function(lists)]
    import pygmo

    wrapped = pygmo.problem(pygmo.cec2013(prob_id=problem.number, dim=problem.dimension))
    evaluator = pygmo.bfe(pygmo.thread_bfe())
    flat, rows = points.ravel(), list(points)
    return [lambda: evaluator(wrapped, flat), lambda: [wrapped.fitness(row) for row in rows]]


def cpu_seconds(call: Call, number: int) -> float:
    """Return the CPU time of one call, measured over ``number`` of them."""
    start = time.process_time()
    for _ in range(number):
        call()
    return (time.process_time() - start) / number


def calls_per_measurement(call: Call, duration: float) -> int:
    """Return how many calls take about ``duration`` seconds, after one that loads the compiled code."""
    call()
    number = 1
    while (seconds := cpu_seconds(call, number) * number) < duration / 4:
        number *= 4
    return max(1, round(number * duration / seconds))


def fastest(contestants: list[Call], repetitions: int, duration: float) -> list[float]:
    """Return the least CPU time of a call of each contestant; they take turns."""
    numbers = [calls_per_measurement(call, duration) for call in contestants]
    best = [math.inf] * len(contestants)
    for _ in range(repetitions):
        for index, (call, number) in enumerate(zip(contestants, numbers, strict=True)):
            best[index] = min(best[index], cpu_seconds(call, number))
    return best


def compare(problem: Problem, batch: int, repetitions: int, duration: float) -> tuple[float, float]:
    """Return CPU seconds per evaluation of ours and of the peer's fastest form."""
    rng = np.random.default_rng(problem.number)
    points = rng.uniform(problem.lower, problem.upper, (batch, problem.dimension))
    runs = ProblemBatch([problem])
    block = points[np.newaxis]
    ours, *theirs = fastest([lambda: runs.evaluate(block), *peer_calls(problem, points)], repetitions, duration)
    return ours / batch, min(theirs) / batch


def compare_calls(num_points: int, repetitions: int, duration: float) -> None:
    """Print what a call with few points of F1 of CEC'17 at n = 10 costs."""
    problem = make_suite("cec2017", 10)[1]
    points = np.random.default_rng(1).uniform(-100.0, 100.0, (num_points, 10))
    asked = points[0] if num_points == 1 else points
    block, runs = points[np.newaxis], ProblemBatch([problem])
    own_calls: list[Call] = [lambda: problem.evaluate(asked), lambda: runs.evaluate(block)]
    seconds = fastest([*own_calls, *peer_calls(problem, points)], repetitions, duration)
    names = "Problem.evaluate", "ProblemBatch.evaluate", "minionpy of an array", "minionpy of a list"
    costs = ", ".join(f"{name} {cost * 1e6:.2f} us" for name, cost in zip(names, seconds, strict=True))
    print(f"{num_points} points: {costs}")


def measure_random_problems(dimension: int, num_problems: int = 240) -> None:
    """Print what random problems cost to make, to write down at their first use, to join, and to evaluate."""
    make_suite("random", dimension, seed=1)[1].evaluate(np.zeros(dimension))
    start = time.process_time()
    problems = list(make_suite("random", dimension, range(1, num_problems + 1), seed=2))
    made = time.process_time()
    for problem in problems:
        _ = problem.program
    written = time.process_time()
    batch = ProblemBatch(problems)
    joined = time.process_time()
    points = np.random.default_rng(1).uniform(-100.0, 100.0, (num_problems, 100, dimension))
    seconds = min(cpu_seconds(lambda: batch.evaluate(points), 1) for _ in range(5)) / points[..., 0].size
    costs = [duration / num_problems * 1e6 for duration in (made - start, written - made, joined - written)]
    print(
        f"random n={dimension}: made in {costs[0]:.0f} us, written in {costs[1]:.0f} us, "
        f"joined in {costs[2]:.1f} us each; {seconds * 1e9:.0f} ns per evaluation"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suites", nargs="+", default=["cec2013", "cec2017"])
    parser.add_argument("--dimensions", nargs="+", type=int, default=[10, 30])
    parser.add_argument("--batches", nargs="+", type=int, default=[50, 2500])
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--duration", type=float, default=0.002, help="CPU seconds of one measurement")
    parser.add_argument("--summary", action="store_true", help="print the geometric means only")
    parser.add_argument("--calls", action="store_true", help="measure the cost of a call instead")
    parser.add_argument("--random", action="store_true", help="measure random problems instead")
    arguments = parser.parse_args()
    if arguments.random:
        for dimension in arguments.dimensions:
            measure_random_problems(dimension)
        return
    if arguments.calls:
        for num_points in (1, 50):
            compare_calls(num_points, arguments.repetitions, arguments.duration)
        return
    for suite in arguments.suites:
        peer = {"cec2013": "pygmo", "cec2017": "minionpy"}[suite]
        for dimension in arguments.dimensions:
            for batch in arguments.batches:
                ratios = {}
                for problem in make_suite(suite, dimension):
                    ours, theirs = compare(problem, batch, arguments.repetitions, arguments.duration)
                    ratios[problem.number] = theirs / ours
                    if not arguments.summary:
                        print(
                            f"{problem.name:12s} n={dimension} batch={batch}: {ours * 1e9:8.1f} ns, "
                            f"{peer} {theirs * 1e9:8.1f} ns, ratio {theirs / ours:6.1f}"
                        )
                mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
                slowest = min(ratios, key=ratios.__getitem__)
                print(
                    f"{suite} n={dimension} batch={batch}: {mean:.1f} times {peer} (geometric mean over "
                    f"{len(ratios)} functions), least {ratios[slowest]:.1f} (F{slowest})",
                    flush=True,
                )


if __name__ == "__main__":
    main()
