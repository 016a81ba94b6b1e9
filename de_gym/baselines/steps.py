"""Compiled steps that several baselines share: parameter sampling, trials of one run, one-to-one selection."""

from __future__ import annotations

import math

import numpy as np

from de_gym.arrays import BoolArray, FloatArray, IntArray
from de_gym.evolution.operators import (
    cross_binomial,
    mutate_from_base,
    repair_midpoint,
)
from de_gym.machine.breeding import trials_of_rows
from de_gym.machine.compiling import compiled
from de_gym.machine.picks import pick_distinct, pick_leading


@compiled
def sample_cauchy(uniforms: FloatArray, locations: FloatArray, spread: float) -> FloatArray:
    """Return Cauchy numbers location + spread tan(pi (u - 1/2)), shape (N,)."""
    samples = np.empty_like(uniforms)
    for i in range(uniforms.shape[0]):
        samples[i] = locations[i] + spread * math.tan(math.pi * (uniforms[i] - 0.5))
    return samples


@compiled
def sample_positive_cauchy(uniforms: FloatArray, locations: FloatArray, spread: float) -> FloatArray:
    """Return Cauchy numbers given that they are positive, those above 1 set to 1, shape (N,).

    The papers redraw until a number is positive. One uniform mapped to the part of (0, 1] whose quantiles are
    positive has the same distribution and always costs one draw.
    """
    samples = np.empty_like(uniforms)
    for i in range(uniforms.shape[0]):
        share_positive = 0.5 + math.atan(locations[i] / spread) / math.pi
        quantile = 1.0 - share_positive * uniforms[i]
        sample = locations[i] + spread * math.tan(math.pi * (quantile - 0.5))
        # The smallest quantiles round to zero or below; a factor of zero would make the Lehmer mean undefined.
        samples[i] = min(max(sample, 1e-15), 1.0)
    return samples


@compiled
def sample_clipped_normal(normals: FloatArray, means: FloatArray, spread: float) -> FloatArray:
    """Return mean + spread z clipped to [0, 1], shape (N,)."""
    samples = np.empty_like(normals)
    for i in range(normals.shape[0]):
        samples[i] = min(max(means[i] + spread * normals[i], 0.0), 1.0)
    return samples


@compiled
def current_to_pbest_trials(
    pool: FloatArray,
    pool_size: int,
    scale_factors: FloatArray,
    pbest_weights: FloatArray,
    crossover_rates: FloatArray,
    pbest: IntArray,
    uniforms: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> FloatArray:
    """Return one run's trials of DE/current-to-pbest/1/bin, midpoint-repaired, shape (N, D).

    Args:
        pool: The population, followed by an archive or not; r2 points to its first ``pool_size`` rows.
        pool_size: Number of rows of ``pool`` in use.
        scale_factors: F, shape (N,).
        pbest_weights: Factor of the difference to p-best, shape (N,).
        crossover_rates: CR, shape (N,).
        pbest: Row of each individual's p-best, shape (N,).
        uniforms: Shape (N (3 + D),): r1, r2, forced coordinate, crossover.
        lower: Shape (D,).
        upper: Shape (D,).
    """
    size = len(pbest)
    rows = np.empty((4, size), np.int64)
    rows[0], rows[1] = np.arange(size), pbest
    rows[2:] = pick_distinct(uniforms[: 2 * size].reshape(2, size), pool_size)
    trials = np.empty((size, pool.shape[1]))
    trials_of_rows(
        pool, rows, pbest_weights, scale_factors, crossover_rates, uniforms[2 * size :], lower, upper, trials
    )
    return trials


@compiled
def rand_1_donors(positions: FloatArray, scale_factors: FloatArray, uniforms: FloatArray) -> FloatArray:
    """Return donors x_r1 + F (x_r2 - x_r3) of one run; ``uniforms`` has shape (3 N,)."""
    size = positions.shape[0]
    picked = pick_distinct(uniforms.reshape(3, size), size)
    return mutate_from_base(positions, scale_factors, picked[0], picked[1:2], picked[2:3])


@compiled
def best_1_donors(positions: FloatArray, best: int, scale_factors: FloatArray, uniforms: FloatArray) -> FloatArray:
    """Return donors x_best + F (x_r1 - x_r2) of one run; ``uniforms`` has shape (2 N,)."""
    size = positions.shape[0]
    picked = pick_distinct(uniforms.reshape(2, size), size)
    return mutate_from_base(positions, scale_factors, np.full(size, best), picked[0:1], picked[1:2])


@compiled
def cross_and_repair_midpoint(
    parents: FloatArray,
    donors: FloatArray,
    crossover_rates: FloatArray,
    uniforms: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> FloatArray:
    """Return one run's binomial trials with a forced coordinate, midpoint-repaired.

    ``uniforms`` has shape (N (1 + D),): forced coordinate, crossover.
    """
    size, dimension = parents.shape
    forced = pick_leading(uniforms[:size], dimension)
    crossing = uniforms[size:].reshape(size, dimension)
    return repair_midpoint(cross_binomial(parents, donors, crossover_rates, crossing, forced), parents, lower, upper)


@compiled
def select_not_worse(
    positions: FloatArray, fitness: FloatArray, trials: FloatArray, trial_fitness: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return the next positions (R, N, D) and fitness (R, N), and which trials replaced their parent (R, N).

    A trial replaces its parent where it is not worse; individuals keep their places.
    """
    next_positions, next_fitness = positions.copy(), fitness.copy()
    replaced = trial_fitness <= fitness
    for run in range(fitness.shape[0]):
        for i in range(fitness.shape[1]):
            if replaced[run, i]:
                next_positions[run, i] = trials[run, i]
                next_fitness[run, i] = trial_fitness[run, i]
    return next_positions, next_fitness, replaced


@compiled
def rotate_rows(points: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return ``points @ matrix``, added up in a fixed order so that no library choice changes a bit."""
    rotated = np.zeros((points.shape[0], matrix.shape[1]))
    for i in range(points.shape[0]):
        for k in range(points.shape[1]):
            factor = points[i, k]
            for j in range(matrix.shape[1]):
                rotated[i, j] += factor * matrix[k, j]
    return rotated
