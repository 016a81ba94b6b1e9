"""Differential Evolution operators on one run: positions (N, D) in, trials (N, D) out.

All are compiled, pure and deterministic: random numbers come in as arrays. Batches of runs are compiled loops
over these (see ``generation.py``), which keeps one run's population in the processor's first cache.
"""

from __future__ import annotations

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.compiling import compiled


@compiled
def pick_leading(uniforms: FloatArray, count: int) -> IntArray:
    """Return indices floor(u * count), each uniform in 0..count-1, shape of ``uniforms`` (N,)."""
    picked = np.empty(uniforms.shape[0], np.int64)
    for individual in range(uniforms.shape[0]):
        picked[individual] = int(uniforms[individual] * count)
    return picked


@compiled
def pick_distinct(uniforms: FloatArray, last_size: int) -> IntArray:
    """Return K indices per individual that differ from it and from each other.

    Args:
        uniforms: Shape (K, N), one number per index.
        last_size: Number of rows the last index may point to: N, or N plus the archive's rows.

    Returns:
        Indices, shape (K, N): the first K - 1 below N, the last below ``last_size``.
    """
    num_picks, size = uniforms.shape
    picked = np.empty((num_picks, size), np.int64)
    taken = np.empty(num_picks + 1, np.int64)
    for individual in range(size):
        taken[0] = individual
        for pick in range(num_picks):
            choices = last_size if pick == num_picks - 1 else size
            index = int(uniforms[pick, individual] * (choices - pick - 1))
            # Step over the rows taken so far, in ascending order: uniform over the others without redrawing.
            for position in range(pick + 1):
                index += index >= taken[position]
            picked[pick, individual] = index
            # Insert by exchange, without branches that random data would make the processor mispredict.
            carried = index
            for position in range(pick + 1):
                here = taken[position]
                taken[position] = min(here, carried)
                carried = max(here, carried)
            taken[pick + 1] = carried
    return picked


@compiled
def mutate_current_to_pbest(
    positions: FloatArray,
    pool: FloatArray,
    scale_factors: FloatArray,
    pbest_weights: FloatArray,
    pbest: IntArray,
    r1: IntArray,
    r2: IntArray,
) -> FloatArray:
    """Return donors x_i + W_i (x_pbest - x_i) + F_i (x_r1 - y_r2).

    Args:
        positions: Population, shape (N, D).
        pool: Rows that r2 points to: the population, or the population followed by an archive.
        scale_factors: F of each individual, shape (N,).
        pbest_weights: W of each individual, shape (N,); equal to F in the original operator.
        pbest: Rows of the chosen good individuals, shape (N,).
        r1: Rows of the population, shape (N,).
        r2: Rows of the pool, shape (N,).

    Returns:
        Donors, shape (N, D); may lie outside the bounds.

    Reference: Zhang and Sanderson, JADE (2009), Eq. (6); LDE paper, section III-A.
    """
    donors = np.empty_like(positions)
    for i in range(positions.shape[0]):
        factor, weight = scale_factors[i], pbest_weights[i]
        current, best = positions[i], positions[pbest[i]]
        plus, minus = positions[r1[i]], pool[r2[i]]
        for j in range(positions.shape[1]):
            donors[i, j] = current[j] + weight * (best[j] - current[j]) + factor * (plus[j] - minus[j])
    return donors


@compiled
def mutate_from_base(
    positions: FloatArray, scale_factors: FloatArray, base: IntArray, plus: IntArray, minus: IntArray
) -> FloatArray:
    """Return donors x_base + F_i sum_k (x_plus,k - x_minus,k).

    With a random base and one difference this is rand/1; with the best individual as base, best/1 or best/2.

    Args:
        positions: Population, shape (N, D).
        scale_factors: F of each individual, shape (N,).
        base: Row of the base vector, shape (N,).
        plus: Rows added, shape (K, N).
        minus: Rows subtracted, shape (K, N).

    Returns:
        Donors, shape (N, D); may lie outside the bounds.
    """
    donors = np.empty_like(positions)
    for i in range(positions.shape[0]):
        for j in range(positions.shape[1]):
            difference = 0.0
            for k in range(plus.shape[0]):
                difference += positions[plus[k, i], j] - positions[minus[k, i], j]
            donors[i, j] = positions[base[i], j] + scale_factors[i] * difference
    return donors


@compiled
def cross_binomial(
    parents: FloatArray,
    donors: FloatArray,
    crossover_rates: FloatArray,
    uniforms: FloatArray,
    forced_dimension: IntArray,
) -> FloatArray:
    """Return trials that take coordinate j from the donor where u_ij <= CR_i or j is the forced one.

    Args:
        parents: Shape (N, D).
        donors: Shape (N, D).
        crossover_rates: CR of each individual, shape (N,).
        uniforms: Shape (N, D).
        forced_dimension: The coordinate always taken from the donor, shape (N,); -1 forces none.

    Reference: LDE paper, Eq. (2).
    """
    trials = np.empty_like(parents)
    for i in range(parents.shape[0]):
        # A rate of zero takes nothing but the forced coordinate, even where a uniform is exactly zero.
        rate = crossover_rates[i] if crossover_rates[i] > 0.0 else -1.0
        for j in range(parents.shape[1]):
            # Both are read first, so that the choice compiles to a blend and not to an unpredictable branch.
            donor, parent = donors[i, j], parents[i, j]
            trials[i, j] = donor if uniforms[i, j] <= rate else parent
        if forced_dimension[i] >= 0:
            trials[i, forced_dimension[i]] = donors[i, forced_dimension[i]]
    return trials


@compiled
def repair_midpoint(trials: FloatArray, parents: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return trials with each outside coordinate moved halfway between its parent's and the violated bound."""
    repaired = np.empty_like(trials)
    for i in range(trials.shape[0]):
        for j in range(trials.shape[1]):
            value, low, high = trials[i, j], lower[j], upper[j]
            bound = low if value < low else high
            outside = value < low or value > high
            midpoint = 0.5 * (parents[i, j] + bound)
            repaired[i, j] = midpoint if outside else value
    return repaired


@compiled
def repair_clip(trials: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return trials with each outside coordinate set to the violated bound."""
    repaired = np.empty_like(trials)
    for i in range(trials.shape[0]):
        for j in range(trials.shape[1]):
            repaired[i, j] = min(max(trials[i, j], lower[j]), upper[j])
    return repaired


@compiled
def repair_reflect(trials: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return trials mirrored at the violated bound as often as needed: a triangle wave of twice the box's width."""
    repaired = np.empty_like(trials)
    for i in range(trials.shape[0]):
        for j in range(trials.shape[1]):
            value, width = trials[i, j], upper[j] - lower[j]
            if value < lower[j] or value > upper[j]:
                phase = (value - lower[j]) % (2.0 * width)
                value = lower[j] + (phase if phase <= width else 2.0 * width - phase)
                value = min(max(value, lower[j]), upper[j])
            repaired[i, j] = value
    return repaired


@compiled
def repair_resample(trials: FloatArray, uniforms: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return trials with each outside coordinate drawn anew, uniform in the box, from ``uniforms`` (N, D)."""
    repaired = np.empty_like(trials)
    for i in range(trials.shape[0]):
        for j in range(trials.shape[1]):
            value = trials[i, j]
            if value < lower[j] or value > upper[j]:
                value = lower[j] + uniforms[i, j] * (upper[j] - lower[j])
            repaired[i, j] = value
    return repaired


@compiled
def rank_by_fitness(fitness: FloatArray) -> IntArray:
    """Return the order that sorts ``fitness`` (N,) best first; equals keep their order."""
    return np.argsort(fitness, kind="mergesort")
