"""Tally: how many points of a run have been evaluated, and the best of them."""

from __future__ import annotations

import math

import numpy as np

from de_gym.arrays import FloatArray


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
