"""Ten thousand coordinates: memory grows with what must be stored, not with its square."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from de_gym import Optimizer, minimize

NUM_COORDINATES, POPULATION_SIZE = 10_000, 30


def sphere(points):
    return (points**2).sum(axis=-1)


@pytest.mark.parametrize("method", ["learned", "l-srtde", "jade", "de"])
def test_memory_of_ten_thousand_coordinates_is_a_few_populations(method):
    bounds = [(-1.0, 1.0)] * NUM_COORDINATES
    options = {"method": method, "population_size": POPULATION_SIZE, "max_evaluations": 300, "seed": 0}
    minimize(sphere, bounds[:10], vectorized=True, **options)  # compiles
    tracemalloc.start()
    result = minimize(sphere, bounds, vectorized=True, **options)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.nfev == 300
    assert peak < 14 * 8 * POPULATION_SIZE * NUM_COORDINATES
    optimizer = Optimizer(bounds, **options)
    points = optimizer.ask()
    optimizer.tell(points, sphere(points))
    assert np.isfinite(optimizer.result.fun)
