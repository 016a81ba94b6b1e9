"""Controller: what chooses the scale factors and crossover rates of R runs at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from de_gym.arrays import Float32Array, FloatArray, IntArray


@runtime_checkable
class Controller(Protocol):
    """Maps the observations of R runs to their actions, generation after generation.

    A run's actions depend on its own observations and its own generator alone, bit for bit: not on the
    number or the order of the runs it is controlled together with.

    One that was trained says in which decision process by a further attribute ``env_settings``: settings of its
    environment by name, such as ``{"pbest": 0.1, "num_bins": 7}``. Without it, they are the environment's defaults.

    Attributes:
        population_size: The number of individuals N the controller was made for, or None for any.
    """

    population_size: int | None

    def reset(self, rngs: Sequence[np.random.Generator]) -> None:
        """Begin ``len(rngs)`` new runs; run r draws from ``rngs[r]`` only."""
        ...

    def __call__(self, observations: Float32Array) -> FloatArray:
        """Return actions (R, 2N) in [0, 1]: first the N scale factors, then the N crossover rates, by rank.

        Args:
            observations: The environment's observation of each run that goes on, shape (R, N + 2b).
        """
        ...

    def keep(self, runs: IntArray) -> None:
        """Go on with only the given runs, in the given order; the others have ended."""
        ...


class ResidualRule(Protocol):
    """Maps what R runs of an adaptive algorithm look like to how its rules are adjusted.

    One that remembers has ``reset(rngs)`` and ``keep(runs)``, as a ``Controller`` has, and is called with a second
    argument: the positions, among the runs that go on, of those that the observations are of. One that chooses the
    first population's size has ``size_residuals(dimension, budgets)``: a number in [-1, 1] for each run.
    """

    def __call__(self, observations: Float32Array, *runs: Any) -> FloatArray:
        """Return residuals (R, A) in [-1, 1], given observations (R, O); zeros leave the algorithm as it is."""
        ...


def check_population_size(controller: Controller, population_size: int) -> None:
    """Raise a ``ValueError`` when ``controller`` was made for populations of another size."""
    if controller.population_size not in (None, population_size):
        raise ValueError(
            f"This {type(controller).__name__} controls populations of {controller.population_size} individuals, "
            f"got `population_size` {population_size}."
        )
