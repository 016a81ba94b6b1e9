"""Optimizer: the public ask / tell over R independent runs that every baseline shares."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from de_gym.arrays import BoolArray, FloatArray, IntArray
from de_gym.machine.compiling import compiled

RunArrays = TypeVar("RunArrays")


def take_runs(arrays: RunArrays, runs: IntArray) -> RunArrays:
    """Return the dataclass ``arrays``, whose fields all have the runs as first axis, for some of the runs only."""
    fields = dataclasses.fields(arrays)  # type: ignore[arg-type]  # every caller passes a dataclass
    kept = {field.name: getattr(arrays, field.name)[runs] for field in fields}
    return dataclasses.replace(arrays, **kept)  # type: ignore[type-var]  # as above


@dataclass(frozen=True, slots=True)
class GenerationParameters:
    """The control parameters of one generation, for reports.

    Attributes:
        scale_factors: F of each individual, shape (R, N).
        crossover_rates: CR of each individual, shape (R, N).
        parent_fitness: Fitness of the individual each trial competed with, shape (R, N).
    """

    scale_factors: FloatArray
    crossover_rates: FloatArray
    parent_fitness: FloatArray


class Optimizer(ABC):
    """R independent runs of one algorithm, advanced a generation at a time.

    Use::

        optimizer.start(lower, upper, rngs, max_evaluations)
        while not optimizer.has_ended.all():
            trials = optimizer.ask()              # (A, K, D) points of the runs in optimizer.active_runs
            optimizer.tell(evaluate(trials))      # (A, K) values
            optimizer.keep(np.flatnonzero(~optimizer.has_ended))

    A run's result depends on its own generator alone, not on the runs that share the batch. A value of NaN
    counts as +inf. Evaluations are counted in points, the initial population included, and a generation that
    would exceed ``max_evaluations`` is not begun: the run has ended. ``tell`` keeps the best point and the
    counters for everybody; a subclass adds only its algorithm, in the methods with a leading underscore.
    """

    name: ClassVar[str]
    settings: object  # each algorithm's own frozen dataclass

    def start(
        self, lower: FloatArray, upper: FloatArray, rngs: Sequence[np.random.Generator], max_evaluations: int
    ) -> None:
        """Begin R new runs.

        Args:
            lower: Lower bounds, shape (R, D).
            upper: Upper bounds, shape (R, D).
            rngs: One generator per run.
            max_evaluations: Budget of each run; schedules refer to it.
        """
        self._lower, self._upper = _checked_boxes(lower, upper)
        num_runs, self._dimension = self._lower.shape
        if len(rngs) != num_runs:
            raise ValueError(f"There must be one generator per run, got {len(rngs)} for {num_runs} runs.")
        self._rngs = list(rngs)
        self._max_evaluations = int(max_evaluations)
        self._evaluations = np.zeros(num_runs, np.int64)
        self._best_fitness = np.full(num_runs, np.inf)
        self._best_position = np.full((num_runs, self._dimension), np.nan)
        self._asked: FloatArray | None = None
        self._start()
        smallest = int(self._next_cost().max())
        if self._max_evaluations < smallest:
            raise ValueError(
                f"`max_evaluations` must be at least {smallest}, the size of the first population of {self.name} "
                f"in {self._dimension} dimensions, got {max_evaluations}."
            )

    def ask(self) -> FloatArray:
        """Return the next trials, shape (A, K, D), of the A runs in ``active_runs``."""
        self._check_started()
        if self._asked is not None:
            raise RuntimeError("`ask` was called twice: `tell` the values of the last trials first.")
        self._active = self._next_active()
        self._asked = self._ask()
        return self._asked

    def tell(self, fitness: FloatArray) -> None:
        """Take the values (A, K) of the trials that ``ask`` returned."""
        self._check_started()
        if self._asked is None:
            raise RuntimeError("`tell` was called before `ask`.")
        trials = self._asked
        values = np.array(fitness, dtype=np.float64, order="C")
        if values.shape != trials.shape[:2]:
            raise ValueError(f"`fitness` must have shape {trials.shape[:2]}, got {values.shape}.")
        values[np.isnan(values)] = np.inf
        self._asked = None
        _keep_best(self._best_fitness, self._best_position, self._active, trials, values)
        self._evaluations[self._active] += trials.shape[1]
        self._tell(trials, values)

    def keep(self, runs: IntArray) -> None:
        """Go on with the given runs only, in the given order; call it between ``tell`` and ``ask``."""
        self._check_started()
        if self._asked is not None:
            raise RuntimeError("`keep` was called between `ask` and `tell`.")
        self._lower, self._upper = self._lower[runs], self._upper[runs]
        self._rngs = [self._rngs[run] for run in runs]
        self._evaluations = self._evaluations[runs]
        self._best_fitness, self._best_position = self._best_fitness[runs], self._best_position[runs]
        self._keep(runs)

    @property
    def num_runs(self) -> int:
        """Number of runs under way, R."""
        return len(self._rngs)

    @property
    def active_runs(self) -> IntArray:
        """Rows of the runs whose trials the last ``ask`` returned, shape (A,): all of them, except in HSES."""
        return self._active

    @property
    def evaluations(self) -> IntArray:
        """Points evaluated so far, shape (R,)."""
        return self._evaluations

    @property
    def best_fitness(self) -> FloatArray:
        """Best value so far, shape (R,)."""
        return self._best_fitness

    @property
    def best_position(self) -> FloatArray:
        """Point of the best value so far, shape (R, D)."""
        return self._best_position

    @property
    def has_ended(self) -> BoolArray:
        """Whether each run's next generation would exceed its budget, shape (R,)."""
        return self._evaluations + self._next_cost() > self._max_evaluations

    @property
    def last_parameters(self) -> GenerationParameters | None:
        """Control parameters of the last generation told; None where the algorithm has none yet or none at all."""
        return None

    @property
    def population(self) -> tuple[FloatArray, FloatArray] | None:
        """Current positions (R, N, D) and fitness (R, N); None before there are any, or where none is kept."""
        return None

    @abstractmethod
    def _start(self) -> None:
        """Set up the algorithm's own state."""

    def _next_active(self) -> IntArray:
        """Return the rows of the runs to ask for next."""
        return np.arange(self.num_runs)

    @abstractmethod
    def _next_cost(self) -> IntArray:
        """Return how many points each run's next generation has, shape (R,)."""

    @abstractmethod
    def _ask(self) -> FloatArray:
        """Return the trials (A, K, D) of the runs in ``active_runs``."""

    @abstractmethod
    def _tell(self, trials: FloatArray, fitness: FloatArray) -> None:
        """Take the values (A, K) of the trials (A, K, D)."""

    @abstractmethod
    def _keep(self, runs: IntArray) -> None:
        """Reduce the algorithm's own state to the given runs."""

    def _check_started(self) -> None:
        if not hasattr(self, "_rngs"):
            raise RuntimeError(f"Call `start` before using {self.name}.")


def check_at_least(name: str, value: int | None, minimum: int) -> None:
    """Raise unless the setting ``value`` is None, for the default, or at least ``minimum``."""
    if value is not None and value < minimum:
        raise ValueError(f"`{name}` must be at least {minimum}, got {value}.")


def check_fraction(name: str, value: float) -> None:
    """Raise unless the setting ``value`` lies in [0, 1]."""
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"`{name}` must lie in [0, 1], got {value}.")


@compiled
def _keep_best(
    best_fitness: FloatArray, best_position: FloatArray, runs: IntArray, trials: FloatArray, fitness: FloatArray
) -> None:
    """Replace each run's best point where a trial is better, or where there is none yet."""
    for row in range(runs.shape[0]):
        run, leader = runs[row], 0
        for trial in range(1, fitness.shape[1]):
            if fitness[row, trial] < fitness[row, leader]:
                leader = trial
        has_none = best_position[run, 0] != best_position[run, 0]
        if fitness[row, leader] < best_fitness[run] or has_none:
            best_fitness[run] = fitness[row, leader]
            for j in range(trials.shape[2]):
                best_position[run, j] = trials[row, leader, j]


def _checked_boxes(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    low, high = np.array(lower, dtype=np.float64, order="C"), np.array(upper, dtype=np.float64, order="C")
    if low.ndim != 2 or low.shape != high.shape or low.size == 0:
        raise ValueError(f"Bounds must be two arrays of one shape (R, D), got {low.shape} and {high.shape}.")
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise ValueError("Bounds must be finite numbers, got NaN or infinity.")
    if not (low < high).all():
        raise ValueError("Every lower bound must be below its upper bound.")
    return low, high
