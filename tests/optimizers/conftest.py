"""Problems and drivers that the tests of optimisers share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from de_gym import Problem
from de_gym.arrays import FloatArray
from de_gym.optimizers import Optimizer


def _sphere(points: FloatArray) -> FloatArray:
    return np.sum(points**2, axis=-1)


def _rastrigin(points: FloatArray) -> FloatArray:
    return np.sum(points**2 - 10.0 * np.cos(2.0 * np.pi * points) + 10.0, axis=-1)


@pytest.fixture
def sphere() -> Problem:
    return Problem.from_function(_sphere, -100.0, 100.0, 0.0, dimension=5, vectorized=True)


@pytest.fixture
def rastrigin() -> Problem:
    return Problem.from_function(_rastrigin, -100.0, 100.0, 0.0, dimension=5, vectorized=True)


@pytest.fixture
def generations() -> Callable[..., Iterator[tuple[FloatArray, FloatArray]]]:
    """Return a function that starts runs on rastrigin and yields points and values after each ``tell``."""

    def iterate(
        optimizer: Optimizer, num_runs: int = 3, dimension: int = 5, max_evaluations: int = 50_000
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        upper = np.full((num_runs, dimension), 100.0)
        rngs = [np.random.default_rng(seed) for seed in range(num_runs)]
        optimizer.start(-upper, upper, rngs, max_evaluations)
        while not optimizer.has_ended.all():
            points = optimizer.ask().points
            values = _rastrigin(points)
            optimizer.tell(values)
            yield points, values

    return iterate
