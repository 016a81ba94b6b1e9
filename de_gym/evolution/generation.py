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
from de_gym.evolution.population import Population

# Ways to bring a trial back into the box; the numbers are what the compiled code switches on.
BOUND_REPAIRS = {"midpoint": 0, "clip": 1, "reflect": 2, "resample": 3}


def num_uniforms(population_size: int, dimension: int, bound_repair: str) -> int:
    """Return how many uniforms one run's generation consumes: p-best, r1, r2, forced coordinate, then crossover."""
    resampled = dimension if bound_repair == "resample" else 0
    return population_size * (4 + dimension + resampled)


@compiled
def propose_trials(
    positions: FloatArray,
    scale_factors: FloatArray,
    crossover_rates: FloatArray,
    num_pbest: IntArray,
    uniforms: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    repair: int,
) -> FloatArray:
    """Return trials (R, N, D) of populations (R, N, D) that are sorted best first.

    Args:
        positions: Shape (R, N, D), best individual first in every run.
        scale_factors: F, shape (R, N).
        crossover_rates: CR, shape (R, N).
        num_pbest: Number of leading individuals that count as p-best, shape (R,).
        uniforms: Shape (R, ``num_uniforms``).
        lower: Lower bounds, shape (R, D).
        upper: Upper bounds, shape (R, D).
        repair: A value of ``BOUND_REPAIRS``.
    """
    num_runs, size, dimension = positions.shape
    trials = np.empty_like(positions)
    for run in range(num_runs):
        parents, row = positions[run], uniforms[run]
        pbest = pick_leading(row[:size], num_pbest[run])
        others = pick_distinct(row[size : 3 * size].reshape(2, size), size)
        forced = pick_leading(row[3 * size : 4 * size], dimension)
        crossing = row[4 * size : (4 + dimension) * size].reshape(size, dimension)
        factors = scale_factors[run]
        donors = mutate_current_to_pbest(parents, parents, factors, factors, pbest, others[0], others[1])
        crossed = cross_binomial(parents, donors, crossover_rates[run], crossing, forced)
        if repair == 0:
            trials[run] = repair_midpoint(crossed, parents, lower[run], upper[run])
        elif repair == 1:
            trials[run] = repair_clip(crossed, lower[run], upper[run])
        elif repair == 2:
            trials[run] = repair_reflect(crossed, lower[run], upper[run])
        else:
            fresh = row[(4 + dimension) * size :].reshape(size, dimension)
            trials[run] = repair_resample(crossed, fresh, lower[run], upper[run])
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


def survive(population: Population, trials: FloatArray, trial_fitness: FloatArray) -> Population:
    """Return the population one generation later, given its trials (R, N, D) and their values (R, N)."""
    positions, fitness, num_successes = select_better(population.positions, population.fitness, trials, trial_fitness)
    return Population(
        positions=positions,
        fitness=fitness,
        evaluations=population.evaluations + positions.shape[1],
        generation=population.generation + 1,
        num_successes=num_successes,
    )
