"""Evaluations per CPU-second of whole runs, ours against minionpy's compiled jSO and JADE, on one thread.

Run ``OMP_NUM_THREADS=1 python tests/benchmarks/bench_optimizers.py``: 51 runs at n = 10 on CEC'17, geometric mean over
the functions. minionpy minimises its own compiled CEC'17 functions, one call per population.
"""

from __future__ import annotations

import argparse
import time

import minionpy
import numpy as np

from de_gym.optimizers import METHODS, run
from de_gym.problems import make_suite

PEERS = {"jso": "jSO", "jade": "JADE"}


def our_rate(name: str, problem, num_runs: int, max_evaluations: int) -> float:
    begin = time.process_time()
    result = run(METHODS[name](), problem, num_runs=num_runs, max_evaluations=max_evaluations, target_error=None)
    return result.evaluations.sum() / (time.process_time() - begin)


def peer_rate(name: str, number: int, dimension: int, num_runs: int, max_evaluations: int) -> float:
    function = minionpy.CEC2017Functions(number, dimension)
    evaluations = 0
    begin = time.process_time()
    for seed in range(num_runs):
        minimizer = minionpy.Minimizer(
            func=function, bounds=[(-100.0, 100.0)] * dimension, algo=PEERS[name], maxevals=max_evaluations, seed=seed
        )
        evaluations += minimizer.optimize().nfev
    return evaluations / (time.process_time() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-runs", type=int, default=51)
    parser.add_argument("--peer-runs", type=int, default=2, help="fewer, as its runs do not share a batch")
    parser.add_argument("--max-evaluations", type=int, default=100_000)
    parser.add_argument("--functions", type=int, nargs="*", default=None)
    arguments = parser.parse_args()
    suite = make_suite("cec2017", 10, arguments.functions)
    for name in PEERS:
        run(METHODS[name](), suite[suite.numbers[0]], num_runs=2, max_evaluations=2_000)  # compile
        ratios = []
        for problem in suite:
            ours = our_rate(name, problem, arguments.num_runs, arguments.max_evaluations)
            peers = peer_rate(name, problem.number, 10, arguments.peer_runs, arguments.max_evaluations)
            ratios.append(ours / peers)
            print(f"{name} F{problem.number}: {ours / 1e6:.2f} M/s, minionpy {peers / 1e6:.2f} M/s, {ratios[-1]:.1f}x")
        print(f"{name}: geometric mean {np.exp(np.mean(np.log(ratios))):.1f}x")


if __name__ == "__main__":
    main()
