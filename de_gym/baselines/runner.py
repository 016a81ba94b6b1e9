"""run: R independent runs of one optimiser, from seeds to errors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from de_gym.arrays import IntArray
from de_gym.baselines.base import Optimizer
from de_gym.evolution.records import ConvergenceRecord, RunResult, evaluation_grid, report_errors
from de_gym.problems import Problem, ProblemBatch

EVALUATIONS_PER_DIMENSION = 10_000


def run(
    optimizer: Optimizer,
    problem: Problem | Sequence[Problem] | ProblemBatch,
    num_runs: int | None = None,
    seed: int = 0,
    *,
    seeds: Sequence[np.random.SeedSequence] | None = None,
    max_evaluations: int | None = None,
    max_generations: int | None = None,
    target_error: float | None = 1e-8,
    grid: IntArray | None = None,
) -> RunResult:
    """Return the result of independent runs, each of which depends on its own seed alone.

    Args:
        optimizer: What to run; it is started anew.
        problem: One problem for all runs, or one per run.
        num_runs: Number of runs; 51 by default, or as many as there are problems or seeds.
        seed: Run i uses ``SeedSequence(seed).spawn(num_runs)[i]``.
        seeds: One seed sequence per run, instead of ``num_runs`` and ``seed``.
        max_evaluations: Budget of each run in points; 10,000 per dimension by default. The initial population
            counts, and a generation that would exceed the budget is not begun.
        max_generations: Ends runs after this many generations beyond the initial population; schedules still
            refer to ``max_evaluations``.
        target_error: Ends a run whose error is below; None never does, nor does an unknown optimum.
        grid: Evaluation counts at which to record convergence; hundredths of the budget by default.
    """
    seeds = _spawn_seeds(problem, num_runs, seed) if seeds is None else list(seeds)
    problems = _one_per_run(problem, len(seeds))
    budget = EVALUATIONS_PER_DIMENSION * problems.dimension if max_evaluations is None else max_evaluations
    rngs = [np.random.default_rng(sequence) for sequence in seeds]
    record = ConvergenceRecord(evaluation_grid(budget) if grid is None else grid, len(seeds))
    best_fitness, best_positions = np.empty(len(seeds)), np.empty((len(seeds), problems.dimension))
    evaluations = np.empty(len(seeds), np.int64)
    target = -np.inf if target_error is None else target_error

    optimizer.start(problems.lower, problems.upper, rngs, budget)
    optimum = problems.optimum
    alive, rows, told = np.arange(len(seeds)), np.arange(len(seeds)), 0
    active_problems = problems
    while len(alive):
        trials = optimizer.ask()
        active = alive[optimizer.active_runs]
        if not np.array_equal(active, rows):
            active_problems, rows = problems.take(active), active
        optimizer.tell(active_problems.evaluate(trials))
        told += 1
        evaluations[alive], best_fitness[alive] = optimizer.evaluations, optimizer.best_fitness
        record.update(active, evaluations[active], report_errors(best_fitness[active], optimum[active]))
        ended = (best_fitness[alive] - optimum[alive] < target) | optimizer.has_ended
        if max_generations is not None and told > max_generations:
            ended[:] = True
        if ended.any():
            best_positions[alive[ended]] = optimizer.best_position[ended]
            optimizer.keep(np.flatnonzero(~ended))
            alive = alive[~ended]
    return RunResult(report_errors(best_fitness, optimum), evaluations, best_positions, record.grid, record.convergence)


def _spawn_seeds(
    problem: Problem | Sequence[Problem] | ProblemBatch, num_runs: int | None, seed: int
) -> list[np.random.SeedSequence]:
    if num_runs is None:
        num_runs = 51 if isinstance(problem, Problem) else len(problem)
    if num_runs < 1:
        raise ValueError(f"`num_runs` must be at least 1, got {num_runs}.")
    return np.random.SeedSequence(seed).spawn(num_runs)


def _one_per_run(problem: Problem | Sequence[Problem] | ProblemBatch, num_runs: int) -> ProblemBatch:
    if isinstance(problem, Problem):
        return ProblemBatch([problem] * num_runs)
    problems = problem if isinstance(problem, ProblemBatch) else ProblemBatch(problem)
    if len(problems) != num_runs:
        raise ValueError(f"There must be one problem per run, got {len(problems)} problems for {num_runs} runs.")
    return problems
