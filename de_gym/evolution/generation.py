"""One generation of DE/current-to-pbest/1/bin for R runs at once."""

from __future__ import annotations

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.compiling import compiled
from de_gym.evolution.operators import (
    cross_binomial,
    mutate_current_to_pbest,
    pick_distinct,
    pick_leading,
    rank_by_fitness,
    repair_clip,
    repair_midpoint,
    repair_reflect,
    repair_resample,
)
from de_gym.evolution.streams import KeyArray, expand_uniforms

# Ways to bring a trial back into the box; the numbers are what the compiled code switches on.
BOUND_REPAIRS = {"midpoint": 0, "clip": 1, "reflect": 2, "resample": 3}


def num_uniforms(population_size: int, dimension: int, bound_repair: str) -> int:
    """Return how many uniforms one run's generation consumes: p-best, r1, r2, forced coordinate, then crossover."""
    resampled = dimension if bound_repair == "resample" else 0
    return population_size * (4 + dimension + resampled)


@compiled
def breed(
    parents: FloatArray,
    actions: FloatArray,
    num_pbest: int,
    uniforms: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    repair: int,
) -> FloatArray:
    """Return the trials (N, D) of one run: mutate, cross, repair.

    Args:
        parents: Shape (N, D), best individual first.
        actions: F of every rank, then CR of every rank, shape (2N,).
        num_pbest: Number of leading individuals that count as p-best.
        uniforms: Shape (``num_uniforms``,).
        lower: Lower bounds, shape (D,).
        upper: Upper bounds, shape (D,).
        repair: A value of ``BOUND_REPAIRS``.
    """
    size, dimension = parents.shape
    pbest = pick_leading(uniforms[:size], num_pbest)
    others = pick_distinct(uniforms[size : 3 * size].reshape(2, size), size)
    forced = pick_leading(uniforms[3 * size : 4 * size], dimension)
    crossing = uniforms[4 * size : (4 + dimension) * size].reshape(size, dimension)
    factors, rates = actions[:size], actions[size:]
    donors = mutate_current_to_pbest(parents, parents, factors, factors, pbest, others[0], others[1])
    trials = cross_binomial(parents, donors, rates, crossing, forced)
    if repair == 0:
        return repair_midpoint(trials, parents, lower, upper)
    if repair == 1:
        return repair_clip(trials, lower, upper)
    if repair == 2:
        return repair_reflect(trials, lower, upper)
    return repair_resample(trials, uniforms[(4 + dimension) * size :].reshape(size, dimension), lower, upper)


@compiled
def breed_all(
    positions: FloatArray,
    actions: FloatArray,
    num_pbest: IntArray,
    keys: KeyArray,
    generation: IntArray,
    lower: FloatArray,
    upper: FloatArray,
    repair: int,
    num_drawn: int,
) -> FloatArray:
    """Return the trials (R, N, D) of R runs, whose arguments of ``breed`` stand in the rows of the arrays.

    Each run draws ``num_drawn`` uniforms from the stream of its key and generation number.
    """
    trials = np.empty_like(positions)
    for run in range(positions.shape[0]):
        uniforms = expand_uniforms(keys[run], generation[run], num_drawn)
        trials[run] = breed(positions[run], actions[run], num_pbest[run], uniforms, lower[run], upper[run], repair)
    return trials


@compiled
def select_better(
    positions: FloatArray, fitness: FloatArray, trials: FloatArray, trial_fitness: FloatArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return the next populations, sorted best first, and how many trials replaced their parent in each run.

    A trial replaces its parent where it is not worse.
    """
    num_runs = positions.shape[0]
    next_positions, next_fitness = np.empty_like(positions), np.empty_like(fitness)
    num_successes = np.zeros(num_runs, np.int64)
    for run in range(num_runs):
        better = np.minimum(fitness[run], trial_fitness[run])
        for rank, individual in enumerate(rank_by_fitness(better)):
            next_fitness[run, rank] = better[individual]
            if trial_fitness[run, individual] <= fitness[run, individual]:
                next_positions[run, rank] = trials[run, individual]
                num_successes[run] += 1
            else:
                next_positions[run, rank] = positions[run, individual]
    return next_positions, next_fitness, num_successes
