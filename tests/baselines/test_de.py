from __future__ import annotations

import numpy as np
import pytest

from de_gym.baselines import DE, DESettings


@pytest.mark.parametrize(("dimension", "size"), [(10, 50), (30, 150)])
def test_population_has_five_individuals_per_dimension(generations, dimension, size):
    trials, _ = next(generations(DE(), dimension=dimension))
    assert trials.shape == (3, size, dimension)


def test_parameters_are_constant(generations):
    optimizer = DE(DESettings(scale_factor=0.4, crossover_rate=0.3))
    steps = generations(optimizer)
    next(steps)
    assert optimizer.last_parameters is None
    next(steps)
    assert np.all(optimizer.last_parameters.scale_factors == 0.4)
    assert np.all(optimizer.last_parameters.crossover_rates == 0.3)


def test_crossover_takes_the_share_of_the_rate_and_one_more(generations):
    # Expected share of changed coordinates: CR plus the forced one among the rest.
    optimizer = DE(DESettings(population_size=200))
    steps = generations(optimizer, num_runs=20, dimension=10)
    parents, _ = next(steps)
    trials, _ = next(steps)
    share = np.mean(trials != parents)
    assert share == pytest.approx(0.8 + 0.2 / 10, abs=0.01)


def test_parents_fitness_is_the_one_before_selection(generations):
    optimizer = DE()
    steps = generations(optimizer)
    _, first = next(steps)
    next(steps)
    assert np.array_equal(optimizer.last_parameters.parent_fitness, first)


def test_settings_out_of_range_are_errors():
    with pytest.raises(ValueError, match="`population_size` must be at least 4, got 3"):
        DESettings(population_size=3)
    with pytest.raises(ValueError, match=r"`crossover_rate` must lie in \[0, 1\], got 1.5"):
        DESettings(crossover_rate=1.5)
