"""One generation of DE/current-to-pbest/1/bin for R runs at once."""

from __future__ import annotations

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.compiling import compiled
from de_gym.evolution.coordinates import (
    move_to_pbest,
    positive_or_never,
    to_bound,
    to_fresh,
    to_midpoint,
    to_mirror,
)
from de_gym.evolution.operators import pick_distinct, pick_leading, rank_by_fitness
from de_gym.evolution.streams import NUM_STREAMS, KeyArray, fill_uniforms, seed_streams, whole_turns

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
    trials: FloatArray,
) -> None:
    """Write the trials (N, D) of one run to ``trials``.

    Mutation, repair and crossover are done in one pass over the coordinates. Parents lie inside the box, so repairing
    a donor before crossover gives what repairing the trial after it would.

    Args:
        parents: Shape (N, D), best individual first.
        actions: F of every rank, then CR of every rank, shape (2N,).
        num_pbest: Number of leading individuals that count as p-best.
        uniforms: Shape (``num_uniforms``,).
        lower: Lower bounds, shape (D,).
        upper: Upper bounds, shape (D,).
        repair: A value of ``BOUND_REPAIRS``.
        trials: Where the result goes, shape (N, D).
    """
    size, dimension = parents.shape
    pbest = pick_leading(uniforms[:size], num_pbest)
    others = pick_distinct(uniforms[size : 3 * size].reshape(2, size), size)
    forced = pick_leading(uniforms[3 * size : 4 * size], dimension)
    crossing = uniforms[4 * size :].reshape(-1, size, dimension)
    for i in range(size):
        best, plus, minus = pbest[i], others[0, i], others[1, i]
        factor, rate = actions[i], positive_or_never(actions[size + i])
        for j in range(dimension):
            parent, low, high = parents[i, j], lower[j], upper[j]
            donor = move_to_pbest(parent, parents[best, j], parents[plus, j], parents[minus, j], factor, factor)
            if repair == 0:
                donor = to_midpoint(donor, parent, low, high)
            elif repair == 1:
                donor = to_bound(donor, low, high)
            elif repair == 2:
                donor = to_mirror(donor, low, high)
            else:
                donor = to_fresh(donor, crossing[1, i, j], low, high)
            crossed = (crossing[0, i, j] <= rate) | (j == forced[i])
            trials[i, j] = donor if crossed else parent


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
    states, uniforms = np.empty((4, NUM_STREAMS), np.uint64), np.empty(whole_turns(num_drawn))
    for run in range(positions.shape[0]):
        seed_streams(keys[run], generation[run], states)
        fill_uniforms(states, uniforms)
        run_bounds = lower[run], upper[run]
        breed(positions[run], actions[run], num_pbest[run], uniforms[:num_drawn], *run_bounds, repair, trials[run])
    return trials


@compiled
def select_better(
    positions: FloatArray,
    fitness: FloatArray,
    trials: FloatArray,
    trial_fitness: FloatArray,
    next_positions: FloatArray,
    next_fitness: FloatArray,
    num_successes: IntArray,
) -> None:
    """Write the next populations of R runs, sorted best first, and how many trials replaced their parent in each.

    A trial replaces its parent where it is not worse. The last three arguments receive the result: (R, N, D), (R, N)
    and (R,).
    """
    for run in range(positions.shape[0]):
        better = np.minimum(fitness[run], trial_fitness[run])
        num_successes[run] = 0
        for rank, individual in enumerate(rank_by_fitness(better)):
            next_fitness[run, rank] = better[individual]
            replaced = trial_fitness[run, individual] <= fitness[run, individual]
            num_successes[run] += replaced
            survivors = trials if replaced else positions
            # Element by element: assigning a slice costs more than the ten numbers in it.
            for j in range(positions.shape[2]):
                next_positions[run, rank, j] = survivors[run, individual, j]
