"""Suites of the user's own problems."""

import numpy as np
import pytest

from de_gym import Problem, make_suite, register_suite
from de_gym.problems import own_suites

MODULE = """
import numpy as np
from de_gym import Problem, make_suite

def bowl(x):
    return float(np.sum(x**2))

MIXED = [Problem.from_function(bowl, -5, 5, 0.0, dimension=n, name=f"bowl{n}") for n in (3, 5, 3)]
SUITE = make_suite("random:5", 4, [7, 9])
NUMBER = 3
STRINGS = ["bowl"]
EMPTY = []
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Return the name of a module of the user's in the current folder."""
    name = f"own_problems_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def bowl(dimension, name="bowl"):
    return Problem.from_function(lambda x: float(np.sum(x**2)), -1.0, 2.0, 0.0, dimension=dimension, name=name)


@pytest.fixture(autouse=True)
def _registered_only_here():
    before = dict(own_suites.REGISTERED)
    yield
    own_suites.REGISTERED.clear()
    own_suites.REGISTERED.update(before)


def test_a_module_of_the_users_is_a_suite_with_positions_for_numbers(module):
    suite = make_suite(f"{module}:MIXED", 3)
    assert suite.numbers == (0, 2)
    assert [problem.name for problem in suite] == ["bowl3", "bowl3"]
    assert suite[2] is make_suite(f"{module}:MIXED", 3, [2])[2]
    assert make_suite(f"{module}:MIXED", 5).numbers == (1,)


def test_registered_names_are_found_in_any_case():
    problems = [bowl(2)]
    assert register_suite("Bowls", problems) == register_suite("BOWLS", problems) == "Bowls"
    suite = make_suite("bowls", 2)
    assert (suite.name, list(suite)) == ("Bowls", problems)
    for name in ("CEC2017", "Random", "a" * 81):
        with pytest.raises(ValueError, match="`name` must be a word of at most 80 letters other than cec2013"):
            register_suite(name, problems)


def test_a_suite_object_is_taken_as_it_is(module):
    suite = make_suite(f"{module}:SUITE", 4)
    assert list(suite) == list(make_suite("random:5", 4, [7, 9]))
    assert suite.numbers == (0, 1)


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("NUMBER", "must be a list of Problem objects or a suite, got int"),
        ("STRINGS", "must hold Problem objects, got str"),
        ("EMPTY", "must hold at least one problem"),
        ("MIXD", "Did you mean 'MIXED'"),
    ],
)
def test_what_is_no_collection_of_problems_is_refused_in_a_sentence(module, attribute, message):
    with pytest.raises(ValueError, match=message):
        make_suite(f"{module}:{attribute}", 3)


def test_wrong_dimensions_and_positions_are_named(module):
    with pytest.raises(ValueError, match="no problems of dimension 4; it has: 3, 5"):
        make_suite(f"{module}:MIXED", 4)
    with pytest.raises(ValueError, match=r"Unknown position .* 1.* Available: 0, 2"):
        make_suite(f"{module}:MIXED", 3, [1])
    with pytest.raises(ValueError, match="listed once"):
        make_suite(f"{module}:MIXED", 3, [0, 0])
    with pytest.raises(ValueError, match="takes no `seed`"):
        make_suite(f"{module}:MIXED", 3, seed=1)
    with pytest.raises(ValueError, match="Unknown position"):
        make_suite(f"{module}:MIXED", 3)[1]


def test_registered_problems_have_a_name():
    problems = [bowl(2), bowl(3)]
    assert register_suite("bowls", problems) == "bowls"
    assert list(make_suite("bowls", 3)) == [problems[1]]
    for name in ("random", "cec2013", "a:b", ""):
        with pytest.raises(ValueError, match="`name` must be a word"):
            register_suite(name, problems)


def test_a_mistyped_suite_names_the_registered_ones_too():
    register_suite("bowls", [bowl(2)])
    with pytest.raises(ValueError, match="Did you mean 'bowls'"):
        make_suite("bowl", 2)


def test_random_suites_import_nothing():
    with pytest.raises(ValueError, match="must be an integer"):
        make_suite("random:seven", 2)


def test_identity_changes_with_the_problems_and_with_the_file(module, tmp_path):
    make_suite(f"{module}:MIXED", 3)
    before = own_suites.own_suite_identity(f"{module}:MIXED")
    (tmp_path / f"{module}.py").write_text(MODULE + "\n# changed")
    assert own_suites.own_suite_identity(f"{module}:MIXED") != before
    register_suite("bowls", [bowl(2)])
    first = own_suites.own_suite_identity("bowls")
    register_suite("bowls", [bowl(2, name="other")])
    assert own_suites.own_suite_identity("bowls") != first
