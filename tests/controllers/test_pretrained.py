"""The shipped controllers: all there, unchanged, loadable, and chosen by dimension."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pytest

from de_gym import minimize
from de_gym.controllers import DEFAULT, ResidualController, available, load


def test_exactly_the_listed_files_are_shipped():
    shipped = [path.name for path in (files("de_gym.controllers") / "weights").iterdir()]
    assert sorted(name for name in shipped if name != "README.md") == [f"{name}.safetensors" for name in available()]


RECURRENT = [name for name in available() if name != DEFAULT]


@pytest.mark.parametrize("name", RECURRENT)
def test_every_recurrent_controller_loads_and_says_where_it_comes_from(name):
    controller = load(name)
    settings = controller.info.env_settings
    assert settings["population_size"] == controller.population_size
    assert settings["dimension"] in (10, 30)
    assert set(controller.info.results) == {"training", "test"}


@pytest.mark.parametrize("name", ["short-10d", "quick-10d", "long-10d", "short-30d", "quick-30d"])
def test_a_main_controller_is_better_on_the_test_functions_than_what_has_learned_nothing(name):
    results = load(name).info.results["test"]["mean_return"]
    assert results["trained"] > max(results["random"], results["untrained"])


def test_the_default_adjusts_any_run_and_says_how_it_was_trained():
    controller = load(DEFAULT)
    assert isinstance(controller, ResidualController)
    assert controller.population_size is None
    assert set(controller.info) >= {"trained_by", "seed", "generations", "evaluations"}
    assert np.abs(controller.weights).max() > 0.05


@pytest.mark.parametrize("dimension", [1, 2, 5, 10])
def test_default_controller_minimises_at_other_dimensions(dimension):
    result = minimize(lambda x: float(np.sum((x - 1) ** 2)), [(-5, 5)] * dimension, max_evaluations=20_000, seed=0)
    assert result.fun < 1e-3
