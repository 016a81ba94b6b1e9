"""The shipped controllers: all there, unchanged, loadable, and chosen by dimension."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pytest

from de_gym import minimize
from de_gym.controllers import available, default_controller, load
from de_gym.controllers.pretrained import DEFAULTS


def test_exactly_the_listed_files_are_shipped():
    shipped = [path.name for path in (files("de_gym.controllers") / "weights").iterdir()]
    assert sorted(name for name in shipped if name != "README.md") == [f"{name}.safetensors" for name in available()]


@pytest.mark.parametrize("name", available())
def test_every_shipped_controller_loads_and_says_where_it_comes_from(name):
    controller = load(name)
    settings = controller.info.env_settings
    assert settings["population_size"] == controller.population_size
    assert settings["dimension"] in (10, 30)
    assert set(controller.info.results) == {"training", "test"}


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_controller_taken_by_default_is_better_on_the_test_functions_than_what_has_learned_nothing(name):
    results = load(name).info.results["test"]["mean_return"]
    assert results["trained"] > max(results["random"], results["untrained"])


def test_default_is_the_one_trained_nearest():
    assert default_controller(2, 20_000).info.env_settings["dimension"] == 10
    assert default_controller(20, 20_000).population_size == 50
    assert default_controller(21, 20_000).population_size == 100
    assert default_controller(100, 20_000).info.env_settings["dimension"] == 30


@pytest.mark.parametrize(
    ("per_coordinate", "preset"),
    [(10, "short"), (790, "short"), (810, "quick"), (4900, "quick"), (5100, "long"), (10**6, "long")],
)
def test_default_goes_by_the_evaluations_per_coordinate(per_coordinate, preset):
    # Trained with 255, 2505 and 10,000 per coordinate: the geometric means of neighbours are the borders.
    assert default_controller(10, 10 * per_coordinate).info.preset == preset


@pytest.mark.parametrize("dimension", [1, 2, 5, 10])
def test_default_controller_minimises_at_other_dimensions(dimension):
    result = minimize(lambda x: float(np.sum((x - 1) ** 2)), [(-5, 5)] * dimension, max_evaluations=20_000, seed=0)
    assert result.fun < 1e-3
