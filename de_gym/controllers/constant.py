"""The same F and CR for every individual in every generation."""

from __future__ import annotations

from dataclasses import dataclass

from de_gym.checks import fraction, real, store_plain
from de_gym.controllers.parameter_rule import ParameterRule
from de_gym.evolution.populations import Population
from de_gym.evolution.shell import Parameters, View


@dataclass(frozen=True)
class ConstantSettings:
    """The constants of DE in the LDE paper.

    Attributes:
        scale_factor: F.
        crossover_rate: CR.
    """

    scale_factor: float = 0.5
    crossover_rate: float = 0.8

    def __post_init__(self) -> None:
        store_plain(self)
        real("scale_factor", self.scale_factor, 0.0)
        fraction("crossover_rate", self.crossover_rate)


class Constant(ParameterRule):
    """A rule that never changes anything."""

    def __init__(self, settings: ConstantSettings | None = None) -> None:
        self.settings = settings or ConstantSettings()

    def reset(self, population: Population) -> None:
        """Begin new runs."""
        super().reset(population)
        self.parameters.scale_factors[:] = self.settings.scale_factor
        self.parameters.crossover_rates[:] = self.settings.crossover_rate

    def __call__(self, view: View) -> Parameters:
        """Return the constants."""
        return self.parameters
