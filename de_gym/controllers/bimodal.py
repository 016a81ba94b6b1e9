"""CoBiDE's parameter control: F and CR from two Cauchy distributions each, kept by an individual while it succeeds.

Reference: Wang, Li, Huang and Li, DE Based on Covariance Matrix Learning and Bimodal Distribution (2014).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.checks import fraction, real, store_plain
from de_gym.controllers.parameter_rule import ParameterRule
from de_gym.evolution.populations import Population
from de_gym.evolution.rand_and_best import STRATEGIES
from de_gym.evolution.sampling import cauchy, positive_cauchy, share_positive
from de_gym.evolution.shell import Parameters, View
from de_gym.machine.compiling import compiled
from de_gym.machine.picks import pick_index
from de_gym.registry import lookup


@dataclass(frozen=True)
class BimodalSettings:
    """The bimodal distribution of F and CR.

    Attributes:
        scale_factor_modes: Locations of the two Cauchy distributions of F.
        crossover_rate_modes: Locations of the two Cauchy distributions of CR.
        spread: Scale of all four.
        low_crossover_rate: Replaces a CR at or below zero. NOTE: one expects 0; the authors' program has this. The
            LDE paper's mean on official F17 at n = 10 fits 0 and not this value.
    """

    scale_factor_modes: tuple[float, float] = (0.65, 1.0)
    crossover_rate_modes: tuple[float, float] = (0.1, 0.95)
    spread: float = 0.1
    low_crossover_rate: float = 0.1

    def __post_init__(self) -> None:
        store_plain(self)
        real("spread", self.spread, 0.0)
        fraction("low_crossover_rate", self.low_crossover_rate)


class Bimodal(ParameterRule):
    """Individuals keep F and CR as long as they succeed, and draw both anew when they fail; one strategy for all."""

    num_uniforms = 4

    def __init__(self, settings: BimodalSettings | None = None, strategy: str = "rand/1") -> None:
        self.settings = settings or BimodalSettings()
        self._strategy = lookup("strategy", strategy, STRATEGIES)
        self._modes = np.array([self.settings.scale_factor_modes, self.settings.crossover_rate_modes])

    def reset(self, population: Population) -> None:
        """Begin new runs, in which nobody has succeeded yet."""
        super().reset(population)
        self.parameters.strategies[:] = self._strategy

    def __call__(self, view: View) -> Parameters:
        """Return the parameters of before where they succeeded, and fresh ones where they failed."""
        (population, draws), (factors, rates, *_) = view, self.parameters
        last, shape = (population.improvements, population.origins), (self._modes, self.settings.spread)
        lowest = self.settings.low_crossover_rate
        refresh_failed(*last, *shape, lowest, draws.uniforms, draws.starts, factors, rates)
        return self.parameters


@compiled
def refresh_failed(
    improvements: FloatArray,
    origins: IntArray,
    modes: FloatArray,
    spread: float,
    low_crossover_rate: float,
    uniforms: FloatArray,
    starts: IntArray,
    scale_factors: FloatArray,
    crossover_rates: FloatArray,
) -> None:
    """Turn F and CR, each (R, C), into those of the next generation, in place.

    The uniforms of a run of N individuals begin with N each for the mode of F, F, the mode of CR, and CR.
    """
    shares = np.array([share_positive(modes[0, 0], spread), share_positive(modes[0, 1], spread)])
    for run in range(starts.shape[0] - 1):
        size, drawn = starts[run + 1] - starts[run], uniforms[run]
        for i in range(size):
            # Rows only ever move forward, so the parameters of before are still there.
            before = origins[run, i]
            if improvements[run, before] >= 0.0:
                scale_factors[run, i] = scale_factors[run, before]
                crossover_rates[run, i] = crossover_rates[run, before]
                continue
            mode = pick_index(drawn[i], 2)
            scale_factors[run, i] = positive_cauchy(drawn[size + i], modes[0, mode], spread, shares[mode])
            rate = cauchy(drawn[3 * size + i], modes[1, pick_index(drawn[2 * size + i], 2)], spread)
            crossover_rates[run, i] = low_crossover_rate if rate <= 0.0 else min(rate, 1.0)
