"""Run the compared algorithms on a suite: ``python -m de_gym.baselines.reproduce --dimension 10 --out runs``.

One file per algorithm, written anew after each function; an interrupted run goes on with the next function.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro

from de_gym import __version__
from de_gym.baselines.stored import StoredResults, read_results, results_name, write_results
from de_gym.optimizers import METHODS, Optimizer, run
from de_gym.problems import make_suite
from de_gym.problems.budgets import default_max_evaluations
from de_gym.registry import lookup

CONFIGURATIONS: dict[str, Callable[[], Optimizer]] = {
    name: method for name, method in METHODS.items() if method.package is None
}


@dataclass(frozen=True)
class ReproduceConfig:
    """What to run.

    Attributes:
        out: Directory of the result files; created if missing.
        suite: Name of the suite.
        dimension: Number of coordinates.
        algorithms: Names out of ``CONFIGURATIONS``; all by default.
        functions: Official numbers; all of the suite by default.
        num_runs: Runs of each function.
        seed: Run i of function f uses child i of ``SeedSequence((seed, f))``.
        max_evaluations: Budget of a run; 10,000 per dimension by default.
        max_generations: Ends runs after this many generations; unlimited by default.
        processes: Algorithms run at the same time.
    """

    out: Path
    suite: str = "cec2017"
    dimension: int = 10
    algorithms: tuple[str, ...] = tuple(CONFIGURATIONS)
    functions: tuple[int, ...] | None = None
    num_runs: int = 51
    seed: int = 0
    max_evaluations: int | None = None
    max_generations: int | None = None
    processes: int = 1


def reproduce(config: ReproduceConfig, algorithm: str) -> Path:
    """Return the file with the results of one algorithm on every function, after running those it lacks."""
    optimizer = lookup("algorithm", algorithm, CONFIGURATIONS)()
    suite = make_suite(config.suite, config.dimension, config.functions)
    budget = config.max_evaluations or default_max_evaluations(config.dimension)
    metadata: dict[str, object] = {
        "algorithm": algorithm,
        "settings": dataclasses.asdict(optimizer.settings),  # type: ignore[call-overload]  # all are dataclasses
        "suite": config.suite,
        "dimension": config.dimension,
        "num_runs": config.num_runs,
        "seed": config.seed,
        "max_evaluations": budget,
        "max_generations": config.max_generations,
        "target_error": 1e-8,
        "version": __version__,
    }
    path = config.out / results_name(config.suite, config.dimension, algorithm, config.max_generations)
    results = _begin_or_resume(path, metadata, config.num_runs)
    for problem in suite:
        if problem.number in results.functions:
            continue
        assert problem.number is not None
        seeds = np.random.SeedSequence((config.seed, problem.number)).spawn(config.num_runs)
        outcome = run(optimizer, problem, seeds=seeds, max_evaluations=budget, max_generations=config.max_generations)
        functions = np.append(results.functions, problem.number)
        order = np.argsort(functions)
        results = dataclasses.replace(
            results,
            functions=functions[order],
            errors=np.vstack([results.errors, outcome.errors])[order],
            evaluations=np.vstack([results.evaluations, outcome.evaluations])[order],
        )
        write_results(path, results)
    return path


def _begin_or_resume(path: Path, metadata: dict[str, object], num_runs: int) -> StoredResults:
    if not path.exists():
        empty = np.empty((0, num_runs))
        return StoredResults(np.empty(0, np.int64), empty, empty.astype(np.int64), metadata)
    results = read_results(path)
    wanted = json.loads(json.dumps(metadata))  # as a file has them: tuples are lists
    if results.metadata != wanted:
        raise ValueError(
            f"{path} holds results of other runs: {results.metadata}; wanted {wanted}. Choose another directory."
        )
    return results


def main(config: ReproduceConfig) -> None:
    """Run all algorithms of the configuration."""
    for algorithm in config.algorithms:
        lookup("algorithm", algorithm, CONFIGURATIONS)
    config.out.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(config.processes) as pool:
        for path in pool.map(reproduce, [config] * len(config.algorithms), config.algorithms):
            print(path)


if __name__ == "__main__":
    main(tyro.cli(ReproduceConfig))
