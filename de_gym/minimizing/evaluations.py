"""Evaluations: the one door between an optimiser and the user's function, where every value is kept at once."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from de_gym.arrays import FloatArray
from de_gym.minimizing.checkpoint import EvaluationLog
from de_gym.minimizing.constraints import Constraints, merit
from de_gym.minimizing.search_space import SearchSpace
from de_gym.problems.user_functions import PointFunction, VectorFunction


class TimeIsUp(Exception):
    """The time for a run is over; what was evaluated is kept."""


class Tally:
    """What is known of the user's points, shape (D,) each.

    Attributes:
        num_points: Points evaluated so far.
        best_point: The best of them, shape (D,), NaN before there is any.
        best_value: Its value; +inf for an infeasible point whose value was not asked for.
        best_merit: The number by which it is the best.
        best_violation: How far it is from feasible.
        last_points: The last points that were evaluated together, shape (P, D).
        last_merits: Their merits, shape (P,).
    """

    def __init__(self, dimension: int) -> None:
        self.num_points = 0
        self.best_point = np.full(dimension, np.nan)
        self.best_value = self.best_merit = math.inf
        self.best_violation = 0.0
        self.last_points, self.last_merits = np.empty((0, dimension)), np.empty(0)

    def note(self, point: FloatArray, value: float, violation: float, merit: float) -> None:
        """Count a point, and keep it where it is the best or the first."""
        self.num_points += 1
        if merit < self.best_merit or self.num_points == 1:
            self.best_point, self.best_value, self.best_merit = point.copy(), value, merit
            self.best_violation = violation

    def note_all(self, points: FloatArray, values: FloatArray) -> None:
        """Count points (P, D), feasible all of them, as ``note`` would one after another."""
        if not len(points):
            return
        leader, is_first = int(np.argmin(values)), self.num_points == 0
        self.num_points += len(points)
        if values[leader] < self.best_merit or is_first:
            self.best_point = points[leader].copy()
            self.best_value = self.best_merit = float(values[leader])
            self.best_violation = 0.0


class Evaluations(Tally):
    """Values of points as the optimiser sees them, and the best of them as the user does.

    Attributes:
        last_value: Value of the last point that was evaluated by itself.
    """

    def __init__(
        self,
        space: SearchSpace,
        function: PointFunction | VectorFunction,
        constraints: Constraints,
        log: EvaluationLog | None = None,
        deadline: float | None = None,
    ) -> None:
        """Store what is evaluated, where values are logged, and when ``time.monotonic`` ends it."""
        super().__init__(space.dimension)
        self._space, self._function, self._constraints = space, function, constraints
        self._log, self._deadline = log, deadline
        self._is_constrained = bool(constraints)
        self._prepaid = np.empty(0)
        self.last_value = math.inf
        # Nothing has to be kept, or can end a run, between two values of one call.
        self._is_plain = isinstance(function, VectorFunction) and not constraints and log is None and deadline is None

    def prepay(self, merits: FloatArray) -> None:
        """Take the first merits of the next call as known: their points have been evaluated before."""
        self._prepaid = merits

    def __call__(self, points: FloatArray) -> FloatArray:
        """Return merits (P,) of the optimiser's points (P, d)."""
        known, self._prepaid = self._prepaid, np.empty(0)
        unknown = points[len(known) :]
        fresh = self.evaluate(unknown if self._space.is_plain else self._space.to_user(unknown))
        return np.append(known, fresh) if len(known) else fresh

    def evaluate(self, points: FloatArray, everywhere: bool = False) -> FloatArray:
        """Return merits (P,) of the user's points (P, D); ``everywhere`` asks for values of infeasible ones too."""
        if self._is_plain and len(points) > 1:
            self.last_points, self.last_merits = points, self._function(points)
            self.note_all(points, self.last_merits)
            return self.last_merits
        merits: list[float] = []
        try:
            for point, (value, violation) in zip(points, self._outcomes(points, everywhere), strict=True):
                self.last_value = value
                number = merit(value, violation) if self._is_constrained else value
                merits.append(number)
                self.note(point, value if violation == 0.0 else math.inf, violation, number)
                if self._deadline is not None and time.monotonic() > self._deadline:
                    raise TimeIsUp
        finally:
            self.last_points, self.last_merits = points[: len(merits)], np.array(merits)
        return self.last_merits

    def _outcomes(self, points: FloatArray, everywhere: bool) -> Iterator[tuple[float, float]]:
        """Yield value and violation of every point, stored ones before those that must be evaluated."""
        if self._log is None:
            return self._fresh_outcomes(points, everywhere)
        stored = self._log.replay(points)
        outcomes = self._fresh_outcomes(points[len(stored) :], everywhere)
        return chain(stored, self._logged(self._log, zip(points[len(stored) :], outcomes, strict=True)))

    def _logged(
        self, log: EvaluationLog, outcomes: Iterable[tuple[FloatArray, tuple[float, float]]]
    ) -> Iterator[tuple[float, float]]:
        if isinstance(self._function, VectorFunction):
            together = list(outcomes)
            log.append(together)
            yield from (outcome for _, outcome in together)
            return
        for point, outcome in outcomes:
            log.append([(point, outcome)])
            yield outcome

    def _fresh_outcomes(self, points: FloatArray, everywhere: bool) -> Iterator[tuple[float, float]]:
        if not self._is_constrained:
            for value in self._values(points):
                yield value, 0.0
        elif isinstance(self._function, PointFunction) and self._function.calls_one_by_one:
            # Where constraints and function are one simulation, that is kept too as soon as it is known.
            for point in points:
                yield from self._constrained_outcomes(point[None], everywhere)
        else:
            yield from self._constrained_outcomes(points, everywhere)

    def _constrained_outcomes(self, points: FloatArray, everywhere: bool) -> Iterator[tuple[float, float]]:
        violations = [self._constraints.total_violation(point) for point in points]
        is_asked = np.array([everywhere or violation == 0.0 for violation in violations], np.bool_)
        values = iter(self._values(points[is_asked]))
        for asked, violation in zip(is_asked, violations, strict=True):
            yield (next(values) if asked else math.inf), violation

    def _values(self, points: FloatArray) -> Iterator[float]:
        if isinstance(self._function, PointFunction):
            return self._function.each(points)
        return iter(self._function(points).tolist() if len(points) else ())
