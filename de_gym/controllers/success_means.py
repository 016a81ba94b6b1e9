"""JADE's parameter control: normal CR and Cauchy F whose means follow the successful ones.

Reference: Zhang and Sanderson, JADE: Adaptive Differential Evolution with Optional External Archive (2009).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.checks import fraction, real, store_plain, whole
from de_gym.controllers.parameter_rule import ParameterRule
from de_gym.evolution.populations import Population
from de_gym.evolution.sampling import clipped_normal, positive_cauchy, share_positive
from de_gym.evolution.shell import Feedback, Parameters, View
from de_gym.machine.compiling import compiled


@dataclass(frozen=True)
class SuccessMeansSettings:
    """Constants of JADE's parameter control.

    Attributes:
        learning_rate: c, the weight of the newest successes in both means.
        pbest_fraction: p.
        min_pbest: Smallest number of p-best candidates; only the authors' program has it.
        initial_mean: Both means at the start.
        spread: Scale of the normal and the Cauchy distribution.
    """

    learning_rate: float = 0.1
    pbest_fraction: float = 0.05
    min_pbest: int = 2
    initial_mean: float = 0.5
    spread: float = 0.1

    def __post_init__(self) -> None:
        store_plain(self)
        whole("min_pbest", self.min_pbest, 1)
        real("spread", self.spread, 0.0)
        for name in ("learning_rate", "pbest_fraction", "initial_mean"):
            fraction(name, getattr(self, name))


class SuccessMeans(ParameterRule):
    """One mean F and one mean CR per run.

    Attributes:
        means: Mean F and mean CR, shape (R, 2).
    """

    num_uniforms = 1
    num_normals = 1
    means: FloatArray

    def __init__(self, settings: SuccessMeansSettings | None = None) -> None:
        self.settings = settings or SuccessMeansSettings()

    def reset(self, population: Population) -> None:
        """Begin new runs with the initial means."""
        super().reset(population)
        settings, size = self.settings, population.capacity
        num_pbest = max(int(settings.pbest_fraction * size + 0.5), settings.min_pbest)
        self.parameters.plans["num_pbest"] = min(num_pbest, size)
        self.means = np.full((len(population.runs), 2), settings.initial_mean)

    def __call__(self, view: View) -> Parameters:
        """Return parameters drawn around the means."""
        draws, (factors, rates, *_) = view.draws, self.parameters
        sample_around_means(
            self.means, self.settings.spread, draws.uniforms, draws.normals, draws.starts, factors, rates
        )
        return self.parameters

    def learn(self, feedback: Feedback) -> None:
        """Move both means towards the parameters of better trials."""
        improvements, starts, (factors, rates, *_) = feedback
        follow_successes(improvements, starts, factors, rates, self.settings.learning_rate, self.means)

    def keep(self, runs: IntArray) -> None:
        """Go on with only the given runs."""
        super().keep(runs)
        self.means = self.means[runs]


@compiled
def sample_around_means(
    means: FloatArray,
    spread: float,
    uniforms: FloatArray,
    normals: FloatArray,
    starts: IntArray,
    scale_factors: FloatArray,
    crossover_rates: FloatArray,
) -> None:
    """Write F and CR, each (R, C); a run of N individuals uses its first N uniforms and N normals."""
    for run in range(means.shape[0]):
        mean_factor, mean_rate = means[run]
        share = share_positive(mean_factor, spread)
        for i in range(starts[run + 1] - starts[run]):
            scale_factors[run, i] = positive_cauchy(uniforms[run, i], mean_factor, spread, share)
            crossover_rates[run, i] = clipped_normal(normals[run, i], mean_rate, spread)


@compiled
def follow_successes(
    improvements: FloatArray,
    starts: IntArray,
    scale_factors: FloatArray,
    crossover_rates: FloatArray,
    learning_rate: float,
    means: FloatArray,
) -> None:
    """Move the means (R, 2), in place, towards the Lehmer mean of successful F and the mean of successful CR.

    Reference: JADE, Eqs. (8), (11) and (12).
    """
    for run in range(means.shape[0]):
        count, factor_sum, square_sum, rate_sum = 0, 0.0, 0.0, 0.0
        for i in range(starts[run + 1] - starts[run]):
            # A weight instead of a branch, which random data would make the processor mispredict.
            weight = 1.0 if improvements[run, i] > 0.0 else 0.0
            count += improvements[run, i] > 0.0
            factor_sum += weight * scale_factors[run, i]
            square_sum += weight * scale_factors[run, i] * scale_factors[run, i]
            rate_sum += weight * crossover_rates[run, i]
        if count > 0:
            means[run, 0] += learning_rate * (square_sum / factor_sum - means[run, 0])
            means[run, 1] += learning_rate * (rate_sum / count - means[run, 1])
