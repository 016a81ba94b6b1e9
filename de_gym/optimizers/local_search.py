"""LocalSearch: a quasi-Newton descent inside a box by ask and tell; and Descents: when in R runs it takes over.

Gradients are finite differences, so a step costs as many evaluations as there are coordinates; looking along its
direction costs one each, and is done more often than methods do that are given gradients. Products are sums that
numpy makes in one order everywhere; those of linear algebra depend on the processor.

Reference: Nocedal and Wright, "Numerical Optimization" (2006), chapters 3 and 6: line searches and BFGS.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from de_gym.arrays import BoolArray, FloatArray, IntArray
from de_gym.evolution.populations import Trials

# Of finite differences, in multiples of the box; and of coordinates, where the box is narrow and far from zero.
_DIFFERENCE, _DIFFERENCE_FAR_AWAY = 2e-9, 1e-12

# The first step, in multiples of the box.
_FIRST_STEP = 0.01

# What a step must gain of what the gradient promises; how often it is shortened where it does not, and between which
# factors; from which difference on the place where it should have ended is looked at, too, at most so much farther.
_LEAST_SHARE, _MOST_TRIALS = 1e-4, 12
_SHORTENED = (0.1, 0.5)
_GOOD_ENOUGH, _FARTHEST = (0.8, 1.25), 4.0

# The descent has ended when so many steps gain less than these shares of the value and of all that was gained.
_LAST_STEPS, _LEAST_OF_VALUE, _LEAST_OF_GAIN = 4, 1e-12, 1e-16

# Curvature along a step that rounding errors may have made.
_LEAST_CURVATURE = 1e-10

# Share of what a first descent may use that is left where populations that began anew get another.
_SECOND_SHARE = 1.0 / 3.0

# What a descent knows of more coordinates would take too much memory.
_MOST_COORDINATES = 1000

Asking = Generator[FloatArray, FloatArray, None]


class Descents:
    """The local searches of R runs: one, late in each run, and another for populations that began anew after it.

    Attributes:
        is_due: Which runs have one before them, shape (R,).
        begins: Evaluations from which on it may begin, shape (R,).
        under_way: Those that have begun and not ended, by run.
    """

    def __init__(self, budgets: IntArray, dimension: int, shares: FloatArray) -> None:
        """Let a descent begin in each run where only this share of its budget is left; never where the share is 0."""
        self._budgets, self._shares = budgets.copy(), shares if dimension <= _MOST_COORDINATES else 0.0 * shares
        self.is_due: BoolArray = self._shares > 0.0
        self.begins = self._when_left(self._shares)
        self.under_way: dict[int, LocalSearch] = {}

    def _when_left(self, shares: FloatArray) -> IntArray:
        evaluations: IntArray = np.ceil((1.0 - shares) * self._budgets).astype(np.int64)
        return evaluations

    def begin(self, run: int, point: FloatArray, value: float, bounds: tuple[FloatArray, FloatArray]) -> None:
        """Begin the descent of a run, unless it has no value to begin with."""
        self.is_due[run] = False
        if np.isfinite(value):
            self.under_way[run] = LocalSearch(point, value, *bounds)

    def begin_anew(self, runs: BoolArray) -> None:
        """Let runs (R,) whose populations begin anew descend again, later."""
        again = runs & ~self.is_due & (self._shares > 0.0)
        self.is_due |= again
        self.begins = np.where(again, self._when_left(_SECOND_SHARE * self._shares), self.begins)

    def ask(self, starts: IntArray) -> Trials:
        """Return the next points of all that are under way."""
        points = [self.under_way[run].points for run in sorted(self.under_way)]
        return Trials(np.concatenate([own for own in points if own is not None]), starts)

    def tell(self, trials: Trials, values: FloatArray) -> None:
        """Take the values of the points; a descent that was told of other points than it asked for ends."""
        for run in self.under_way:
            search, rows = self.under_way[run], slice(*trials.starts[run : run + 2])
            if search.points is not None and np.array_equal(trials.points[rows], search.points):
                search.tell(values[rows])
            else:
                search.points = None

    def keep(self, runs: IntArray) -> None:
        """Go on with the given runs only, in the given order."""
        self.is_due, self.begins = self.is_due[runs], self.begins[runs]
        self._budgets, self._shares = self._budgets[runs], self._shares[runs]
        self.under_way = {
            place: self.under_way[run] for place, run in enumerate(runs.tolist()) if run in self.under_way
        }


class LocalSearch:
    """One descent from a point of known value.

    >>> search = LocalSearch(np.array([0.9, 0.9]), 8.1, -np.ones(2), np.ones(2))
    >>> while search.points is not None:
    ...     search.tell((search.points * [1.0, 3.0]) ** 2 @ np.ones(2))
    >>> bool(search.value < 1e-12)
    True

    Attributes:
        points: What it wants evaluated next, shape (P, D); None where it has ended.
        point: Where it is, shape (D,).
        value: The function's value there.
    """

    def __init__(self, point: FloatArray, value: float, lower: FloatArray, upper: FloatArray) -> None:
        self.point, self.value = point.copy(), value
        self._lower, self._upper = lower, upper
        self._asking = self._descend()
        self.points: FloatArray | None = next(self._asking)

    def tell(self, values: FloatArray) -> None:
        """Take the values (P,) of the points; one that is not finite ends a gradient, and is no better anywhere."""
        try:
            with np.errstate(all="ignore"):
                self.points = self._asking.send(values)
        except StopIteration:
            self.points = None

    def _descend(self) -> Asking:
        """Step by step, until there is no way down or hardly anything is gained."""
        metric = np.diag(np.square(self._upper - self._lower))
        values, former, gradient = [self.value], self.point, np.empty(0)
        while not _has_converged(values):
            shifted = self._shifted()
            slopes = ((yield shifted) - self.value) / (np.diag(shifted) - self.point)
            if not np.isfinite(slopes).all():
                return
            if len(values) > 1:
                metric = _updated(metric, self.point - former, slopes - gradient, is_first=len(values) == 2)
            former, gradient = self.point, slopes
            direction = self._direction(metric, gradient)
            if not _product(gradient, direction) < 0.0:
                return
            if len(values) == 1:
                direction *= _FIRST_STEP / np.max(np.abs(direction) / (self._upper - self._lower))
            yield from self._step(direction, gradient)
            if self.value == values[-1]:
                return
            values.append(self.value)

    def _step(self, direction: FloatArray, gradient: FloatArray) -> Asking:
        """Go to a lower point along a direction, or nowhere."""
        start, value, length = self.point, self.value, 1.0
        for _ in range(_MOST_TRIALS):
            target = np.clip(start + length * direction, self._lower, self._upper)
            found = float((yield target[None])[0])
            promised = _product(gradient, target - start)
            factor = _lowest_of_parabola(value, found, promised)
            if found < value and found <= value + _LEAST_SHARE * promised:
                self.point, self.value = target, found
                break
            length *= float(np.clip(factor, *_SHORTENED))
        else:
            return
        if not _GOOD_ENOUGH[0] < factor < _GOOD_ENOUGH[1]:
            target = start + length * float(np.clip(factor, _SHORTENED[0], _FARTHEST)) * direction
            target = np.clip(target, self._lower, self._upper)
            found = float((yield target[None])[0])
            if found < self.value:
                self.point, self.value = target, found

    def _shifted(self) -> FloatArray:
        """Return D points, each a little away along one coordinate, inside the box."""
        widths = self._upper - self._lower
        steps = np.maximum(_DIFFERENCE * widths, _DIFFERENCE_FAR_AWAY * np.abs(self.point))
        steps = np.minimum(steps, 0.5 * widths)
        steps = np.where(self.point + steps > self._upper, -steps, steps)
        shifted: FloatArray = self.point + np.diag(steps)
        return shifted

    def _direction(self, metric: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the quasi-Newton direction along the coordinates that are not held by a bound."""
        below, above = self.point <= self._lower, self.point >= self._upper
        free: BoolArray = ~((below & (gradient > 0.0)) | (above & (gradient < 0.0)))
        direction = np.zeros_like(gradient)
        direction[free] = -_times(metric[np.ix_(free, free)], gradient[free])
        return direction


def _has_converged(values: list[float]) -> bool:
    """Return whether the last steps gained hardly anything."""
    least = _LEAST_OF_VALUE * abs(values[-1]) + _LEAST_OF_GAIN * (values[0] - values[-1])
    return len(values) > _LAST_STEPS and values[-1 - _LAST_STEPS] - values[-1] <= least


def _lowest_of_parabola(value: float, found: float, promised: float) -> float:
    """Return where the parabola through what is known of a step is lowest, in multiples of the step.

    >>> _lowest_of_parabola(0.0, 0.0, -1.0), _lowest_of_parabola(0.0, -2.0, -1.0)
    (0.5, inf)
    """
    curvature = found - value - promised
    if curvature > 0.0:
        return -0.5 * promised / curvature
    return np.inf if found < value else 0.0


def _updated(metric: FloatArray, step: FloatArray, change: FloatArray, is_first: bool) -> FloatArray:
    """Return the inverse Hessian after a step that changed the gradient so; the first one sets its scale."""
    product = _product(step, change)
    if not product > _LEAST_CURVATURE * math.sqrt(_product(step, step) * _product(change, change)):
        return metric
    if is_first:
        metric = metric * (product / _product(change, _times(metric, change)))
    scaled = _times(metric, change)
    crossed = np.outer(scaled, step)
    own = (product + _product(change, scaled)) / product**2
    updated: FloatArray = metric + own * np.outer(step, step) - (crossed + crossed.T) / product
    return updated


def _times(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    product: FloatArray = (matrix * vector).sum(axis=1)
    return product


def _product(one: FloatArray, other: FloatArray) -> float:
    return float((one * other).sum())
