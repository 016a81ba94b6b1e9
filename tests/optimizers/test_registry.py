from __future__ import annotations

import copy
import dataclasses
import json
import pickle

import numpy as np
import pytest

from de_gym import minimize
from de_gym.optimizers import METHODS, PAPER_METHODS, find_method, make_optimizer, method_name

EVERY_METHOD = pytest.mark.parametrize("name", list(METHODS))


@EVERY_METHOD
def test_every_entry_can_be_made_described_and_sent_to_a_worker(name):
    method = METHODS[name]
    optimizer = method()
    assert method.title
    assert optimizer.name == ("jso" if name == "jso-lde-paper" else name)
    settings = dataclasses.asdict(optimizer.settings)
    assert json.loads(json.dumps(settings)).keys() == settings.keys()
    assert pickle.loads(pickle.dumps(optimizer)).settings == optimizer.settings


@EVERY_METHOD
def test_every_entry_works_through_the_front_door(name):
    if METHODS[name].package is not None:
        pytest.importorskip(METHODS[name].package)
    result = minimize(lambda x: float(np.sum(x**2)), [(-1.0, 2.0)] * 2, method=name, max_evaluations=300, seed=0)
    assert result.nfev <= 300
    assert result.fun == float(np.sum(result.x**2)) < 0.5


def test_names_and_aliases_are_found_in_any_case_and_are_all_different():
    assert find_method("JADE") is METHODS["jade"]
    assert [method_name(name) for name in ("CMA-ES", "ARRDE", "L-SHADE")] == ["cma", "minion-arrde", "minion-lshade"]
    names = [name for key, method in METHODS.items() for name in (key, *method.aliases)]
    assert len(set(names)) == len(names)
    assert all(name == name.lower() for name in names)


def test_unknown_names_are_errors_with_the_nearest_choice():
    with pytest.raises(ValueError, match=r"Unknown method 'jos'\. Did you mean 'jso'\?"):
        find_method("jos")
    with pytest.raises(ValueError, match="Available: learned, de, jade"):
        method_name("jos", "learned")


def test_the_papers_methods_come_first_and_need_nothing():
    assert list(METHODS)[:9] == list(PAPER_METHODS)
    assert all(method.package is None for method in PAPER_METHODS.values())


def test_a_population_size_can_be_chosen_where_there_is_one():
    assert make_optimizer("jade", population_size=17).settings.population_size == 17
    assert make_optimizer("jade-archive", population_size=17).settings.use_archive
    with pytest.raises(ValueError, match="'hses' sets its own population sizes, got `population_size` 30"):
        make_optimizer("hses", population_size=30)


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.package is None])
def test_a_copy_taken_during_a_run_goes_on_alike_and_alone(name):
    upper = np.full((2, 3), 5.0)
    optimizer = METHODS[name]()
    optimizer.start(-upper, upper, [np.random.default_rng(seed) for seed in range(2)], 3000)
    for _ in range(5):
        optimizer.tell((optimizer.ask().points ** 2).sum(axis=1))
    other = pickle.loads(pickle.dumps(optimizer)) if name != "hses" else copy.deepcopy(optimizer)
    for _ in range(5):
        ours, theirs = optimizer.ask(), other.ask()
        np.testing.assert_array_equal(ours.points, theirs.points)
        optimizer.tell((ours.points**2).sum(axis=1))
        other.tell((theirs.points**2).sum(axis=1))
