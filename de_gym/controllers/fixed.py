"""Reference controllers that learn nothing: constant and uniformly random parameters, and random residuals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from de_gym.arrays import Float32Array, FloatArray, IntArray
from de_gym.checks import LARGEST_SIZE, fraction, whole


class ConstantController:
    """The same scale factor and crossover rate for every individual in every generation.

    >>> controller = ConstantController(0.5, 0.9, population_size=4)
    >>> controller.reset([np.random.default_rng(0)])
    >>> controller(np.zeros((1, 14), dtype=np.float32))
    array([[0.5, 0.5, 0.5, 0.5, 0.9, 0.9, 0.9, 0.9]])
    """

    population_size: int | None

    def __init__(self, scale_factor: float = 0.5, crossover_rate: float = 0.9, *, population_size: int) -> None:
        """Store F and CR, both in [0, 1], and the number of individuals N."""
        parameters = [fraction("scale_factor", scale_factor), fraction("crossover_rate", crossover_rate)]
        self.population_size = whole("population_size", population_size, 1, LARGEST_SIZE)
        self._action = np.repeat(parameters, self.population_size)

    def reset(self, rngs: Sequence[np.random.Generator]) -> None:
        """Begin ``len(rngs)`` new runs; nothing is drawn."""

    def __call__(self, observations: Float32Array) -> FloatArray:
        """Return the constant action of each run, shape (R, 2N)."""
        return np.tile(self._action, (len(observations), 1))

    def keep(self, runs: IntArray) -> None:
        """Go on with only the given runs; there is nothing to forget."""


class RandomController:
    """Every scale factor and crossover rate drawn uniformly from [0, 1], anew in every generation."""

    population_size: int | None

    def __init__(self, population_size: int) -> None:
        """Store the number of individuals N."""
        self.population_size = whole("population_size", population_size, 1, LARGEST_SIZE)
        self._action_size = 2 * self.population_size
        self._rngs: list[np.random.Generator] = []

    def reset(self, rngs: Sequence[np.random.Generator]) -> None:
        """Begin ``len(rngs)`` new runs; run r draws from ``rngs[r]`` only."""
        self._rngs = list(rngs)

    def __call__(self, observations: Float32Array) -> FloatArray:
        """Return one uniform draw for each number of each run, shape (R, 2N)."""
        return np.stack([rng.random(self._action_size) for rng in self._rngs])

    def keep(self, runs: IntArray) -> None:
        """Go on with only the given runs."""
        self._rngs = [self._rngs[run] for run in runs]


class RandomResiduals:
    """Every residual of an adaptive algorithm drawn uniformly from [-1, 1], anew in every generation."""

    population_size: int | None = None

    def __init__(self, num_controls: int) -> None:
        """Store the number of controls A."""
        self._num_controls = num_controls
        self._rngs: list[np.random.Generator] = []

    def reset(self, rngs: Sequence[np.random.Generator]) -> None:
        """Begin ``len(rngs)`` new runs; run r draws from a child of ``rngs[r]`` only."""
        self._rngs = [np.random.default_rng(rng.integers(2**63)) for rng in rngs]

    def __call__(self, observations: Float32Array, runs: IntArray) -> FloatArray:
        """Return one uniform draw for each control of the given runs, shape (R, A)."""
        return np.stack([self._rngs[run].uniform(-1.0, 1.0, self._num_controls) for run in runs])

    def keep(self, runs: IntArray) -> None:
        """Go on with only the given runs."""
        self._rngs = [self._rngs[run] for run in runs]
