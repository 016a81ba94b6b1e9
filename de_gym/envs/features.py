"""What the controller sees: parts of the observation as pure functions.

A new one is a function and an entry in ``FEATURES``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from de_gym.arrays import Float32Array, FloatArray, IntArray, RunArray
from de_gym.machine.compiling import compiled, switch


class View(NamedTuple):
    """What is known of R runs when they are observed.

    Attributes:
        normalized: Fitness scaled to [0, 1] in each run, best first, shape (R, N).
        histogram: Share of the population in each bin, shape (R, b).
        mean_past: Mean of past histograms, shape (R, b).
        bin_scale: What a full bin of a histogram counts.
    """

    normalized: FloatArray
    histogram: FloatArray
    mean_past: FloatArray
    bin_scale: float


@compiled
def observe_fitness(view: View) -> FloatArray:
    """Return the scaled fitness, shape (R, N)."""
    return view.normalized


@compiled
def observe_histogram(view: View) -> FloatArray:
    """Return the histogram of the current generation, shape (R, b)."""
    return view.bin_scale * view.histogram


@compiled
def observe_mean_past_histogram(view: View) -> FloatArray:
    """Return the mean of past histograms, shape (R, b)."""
    return view.bin_scale * view.mean_past


@dataclass(frozen=True)
class Feature:
    """One stretch of the observation vector.

    Attributes:
        observe: Returns it for R runs, shape (R, k).
        size: Number of entries k, from population size and number of bins.
        high: Upper bound of the entries, from the scale of the bins; the lower bound is 0.
    """

    observe: Callable[[View], FloatArray]
    size: Callable[[int, int], int]
    high: Callable[[float], float]


FEATURES: Mapping[str, Feature] = MappingProxyType(
    {
        "fitness": Feature(
            observe=observe_fitness,
            size=lambda population_size, num_bins: population_size,
            high=lambda bin_scale: 1.0,
        ),
        "histogram": Feature(
            observe=observe_histogram,
            size=lambda population_size, num_bins: num_bins,
            high=lambda bin_scale: bin_scale,
        ),
        "mean_past_histogram": Feature(
            observe=observe_mean_past_histogram,
            size=lambda population_size, num_bins: num_bins,
            high=lambda bin_scale: bin_scale,
        ),
    }
)

_observe_part = switch([part.observe for part in FEATURES.values()])


@compiled
def write_observations(parts: IntArray, view: View, observations: Float32Array) -> None:
    """Write the ``parts``, given by their positions in ``FEATURES``, to ``observations`` (R, O)."""
    start = 0
    for part in parts:
        columns = _observe_part(part, view)
        width = columns.shape[1]
        target = observations[:, start : start + width]
        for run in range(columns.shape[0]):
            for index in range(width):
                target[run, index] = columns[run, index]
        start += width


@compiled
def normalize_fitness(fitness: FloatArray, normalized: FloatArray) -> None:
    """Write (f - min) / (max - min) of each run's sorted ``fitness`` (R, N); zeros where a population is flat.

    Infinite values (points at which the objective returned no number) become 1, and do not count as the maximum.

    Reference: LDE paper, Eq. (7).
    """
    num_runs, size = fitness.shape
    for run in range(num_runs):
        first, end = 0, size
        while end > 0 and not np.isfinite(fitness[run, end - 1]):
            end -= 1
        while first < end and not np.isfinite(fitness[run, first]):
            first += 1
        if first == end:
            normalized[run] = 0.0
            continue
        # Halved, because the difference of two huge values would overflow.
        low = 0.5 * fitness[run, first]
        spread = 0.5 * fitness[run, end - 1] - low
        for i in range(size):
            # All of them and without branches, so that it compiles to vector instructions.
            share = (0.5 * fitness[run, i] - low) / spread
            scaled = (share if share < 1.0 else 1.0) if spread > 0.0 else 0.0
            normalized[run, i] = scaled if (i >= first) & (i < end) else 1.0


@compiled
def fitness_histogram(runs: RunArray, normalized: FloatArray, histogram: FloatArray) -> None:
    """Write the share of each run's living individuals in each of b equal bins of [0, 1] to ``histogram`` (R, b).

    Bins are closed below and open above, the last one closed on both sides.

    Reference: LDE paper, Eq. (8).
    """
    num_bins = histogram.shape[1]
    width = 1.0 / num_bins
    for run in range(len(runs)):
        num_before, size = 0, runs[run].size
        for index in range(num_bins - 1):
            # The edges, those of numpy's linspace, decide; counting needs neither order nor branches.
            edge, num_below = (index + 1) * width, 0
            for i in range(size):
                num_below += normalized[run, i] < edge
            histogram[run, index] = (num_below - num_before) / size
            num_before = num_below
        histogram[run, num_bins - 1] = (size - num_before) / size


def empty_history(num_runs: int, num_bins: int, window: int | None) -> FloatArray:
    """Return the past histograms of runs that have no past yet.

    With a window of g generations, a ring buffer of shape (R, g, b). Without one, the running mean of all past
    histograms, shape (R, 1, b), which starts with a uniform row that stays in the mean.
    """
    if window is None:
        return np.full((num_runs, 1, num_bins), 1.0 / num_bins)
    return np.zeros((num_runs, window, num_bins))


@compiled
def push_histogram(runs: RunArray, history: FloatArray, histogram: FloatArray, has_window: bool) -> None:
    """Add the ``histogram`` (R, b) of each run's generation to its past."""
    num_runs, window, num_bins = history.shape
    for run in range(num_runs):
        generation = runs[run].generation
        row = generation % window
        for index in range(num_bins):
            if has_window:
                history[run, row, index] = histogram[run, index]
            else:
                # The uniform row and the generations before this one are in the mean already.
                mean = history[run, 0, index]
                history[run, 0, index] = mean + (histogram[run, index] - mean) / (generation + 2)


@compiled
def mean_past_histogram(runs: RunArray, history: FloatArray, has_window: bool, means: FloatArray) -> None:
    """Write the moving average of what was pushed before each run's generation to ``means`` (R, b); uniform at first.

    Reference: LDE paper, Eq. (9).
    """
    num_runs, window, num_bins = history.shape
    for run in range(num_runs):
        num_rows = min(runs[run].generation, window) if has_window else 1
        for index in range(num_bins):
            total = 0.0
            for row in range(num_rows):
                total += history[run, row, index]
            means[run, index] = total / num_rows if num_rows > 0 else 1.0 / num_bins
