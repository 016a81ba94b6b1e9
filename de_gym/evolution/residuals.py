"""What may be controlled in the two-population shell: residuals around the rule of L-SRTDE, all of them 0.

A residual is a number a in [-1, 1], one per control, run and generation. Zero leaves every parameter bit for bit what
the success-rate rule says.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from de_gym.arrays import FloatArray
from de_gym.machine.compiling import compiled, inlined
from de_gym.machine.top_and_front import Run, RunArray


class Control(NamedTuple):
    """One number that a controller sets.

    Attributes:
        name: Its field in ``PARAMETERS``.
        meaning: What the parameter does.
        formula: The parameter as a function of a, with SR the success rate of the last generation.
    """

    name: str
    meaning: str
    formula: str


CONTROLS = (
    Control("mean_scale_factor", "mean of the normal distribution of F", "0.4 + 0.25 tanh(5 SR) + 0.3 a"),
    Control("scale_factor_spread", "its standard deviation", "0.02 exp(3 a)"),
    Control("pbest_share", "share of top that counts as p-best", "0.7 exp(-7 SR) exp(1.5 a)"),
    Control("rank_pressure", "how steeply the choice of r1 falls with its rank in front", "3 exp(1.2 a)"),
    Control("crossover_shift", "added to the memory's mean of CR", "0.3 a"),
    Control("crossover_spread", "standard deviation of CR", "0.05 exp(2.5 a)"),
    Control("pbest_weight", "factor of F in front of the p-best difference", "exp(0.6 a)"),
    Control("size_factor", "stretches what the linear plan leaves above the smallest size", "exp(1.2 a)"),
    Control("eigenvector_probability", "crossover along the axes of the better half of top, if n <= 300", "max(0, a)"),
    Control("triple_probability", "base and difference from p-best, r1 and r2 in order of value", "max(0, a)"),
    Control("noise_probability", "Cauchy noise on the coordinates that were not crossed", "max(0, a)"),
    Control("sparse_probability", "lets a trial draw CR from the sparse memory, if that has earned it", "max(0, a)"),
    Control("midpoint_probability", "outside coordinates go halfway to the bound instead of anywhere", "max(0, a)"),
    Control("in_place_probability", "successes that replace their target instead of the oldest of front", "max(0, a)"),
    Control("restart_probability", "populations whose better half has one value begin anew in the box", "max(0, a)"),
)

PARAMETERS = np.dtype([(control.name, "f8") for control in CONTROLS], align=True)

# Residuals reach this far, in both directions.
LARGEST_RESIDUAL = 1.0


def set_parameters(runs: RunArray, residuals: FloatArray) -> RunArray:
    """Return the parameters of each run's next generation, dtype ``PARAMETERS``, shape (R,).

    Args:
        runs: The runs of a state, shape (R,).
        residuals: One number for each of the ``CONTROLS``, clipped to [-1, 1], shape (R, A).
    """
    parameters = np.empty(len(runs), PARAMETERS)
    follow_rule(runs, checked_residuals(residuals, len(runs)), parameters)
    return parameters


def checked_residuals(residuals: FloatArray, num_runs: int) -> FloatArray:
    """Return residuals that compiled code can read, shape (R, A)."""
    shape, numbers = (num_runs, len(CONTROLS)), np.asarray(residuals, np.float64)
    if numbers.shape != shape:
        raise ValueError(f"`residuals` must have shape {shape}, one per run and control, got {numbers.shape}.")
    if np.isnan(numbers).any():
        raise ValueError("`residuals` must be numbers, got NaN.")
    return np.ascontiguousarray(np.clip(numbers, -LARGEST_RESIDUAL, LARGEST_RESIDUAL))


@compiled
def follow_rule(runs: RunArray, residuals: FloatArray, parameters: RunArray) -> None:
    """Write what ``set_parameters`` returns, given residuals that were checked."""
    for index in range(len(runs)):
        follow_rule_in_run(runs[index], residuals[index], parameters[index])


@inlined
def follow_rule_in_run(run: Run, residual: FloatArray, parameter: Run) -> None:
    """Write one run's parameters, as ``CONTROLS`` says."""
    rate = run.success_rate
    parameter.mean_scale_factor = 0.4 + 0.25 * math.tanh(5.0 * rate) + 0.3 * residual[0]
    parameter.scale_factor_spread = 0.02 * math.exp(3.0 * residual[1])
    parameter.pbest_share = 0.7 * math.exp(-7.0 * rate) * math.exp(1.5 * residual[2])
    parameter.rank_pressure = 3.0 * math.exp(1.2 * residual[3])
    parameter.crossover_shift = 0.3 * residual[4]
    parameter.crossover_spread = 0.05 * math.exp(2.5 * residual[5])
    parameter.pbest_weight = math.exp(0.6 * residual[6])
    parameter.size_factor = math.exp(1.2 * residual[7])
    parameter.eigenvector_probability = residual[8] if residual[8] > 0.0 else 0.0
    parameter.triple_probability = residual[9] if residual[9] > 0.0 else 0.0
    parameter.noise_probability = residual[10] if residual[10] > 0.0 else 0.0
    parameter.sparse_probability = residual[11] if residual[11] > 0.0 else 0.0
    parameter.midpoint_probability = residual[12] if residual[12] > 0.0 else 0.0
    parameter.in_place_probability = residual[13] if residual[13] > 0.0 else 0.0
    parameter.restart_probability = residual[14] if residual[14] > 0.0 else 0.0
