"""Descents: when in R runs a local search takes over, and what it asks for."""

from __future__ import annotations

import numpy as np

from de_gym.arrays import BoolArray, FloatArray, IntArray
from de_gym.evolution.populations import Trials
from de_gym.evolution.run_arrays import take_runs
from de_gym.machine.descents import (
    AROUND,
    DESCENT,
    NUM_VECTORS,
    OVER,
    Box,
    DescentState,
    ask_descents,
    begin_descent,
    tell_descents,
)

# Share of what a first descent may use that is left where populations that began anew get another.
_SECOND_SHARE = 1.0 / 3.0

# What a descent knows of more coordinates would take too much memory.
_MOST_COORDINATES = 1000


class Descents:
    """The local searches of R runs: one, late in each run, and another for populations that began anew after it.

    >>> descents = Descents(np.array([1000]), -np.ones((1, 2)), np.ones((1, 2)), np.array([0.5]))
    >>> descents.begin(0, np.array([0.9, 0.9]), 8.1, 500)
    >>> while descents.num_points[0]:
    ...     trials = descents.ask(np.array([0, descents.num_points[0]]))
    ...     values = (trials.points * [1.0, 3.0]) ** 2 @ np.ones(2)
    ...     ended = descents.tell(trials, values, np.array([500]))
    >>> bool(values[-1] < 1e-12)
    True

    Attributes:
        is_due: Which runs have one before them, shape (R,).
        begins: Evaluations from which on it may begin, shape (R,).
        is_under_way: Which have begun theirs and not gone on with something else, shape (R,).
        are_under_way: Whether any has.
        num_points: How many points each run asks for next, shape (R,); none where its descent is over or not under way.
    """

    def __init__(self, budgets: IntArray, lower: FloatArray, upper: FloatArray, shares: FloatArray) -> None:
        """Let a descent begin in each run where only a share of its budget is left; never where the share is 0.

        Args:
            budgets: Evaluations of each run, shape (R,).
            lower: Lower bounds, shape (R, D).
            upper: Upper bounds, shape (R, D).
            shares: Shape (R,).
        """
        self._budgets, self._box, self._dimension = budgets.copy(), Box(lower, upper), lower.shape[1]
        self._shares = shares if self._dimension <= _MOST_COORDINATES else 0.0 * shares
        self.is_due: BoolArray = self._shares > 0.0
        self.begins = self._when_left(self._shares)
        self.is_under_way: BoolArray = np.zeros(len(budgets), np.bool_)
        self.are_under_way = False
        self.num_points: IntArray = np.zeros(len(budgets), np.int64)
        self._state: DescentState | None = None

    def _when_left(self, shares: FloatArray) -> IntArray:
        evaluations: IntArray = np.ceil((1.0 - shares) * self._budgets).astype(np.int64)
        return evaluations

    def begin(self, run: int, point: FloatArray, value: float, evaluations: int) -> None:
        """Begin the descent of a run at a point (D,), unless that has no value or the run too few evaluations left."""
        self.is_due[run] = False
        if not np.isfinite(value) or evaluations + self._dimension > self._budgets[run]:
            return
        if self._state is None:
            num_runs, dimension = self._box.lower.shape
            vectors, metric = np.empty((num_runs, NUM_VECTORS, dimension)), np.empty((num_runs, dimension, dimension))
            self._state = DescentState(np.zeros(num_runs, DESCENT), vectors, metric)
        begin_descent(self._state, run, point, value)
        self.is_under_way[run] = self.are_under_way = True
        self._count_points()

    def begin_anew(self, runs: BoolArray) -> None:
        """Let runs (R,) whose populations begin anew descend again, later."""
        again = runs & ~self.is_due & (self._shares > 0.0)
        self.is_due |= again
        self.begins = np.where(again, self._when_left(_SECOND_SHARE * self._shares), self.begins)

    def ask(self, starts: IntArray) -> Trials:
        """Return the next points of all runs, as many as ``starts`` (R + 1,) says."""
        assert self._state is not None
        points = np.empty((starts[-1], self._dimension))
        ask_descents(self._state, self._box, starts, points)
        return Trials(points, starts)

    def tell(self, trials: Trials, values: FloatArray, evaluations: IntArray) -> BoolArray:
        """Take the values of the points, and return which runs (R,) go on with something else.

        Their descent is over, as it is when it is told of other points than it asked for, or wants more than is left.

        Args:
            trials: What was asked for.
            values: Shape (T,).
            evaluations: Those of each run so far, shape (R,).
        """
        assert self._state is not None
        tell_descents(self._state, self._box, trials.points, trials.starts, values)
        self._count_points()
        wanted = self.num_points
        ends: BoolArray = self.is_under_way & ((wanted == 0) | (evaluations + wanted > self._budgets))
        self.is_under_way &= ~ends
        self.are_under_way = bool(self.is_under_way.any())
        self.num_points = np.where(ends, 0, wanted)
        return ends

    def _count_points(self) -> None:
        assert self._state is not None
        phases = self._state.runs["phase"]
        counts = np.where(phases == AROUND, self._dimension, np.where(phases == OVER, 0, 1))
        self.num_points = np.where(self.is_under_way, counts, 0)

    def keep(self, runs: IntArray) -> None:
        """Go on with the given runs only, in the given order."""
        self.is_due, self.begins = self.is_due[runs], self.begins[runs]
        self._budgets, self._shares = self._budgets[runs], self._shares[runs]
        self.is_under_way, self.num_points = self.is_under_way[runs], self.num_points[runs]
        self._box = take_runs(self._box, runs)
        self.are_under_way = bool(self.is_under_way.any())
        self._state = None if self._state is None or not self.are_under_way else take_runs(self._state, runs)
