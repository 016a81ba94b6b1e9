"""Optimisers of other packages behind the same ``RunResult``; install ``de-gym[peers]``.

Only what they are handed and what they evaluate is ours: budget, target, best point and convergence are taken from
the evaluations themselves, not from what the packages report.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from types import ModuleType

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.baselines.runner import EVALUATIONS_PER_DIMENSION
from de_gym.evolution.records import ConvergenceRecord, RunResult, evaluation_grid, report_errors
from de_gym.problems import Problem
from de_gym.registry import lookup

# A third of the box's half-width is what the package's documentation recommends as first step size.
_CMA_STEP_SIZE = 1.0 / 3.0


class _Ended(Exception):
    """The budget is spent or the target reached."""


class _CountedObjective:
    """A problem that counts its evaluations, remembers the best point and raises ``_Ended`` when a run is over."""

    def __init__(self, problem: Problem, max_evaluations: int, target_error: float | None, grid: IntArray) -> None:
        self.problem = problem
        self.optimum = np.array([np.nan if problem.optimum is None else problem.optimum])
        self.max_evaluations = max_evaluations
        self.target = -np.inf if target_error is None else target_error
        self.record = ConvergenceRecord(grid, 1)
        self.evaluations, self.best_fitness, self.best_position = 0, np.inf, np.full(problem.dimension, np.nan)
        self.has_ended = False

    def __call__(self, points: FloatArray) -> FloatArray:
        """Return the values of points (P, D); those beyond the budget are not evaluated."""
        within = np.asarray(points, dtype=np.float64)[: self.max_evaluations - self.evaluations]
        clipped = np.clip(within, self.problem.lower, self.problem.upper)
        values = self.problem.evaluate(clipped)
        leader = int(np.argmin(values))
        if values[leader] < self.best_fitness or self.evaluations == 0:
            self.best_fitness, self.best_position = float(values[leader]), clipped[leader].copy()
        self.evaluations += len(within)
        error = report_errors(np.array([self.best_fitness]), self.optimum)
        self.record.update(np.zeros(1, np.int64), np.array([self.evaluations]), error)
        reached = self.best_fitness - self.optimum[0] < self.target
        if reached or self.evaluations >= self.max_evaluations:
            self.has_ended = True
            raise _Ended
        return values


def _import_peer(package: str) -> ModuleType:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(f"This optimiser needs the package {package!r}: pip install 'de-gym[peers]'.") from error


def _run_cma(objective: _CountedObjective, rng: np.random.Generator) -> None:
    """Run CMA-ES of the package ``cma``, restarted with twice the samples whenever it stops."""
    cma = _import_peer("cma")
    lower, upper = objective.problem.lower, objective.problem.upper
    centre, half_width = 0.5 * (lower + upper), 0.5 * (upper - lower)
    num_samples = int(4 + 3 * np.log(objective.problem.dimension))
    while True:
        options = {
            "bounds": [-1.0, 1.0],
            "popsize": num_samples,
            "randn": lambda *shape: rng.standard_normal(shape),
            "seed": np.nan,  # the numbers come from the line above, and numpy's global state stays untouched
            "verbose": -9,
        }
        strategy = cma.CMAEvolutionStrategy(rng.uniform(-1.0, 1.0, len(lower)), _CMA_STEP_SIZE, options)
        while not strategy.stop():
            samples = strategy.ask()
            strategy.tell(samples, objective(centre + half_width * np.array(samples)).tolist())
        num_samples *= 2


def _run_minion(algorithm: str) -> Callable[[_CountedObjective, np.random.Generator], None]:
    def run_one(objective: _CountedObjective, rng: np.random.Generator) -> None:
        minionpy = _import_peer("minionpy")
        bounds = list(zip(objective.problem.lower.tolist(), objective.problem.upper.tolist(), strict=True))
        minimizer = minionpy.Minimizer(
            func=lambda points, _=None: objective(np.asarray(points)),
            bounds=bounds,
            algo=algorithm,
            maxevals=objective.max_evaluations,
            seed=int(rng.integers(2**31)),
        )
        try:
            minimizer.optimize()
        except RuntimeError:
            # Its C++ core turns our exception into one of its own.
            if not objective.has_ended:
                raise

    return run_one


PEERS: dict[str, Callable[[_CountedObjective, np.random.Generator], None]] = {
    "cma-es": _run_cma,
    "l-shade": _run_minion("LSHADE"),
    "l-srtde": _run_minion("LSRTDE"),
    "arrde": _run_minion("ARRDE"),
}


def run_peer(
    name: str,
    problem: Problem,
    num_runs: int = 51,
    seed: int = 0,
    *,
    seeds: Sequence[np.random.SeedSequence] | None = None,
    max_evaluations: int | None = None,
    target_error: float | None = 1e-8,
    grid: IntArray | None = None,
) -> RunResult:
    """Return the result of independent runs of an optimiser in ``PEERS``; arguments as in ``run``.

    Runs that a package ends on its own, before budget and target, are reported as they are.
    """
    run_one = lookup("peer", name, PEERS)
    seeds = np.random.SeedSequence(seed).spawn(num_runs) if seeds is None else list(seeds)
    budget = max_evaluations or EVALUATIONS_PER_DIMENSION * problem.dimension
    grid = evaluation_grid(budget) if grid is None else grid
    objectives = [_CountedObjective(problem, budget, target_error, grid) for _ in seeds]
    for objective, sequence in zip(objectives, seeds, strict=True):
        try:
            run_one(objective, np.random.default_rng(sequence))
        except _Ended:
            continue
    best_fitness = np.array([objective.best_fitness for objective in objectives])
    return RunResult(
        errors=report_errors(best_fitness, np.concatenate([objective.optimum for objective in objectives])),
        evaluations=np.array([objective.evaluations for objective in objectives]),
        best_positions=np.stack([objective.best_position for objective in objectives]),
        grid=objectives[0].record.grid,
        convergence=np.concatenate([objective.record.convergence for objective in objectives]),
    )
