"""Differential Evolution operators on one run: positions (N, D) in, trials (N, D) out.

All are compiled, pure and deterministic: random numbers come in as arrays. They serve the strategies whose donors need
more than one pass; trials of current-to-pbest/1 are written in one (``machine/breeding.py``).
"""

from __future__ import annotations

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.machine.compiling import compiled
from de_gym.machine.coordinates import positive_or_never, to_midpoint, to_mirror
from de_gym.machine.picks import pick_leading


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
