"""OpenGeneration: the points of a generation that are handed out, and whose values come back, one by one."""

from __future__ import annotations

import numpy as np

from de_gym.arrays import FloatArray
from de_gym.evolution.populations import Trials


class OpenGeneration:
    """N places, each of which is fresh at first, then given away, and filled at last with a point and its merit.

    It is complete as soon as there are N values, whichever points they belong to: a value that comes from elsewhere
    fills a place that nobody works on, or the one that somebody has worked on for longest.

    Attributes:
        number: Which generation this is.
        points: The user's points, shape (N, D).
        merits: What is known of them, shape (N,).
    """

    def __init__(self, number: int, trials: Trials, points: FloatArray) -> None:
        """Store the optimiser's own points, which change where others take their place, and the user's."""
        self.number, self.points = number, points
        self.merits = np.full(len(points), np.nan)
        self._trials = trials
        self._is_filled = np.zeros(len(points), np.bool_)
        self._num_given = 0
        self._end_of_fresh = len(points)

    @property
    def num_fresh(self) -> int:
        """Places that nobody works on."""
        return self._end_of_fresh - self._num_given

    @property
    def num_missing(self) -> int:
        """Places without a value."""
        return len(self.points) - int(np.count_nonzero(self._is_filled))

    def give(self) -> int:
        """Return a fresh place, which is no longer fresh then."""
        self._num_given += 1
        return self._num_given - 1

    def fill(self, place: int, merit: float) -> bool:
        """Put in the merit of the place's own point; return False where another point has taken the place."""
        if self._is_filled[place]:
            return False
        self._is_filled[place] = True
        self.merits[place] = merit
        return True

    def fill_with(self, point: FloatArray, own_point: FloatArray, merit: float) -> None:
        """Put in another point of the user's, and what it is to the optimiser."""
        if self.num_fresh:
            self._end_of_fresh -= 1
            place = self._end_of_fresh
        else:
            place = int(np.argmin(self._is_filled))
        self.points[place], self._trials.points[place] = point, own_point
        self.fill(place, merit)
