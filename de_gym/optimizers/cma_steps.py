"""One generation of CMA-ES as compiled functions of one run: Hansen, The CMA Evolution Strategy: A Tutorial."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from de_gym.arrays import FloatArray
from de_gym.evolution.eigenvectors import rotate_rows
from de_gym.machine.compiling import compiled
from de_gym.machine.jacobi import find_eigenvectors
from de_gym.machine.ordering import rank_by_fitness

# Far beyond any box; without it a flat objective would let the step size grow until points are not numbers.
_MAX_STEP_SIZE = 1e8


class CMAConstants(NamedTuple):
    """Constants of a strategy with ``len(weights)`` parents, in the tutorial's order.

    Attributes:
        weights: Recombination weights, best first, shape (mu,).
        effective_parents: Variance-effective number of parents.
        step_rate: Learning rate of the step-size path.
        step_damping: Damping of the step size.
        path_rate: Learning rate of the covariance path.
        rank_one_rate: Weight of the path in the covariance.
        rank_parents_rate: Weight of the parents in the covariance.
        expected_length: Expected length of a standard normal vector.
        num_flat: If the best is no better than the individual of this rank, the landscape counts as flat.
        flat_growth: Factor of the step size on a flat landscape.
    """

    weights: FloatArray
    effective_parents: float
    step_rate: float
    step_damping: float
    path_rate: float
    rank_one_rate: float
    rank_parents_rate: float
    expected_length: float
    num_flat: int
    flat_growth: float


def log_weights(count: int) -> FloatArray:
    """Return weights proportional to ln(count + 1/2) - ln(rank), shape (count,), which add up to one."""
    advantages = [math.log(count + 0.5) - math.log(rank) for rank in range(1, count + 1)]
    return np.array(advantages) / math.fsum(advantages)


def cma_constants(dimension: int, num_samples: int) -> CMAConstants:
    """Return the constants of the 2009 tutorial program; its rank-mu rate is not capped."""
    weights = log_weights(num_samples // 2)
    parents = float(1.0 / np.sum(weights**2))
    step_rate = (parents + 2.0) / (dimension + parents + 5.0)
    damping = 1.0 + 2.0 * max(0.0, math.sqrt((parents - 1.0) / (dimension + 1.0)) - 1.0) + step_rate
    return CMAConstants(
        weights=weights,
        effective_parents=parents,
        step_rate=step_rate,
        step_damping=damping,
        path_rate=(4.0 + parents / dimension) / (dimension + 4.0 + 2.0 * parents / dimension),
        rank_one_rate=2.0 / ((dimension + 1.3) ** 2 + parents),
        rank_parents_rate=2.0 * (parents - 2.0 + 1.0 / parents) / ((dimension + 2.0) ** 2 + parents),
        expected_length=math.sqrt(dimension) * (1.0 - 1.0 / (4.0 * dimension) + 1.0 / (21.0 * dimension**2)),
        num_flat=math.ceil(0.7 * num_samples),
        flat_growth=math.exp(0.2 + step_rate / damping),
    )


@compiled
def sample_steps(normals: FloatArray, basis: FloatArray, axis_lengths: FloatArray) -> FloatArray:
    """Return steps B D z, shape (K, D), of standard normals z (K, D)."""
    return rotate_rows(normals * axis_lengths, np.ascontiguousarray(basis.T))


@compiled
def decompose(covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvectors (D, D), in columns, and the square roots of the eigenvalues (D,)."""
    vectors, values = find_eigenvectors(covariance)
    return vectors, np.sqrt(np.maximum(values, 0.0))


@compiled
def update_strategy(
    points: FloatArray,
    normals: FloatArray,
    fitness: FloatArray,
    step_size: float,
    step_path: FloatArray,
    covariance_path: FloatArray,
    covariance: FloatArray,
    basis: FloatArray,
    axis_lengths: FloatArray,
    generation: int,
    constants: CMAConstants,
) -> tuple[FloatArray, float, FloatArray, FloatArray, FloatArray]:
    """Return mean, step size, both paths and covariance after one generation.

    Args:
        points: Samples, repaired, shape (K, D); only the new mean is made of them.
        normals: The standard normals behind the samples, shape (K, D).
        fitness: Shape (K,).
        step_size: Current step size.
        step_path: Shape (D,).
        covariance_path: Shape (D,).
        covariance: Shape (D, D).
        basis: Its eigenvectors in columns, shape (D, D).
        axis_lengths: Square roots of its eigenvalues, shape (D,).
        generation: Number of this generation, from 1.
        constants: From ``cma_constants``.
    """
    dimension = points.shape[1]
    order = rank_by_fitness(fitness)
    parents = order[: constants.weights.shape[0]]
    mean, mean_normal = np.zeros(dimension), np.zeros(dimension)
    for rank in range(parents.shape[0]):
        mean += constants.weights[rank] * points[parents[rank]]
        mean_normal += constants.weights[rank] * normals[parents[rank]]
    steps = sample_steps(normals[parents], basis, axis_lengths)
    mean_row = mean_normal.reshape(1, dimension)
    mean_step = sample_steps(mean_row, basis, axis_lengths)[0]
    mean_direction = sample_steps(mean_row, basis, np.ones(dimension))[0]

    step_gain = math.sqrt(constants.step_rate * (2.0 - constants.step_rate) * constants.effective_parents)
    next_step_path = (1.0 - constants.step_rate) * step_path + step_gain * mean_direction
    length = math.sqrt((next_step_path * next_step_path).sum()) / constants.expected_length
    expected = math.sqrt(1.0 - (1.0 - constants.step_rate) ** (2 * generation))
    # The covariance path pauses while the step-size path is long, that is while the step size grows quickly.
    moves = 1.0 if length / expected < 1.4 + 2.0 / (dimension + 1.0) else 0.0
    path_gain = math.sqrt(constants.path_rate * (2.0 - constants.path_rate) * constants.effective_parents)
    next_path = (1.0 - constants.path_rate) * covariance_path + moves * path_gain * mean_step

    kept = 1.0 - constants.rank_one_rate - constants.rank_parents_rate
    kept += (1.0 - moves) * constants.rank_one_rate * constants.path_rate * (2.0 - constants.path_rate)
    next_covariance = kept * covariance
    for j in range(dimension):
        factor = constants.rank_one_rate * next_path[j]
        for k in range(dimension):
            next_covariance[j, k] += factor * next_path[k]
        for rank in range(parents.shape[0]):
            weight = constants.rank_parents_rate * constants.weights[rank] * steps[rank, j]
            for k in range(dimension):
                next_covariance[j, k] += weight * steps[rank, k]

    next_step_size = step_size * math.exp(constants.step_rate / constants.step_damping * (length - 1.0))
    if fitness[order[0]] == fitness[order[constants.num_flat - 1]]:
        next_step_size *= constants.flat_growth
    return mean, min(next_step_size, _MAX_STEP_SIZE), next_step_path, next_path, next_covariance
