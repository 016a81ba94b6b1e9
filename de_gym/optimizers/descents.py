"""Descents: when in R runs a local search takes over for a while, and those that are under way."""

from __future__ import annotations

import numpy as np

from de_gym.arrays import BoolArray, FloatArray, IntArray
from de_gym.evolution.populations import Trials
from de_gym.optimizers.local_search import LocalSearch

# Share of what a first descent may use that is left where populations that began anew get another.
_SECOND_SHARE = 1.0 / 3.0


class Descents:
    """The local searches of R runs: one, late in each run, and another for populations that began anew after it.

    Attributes:
        is_due: Which runs have one before them, shape (R,).
        begins: Evaluations from which on it may begin, shape (R,).
    """

    def __init__(self, budgets: IntArray, shares: FloatArray) -> None:
        """Let a descent begin in each run where only this share of its budget is left; never where the share is 0."""
        self._budgets, self._shares = budgets.copy(), shares
        self.is_due: BoolArray = shares > 0.0
        self.begins = self._when_left(shares)
        self._under_way: dict[int, LocalSearch] = {}

    def _when_left(self, shares: FloatArray) -> IntArray:
        evaluations: IntArray = np.ceil((1.0 - shares) * self._budgets).astype(np.int64)
        return evaluations

    def __bool__(self) -> bool:
        """Return whether any is under way."""
        return bool(self._under_way)

    @property
    def runs(self) -> list[int]:
        """The runs in which one is under way, ascending."""
        return sorted(self._under_way)

    def begin(self, run: int, point: FloatArray, value: float, bounds: tuple[FloatArray, FloatArray]) -> None:
        """Begin the descent of a run, unless it has no value to begin with."""
        self.is_due[run] = False
        if np.isfinite(value):
            self._under_way[run] = LocalSearch(point, value, *bounds)

    def begin_anew(self, runs: BoolArray) -> None:
        """Let runs (R,) whose populations begin anew descend again, later."""
        self.is_due |= runs & (self._shares > 0.0)
        self.begins = np.where(
            runs, np.maximum(self.begins, self._when_left(_SECOND_SHARE * self._shares)), self.begins
        )

    def num_points(self) -> dict[int, int]:
        """Return how many points the descents that are under way want next, by run."""
        return {run: len(points) for run, search in self._under_way.items() if (points := search.points) is not None}

    def ask(self, starts: IntArray) -> Trials:
        """Return the next points of all that are under way."""
        points = [self._under_way[run].points for run in self.runs]
        return Trials(np.concatenate([own for own in points if own is not None]), starts)

    def tell(self, trials: Trials, values: FloatArray) -> None:
        """Take the values of the points; a descent that was told of other points than it asked for ends."""
        for run in self.runs:
            search, rows = self._under_way[run], slice(*trials.starts[run : run + 2])
            if search.points is not None and np.array_equal(trials.points[rows], search.points):
                search.tell(values[rows])
            else:
                search.points = None

    def end(self, run: int) -> None:
        """End the descent of a run."""
        del self._under_way[run]

    def clear(self) -> None:
        """End all of them."""
        self._under_way.clear()

    def keep(self, runs: IntArray) -> None:
        """Go on with the given runs only, in the given order."""
        self.is_due, self.begins = self.is_due[runs], self.begins[runs]
        self._budgets, self._shares = self._budgets[runs], self._shares[runs]
        self._under_way = {
            place: self._under_way[run] for place, run in enumerate(runs.tolist()) if run in self._under_way
        }
