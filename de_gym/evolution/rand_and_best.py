"""The shell of DE, CoBiDE, cDE and their relatives: donors from random individuals or from the best, no archive."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.evolution.eigenvectors import learn_eigenvectors, rotate_rows
from de_gym.evolution.populations import Population, Trials
from de_gym.evolution.shell import CROSSOVER_RATES, NEXT_SIZE, SCALE_FACTORS, Control, Parameters, Shell
from de_gym.machine.compiling import compiled, inlined, shared
from de_gym.machine.coordinates import positive_or_never, to_midpoint, to_mirror
from de_gym.machine.draws import GenerationDraws
from de_gym.machine.picks import pick_distinct, pick_index
from de_gym.machine.replacement import copy_rows
from de_gym.registry import known_name

# What donors are made of, and ways to bring them back into the box; the compiled code switches on the numbers.
STRATEGIES = MappingProxyType({"rand/1": 0, "best/1": 1, "best/2": 2})
REPAIRS = MappingProxyType({"midpoint": 0, "mirror": 1, "mirror-once": 2})
_RAND_1, _BEST_1, _BEST_2 = STRATEGIES.values()
_MIDPOINT, _MIRROR, _MIRROR_ONCE = REPAIRS.values()
_NUM_NEEDED = (3, 2, 4)
_NEVER = -1.0


@dataclass(frozen=True)
class RandAndBest(Shell):
    """Donors x_r1 + F (x_r2 - x_r3), x_best + F (x_r1 - x_r2) or x_best + F (x_r1 - x_r3 + x_r2 - x_r4).

    Attributes:
        num_others: How many others are drawn for a trial: 3, 2 and 4 are what the three strategies need.
        repair: A name of ``REPAIRS``.
        forces_only_empty: Whether a coordinate is forced only where crossover takes none, instead of always.
        eigen_probability: Probability that a run's generation crosses over in the coordinates of eigenvectors; None
            for never, without a draw.
        covariance_fraction: Share of the best individuals whose covariance has these eigenvectors.
    """

    controls = (
        SCALE_FACTORS,
        CROSSOVER_RATES,
        Control("strategies", "individual", "a value of STRATEGIES, what the donor is made of"),
        NEXT_SIZE,
    )

    num_others: int = 3
    repair: str = "midpoint"
    forces_only_empty: bool = False
    eigen_probability: float | None = None
    covariance_fraction: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.repair not in (*REPAIRS,):
            object.__setattr__(self, "repair", known_name("repair", self.repair, REPAIRS))

    @cached_property
    def smallest_size(self) -> int:
        """The parent and the others that are drawn."""
        return self.num_others + 1

    def num_uniforms(self, dimension: int) -> tuple[int, int]:
        """Return the numbers per individual: others, forced coordinate, crossover; and the coin of a run."""
        return self.num_others + 1 + dimension, 0 if self.eigen_probability is None else 1

    def breed(
        self, state: Population, parameters: Parameters, draws: GenerationDraws, lower: FloatArray, upper: FloatArray
    ) -> Trials:
        """Return one trial of every individual of the runs that ``draws.starts`` gives points to."""
        points = np.empty((draws.starts[-1], lower.shape[1]))
        (factors, rates, _, strategies, _), positions, order = parameters, state.positions, state.order
        numbers = draws.uniforms, draws.layout.controller_uniforms, self.num_others, draws.starts
        probability = _NEVER if self.eigen_probability is None else self.eigen_probability
        rules = REPAIRS[self.repair], self.forces_only_empty, probability, self.covariance_fraction
        breed_rand_and_best(positions, order, strategies, factors, rates, *numbers, lower, upper, *rules, points)
        return Trials(points, draws.starts)


@compiled
def breed_rand_and_best(
    positions: FloatArray,
    order: IntArray,
    strategies: IntArray,
    scale_factors: FloatArray,
    crossover_rates: FloatArray,
    uniforms: FloatArray,
    first_uniform: int,
    num_others: int,
    starts: IntArray,
    lower: FloatArray,
    upper: FloatArray,
    repair: int,
    forces_only_empty: bool,
    eigen_probability: float,
    covariance_fraction: float,
    points: FloatArray,
) -> None:
    """Write the trials (T, D) of R runs; a run of N trials uses its uniforms from N ``first_uniform`` on."""
    dimension = lower.shape[1]
    for run in range(starts.shape[0] - 1):
        size = starts[run + 1] - starts[run]
        if size == 0:
            continue
        drawn, end = uniforms[run, first_uniform * size :], (num_others + 1 + dimension) * size
        parents, trials = positions[run, :size], points[starts[run] : starts[run + 1]]
        others = pick_distinct(drawn[: num_others * size].reshape(num_others, size), size)
        write_donors(parents, order[run, 0], others, strategies[run], scale_factors[run], trials)
        repair_points(trials, parents, lower[run], upper[run], repair)
        forced = drawn[num_others * size : (num_others + 1) * size]
        crossing = drawn[(num_others + 1) * size : end].reshape(size, dimension)
        if eigen_probability == _NEVER or drawn[end] >= eigen_probability:
            cross(parents, crossover_rates[run], forced, crossing, forces_only_empty, trials)
            continue
        num_best = max(int(covariance_fraction * size + 0.5), 2)
        basis = learn_eigenvectors(parents, order[run, :num_best])
        rotated = rotate_rows(trials, basis)
        cross(rotate_rows(parents, basis), crossover_rates[run], forced, crossing, forces_only_empty, rotated)
        copy_rows(rotate_rows(rotated, np.ascontiguousarray(basis.T)), trials)
        repair_points(trials, parents, lower[run], upper[run], repair)


@shared
def write_donors(
    positions: FloatArray,
    best: int,
    others: IntArray,
    strategies: IntArray,
    scale_factors: FloatArray,
    donors: FloatArray,
) -> None:
    """Write one run's donors (N, D), each by its own strategy, from the rows ``others`` (K, N) of ``positions``."""
    for i in range(donors.shape[0]):
        strategy = strategies[i]
        if not 0 <= strategy < len(_NUM_NEEDED) or _NUM_NEEDED[strategy] > others.shape[0]:
            raise ValueError("A controller chose a strategy that needs more individuals than the shell draws.")
        base = others[0, i] if strategy == _RAND_1 else best
        plus = others[1, i] if strategy == _RAND_1 else others[0, i]
        minus = others[1, i] if strategy == _BEST_1 else others[2, i]
        for j in range(donors.shape[1]):
            difference = 0.0 + (positions[plus, j] - positions[minus, j])
            donors[i, j] = positions[base, j] + scale_factors[i] * difference
        if strategy == _BEST_2:
            second, fourth = others[1, i], others[3, i]
            for j in range(donors.shape[1]):
                difference = 0.0 + (positions[plus, j] - positions[minus, j])
                difference += positions[second, j] - positions[fourth, j]
                donors[i, j] = positions[best, j] + scale_factors[i] * difference


@shared
def cross(
    parents: FloatArray,
    crossover_rates: FloatArray,
    forced_uniforms: FloatArray,
    uniforms: FloatArray,
    forces_only_empty: bool,
    donors: FloatArray,
) -> None:
    """Turn one run's donors (N, D) into trials: the parent's coordinate j stays where u_ij > CR_i and j is not forced.

    Args:
        parents: Shape (N, D).
        crossover_rates: CR of each individual, shape (N,) or longer.
        forced_uniforms: Numbers that choose the coordinate always taken from the donor, shape (N,).
        uniforms: Shape (N, D).
        forces_only_empty: Whether one is forced only where the donor would give nothing (Tvrdik, 2006).
        donors: Shape (N, D), changed.

    Reference: LDE paper, Eq. (2).
    """
    for i in range(donors.shape[0]):
        rate, num_crossed = positive_or_never(crossover_rates[i]), 0
        forced = pick_index(forced_uniforms[i], donors.shape[1])
        kept = donors[i, forced]
        for j in range(donors.shape[1]):
            crosses = uniforms[i, j] <= rate
            donors[i, j] = donors[i, j] if crosses else parents[i, j]
            num_crossed += crosses
        if num_crossed == 0 or not forces_only_empty:
            donors[i, forced] = kept


@shared
def repair_points(points: FloatArray, parents: FloatArray, lower: FloatArray, upper: FloatArray, repair: int) -> None:
    """Bring points (N, D) back into the box, in place."""
    for i in range(points.shape[0]):
        for j in range(points.shape[1]):
            value, low, high = points[i, j], lower[j], upper[j]
            if repair == _MIDPOINT:
                points[i, j] = to_midpoint(value, parents[i, j], low, high)
            elif repair == _MIRROR:
                points[i, j] = to_mirror(value, low, high)
            else:
                points[i, j] = to_mirror_once(value, low, high)


@inlined
def to_mirror_once(value: float, low: float, high: float) -> float:
    """Return an outside value mirrored once at the violated bound, set to the other bound where it overshoots that."""
    bound = low if value < low else high
    mirrored = min(max(2.0 * bound - value, low), high)
    return mirrored if (value < low) | (value > high) else value
