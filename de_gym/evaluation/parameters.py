"""What was controlled along a run: F and CR of three fitness clusters, as in the paper's figure, and residuals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from de_gym.arrays import FloatArray, IntArray

NUM_CLUSTERS = 3


@dataclass(frozen=True)
class ParameterTrace:
    """What one run used in every generation; the population size N may change from generation to generation.

    Attributes:
        method: Name of the method.
        fitness: Parents' fitness at the start of each generation, one array (N,) per generation.
        scale_factors: F of each parent's trial, likewise.
        crossover_rates: CR of each parent's trial, likewise.
        residuals: What a controller adjusted the method's own rules by, each control by its name, shape (G,).
    """

    method: str
    fitness: Sequence[FloatArray]
    scale_factors: Sequence[FloatArray]
    crossover_rates: Sequence[FloatArray]
    residuals: Mapping[str, FloatArray] = field(default_factory=dict)

    def most_moved(self, count: int) -> Mapping[str, FloatArray]:
        """Return the residuals that moved most, at most ``count``, in the order of the controls."""
        names = sorted(self.residuals, key=lambda name: -float(np.ptp(self.residuals[name])))[:count]
        return {name: values for name, values in self.residuals.items() if name in names}

    def cluster_means(self) -> tuple[FloatArray, FloatArray]:
        """Return mean F and mean CR per generation and cluster, best cluster first, each of shape (G, 3).

        A cluster that is empty (a population whose fitness has fewer than three values) is NaN.
        """
        means = np.full((2, len(self.fitness), NUM_CLUSTERS), np.nan)
        for generation, fitness in enumerate(self.fitness):
            clusters = cluster_by_fitness(fitness)
            for kind, values in enumerate((self.scale_factors[generation], self.crossover_rates[generation])):
                for cluster in np.unique(clusters):
                    means[kind, generation, cluster] = np.asarray(values)[clusters == cluster].mean()
        return means[0], means[1]


def cluster_by_fitness(fitness: FloatArray) -> IntArray:
    """Return the cluster of each individual: 0 for the best group, 1 for the middle, 2 for the worst, shape (N,).

    The groups minimise the sum of squared distances to their means, exactly: in one dimension the best three groups
    are intervals, so all pairs of borders are tried. Equal values share a group; with fewer than three different
    values the last groups stay empty. Values that are not finite count as the worst that is.
    """
    values = np.asarray(fitness, dtype=np.float64)
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return np.zeros(len(values), np.int64)
    values = np.where(np.isfinite(values), values, finite.max())
    levels, level_of, sizes = np.unique(values, return_inverse=True, return_counts=True)
    if len(levels) <= NUM_CLUSTERS:
        return level_of.reshape(-1).astype(np.int64)
    # Unit scale, or squares of large values would cancel in the sums below.
    scaled = (levels - levels[0]) / (levels[-1] - levels[0])
    count, total, squares = (np.concatenate([[0.0], np.cumsum(sizes * scaled**power)]) for power in (0, 1, 2))

    def spread(start: IntArray, stop: IntArray) -> FloatArray:
        """Return the sum of squared distances to the mean of levels start .. stop - 1."""
        sums, number = total[stop] - total[start], count[stop] - count[start]
        result: FloatArray = squares[stop] - squares[start] - sums**2 / number
        return result

    first, second = np.triu_indices(len(levels) - 1, k=1)
    first, second = first + 1, second + 1  # borders: [0, first), [first, second), [second, end)
    end, begin = np.full_like(first, len(levels)), np.zeros_like(first)
    best = np.argmin(spread(begin, first) + spread(first, second) + spread(second, end))
    borders = np.array([first[best], second[best]])
    return np.searchsorted(borders, level_of.reshape(-1), side="right").astype(np.int64)
