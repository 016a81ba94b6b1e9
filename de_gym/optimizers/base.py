"""Optimizer: ask and tell over R independent runs; and what most methods are, a shell with a controller."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from de_gym.arrays import BoolArray, FloatArray, IntArray
from de_gym.checks import is_several, listed, numbers, whole
from de_gym.controllers.parameter_rule import ParameterRule
from de_gym.evolution import draw_uniforms
from de_gym.evolution.populations import RUN, Population, RunRecords, Trials
from de_gym.evolution.run_arrays import take_runs
from de_gym.evolution.shell import Parameters, Shell, View, check_parameters
from de_gym.machine.compiling import compiled
from de_gym.machine.draws import DrawLayout, GenerationDraws
from de_gym.problems.budgets import BudgetTooSmall


@dataclass(frozen=True, slots=True)
class GenerationParameters:
    """The control parameters of one generation, for reports; NaN where a run has fewer individuals than another.

    Attributes:
        scale_factors: F of each individual, shape (R, N).
        crossover_rates: CR of each individual, shape (R, N).
        parent_fitness: Fitness of the individual each trial competed with, shape (R, N).
        residuals: What a controller adjusted the method's own rules by, each control by its name, shape (R,).
    """

    scale_factors: FloatArray
    crossover_rates: FloatArray
    parent_fitness: FloatArray
    residuals: Mapping[str, FloatArray] = field(default_factory=dict)


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
    number of points of each run's next generation, and ``_waits``, which runs ask for none now but go on later.

    Attributes:
        name: What tables and messages call the method.
        settings: Its constants, a frozen dataclass.
        takes_other_points: Whether it learns from points that are put in place of those it asked for.
        is_searching_locally: Whether the points last asked for are those of a local search: others would end it, and
            their values say nothing of a population.
        has_ended: Whether each run wants no more points or could not pay for them, shape (R,).
        mean_parameters: Mean F and CR of the first run's last generation told; NaN where the method has none.
    """

    name: str
    settings: object
    takes_other_points: bool = True
    is_searching_locally: bool = False
    has_ended: BoolArray
    mean_parameters: tuple[float, float]

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
        self._waits = np.zeros(num_runs, np.bool_)
        self._asked: Trials | None = None
        self.mean_parameters = math.nan, math.nan
        self._start()
        if (self._runs["max_evaluations"] < self._runs["size"]).any():
            raise BudgetTooSmall(
                f"`max_evaluations` must be at least {self._runs['size'].max()}, the size of the first population of "
                f"{self.name} in {self._dimension} dimensions, got {max_evaluations}."
            )
        self.has_ended = np.zeros(num_runs, np.bool_)

    def ask(self) -> Trials:
        """Return the points that the runs want to have evaluated next."""
        self._check_started()
        if self._asked is not None:
            raise RuntimeError("`ask` was called twice: `tell` the values of the last trials first.")
        starts = np.empty(len(self._runs) + 1, np.int64)
        _count_points(self._runs, self._waits, starts)
        self._asked = self._ask(starts)
        return self._asked

    def tell(self, values: ArrayLike) -> None:
        """Take the values (T,) of the points that ``ask`` returned."""
        self._check_started()
        if self._asked is None:
            raise RuntimeError("`tell` was called before `ask`.")
        trials = self._asked
        is_plain = type(values) is np.ndarray and values.dtype == np.float64
        checked = np.array(values if is_plain else numbers("values", values))
        if checked.shape != (len(trials.points),):
            raise ValueError(f"`values` must have shape {(len(trials.points),)}, got {checked.shape}.")
        self._asked = None
        note_values(self._runs, self._best_position, trials.points, trials.starts, checked)
        self._tell(trials, checked)
        sizes, spent = self._runs["size"], self._runs["evaluations"]
        self.has_ended = (sizes == 0) | (spent + sizes > self._runs["max_evaluations"])

    def keep(self, runs: IntArray) -> None:
        """Go on with the given runs only, in the given order; call it between ``tell`` and ``ask``."""
        self._check_started()
        if self._asked is not None:
            raise RuntimeError("`keep` was called between `ask` and `tell`.")
        self._lower, self._upper = self._lower[runs], self._upper[runs]
        self._rngs = [self._rngs[run] for run in runs]
        self._runs, self._best_position = self._runs[runs], self._best_position[runs]
        self._waits = self._waits[runs]
        self.has_ended = self.has_ended[runs]
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
    def last_parameters(self) -> GenerationParameters | None:
        """Control parameters of the last generation told; None where the method has none yet or none at all."""
        return None

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
    def _ask(self, starts: IntArray) -> Trials:
        """Return the next points, as many of each run as ``starts`` (R + 1,) says: none where it has ended."""

    @abstractmethod
    def _tell(self, trials: Trials, values: FloatArray) -> None:
        """Take the values (T,) of the points."""

    @abstractmethod
    def _keep(self, runs: IntArray) -> None:
        """Reduce the method's own state to the given runs."""

    def _check_started(self) -> None:
        if not hasattr(self, "_runs"):
            raise RuntimeError(f"Call `start` before using {self.name}.")


Recipe = Callable[[Any, int], tuple[Shell, ParameterRule]]
"""What makes a shell and a controller of settings and a number of coordinates."""


class ControlledOptimizer(Optimizer):
    """R runs of a shell whose parameters a controller sets.

    >>> from de_gym.controllers.bimodal import Bimodal
    >>> from de_gym.evolution.current_to_pbest import CurrentToPbest
    >>> optimizer = ControlledOptimizer("own", lambda settings, dimension: (CurrentToPbest(5 * dimension), Bimodal()))
    >>> optimizer.start(-np.ones((2, 3)), np.ones((2, 3)), [np.random.default_rng(seed) for seed in (0, 1)], 600)
    >>> while not optimizer.has_ended.all():
    ...     optimizer.tell((optimizer.ask().points ** 2).sum(axis=1))
    >>> bool((optimizer.best_fitness < 0.01).all())
    True
    """

    shell: Shell
    controller: ParameterRule

    def __init__(self, name: str, recipe: Recipe, settings: object = None) -> None:
        self.name, self.settings = name, settings
        self._recipe = recipe

    def _start(self) -> None:
        self.shell, self.controller = self._recipe(self.settings, self._dimension)
        self._state: Population = self.shell.start(self._runs, self._dimension)
        self.controller.reset(self._state)
        layout = DrawLayout(
            self.controller.num_uniforms, *self.shell.num_uniforms(self._dimension), self.controller.num_normals
        )
        self._draws = GenerationDraws(self._rngs, self._state.capacity, layout)
        self._has_population = False
        # Our own controllers are trusted.
        self._must_check = not type(self.controller).__module__.startswith("de_gym.")
        self._parameters: Parameters | None = None

    def _ask(self, starts: IntArray) -> Trials:
        if not self._has_population:
            uniforms = draw_uniforms(self._rngs, self._state.capacity, self._dimension)
            lower, upper = self._lower[:, None, :], self._upper[:, None, :]
            return Trials((lower + uniforms * (upper - lower)).reshape(-1, self._dimension), starts)
        self._draws.draw(starts)
        self._parameters = self.controller(View(self._state, self._draws))
        if self._must_check:
            self._parameters = check_parameters(self._parameters, self._state)
        return self.shell.breed(self._state, self._parameters, self._draws, self._lower, self._upper)

    def _tell(self, trials: Trials, values: FloatArray) -> None:
        if self._parameters is None:
            self.shell.settle(self._state, trials, values)
            self._has_population = True
            return
        size = trials.starts[1]
        if size:
            factors, rates = self._parameters.scale_factors[0, :size], self._parameters.crossover_rates[0, :size]
            # Sums and quotients, because ``np.mean`` costs more than both.
            self.mean_parameters = np.add.reduce(factors) / size, np.add.reduce(rates) / size
        self.controller.learn(self.shell.select(self._state, self._parameters, self._draws, trials, values))

    def _keep(self, runs: IntArray) -> None:
        self._state = take_runs(self._state, runs)._replace(runs=self._runs)
        self._draws.keep(runs)
        self.controller.keep(runs)
        if self._parameters is not None:
            self._parameters = self.controller.parameters

    @property
    def last_parameters(self) -> GenerationParameters | None:
        """Control parameters of the last generation told; None while only the initial population has been."""
        if self._parameters is None:
            return None
        sizes = np.diff(self._draws.starts)
        factors, rates = self._parameters.scale_factors, self._parameters.crossover_rates
        fitness = _live(self._state.parent_fitness, sizes, np.nan)
        return GenerationParameters(_live(factors, sizes, np.nan), _live(rates, sizes, np.nan), fitness)

    @property
    def population(self) -> tuple[FloatArray, FloatArray] | None:
        """Current positions (R, N, D) and fitness (R, N); None before the initial population is told."""
        if not self._has_population:
            return None
        sizes = self._runs["size"]
        return _live(self._state.positions, sizes, np.nan), _live(self._state.fitness, sizes, np.inf)


@compiled
def _count_points(runs: RunRecords, waits: BoolArray, starts: IntArray) -> None:
    """Write where the points of each run begin, and where the last ones end, shape (R + 1,)."""
    starts[0] = 0
    for run in range(runs.shape[0]):
        size = runs[run]["size"]
        goes_on = runs[run]["evaluations"] + size <= runs[run]["max_evaluations"]
        starts[run + 1] = starts[run] + (size if goes_on and not waits[run] else 0)


@compiled
def note_values(
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
    with np.errstate(over="ignore"):
        if not np.isfinite(high - low).all():
            raise ValueError(f"The width of every bound must be a finite number, got {low.min()} to {high.max()}.")
    if not (low < high).all():
        raise ValueError("Every lower bound must be below its upper bound.")
    return low, high


def _live(array: FloatArray, sizes: IntArray, missing: float) -> FloatArray:
    """Return a copy of the rows in use, shape (R, N, ...), filled up where a run has fewer than the largest."""
    size = int(sizes.max(initial=0))
    live = array[:, :size].copy()
    if (sizes < size).any():
        live[np.arange(size) >= sizes[:, None]] = missing
    return live
