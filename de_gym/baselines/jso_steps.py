"""Steps of jSO as compiled loops over the runs: parameters, trials, archive, memory, reduction."""

from __future__ import annotations

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.baselines.steps import current_to_pbest_trials, sample_clipped_normal, sample_positive_cauchy
from de_gym.machine.compiling import compiled
from de_gym.machine.ordering import rank_by_fitness
from de_gym.machine.picks import pick_leading


@compiled
def sample_parameters(
    memory_scale_factor: FloatArray,
    memory_crossover_rate: FloatArray,
    uniforms: FloatArray,
    normals: FloatArray,
    fixed_mean: float,
    spread: float,
    ceiling: float,
    floor: float,
) -> tuple[FloatArray, FloatArray]:
    """Return F (R, N) and CR (R, N) around random memory entries; ``uniforms`` begin with 2 N per run."""
    num_runs, size = normals.shape
    memory_size = memory_scale_factor.shape[1]
    scale_factors, crossover_rates = np.empty_like(normals), np.empty_like(normals)
    for run in range(num_runs):
        slots = pick_leading(uniforms[run, :size], memory_size)
        factor_means, rate_means = np.empty(size), np.empty(size)
        for i in range(size):
            is_fixed = slots[i] == memory_size - 1
            factor_means[i] = fixed_mean if is_fixed else memory_scale_factor[run, slots[i]]
            rate_means[i] = fixed_mean if is_fixed else memory_crossover_rate[run, slots[i]]
        factors = sample_positive_cauchy(uniforms[run, size : 2 * size], factor_means, spread)
        rates = sample_clipped_normal(normals[run], rate_means, spread)
        for i in range(size):
            scale_factors[run, i] = min(factors[i], ceiling)
            rate = rates[i] if rate_means[i] >= 0.0 else 0.0
            crossover_rates[run, i] = max(rate, floor)
    return scale_factors, crossover_rates


@compiled
def pick_other_leading(uniforms: FloatArray, order: IntArray, count: int) -> IntArray:
    """Return for each individual a row among the first ``count`` of ``order`` that is not its own, shape (N,)."""
    size = order.shape[0]
    ranks = np.empty(size, np.int64)
    for rank in range(size):
        ranks[order[rank]] = rank
    picked = np.empty(size, np.int64)
    for i in range(size):
        choices = count - 1 if ranks[i] < count else count
        rank = int(uniforms[i] * choices)
        picked[i] = order[rank + (rank >= ranks[i])]
    return picked


@compiled
def propose_trials(
    positions: FloatArray,
    fitness: FloatArray,
    archive_size: IntArray,
    scale_factors: FloatArray,
    crossover_rates: FloatArray,
    pbest_weight: float,
    num_pbest: IntArray,
    other_pbest: bool,
    uniforms: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> FloatArray:
    """Return trials (R, N, D); ``uniforms`` have N (4 + D) per run after the first 2 N."""
    (num_runs, size), dimension = fitness.shape, positions.shape[2]
    trials = np.empty((num_runs, size, dimension))
    for run in range(num_runs):
        row, pool = uniforms[run, 2 * size : (6 + dimension) * size], positions[run]
        order = rank_by_fitness(fitness[run])
        if other_pbest:
            pbest = pick_other_leading(row[:size], order, num_pbest[run])
        else:
            pbest = order[pick_leading(row[:size], num_pbest[run])]
        trials[run] = current_to_pbest_trials(
            pool,
            size + archive_size[run],
            scale_factors[run],
            pbest_weight * scale_factors[run],
            crossover_rates[run],
            pbest,
            row[size:],
            lower[run],
            upper[run],
        )
    return trials


@compiled
def select_and_archive(
    positions: FloatArray,
    fitness: FloatArray,
    archive_size: IntArray,
    trials: FloatArray,
    trial_fitness: FloatArray,
    uniforms: FloatArray,
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return the next positions with archives, fitness and archive sizes.

    Trials that are not worse replace; parents that are strictly beaten go to the archive in the order of the
    population, each on a slot at random once it is full.
    """
    num_runs, size = fitness.shape
    capacity = positions.shape[1] - size
    next_positions, next_fitness = positions.copy(), fitness.copy()
    next_archive_size = archive_size.copy()
    for run in range(num_runs):
        count = archive_size[run]
        for i in range(size):
            if trial_fitness[run, i] <= fitness[run, i]:
                next_positions[run, i] = trials[run, i]
                next_fitness[run, i] = trial_fitness[run, i]
            if trial_fitness[run, i] < fitness[run, i] and capacity > 0:
                slot = count if count < capacity else int(uniforms[run, i] * capacity)
                next_positions[run, size + slot] = positions[run, i]
                count = min(count + 1, capacity)
        next_archive_size[run] = count
    return next_positions, next_fitness, next_archive_size


@compiled
def gain_weights(fitness: FloatArray, trial_fitness: FloatArray) -> FloatArray:
    """Return each trial's improvement of its parent as a share of the largest one, shape (N,), zero for the others.

    Improvements from or to infinity outweigh all finite ones and count alike.
    """
    weights = np.empty_like(fitness)
    largest = 0.0
    for i in range(fitness.shape[0]):
        weights[i] = fitness[i] - trial_fitness[i] if trial_fitness[i] < fitness[i] else 0.0
        largest = max(largest, weights[i])
    for i in range(fitness.shape[0]):
        if largest == np.inf:
            weights[i] = 1.0 if weights[i] == np.inf else 0.0
        elif largest > 0.0:
            weights[i] /= largest
    return weights


@compiled
def remember_successes(
    fitness: FloatArray,
    trial_fitness: FloatArray,
    scale_factors: FloatArray,
    crossover_rates: FloatArray,
    memory_scale_factor: FloatArray,
    memory_crossover_rate: FloatArray,
    memory_slot: IntArray,
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return both memories (R, H) and the next slots (R,), one entry averaged with the weighted Lehmer means.

    The last entry is written like the others although it is never read.
    """
    next_scale_factor, next_crossover_rate = memory_scale_factor.copy(), memory_crossover_rate.copy()
    next_slot = memory_slot.copy()
    for run in range(fitness.shape[0]):
        weights = gain_weights(fitness[run], trial_fitness[run])
        factor_sum, factor_squares, rate_sum, rate_squares = 0.0, 0.0, 0.0, 0.0
        for i in range(weights.shape[0]):
            factor, rate = scale_factors[run, i], crossover_rates[run, i]
            factor_sum += weights[i] * factor
            factor_squares += weights[i] * factor * factor
            rate_sum += weights[i] * rate
            rate_squares += weights[i] * rate * rate
        if factor_sum > 0.0:
            slot = memory_slot[run]
            lehmer_rate = rate_squares / rate_sum if rate_sum > 0.0 else -1.0
            next_scale_factor[run, slot] = 0.5 * (memory_scale_factor[run, slot] + factor_squares / factor_sum)
            next_crossover_rate[run, slot] = 0.5 * (memory_crossover_rate[run, slot] + lehmer_rate)
            next_slot[run] = (slot + 1) % memory_scale_factor.shape[1]
    return next_scale_factor, next_crossover_rate, next_slot


@compiled
def drop_worst(
    positions: FloatArray, fitness: FloatArray, next_size: int, next_capacity: int
) -> tuple[FloatArray, FloatArray]:
    """Return positions with archives and fitness of the best ``next_size``, in their old order.

    Among equals the first goes first; the archive loses its tail.
    """
    num_runs, size = fitness.shape
    next_positions = np.empty((num_runs, next_size + next_capacity, positions.shape[2]))
    next_fitness = np.empty((num_runs, next_size))
    for run in range(num_runs):
        dropped = np.zeros(size, np.bool_)
        worst_first = rank_by_fitness(-fitness[run])
        for rank in range(size - next_size):
            dropped[worst_first[rank]] = True
        row = 0
        for i in range(size):
            if not dropped[i]:
                next_positions[run, row] = positions[run, i]
                next_fitness[run, row] = fitness[run, i]
                row += 1
        next_positions[run, next_size:] = positions[run, size : size + next_capacity]
    return next_positions, next_fitness
