"""Optimizer: the public ask / tell over R independent runs that every method shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from de_gym.arrays import BoolArray, FloatArray, IntArray
from de_gym.checks import is_several, listed, numbers, whole
from de_gym.evolution.populations import RUN, RunRecords, Trials
from de_gym.machine.compiling import compiled
from de_gym.problems.budgets import BudgetTooSmall


@dataclass(frozen=True, slots=True)
class GenerationParameters:
    """The control parameters of one generation, for reports; NaN where a run has fewer individuals than another.

    Attributes:
        scale_factors: F of each individual, shape (R, N).
        crossover_rates: CR of each individual, shape (R, N).
        parent_fitness: Fitness of the individual each trial competed with, shape (R, N).
    """

    scale_factors: FloatArray
    crossover_rates: FloatArray
    parent_fitness: FloatArray


class Optimizer(ABC):
    """R independent runs of one method, advanced a generation at a time.

    Use::

        optimizer.start(lower, upper, rngs, max_evaluations)
        while not optimizer.has_ended.all():
            points, starts = optimizer.ask()            # (T, D); those of run r are starts[r] to starts[r + 1]
            optimizer.tell(evaluate(points, starts))    # (T,)
            optimizer.keep(np.flatnonzero(~optimizer.has_ended))

    Runs may ask for different numbers of points, or for none; those that have ended ask for none. A run's result
    depends on its own generator alone, not on the runs that share the batch. A value of NaN counts as +inf.
    Evaluations are counted in points, the initial population included, and a generation that would exceed
    ``max_evaluations`` is not begun: the run has ended. ``tell`` keeps the best point and the counters for everybody;
    a subclass adds only its algorithm, in the methods with a leading underscore, and keeps ``_runs["size"]``, the
    number of points of each run's next generation.

    Attributes:
        name: What tables and messages call the method.
        settings: Its constants, a frozen dataclass.
        takes_other_points: Whether it learns from points that are put in place of those it asked for.
    """

    name: str
    settings: object
    takes_other_points: bool = True

    def start(
        self, lower: FloatArray, upper: FloatArray, rngs: Sequence[np.random.Generator], max_evaluations: int | IntArray
    ) -> None:
        """Begin R new runs.

        Args:
            lower: Lower bounds, shape (R, D).
            upper: Upper bounds, shape (R, D).
            rngs: One generator per run.
            max_evaluations: Budget of every run, or of each, shape (R,); schedules refer to it.
        """
        self._lower, self._upper = _checked_boxes(lower, upper)
        num_runs, self._dimension = self._lower.shape
        if len(rngs) != num_runs:
            raise ValueError(f"There must be one generator per run, got {len(rngs)} for {num_runs} runs.")
        self._rngs = list(rngs)
        self._runs: RunRecords = np.zeros(num_runs, RUN)
        self._runs["max_evaluations"] = _checked_budgets(max_evaluations, num_runs)
        self._runs["best_fitness"] = np.inf
        self._best_position = np.full((num_runs, self._dimension), np.nan)
        self._asked: Trials | None = None
        self._start()
        if (self._runs["max_evaluations"] < self._runs["size"]).any():
            raise BudgetTooSmall(
                f"`max_evaluations` must be at least {self._runs['size'].max()}, the size of the first population of "
                f"{self.name} in {self._dimension} dimensions, got {max_evaluations}."
            )

    def ask(self) -> Trials:
        """Return the points that the runs want to have evaluated next."""
        self._check_started()
        if self._asked is not None:
            raise RuntimeError("`ask` was called twice: `tell` the values of the last trials first.")
        self._asked = self._ask()
        return self._asked

    def tell(self, values: ArrayLike) -> None:
        """Take the values (T,) of the points that ``ask`` returned."""
        self._check_started()
        if self._asked is None:
            raise RuntimeError("`tell` was called before `ask`.")
        trials = self._asked
        checked = np.array(numbers("values", values))
        if checked.shape != (len(trials.points),):
            raise ValueError(f"`values` must have shape {(len(trials.points),)}, got {checked.shape}.")
        self._asked = None
        _note_values(self._runs, self._best_position, trials.points, trials.starts, checked)
        self._tell(trials, checked)

    def keep(self, runs: IntArray) -> None:
        """Go on with the given runs only, in the given order; call it between ``tell`` and ``ask``."""
        self._check_started()
        if self._asked is not None:
            raise RuntimeError("`keep` was called between `ask` and `tell`.")
        self._lower, self._upper = self._lower[runs], self._upper[runs]
        self._rngs = [self._rngs[run] for run in runs]
        self._runs, self._best_position = self._runs[runs], self._best_position[runs]
        self._keep(runs)

    def close(self) -> None:
        """Free what the runs hold outside Python's memory; the results so far remain."""
        return

    @property
    def num_runs(self) -> int:
        """Number of runs under way, R."""
        return len(self._runs)

    @property
    def num_next_points(self) -> IntArray:
        """Points of each run's next generation, shape (R,)."""
        return self._runs["size"]

    @property
    def evaluations(self) -> IntArray:
        """Points evaluated so far, shape (R,)."""
        return self._runs["evaluations"]

    @property
    def best_fitness(self) -> FloatArray:
        """Best value so far, shape (R,)."""
        return self._runs["best_fitness"]

    @property
    def best_position(self) -> FloatArray:
        """Point of the best value so far, shape (R, D)."""
        return self._best_position

    @property
    def has_ended(self) -> BoolArray:
        """Whether each run's next generation would exceed its budget, shape (R,)."""
        ended: BoolArray = self._runs["evaluations"] + self._runs["size"] > self._runs["max_evaluations"]
        return ended

    @property
    def last_parameters(self) -> GenerationParameters | None:
        """Control parameters of the last generation told; None where the method has none yet or none at all."""
        return None

    @property
    def mean_parameters(self) -> FloatArray | None:
        """Mean F and CR of the last generation told, shape (R, 2); None where ``last_parameters`` is."""
        parameters = self.last_parameters
        if parameters is None:
            return None
        return np.stack([parameters.scale_factors.mean(axis=1), parameters.crossover_rates.mean(axis=1)], axis=1)

    @property
    def population(self) -> tuple[FloatArray, FloatArray] | None:
        """Current positions (R, N, D) and fitness (R, N), NaN and infinite where a run has fewer than N.

        None before there are any, or where none is kept.
        """
        return None

    @abstractmethod
    def _start(self) -> None:
        """Set up the method's own state and ``_runs["size"]``."""

    @abstractmethod
    def _ask(self) -> Trials:
        """Return the next points."""

    @abstractmethod
    def _tell(self, trials: Trials, values: FloatArray) -> None:
        """Take the values (T,) of the points."""

    @abstractmethod
    def _keep(self, runs: IntArray) -> None:
        """Reduce the method's own state to the given runs."""

    def _next_starts(self) -> IntArray:
        """Return ``starts`` of the next trials: as many points as a run has individuals, none where it has ended."""
        starts = np.empty(len(self._runs) + 1, np.int64)
        _count_points(self._runs, starts)
        return starts

    def _check_started(self) -> None:
        if not hasattr(self, "_runs"):
            raise RuntimeError(f"Call `start` before using {self.name}.")


@compiled
def _count_points(runs: RunRecords, starts: IntArray) -> None:
    """Write where the points of each run begin, and where the last ones end, shape (R + 1,)."""
    starts[0] = 0
    for run in range(runs.shape[0]):
        size = runs[run]["size"]
        goes_on = runs[run]["evaluations"] + size <= runs[run]["max_evaluations"]
        starts[run + 1] = starts[run] + (size if goes_on else 0)


@compiled
def _note_values(
    runs: RunRecords, best_position: FloatArray, points: FloatArray, starts: IntArray, values: FloatArray
) -> None:
    """Count the evaluations, turn NaN into +inf, and replace each run's best point where one is better or the first."""
    for run in range(runs.shape[0]):
        begin, end = starts[run], starts[run + 1]
        if begin == end:
            continue
        leader = begin
        for trial in range(begin, end):
            if values[trial] != values[trial]:
                values[trial] = np.inf
            if values[trial] < values[leader]:
                leader = trial
        if values[leader] < runs[run]["best_fitness"] or runs[run]["evaluations"] == 0:
            runs[run]["best_fitness"] = values[leader]
            # Not the row at once, whose check of shapes takes numba ten times as long to compile as all of this.
            for coordinate in range(points.shape[1]):
                best_position[run, coordinate] = points[leader, coordinate]
        runs[run]["evaluations"] += end - begin


def _checked_budgets(max_evaluations: object, num_runs: int) -> IntArray | int:
    """Return one budget, or one per run."""
    if not is_several(max_evaluations):
        return whole("max_evaluations", max_evaluations, 1)
    budgets = [whole("max_evaluations", entry, 1) for entry in listed("max_evaluations", max_evaluations, "numbers")]
    if len(budgets) != num_runs:
        raise ValueError(f"`max_evaluations` must be one number or {num_runs} of them, got {len(budgets)}.")
    return np.array(budgets, np.int64)


def _checked_boxes(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    low, high = (np.array(numbers(*bound), order="C") for bound in (("lower", lower), ("upper", upper)))
    if low.ndim != 2 or low.shape != high.shape or low.size == 0:
        raise ValueError(f"Bounds must be two arrays of one shape (R, D), got {low.shape} and {high.shape}.")
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise ValueError("Bounds must be finite numbers, got NaN or infinity.")
    if not (low < high).all():
        raise ValueError("Every lower bound must be below its upper bound.")
    return low, high
