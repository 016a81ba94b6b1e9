"""ParameterRule: a controller of a shell, which sets the parameters of R runs and learns from what became of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from de_gym.arrays import IntArray
from de_gym.evolution.populations import Population
from de_gym.evolution.run_arrays import take_runs
from de_gym.evolution.shell import Feedback, Parameters, View, make_parameters


class ParameterRule(ABC):
    """Sets the parameters of every generation by a fixed rule and by what it remembers of the generations before.

    A run's parameters depend on its own population and its own random numbers alone.

    Attributes:
        num_uniforms: Uniforms that a generation takes per individual.
        num_normals: Standard normals that it takes per individual.
        parameters: What was set last.
    """

    num_uniforms: ClassVar[int] = 0
    num_normals: ClassVar[int] = 0
    parameters: Parameters

    def reset(self, population: Population) -> None:
        """Begin new runs; their individuals are still to be evaluated."""
        self.parameters = make_parameters(len(population.runs), population.capacity)

    @abstractmethod
    def __call__(self, view: View) -> Parameters:
        """Return the parameters of the next generation; they are overwritten by those of the one after it."""

    def learn(self, feedback: Feedback) -> None:
        """Take what became of the generation; by default nothing is remembered."""
        return

    def keep(self, runs: IntArray) -> None:
        """Go on with only the given runs, in the given order."""
        weights_are_factors = self.parameters.pbest_weights is self.parameters.scale_factors
        kept = take_runs(self.parameters, runs)
        self.parameters = kept._replace(pbest_weights=kept.scale_factors) if weights_are_factors else kept
