"""The one loop that runs an optimiser to its end, with observers that record what happens or end runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from de_gym.arrays import BoolArray, FloatArray, IntArray
from de_gym.checks import LARGEST_SIZE, real, whole
from de_gym.evolution.populations import Trials
from de_gym.optimizers.base import GenerationParameters, Optimizer
from de_gym.optimizers.records import ConvergenceRecord, RunResult, evaluation_grid, report_errors
from de_gym.problems import Problem, ProblemBatch
from de_gym.problems.base import checked_problems
from de_gym.problems.budgets import ZERO_ERROR, default_max_evaluations
from de_gym.problems.compiled import ProgramEvaluator
from de_gym.problems.minima import is_below_minimum, warn_of_mistaken_optimum


@dataclass
class Progress:
    """Runs under way, as observers see them after every generation.

    Attributes:
        optimizer: Its arrays have one row for each of the A runs that go on.
        problems: What those runs minimise.
        runs: Number of each of those runs among all, shape (A,).
        generation: How many generations were told before this one; 0 is the initial population.
        trials: The points of this generation.
        values: Their values, shape (T,).
        ended: Which of those runs this was the last generation of, by budget and by the observers before, shape (A,).
    """

    optimizer: Optimizer
    problems: ProblemBatch
    runs: IntArray
    generation: int
    trials: Trials
    values: FloatArray
    ended: BoolArray


class Observer(Protocol):
    """Looks at every generation."""

    def __call__(self, progress: Progress) -> BoolArray | None:
        """Take note of the generation just told; return which of the A runs must end, shape (A,), or None for none."""
        ...


def advance(
    optimizer: Optimizer, problems: ProblemBatch, observers: Sequence[Observer], first_points: FloatArray | None = None
) -> None:
    """Run a started optimiser until its budget is spent or observers have ended all runs.

    Args:
        optimizer: Started with one run per problem. The runs that end last are not taken from it, so that their state
            can be looked at afterwards.
        problems: What each run minimises.
        observers: Called in this order after every generation.
        first_points: Points (K, D) to put in place of the first ones that the first run asks for.
    """
    runs, generation = np.arange(len(problems)), 0
    evaluator = problems.problems[0].evaluator
    # A single function of the user's needs nothing of what brings the points of several runs in order.
    lone = evaluator if len(problems) == 1 and not isinstance(evaluator, ProgramEvaluator) else None
    while len(runs):
        trials = optimizer.ask()
        if first_points is not None and generation == 0:
            given = first_points[: trials.starts[1]]
            trials.points[: len(given)] = given
        values = lone(trials.points) if lone else problems.evaluate_ragged(trials.points, trials.starts)
        optimizer.tell(values)
        progress = Progress(optimizer, problems, runs, generation, trials, values, optimizer.has_ended)
        for observer in observers:
            stopped = observer(progress)
            if stopped is not None:
                progress.ended |= stopped
        generation += 1
        if progress.ended.any():
            going_on = np.flatnonzero(~progress.ended)
            runs, problems = runs[going_on], problems.take(going_on)
            if len(runs):
                optimizer.keep(going_on)


@dataclass(frozen=True)
class StopAtError:
    """Ends runs whose error is below a target; never where the optimum is unknown, or turns out to be none."""

    target: float

    def __call__(self, progress: Progress) -> BoolArray:
        """Return which runs have reached the target."""
        values, optimum = progress.optimizer.best_fitness, progress.problems.optimum
        reached: BoolArray = values - optimum < self.target
        for run in np.flatnonzero(reached):
            reached[run] = not is_below_minimum(float(values[run]), float(optimum[run]))
        return reached


@dataclass(frozen=True)
class StopAtGeneration:
    """Ends all runs after some generations beyond the initial population."""

    max_generations: int

    def __call__(self, progress: Progress) -> BoolArray:
        """Return that all runs or none have made enough generations."""
        return np.full(len(progress.runs), progress.generation >= self.max_generations)


class ResultRecorder:
    """Records what a ``RunResult`` says of R runs; it belongs behind the observers that end runs."""

    def __init__(self, problems: ProblemBatch, grid: IntArray) -> None:
        self._record = ConvergenceRecord(grid, len(problems))
        self._errors = np.full(len(problems), np.inf)
        self._evaluations = np.zeros(len(problems), np.int64)
        self._best_positions = np.full((len(problems), problems.dimension), np.nan)

    def __call__(self, progress: Progress) -> None:
        """Take note of the errors, and of all else where a run has ended."""
        optimizer, optimum = progress.optimizer, progress.problems.optimum
        self._record.update(progress.runs, optimizer.evaluations, optimizer.best_fitness, optimum)
        if progress.ended.any():
            rows = np.flatnonzero(progress.ended)
            runs = progress.runs[rows]
            self._errors[runs] = report_errors(optimizer.best_fitness[rows], optimum[rows])
            self._evaluations[runs] = optimizer.evaluations[rows]
            self._best_positions[runs] = optimizer.best_position[rows]

    def result(self) -> RunResult:
        """Return the outcome of the runs that have ended."""
        return RunResult(
            self._errors, self._evaluations, self._best_positions, self._record.grid, self._record.convergence
        )


@dataclass
class ParameterRecorder:
    """Records the control parameters of every generation of a single run.

    Attributes:
        generations: One entry per generation that had any.
    """

    generations: list[GenerationParameters] = field(default_factory=list)

    def __call__(self, progress: Progress) -> None:
        """Take note of the parameters, where the method has some."""
        parameters = progress.optimizer.last_parameters
        if parameters is not None:
            self.generations.append(parameters)


def run(
    optimizer: Optimizer,
    problem: Problem | Sequence[Problem] | ProblemBatch,
    num_runs: int | None = None,
    seed: int = 0,
    *,
    seeds: Sequence[np.random.SeedSequence] | None = None,
    max_evaluations: int | None = None,
    max_generations: int | None = None,
    target_error: float | None = ZERO_ERROR,
    grid: IntArray | None = None,
    observers: Sequence[Observer] = (),
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
        target_error: Ends a run whose error is below; None never does, nor does an optimum that is unknown or turns
            out to be none.
        grid: Evaluation counts at which to record convergence; hundredths of the budget by default.
        observers: Called after every generation, see ``Observer``.
    """
    if not isinstance(problem, Problem | ProblemBatch):
        problem = checked_problems(problem)
    seeds = _spawn_seeds(problem, num_runs, seed) if seeds is None else list(seeds)
    problems = _one_per_run(problem, len(seeds))
    budget = (
        default_max_evaluations(problems.dimension)
        if max_evaluations is None
        else whole("max_evaluations", max_evaluations, 1)
    )
    recorder = ResultRecorder(problems, evaluation_grid(budget) if grid is None else grid)
    stops: list[Observer] = [] if target_error is None else [StopAtError(real("target_error", target_error, 0.0))]
    if max_generations is not None:
        stops.append(StopAtGeneration(whole("max_generations", max_generations, 0)))
    rngs = [np.random.default_rng(sequence) for sequence in seeds]
    optimizer.start(problems.lower, problems.upper, rngs, budget)
    try:
        advance(optimizer, problems, [*observers, *stops, recorder])
    finally:
        optimizer.close()
    result = recorder.result()
    warn_of_mistaken_optimum(int((np.isfinite(problems.optimum) & (result.errors < 0.0)).sum()), stacklevel=3)
    return result


def _spawn_seeds(
    problem: Problem | Sequence[Problem] | ProblemBatch, num_runs: int | None, seed: int
) -> list[np.random.SeedSequence]:
    if num_runs is None:
        num_runs = 51 if isinstance(problem, Problem) else len(problem)
    return np.random.SeedSequence(whole("seed", seed, 0)).spawn(whole("num_runs", num_runs, 1, LARGEST_SIZE))


def _one_per_run(problem: Problem | Sequence[Problem] | ProblemBatch, num_runs: int) -> ProblemBatch:
    if isinstance(problem, Problem):
        return ProblemBatch([problem] * num_runs)
    problems = problem if isinstance(problem, ProblemBatch) else ProblemBatch(problem)
    if len(problems) != num_runs:
        raise ValueError(f"There must be one problem per run, got {len(problems)} problems for {num_runs} runs.")
    return problems
