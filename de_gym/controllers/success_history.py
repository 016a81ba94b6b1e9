"""jSO's parameter control: F and CR around remembered successes, with schedules over the budget and a size plan.

The rule is that of the distributed program, whose results are the published ones. It differs from the paper in that
memory entries are averaged with their old value, a negative remembered CR means CR = 0, p-best is never the individual
itself in the first half, and the number of p-best candidates changes only when the population shrinks.

Reference: Brest, Maucec and Boskovic, Single Objective Real-Parameter Optimization: Algorithm jSO (CEC 2017).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from de_gym.arrays import FloatArray, IntArray
from de_gym.checks import LARGEST_SIZE, fraction, real, store_plain, whole
from de_gym.controllers.parameter_rule import ParameterRule
from de_gym.evolution.populations import PlanRecords, Population, RunRecords
from de_gym.evolution.sampling import clipped_normal, positive_cauchy, share_positive
from de_gym.evolution.shell import Control, Feedback, Parameters, View
from de_gym.machine.compiling import compiled, inlined
from de_gym.machine.picks import pick_index

# Pairs (until which fraction of the budget, value): the first whose time has not passed applies, else the last.
Schedule = tuple[tuple[float, float], ...]

# What a residual of a in [-1, 1] does to the rule; zero changes nothing, bit for bit.
CONTROLS = (
    Control("mean_scale_factor", "run", "every mean of F + 0.3 a"),
    Control("scale_factor_spread", "run", "spread of F * exp(3 a)"),
    Control("pbest_share", "run", "number of p-best candidates * exp(1.5 a)"),
    Control("mean_crossover_rate", "run", "every mean of CR + 0.3 a"),
    Control("crossover_rate_spread", "run", "spread of CR * exp(2.5 a)"),
    Control("pbest_weight", "run", "weight of the difference to p-best * exp(0.6 a)"),
    Control("size_plan", "run", "planned size beyond the smallest one * exp(1.2 a), never growing"),
)
_MEAN_STEP = 0.3
_FACTOR_SPREAD, _PBEST_SHARE, _RATE_SPREAD, _PBEST_WEIGHT, _SIZE_PLAN = 3.0, 1.5, 2.5, 0.6, 1.2
# A spread beyond this makes nearly uniform numbers; residuals lead no further.
_LARGEST_SPREAD = 0.5

# Per run: the memory entry written next, the size when p-best candidates were last counted, and that count unrounded.
_HISTORY = np.dtype([("slot", "i8"), ("counted_size", "i8"), ("pbest_count", "f8")], align=True)
_SIZES = ("initial_size", "min_size", "min_pbest")
_SHARES = ("fixed_mean", "spread", "max_pbest_fraction", "pbest_decline", "other_pbest_until")
_CONSTANTS = np.dtype([(name, "i8") for name in _SIZES] + [(name, "f8") for name in _SHARES], align=True)


@dataclass(frozen=True)
class SuccessHistorySettings:
    """Constants of jSO's parameter control; the defaults are the distributed program's.

    Attributes:
        min_population_size: N at the end of the budget.
        memory_size: H, of which the last entry always reads (``fixed_mean``, ``fixed_mean``).
        initial_scale_factor: First mean F of the memory.
        initial_crossover_rate: First mean CR of the memory.
        fixed_mean: Mean F and CR of the last memory entry.
        spread: Scale of the normal and the Cauchy distribution.
        max_pbest_fraction: p at the start.
        min_pbest_fraction: p at the end.
        min_pbest: Smallest number of p-best candidates after the first reduction.
        other_pbest_until: Fraction of the budget during which p-best is never the individual itself.
        crossover_rate_floors: Smallest CR over time.
        scale_factor_ceilings: Largest F over time.
        pbest_weights: Factor of F in front of the difference to p-best over time.
    """

    min_population_size: int = 4
    memory_size: int = 5
    initial_scale_factor: float = 0.3
    initial_crossover_rate: float = 0.8
    fixed_mean: float = 0.9
    spread: float = 0.1
    max_pbest_fraction: float = 0.25
    min_pbest_fraction: float = 0.125
    min_pbest: int = 2
    other_pbest_until: float = 0.5
    crossover_rate_floors: Schedule = ((0.25, 0.7), (0.5, 0.6), (1.0, 0.0))
    scale_factor_ceilings: Schedule = ((0.6, 0.7), (1.0, 1.0))
    pbest_weights: Schedule = ((0.2, 0.7), (0.4, 0.8), (1.0, 1.2))

    def __post_init__(self) -> None:
        store_plain(self)
        whole("min_population_size", self.min_population_size, 4)
        whole("memory_size", self.memory_size, 1, LARGEST_SIZE)
        real("spread", self.spread, 0.0)
        whole("min_pbest", self.min_pbest, 2)
        for name in ("max_pbest_fraction", "min_pbest_fraction", "initial_scale_factor", "initial_crossover_rate"):
            fraction(name, getattr(self, name))


class SuccessHistory(ParameterRule):
    """A memory of mean F and CR per run, from which every individual takes one entry at random.

    Attributes:
        memory: Mean F and mean CR of every entry, shape (R, 2, H).
        history: What else is remembered of each run, a record each, shape (R,).
        residuals: What ``CONTROLS`` do to the rule from the next generation on, shape (R, 7); zero at the start.
    """

    num_uniforms = 2
    num_normals = 1
    memory: FloatArray
    history: NDArray[np.void]
    residuals: FloatArray

    def __init__(self, settings: SuccessHistorySettings | None = None) -> None:
        self.settings = settings or SuccessHistorySettings()
        limits = (self.settings.scale_factor_ceilings, self.settings.crossover_rate_floors, self.settings.pbest_weights)
        self._ceilings, self._floors, self._weights = (np.array(schedule, dtype=np.float64) for schedule in limits)

    def reset(self, population: Population) -> None:
        """Begin new runs with the initial memory and no residuals."""
        super().reset(population)
        settings, num_runs, size = self.settings, len(population.runs), population.capacity
        self.parameters = self.parameters._replace(pbest_weights=np.zeros((num_runs, size)))
        self.memory = np.empty((num_runs, 2, settings.memory_size))
        self.memory[:, 0], self.memory[:, 1] = settings.initial_scale_factor, settings.initial_crossover_rate
        self.residuals = np.zeros((num_runs, len(CONTROLS)))
        self.history = np.zeros(num_runs, _HISTORY)
        self.history["counted_size"] = size
        self.history["pbest_count"] = settings.max_pbest_fraction * size
        self._constants = np.zeros(1, _CONSTANTS)
        self._constants["initial_size"], self._constants["min_size"] = size, settings.min_population_size
        for name in ("min_pbest", "fixed_mean", "spread", "max_pbest_fraction", "other_pbest_until"):
            self._constants[name] = getattr(settings, name)
        self._constants["pbest_decline"] = settings.min_pbest_fraction - settings.max_pbest_fraction

    def resume(self, population: Population, memory: FloatArray, history: NDArray[np.void]) -> None:
        """Go on with runs that were begun elsewhere; what they remember is changed in place."""
        self.reset(population)
        self.memory, self.history = memory, history

    def set_residuals(self, residuals: ArrayLike) -> None:
        """Have the rule act with these residuals, shape (R, 7), each in [-1, 1]; entries as in ``CONTROLS``."""
        given = np.array(residuals, dtype=np.float64)
        if given.shape != self.residuals.shape:
            raise ValueError(f"`residuals` must have shape {self.residuals.shape}, got {given.shape}.")
        if not (np.abs(given) <= 1.0).all():
            raise ValueError("`residuals` must lie in [-1, 1], got a number outside or NaN.")
        self.residuals = given

    def __call__(self, view: View) -> Parameters:
        """Return parameters drawn around memory entries, within the limits of the time."""
        draws, runs, (factors, rates, weights, _, plans) = view.draws, view.population.runs, self.parameters
        numbers, schedules = (
            (draws.uniforms, draws.normals, draws.starts),
            (self._ceilings, self._floors, self._weights),
        )
        plan_runs(runs, self.history, self.residuals, self._constants, plans)
        sample_from_memory(
            runs, self.memory, self.residuals, self._constants, *schedules, *numbers, factors, rates, weights
        )
        return self.parameters

    def learn(self, feedback: Feedback) -> None:
        """Average one memory entry with the means of the parameters of better trials, weighted by what they gained."""
        improvements, starts, (factors, rates, *_) = feedback
        remember_successes(improvements, starts, factors, rates, self.memory, self.history)

    def keep(self, runs: IntArray) -> None:
        """Go on with only the given runs."""
        super().keep(runs)
        self.memory, self.residuals, self.history = self.memory[runs], self.residuals[runs], self.history[runs]


@inlined
def _scheduled(schedule: FloatArray, progress: float) -> float:
    """Return the value of the first entry (until, value) whose time has not passed, or of the last."""
    entry = 0
    while entry < schedule.shape[0] - 1 and progress >= schedule[entry, 0]:
        entry += 1
    return float(schedule[entry, 1])


@compiled
def plan_runs(
    runs: RunRecords, history: NDArray[np.void], residuals: FloatArray, constants: NDArray[np.void], plans: PlanRecords
) -> None:
    """Write the number of p-best candidates, and the size after the generation, of every run."""
    constant = constants[0]
    for run in range(runs.shape[0]):
        size, evaluations, budget = runs[run]["size"], runs[run]["evaluations"], runs[run]["max_evaluations"]
        progress, memory = evaluations / budget, history[run]
        if memory["counted_size"] != size:
            fraction = constant["max_pbest_fraction"] + constant["pbest_decline"] * progress
            memory["counted_size"], memory["pbest_count"] = size, size * fraction
        num_pbest = int(memory["pbest_count"] * math.exp(_PBEST_SHARE * residuals[run, 2]) + 0.5)
        initial, smallest = constant["initial_size"], constant["min_size"]
        planned = initial + (smallest - initial) * ((evaluations + size) / budget)
        stretch = math.exp(_SIZE_PLAN * residuals[run, 6])
        if stretch != 1.0:
            planned = smallest + (planned - smallest) * stretch
        plans[run]["num_pbest"] = min(max(num_pbest, constant["min_pbest"]), size)
        plans[run]["other_pbest"] = progress < constant["other_pbest_until"]
        plans[run]["next_size"] = max(int(planned + 0.5), smallest)


@compiled
def sample_from_memory(
    runs: RunRecords,
    memory: FloatArray,
    residuals: FloatArray,
    constants: NDArray[np.void],
    ceilings: FloatArray,
    floors: FloatArray,
    weights: FloatArray,
    uniforms: FloatArray,
    normals: FloatArray,
    starts: IntArray,
    scale_factors: FloatArray,
    crossover_rates: FloatArray,
    pbest_weights: FloatArray,
) -> None:
    """Write F, CR and the weights of p-best, each (R, C); a run of N individuals uses 2 N uniforms and N normals."""
    constant, num_entries = constants[0], memory.shape[2]
    means, shares = np.empty((2, num_entries)), np.empty(num_entries)
    largest = max(_LARGEST_SPREAD, constant["spread"])
    for run in range(runs.shape[0]):
        size, residual = starts[run + 1] - starts[run], residuals[run]
        progress = runs[run]["evaluations"] / runs[run]["max_evaluations"]
        ceiling, floor = _scheduled(ceilings, progress), _scheduled(floors, progress)
        weight = _scheduled(weights, progress) * math.exp(_PBEST_WEIGHT * residual[5])
        factor_spread = min(constant["spread"] * math.exp(_FACTOR_SPREAD * residual[1]), largest)
        rate_spread = min(constant["spread"] * math.exp(_RATE_SPREAD * residual[4]), largest)
        for entry in range(num_entries):
            is_fixed = entry == num_entries - 1
            mean_factor = constant["fixed_mean"] if is_fixed else memory[run, 0, entry]
            mean_rate = constant["fixed_mean"] if is_fixed else memory[run, 1, entry]
            means[0, entry] = max(mean_factor + _MEAN_STEP * residual[0], 0.0)
            means[1, entry] = mean_rate + _MEAN_STEP * residual[3]
            shares[entry] = share_positive(means[0, entry], factor_spread)
        for i in range(size):
            entry = pick_index(uniforms[run, i], num_entries)
            factor = positive_cauchy(uniforms[run, size + i], means[0, entry], factor_spread, shares[entry])
            rate = clipped_normal(normals[run, i], means[1, entry], rate_spread) if means[1, entry] >= 0.0 else 0.0
            scale_factors[run, i] = min(factor, ceiling)
            crossover_rates[run, i] = max(rate, floor)
            pbest_weights[run, i] = weight * scale_factors[run, i]


@compiled
def remember_successes(
    improvements: FloatArray,
    starts: IntArray,
    scale_factors: FloatArray,
    crossover_rates: FloatArray,
    memory: FloatArray,
    history: NDArray[np.void],
) -> None:
    """Average one entry of every run's memory, in place, with the Lehmer means of F and CR weighted by improvement.

    The last entry is written like the others although it is never read.
    """
    for run in range(memory.shape[0]):
        size, largest = starts[run + 1] - starts[run], 0.0
        for i in range(size):
            largest = max(largest, improvements[run, i])
        factor_sum, factor_squares, rate_sum, rate_squares = 0.0, 0.0, 0.0, 0.0
        for i in range(size):
            weight = success_weight(improvements[run, i], largest)
            factor, rate = scale_factors[run, i], crossover_rates[run, i]
            factor_sum += weight * factor
            factor_squares += weight * factor * factor
            rate_sum += weight * rate
            rate_squares += weight * rate * rate
        if factor_sum > 0.0:
            slot = history[run]["slot"]
            lehmer_rate = rate_squares / rate_sum if rate_sum > 0.0 else -1.0
            memory[run, 0, slot] = 0.5 * (memory[run, 0, slot] + factor_squares / factor_sum)
            memory[run, 1, slot] = 0.5 * (memory[run, 1, slot] + lehmer_rate)
            history[run]["slot"] = (slot + 1) % memory.shape[2]


@inlined
def success_weight(improvement: float, largest: float) -> float:
    """Return an improvement as a share of the largest one; infinite ones outweigh all finite ones and count alike."""
    if largest == np.inf:
        return 1.0 if improvement == np.inf else 0.0
    return improvement / largest if improvement > 0.0 else 0.0
