"""What the controller sees: parts of the observation as pure functions; a new one is a function and an entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.compiling import compiled


@dataclass(frozen=True, slots=True)
class Features:
    """What observation parts are made of, for R runs.

    Attributes:
        normalized_fitness: Fitness scaled to [0, 1] in each run, best first, shape (R, N).
        histogram: Share of the population in each bin, or the number of individuals, shape (R, b).
        mean_past_histogram: Mean of past histograms, in the same unit, shape (R, b).
    """

    normalized_fitness: FloatArray
    histogram: FloatArray
    mean_past_histogram: FloatArray


@dataclass(frozen=True)
class ObservationPart:
    """One stretch of the observation vector.

    Attributes:
        size: Number of entries, from population size and number of bins.
        high: Upper bound of the entries, from the scale of the bins; the lower bound is 0.
        compute: The entries, shape (R, size).
    """

    size: Callable[[int, int], int]
    high: Callable[[float], float]
    compute: Callable[[Features], FloatArray]


OBSERVATION_PARTS: dict[str, ObservationPart] = {
    "fitness": ObservationPart(
        size=lambda population_size, num_bins: population_size,
        high=lambda bin_scale: 1.0,
        compute=lambda features: features.normalized_fitness,
    ),
    "histogram": ObservationPart(
        size=lambda population_size, num_bins: num_bins,
        high=lambda bin_scale: bin_scale,
        compute=lambda features: features.histogram,
    ),
    "mean_past_histogram": ObservationPart(
        size=lambda population_size, num_bins: num_bins,
        high=lambda bin_scale: bin_scale,
        compute=lambda features: features.mean_past_histogram,
    ),
}


@compiled
def normalize_fitness(fitness: FloatArray) -> FloatArray:
    """Return (f - min) / (max - min) of each run, shape (R, N); zeros where a population is flat.

    Infinite values (points at which the objective returned no number) become 1, and do not count as the maximum.

    Reference: LDE paper, Eq. (7).
    """
    normalized = np.zeros_like(fitness)
    for run in range(fitness.shape[0]):
        low, high = np.inf, -np.inf
        for value in fitness[run]:
            if np.isfinite(value):
                low, high = min(low, value), max(high, value)
        # Halved, because the difference of two huge values would overflow.
        spread = 0.5 * high - 0.5 * low
        for i in range(fitness.shape[1]):
            value = fitness[run, i]
            if not np.isfinite(value):
                normalized[run, i] = 1.0 if low < np.inf else 0.0
            elif spread > 0.0:
                normalized[run, i] = min((0.5 * value - 0.5 * low) / spread, 1.0)
    return normalized


@compiled
def fitness_histogram(normalized_fitness: FloatArray, num_bins: int) -> FloatArray:
    """Return the share of each run's individuals in each of ``num_bins`` equal bins of [0, 1], shape (R, b).

    Bins are closed below and open above, the last one closed on both sides.

    Reference: LDE paper, Eq. (8).
    """
    num_runs, size = normalized_fitness.shape
    counts = np.zeros((num_runs, num_bins))
    width = 1.0 / num_bins
    for run in range(num_runs):
        for value in normalized_fitness[run]:
            index = min(int(value * num_bins), num_bins - 1)
            # The product may round across an edge; the edges, those of numpy's linspace, decide.
            if index > 0 and value < index * width:
                index -= 1
            elif index < num_bins - 1 and value >= (index + 1) * width:
                index += 1
            counts[run, index] += 1.0
    counts /= size
    return counts


@dataclass(frozen=True, slots=True)
class HistogramHistory:
    """Histograms of past generations: the last g of them, or the running mean of all.

    Attributes:
        rows: With a window, a ring buffer of shape (R, g, b), zero where nothing was stored yet. Without one, the
            running mean, shape (R, 1, b), which starts with a uniform row that stays in the mean.
        num_rows: Rows stored so far, shape (R,).
        windowed: Whether ``rows`` is a ring buffer.
    """

    rows: FloatArray
    num_rows: IntArray
    windowed: bool

    @classmethod
    def empty(cls, num_runs: int, num_bins: int, window: int | None) -> HistogramHistory:
        """Return the history of runs that have no past yet."""
        if window is None:
            uniform = np.full((num_runs, 1, num_bins), 1.0 / num_bins)
            return cls(uniform, np.ones(num_runs, np.int64), windowed=False)
        return cls(np.zeros((num_runs, window, num_bins)), np.zeros(num_runs, np.int64), windowed=True)

    def mean(self) -> FloatArray:
        """Return the moving average, shape (R, b); uniform before there is a past.

        Reference: LDE paper, Eq. (9).
        """
        return _window_mean(self.rows, self.num_rows) if self.windowed else self.rows[:, 0]


@compiled
def _window_mean(rows: FloatArray, num_rows: IntArray) -> FloatArray:
    num_runs, window, num_bins = rows.shape
    means = np.empty((num_runs, num_bins))
    for run in range(num_runs):
        stored = min(num_rows[run], window)
        for index in range(num_bins):
            total = 0.0
            for row in range(stored):
                total += rows[run, row, index]
            means[run, index] = total / stored if stored > 0 else 1.0 / num_bins
    return means


@compiled
def push_histogram(rows: FloatArray, num_rows: IntArray, histogram: FloatArray, windowed: bool) -> FloatArray:
    """Return the ``rows`` of a ``HistogramHistory`` with one more row per run, ``histogram`` (R, b)."""
    pushed = rows.copy()
    for run in range(rows.shape[0]):
        if windowed:
            pushed[run, num_rows[run] % rows.shape[1]] = histogram[run]
        else:
            pushed[run, 0] += (histogram[run] - rows[run, 0]) / (num_rows[run] + 1)
    return pushed
