"""cDE's parameter control: settings that compete to be drawn, with probabilities that grow with success.

Reference: Tvrdik, Competitive Differential Evolution (2006).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.checks import fraction, positive, real, store_plain
from de_gym.controllers.parameter_rule import ParameterRule
from de_gym.evolution.populations import Population
from de_gym.evolution.rand_and_best import STRATEGIES
from de_gym.evolution.shell import Feedback, Parameters, View
from de_gym.machine.compiling import compiled
from de_gym.registry import known_name


@dataclass(frozen=True)
class CompetingSettings:
    """What competes, as in the LDE paper.

    Attributes:
        strategies: Names out of ``STRATEGIES``; None where the method chooses.
        scale_factors: F that compete.
        crossover_rates: CR that compete, with every strategy and every F.
        initial_count: n0, the successes each setting is credited with after a reset.
        reset_probability: delta; when a setting's probability falls below, all counts start anew.
    """

    strategies: tuple[str, ...] | None = None
    scale_factors: tuple[float, ...] = (0.5, 0.8, 1.0)
    crossover_rates: tuple[float, ...] = (0.0, 0.5, 1.0)
    initial_count: float = 2.0
    reset_probability: float = 1.0 / 45.0

    def __post_init__(self) -> None:
        store_plain(self)
        if self.strategies is not None:
            names = tuple(known_name("strategy", strategy, STRATEGIES) for strategy in self.strategies)
            object.__setattr__(self, "strategies", names)
        for factor in self.scale_factors:
            real("scale_factors", factor, 0.0)
        for rate in self.crossover_rates:
            fraction("crossover_rates", rate)
        positive("initial_count", self.initial_count)
        fraction("reset_probability", self.reset_probability)


class Competing(ParameterRule):
    """A pool of H settings (strategy, F, CR), from which individuals draw by the successes so far.

    Attributes:
        pool_strategies: Strategy of each setting, shape (H,).
        pool: F and CR of each setting, shape (2, H).
        counts: Successes of each setting since the last reset, shape (R, H).
        chosen: Setting that made each of the last trials, shape (R, C).
    """

    num_uniforms = 1
    counts: IntArray
    chosen: IntArray

    def __init__(
        self, settings: CompetingSettings | None = None, strategies: tuple[str, ...] = ("rand/1", "best/2")
    ) -> None:
        self.settings = settings or CompetingSettings()
        codes = [STRATEGIES[strategy] for strategy in self.settings.strategies or strategies]
        grid = np.meshgrid(codes, self.settings.scale_factors, self.settings.crossover_rates, indexing="ij")
        self.pool_strategies = np.ascontiguousarray(grid[0].ravel(), dtype=np.int64)
        self.pool = np.array([grid[1].ravel(), grid[2].ravel()], dtype=np.float64)

    def reset(self, population: Population) -> None:
        """Begin new runs, in which nothing has succeeded yet."""
        super().reset(population)
        self.counts = np.zeros((len(population.runs), len(self.pool_strategies)), np.int64)
        self.chosen = np.zeros_like(self.parameters.strategies)

    def __call__(self, view: View) -> Parameters:
        """Return the settings that the individuals drew."""
        parameters = self.parameters
        draws, constants = view.draws, (self.settings.initial_count, self.settings.reset_probability)
        choose_settings(self.counts, *constants, draws.uniforms, draws.starts, self.chosen)
        np.take(self.pool_strategies, self.chosen, out=parameters.strategies)
        np.take(self.pool[0], self.chosen, out=parameters.scale_factors)
        np.take(self.pool[1], self.chosen, out=parameters.crossover_rates)
        return parameters

    def learn(self, feedback: Feedback) -> None:
        """Count the trials that replaced their parent for the setting that made them."""
        count_successes(feedback.improvements, feedback.starts, self.chosen, self.counts)

    def keep(self, runs: IntArray) -> None:
        """Go on with only the given runs."""
        super().keep(runs)
        self.counts, self.chosen = self.counts[runs], self.chosen[runs]


@compiled
def choose_settings(
    counts: IntArray,
    initial_count: float,
    reset_probability: float,
    uniforms: FloatArray,
    starts: IntArray,
    chosen: IntArray,
) -> None:
    """Write each individual's setting, shape (R, C), drawn in proportion to count + initial count.

    Where a setting has become too improbable, all counts (R, H) of the run are reset, in place. A run of N individuals
    uses its first N uniforms.
    """
    num_settings = counts.shape[1]
    for run in range(counts.shape[0]):
        total = counts[run].sum() + initial_count * num_settings
        if (counts[run].min() + initial_count) / total < reset_probability:
            counts[run] = 0
        shares = np.cumsum(counts[run] + initial_count)
        for i in range(starts[run + 1] - starts[run]):
            drawn = np.searchsorted(shares, uniforms[run, i] * shares[-1], side="right")
            chosen[run, i] = min(drawn, num_settings - 1)


@compiled
def count_successes(improvements: FloatArray, starts: IntArray, chosen: IntArray, counts: IntArray) -> None:
    """Add one to the count (R, H) of the chosen setting (R, C) of every trial that replaced its parent."""
    for run in range(counts.shape[0]):
        for i in range(starts[run + 1] - starts[run]):
            counts[run, chosen[run, i]] += improvements[run, i] >= 0.0
