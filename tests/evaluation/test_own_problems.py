"""The user's own problems in a comparison: the same tables and reports as the suites'."""

import numpy as np
import pytest

from de_gym import Problem
from de_gym.evaluation import Protocol, Results, ResultStore, load_results, make_methods, run_methods, write_report
from de_gym.problems import own_suites
from evaluate import EvalConfig, evaluate, make_protocol

MODULE = """
import numpy as np
from de_gym import Problem

PROBLEMS = [
    Problem.from_function(lambda x: float(np.sum(x**2)), -5, 5, 0.0, dimension=3, name="bowl"),
    Problem.from_function(lambda x: float(np.sum(x**2)) - 20.0, -5, 5, dimension=3, name="sunken bowl"),
    Problem.from_function(lambda x: float(np.sum(np.abs(x))), -5, 5, 0.0, dimension=2, name="roof"),
]
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    name = f"own_comparison_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def own_problems():
    return [
        Problem.from_function(lambda x: float(np.sum(x**2)), -5, 5, 0.0, dimension=2, name="bowl"),
        Problem.from_function(lambda x: float(np.sum(x**2)) - 20.0, -5, 5, dimension=2, name="sunken bowl"),
    ]


def test_the_command_compares_methods_on_a_module_of_the_users(module, tmp_path):
    config = EvalConfig(
        problems=f"{module}:PROBLEMS", dimension=3, methods=("jso", "constant"), runs=3, max_evaluations=600, jobs=2
    )
    page = evaluate(config)
    assert page.parent.name == f"{module}-PROBLEMS-3d-600e"
    summary = (page.parent / "summary.md").read_text()
    assert "| bowl |" in summary
    assert "sunken bowl" in summary
    assert "roof" not in summary
    assert "sunken bowl" in page.read_text()


def test_problems_of_several_dimensions_ask_for_a_choice(module):
    with pytest.raises(ValueError, match=r"have \(2, 3\) coordinates: choose one with --dimension"):
        make_protocol(EvalConfig(problems=f"{module}:PROBLEMS"))
    assert make_protocol(EvalConfig(problems=f"{module}:PROBLEMS", dimension=2)).functions == (2,)


def test_any_suite_in_any_of_its_dimensions():
    protocol = make_protocol(EvalConfig(problems="random:20000", dimension=7, functions=(3, 4)))
    assert (protocol.suite, protocol.dimension, protocol.functions) == ("random:20000", 7, (3, 4))
    assert make_protocol(EvalConfig(dimension=50)).table == "cec2017-50d"


def test_a_protocol_of_problems_runs_in_workers_that_know_nothing_of_them(tmp_path):
    protocol = Protocol.of_problems(own_problems(), "held-out-bowls", num_runs=4, max_evaluations=400)
    methods = make_methods(["jso", "constant"], protocol)
    stores = [ResultStore(tmp_path / name, protocol) for name in ("one", "two")]
    for store, jobs in zip(stores, (1, 2), strict=True):
        run_methods(methods, store, jobs=jobs, progress=False)
    one, two = (load_results(store, ["jso", "constant"]) for store in stores)
    for first, second in zip(one, two, strict=True):
        np.testing.assert_array_equal(first.errors, second.errors)
    # Where no optimum is known errors are values, and negative ones do not count as solved.
    assert (one[0].errors[1] < -19.0).all()
    page = write_report(Results(protocol, tuple(one), "jso"), tmp_path)
    assert "held-out-bowls" in page.read_text()


def test_results_of_other_problems_under_the_same_name_are_not_mixed(tmp_path):
    protocol = Protocol.of_problems(own_problems(), "some-bowls", max_evaluations=400)
    ResultStore(tmp_path / "store", protocol)
    other = Protocol.of_problems(own_problems()[:1], "some-bowls", max_evaluations=400)
    with pytest.raises(ValueError, match="made under other settings: problems"):
        ResultStore(tmp_path / "store", other)


def test_a_protocol_has_one_dimension():
    mixed = [*own_problems(), Problem.from_function(sum, -1, 1, dimension=3)]
    with pytest.raises(ValueError, match=r"must all have one dimension, got \(2, 3\)"):
        Protocol.of_problems(mixed)
    assert "own" in own_suites.REGISTERED
