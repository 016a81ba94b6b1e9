"""What one run has done so far and the result it makes, and the rules that end it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from de_gym.arrays import BoolArray, FloatArray
from de_gym.minimizing.choosing import RandomPoints
from de_gym.minimizing.constraints import INFEASIBLE, Constraints
from de_gym.minimizing.evaluations import Tally
from de_gym.minimizing.scipys import Result, make_result
from de_gym.minimizing.search_space import SearchSpace
from de_gym.optimizers import Optimizer, Progress

Callback = Callable[..., object]


class RunRecord:
    """Observer: what one run's generations were like, and the result they make."""

    def __init__(self, space: SearchSpace, evaluations: Tally, constraints: Constraints | None) -> None:
        """Store what the record is of; without ``constraints`` violations are as they were told."""
        self._space, self._constraints = space, constraints
        self.evaluations = evaluations
        self.optimizer: Optimizer | None = None
        self._counts: list[int] = []
        self._best_values: list[float] = []
        self._scale_factors: list[float] = []
        self._crossover_rates: list[float] = []

    def __call__(self, progress: Progress) -> None:
        """Take note of the generation."""
        self.note(progress.optimizer)

    def note(self, optimizer: Optimizer) -> None:
        """Take note of the optimiser's last generation."""
        scale_factor, crossover_rate = optimizer.mean_parameters
        self._counts.append(self.evaluations.num_points)
        self._best_values.append(self.evaluations.best_value)
        self._scale_factors.append(float(scale_factor))
        self._crossover_rates.append(float(crossover_rate))

    @property
    def num_generations(self) -> int:
        """Generations after the initial population."""
        return max(len(self._counts) - 1, 0)

    def merits(self) -> FloatArray:
        """Return the merits of the current population, or of the last points where the method keeps none."""
        population = None if self.optimizer is None else self.optimizer.population
        return self.evaluations.last_merits if population is None else population[1][0]

    def result(self, success: bool, message: str) -> Result:
        """Return the result so far."""
        points, values = self._population()
        mean = points.mean(axis=0) if len(points) else self.evaluations.best_point
        result = make_result(
            x=self.evaluations.best_point.copy(),
            fun=self.evaluations.best_value,
            nfev=self.evaluations.num_points,
            nit=self.num_generations,
            success=success,
            message=message,
            population=points,
            population_fitness=values,
            population_mean=self._space.rounded(mean[None])[0],
            history={
                "evaluations": np.array(self._counts, dtype=np.float64),
                "best_fitness": np.array(self._best_values),
                "scale_factor": np.array(self._scale_factors),
                "crossover_rate": np.array(self._crossover_rates),
            },
        )
        if self._constraints is None:
            result.maxcv = self.evaluations.best_violation
        elif self._constraints and self.evaluations.num_points:
            result.constr = self._constraints.violations(result.x)
            result.maxcv = float(np.max(np.concatenate(result.constr)))
        return result

    def _population(self) -> tuple[FloatArray, FloatArray]:
        """Return the current points and values, best first; +inf for infeasible ones."""
        population = None if self.optimizer is None else self.optimizer.population
        if population is None:
            points, merits = self.evaluations.last_points, self.evaluations.last_merits
        else:
            points, merits = self._space.to_user(population[0][0]), population[1][0]
        order = np.argsort(merits, kind="stable")
        has_violations = self._constraints is None or bool(self._constraints)
        values = np.where(merits >= INFEASIBLE, np.inf, merits) if has_violations else merits
        return points[order], values[order]


def _mean(values: FloatArray) -> float:
    """Return the mean without the ceremony of ``np.mean``, which costs more than its sum."""
    return float(np.add.reduce(values) / len(values))


@dataclass(frozen=True)
class Limits:
    """When a run ends before its budget is spent.

    Attributes:
        target: A value that is good enough.
        max_generations: Generations after the initial population.
        relative_tolerance: Of the values' deviation, in multiples of their mean.
        absolute_tolerance: Of the values' deviation.
        callback: Asked after every generation.
    """

    target: float | None = None
    max_generations: int | None = None
    relative_tolerance: float = 0.0
    absolute_tolerance: float = 0.0
    callback: Callback | None = None


class Endings:
    """Observer: ends the run where a limit is reached, and says how it ended."""

    def __init__(self, record: RunRecord, limits: Limits) -> None:
        self._record, self._limits = record, limits
        self._callback = limits.callback
        self._is_scipys_older_kind = limits.callback is not None and _takes_convergence(limits.callback)
        self.reason = ""

    def __call__(self, progress: Progress) -> BoolArray | None:
        """Return whether the one run must end."""
        self.reason = self._find_reason(progress)
        return np.array([True]) if self.reason else None

    @property
    def is_final(self) -> bool:
        """Whether the run ended with nothing left to do: the user stopped it, or the value is good enough."""
        return self.stopped_by_callback or self.has_reached_target or self._record.evaluations.best_value == -math.inf

    @property
    def stopped_by_callback(self) -> bool:
        """Whether the callback ended the run."""
        return self.reason == _BY_CALLBACK

    def _find_reason(self, progress: Progress) -> str:
        limits, has_begun = self._limits, progress.generation > 0
        if self._callback is not None and has_begun and self._asks_to_stop(self._callback):
            return _BY_CALLBACK
        if self.has_reached_target:
            return f"The target {limits.target:g} was reached."
        if self._record.evaluations.best_value == -math.inf:
            return "The function is -inf at the best point, and no value is below."
        if has_begun and self._has_converged(progress):
            return "The population has converged: its values agree within the tolerance."
        if limits.max_generations is not None and progress.generation >= limits.max_generations:
            return f"The maximum of {limits.max_generations} generations was reached."
        return ""

    @property
    def has_reached_target(self) -> bool:
        """Whether there was a target and a value is not above it."""
        return self._limits.target is not None and self._record.evaluations.best_value <= self._limits.target

    def ending(self) -> tuple[bool, str]:
        """Return whether the run succeeded, and how it ended."""
        best, target = self._record.evaluations, self._limits.target
        reason = self.reason or "The budget is spent."
        if self.stopped_by_callback:
            return False, reason
        if self.has_reached_target or best.best_value == -math.inf:
            return True, self.reason or f"The target {target:g} was reached."
        if self._record.num_generations == 0:
            return False, f"{reason} {_why_nothing_was_optimised(self._record.optimizer)}"
        if self._record.result(False, "").get("maxcv", 0.0) > 0.0:
            return False, f"{reason} No feasible point was found."
        if not math.isfinite(best.best_value):
            return False, f"{reason} The function returned no finite value."
        if target is not None:
            return False, f"{reason} The target {target:g} was not reached."
        return True, reason

    def _asks_to_stop(self, callback: Callback) -> bool:
        result = self._record.result(False, "in progress")
        try:
            return bool(callback(result.x, self._convergence()) if self._is_scipys_older_kind else callback(result))
        except StopIteration:
            return True

    def _has_converged(self, progress: Progress) -> bool:
        """Return whether the values agree, both of the last points and of the population.

        The last points alone may be few, and a population alone may lie on a plateau that they are about to leave.
        Those of a local search are close to each other anyway.
        """
        limits = self._limits
        if limits.relative_tolerance == limits.absolute_tolerance == 0.0:
            return False
        if self._record.optimizer is not None and self._record.optimizer.is_searching_locally:
            return False
        return self._agree(progress.values) and self._agree(self._record.merits())

    def _convergence(self) -> float:
        """Return the allowed deviation of the population's values by their deviation: from 1 on they agree."""
        allowed, deviation = self._spread(self._record.merits())
        return allowed / deviation if deviation > 0.0 else math.inf

    def _agree(self, merits: FloatArray) -> bool:
        allowed, deviation = self._spread(merits)
        return deviation <= allowed

    def _spread(self, merits: FloatArray) -> tuple[float, float]:
        """Return the allowed deviation of values and their deviation, infinite where some are no proper values."""
        if not np.isfinite(merits).all() or (merits >= INFEASIBLE).any():
            return 0.0, math.inf
        with np.errstate(over="ignore", invalid="ignore"):
            mean = _mean(merits)
            deviation = math.sqrt(_mean((merits - mean) ** 2))
        allowed = self._limits.absolute_tolerance + self._limits.relative_tolerance * abs(mean)
        return allowed, deviation if deviation == deviation else math.inf


_BY_CALLBACK = "The callback stopped the run."


def _why_nothing_was_optimised(optimizer: Optimizer | None) -> str:
    what = "random points only" if isinstance(optimizer, RandomPoints) else "the initial population only"
    return f"Nothing was optimised: the run consists of {what}."


def _takes_convergence(callback: Callback) -> bool:
    """Return whether a callback is of scipy's older kind, which takes the best point and the convergence."""
    try:
        parameters = inspect.signature(callback).parameters.values()
    except (TypeError, ValueError):
        return False
    places = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    return "convergence" in [one.name for one in places] or sum(one.default is one.empty for one in places) == 2
