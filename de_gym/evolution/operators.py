"""Differential Evolution operators on one run: positions (N, D) in, trials (N, D) out.

All are compiled, pure and deterministic: random numbers come in as arrays. Their formulas stand in ``coordinates.py``;
``breeding.py`` applies the same ones to many runs in one pass over the coordinates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.evolution.coordinates import (
    move_to_pbest,
    positive_or_never,
    to_bound,
    to_fresh,
    to_midpoint,
    to_mirror,
)
from de_gym.machine.compiling import compiled, inlined
from de_gym.machine.lanes import pointer_to

if TYPE_CHECKING:
    from de_gym.machine.lanes import Pointer

# Up to this size insertion is the faster of two stable sorts, the more so on populations that are nearly sorted.
INSERTION_LIMIT = 128


@inlined
def pick_index(uniform: float, count: int) -> int:
    """Return floor(u * count), uniform in 0..count-1."""
    # By way of 32 bits, because the conversion to 64 has no vector form.
    return int(np.int32(uniform * count))


@compiled
def pick_leading(uniforms: FloatArray, count: int) -> IntArray:
    """Return indices, each uniform in 0..count-1, shape of ``uniforms`` (N,)."""
    picked = np.empty(uniforms.shape[0], np.int64)
    for individual in range(uniforms.shape[0]):
        picked[individual] = pick_index(uniforms[individual], count)
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
    picked, taken = np.empty(uniforms.shape, np.int64), np.empty(uniforms.shape, np.int64)
    num_picks, size = uniforms.shape
    pick_distinct_into(pointer_to(uniforms), 0, num_picks, size, last_size, pointer_to(picked), 0, pointer_to(taken))
    return picked


@inlined
def pick_distinct_into(
    uniforms: Pointer[float],
    first_uniform: int,
    num_picks: int,
    size: int,
    last_size: int,
    picked: Pointer[int],
    first_picked: int,
    columns: Pointer[int],
) -> None:
    """Write what ``pick_distinct`` returns to ``picked`` from ``first_picked`` on; ``columns`` is memory to work in.

    Every loop runs over all individuals without branches, so that it compiles to vector instructions.
    """
    # Column i lists what individual i may not pick again, ascending: itself, then its picks so far.
    for i in range(size):
        columns[i] = i
    for pick in range(num_picks):
        choices, first = last_size if pick == num_picks - 1 else size, pick * size
        drawn, here = first_uniform + first, first_picked + first
        for i in range(size):
            picked[here + i] = pick_index(uniforms[drawn + i], choices - pick - 1)
        # Step over the rows taken so far, in ascending order: uniform over the others without redrawing.
        for row in range(0, first + size, size):
            for i in range(size):
                picked[here + i] += picked[here + i] >= columns[row + i]
        if pick < num_picks - 1:
            for i in range(size):
                columns[first + size + i] = picked[here + i]
            for row in range(first, -1, -size):
                for i in range(size):
                    one, other = columns[row + i], columns[row + size + i]
                    columns[row + i] = min(one, other)
                    columns[row + size + i] = max(one, other)


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
        best, plus, minus = pbest[i], r1[i], r2[i]
        for j in range(positions.shape[1]):
            donors[i, j] = move_to_pbest(
                positions[i, j],
                positions[best, j],
                positions[plus, j],
                pool[minus, j],
                pbest_weights[i],
                scale_factors[i],
            )
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
        rate = positive_or_never(crossover_rates[i])
        for j in range(parents.shape[1]):
            donor, parent = donors[i, j], parents[i, j]
            trials[i, j] = donor if uniforms[i, j] <= rate else parent
        if forced_dimension[i] >= 0:
            trials[i, forced_dimension[i]] = donors[i, forced_dimension[i]]
    return trials


@compiled
def force_when_empty(uniforms: FloatArray, crossover_rates: FloatArray, picks: FloatArray) -> IntArray:
    """Return a forced coordinate for those crossovers alone that would take nothing, -1 for the others.

    Args:
        uniforms: The numbers of the crossover, shape (N, D).
        crossover_rates: CR of each individual, shape (N,).
        picks: Uniforms that choose the coordinate, shape (N,).

    Returns:
        ``forced_dimension`` of ``cross_binomial``, shape (N,).

    Reference: Tvrdik, Competitive Differential Evolution (2006).
    """
    forced = pick_leading(picks, uniforms.shape[1])
    for i in range(uniforms.shape[0]):
        if crossover_rates[i] > 0.0 and uniforms[i].min() <= crossover_rates[i]:
            forced[i] = -1
    return forced


@compiled
def repair_midpoint(trials: FloatArray, parents: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return trials with each outside coordinate moved halfway between its parent's and the violated bound."""
    repaired = np.empty_like(trials)
    for i in range(trials.shape[0]):
        for j in range(trials.shape[1]):
            repaired[i, j] = to_midpoint(trials[i, j], parents[i, j], lower[j], upper[j])
    return repaired


@compiled
def repair_clip(trials: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return trials with each outside coordinate set to the violated bound."""
    repaired = np.empty_like(trials)
    for i in range(trials.shape[0]):
        for j in range(trials.shape[1]):
            repaired[i, j] = to_bound(trials[i, j], lower[j], upper[j])
    return repaired


@compiled
def repair_reflect(trials: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return trials mirrored at the violated bound as often as needed: a triangle wave of twice the box's width."""
    repaired = np.empty_like(trials)
    for i in range(trials.shape[0]):
        for j in range(trials.shape[1]):
            repaired[i, j] = to_mirror(trials[i, j], lower[j], upper[j])
    return repaired


@compiled
def repair_reflect_once(trials: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return trials mirrored once at the violated bound, and set to the other bound where they overshoot that."""
    repaired = np.empty_like(trials)
    for i in range(trials.shape[0]):
        for j in range(trials.shape[1]):
            value, low, high = trials[i, j], lower[j], upper[j]
            bound = low if value < low else high
            mirrored = min(max(2.0 * bound - value, low), high)
            outside = value < low or value > high
            repaired[i, j] = mirrored if outside else value
    return repaired


@compiled
def repair_resample(trials: FloatArray, uniforms: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return trials with each outside coordinate drawn anew, uniform in the box, from ``uniforms`` (N, D)."""
    repaired = np.empty_like(trials)
    for i in range(trials.shape[0]):
        for j in range(trials.shape[1]):
            repaired[i, j] = to_fresh(trials[i, j], uniforms[i, j], lower[j], upper[j])
    return repaired


@compiled
def rank_by_fitness(fitness: FloatArray) -> IntArray:
    """Return the order that sorts ``fitness`` (N,) best first; equals keep their order."""
    size = fitness.shape[0]
    if size > INSERTION_LIMIT:
        return np.argsort(fitness, kind="mergesort")
    order, ranked = np.empty(size, np.int64), np.empty(size)
    for individual in range(size):
        value, slot = fitness[individual], individual
        while slot > 0 and ranked[slot - 1] > value:
            ranked[slot], order[slot] = ranked[slot - 1], order[slot - 1]
            slot -= 1
        ranked[slot], order[slot] = value, individual
    return order
