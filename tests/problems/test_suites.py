"""make_suite: numbering, selection, sharing and the sentences that reject bad requests."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from de_gym.problems import make_suite, official_number, paper_number


def test_suites_hold_the_functions_papers_use():
    assert make_suite("cec2013", 10).numbers == tuple(range(1, 29))
    assert make_suite("cec2017", 10).numbers == (1, *range(3, 31))


def test_withdrawn_function_can_be_asked_for():
    suite = make_suite("cec2017", 10, [2])
    assert [problem.number for problem in suite] == [2]


def test_suite_iterates_in_the_order_asked_for():
    suite = make_suite("cec2013", 30, functions=[21, 3, 8])
    assert len(suite) == 3
    assert [problem.name for problem in suite] == ["cec2013_f21", "cec2013_f3", "cec2013_f8"]


def test_paper_numbers_skip_the_withdrawn_function():
    suite = make_suite("cec2017", 10)
    assert suite[2 + 1] is suite.by_paper_number(2)
    assert [suite.by_paper_number(k).number for k in (1, 2, 10, 29)] == [1, 3, 11, 30]
    assert [paper_number("cec2017", n) for n in (1, 3, 11, 30)] == [1, 2, 10, 29]
    assert [official_number("cec2013", k) for k in (1, 28)] == [1, 28]


def test_problem_knows_its_suite_number_and_box():
    problem = make_suite("cec2017", 30)[12]
    assert (problem.suite, problem.number, problem.dimension, problem.optimum) == ("cec2017", 12, 30, 1200.0)
    assert (problem.lower == -100.0).all()
    assert (problem.upper == 100.0).all()
    assert problem.lower.shape == problem.optimal_position.shape == (30,)


def test_problems_are_shared_and_protected():
    problem = make_suite("cec2013", 10)[4]
    assert problem is make_suite("cec2013", 10, [4])[4]
    with pytest.raises(ValueError, match="read-only"):
        problem.optimal_position[0] = 0.0


def test_pickles_are_small_and_give_the_same_object_back():
    problem = make_suite("cec2017", 30)[30]
    pickled = pickle.dumps(problem)
    assert len(pickled) < 200
    assert pickle.loads(pickled) is problem
    assert copy.deepcopy(problem) is problem


def test_numpy_integers_are_numbers_too():
    suite = make_suite("cec2017", np.int64(10), np.array([5, 7]))
    assert suite[np.int64(7)].number == 7


def test_two_dimensions_leave_out_the_hybrids():
    assert make_suite("cec2017", 2).numbers == (1, *range(3, 11), *range(21, 29))


def test_unknown_suite_is_named_with_the_closest():
    with pytest.raises(
        ValueError, match=r"Unknown suite 'cec2014'\. Did you mean 'cec201[37]'\? Available: cec2013, cec2017, random"
    ):
        make_suite("cec2014", 10)


@pytest.mark.parametrize(
    ("suite", "supported"), [("cec2013", "2, 5, 10, 20, 30, 40, 50"), ("cec2017", "2, 10, 30, 50, 100")]
)
def test_unsupported_dimension_lists_the_supported_ones(suite, supported):
    with pytest.raises(ValueError, match=rf"no functions of dimension 15; supported: {supported}"):
        make_suite(suite, 15)


def test_hybrid_in_two_dimensions_lists_the_supported_ones():
    with pytest.raises(ValueError, match=r"F11 of suite 'cec2017' .* dimension 2; supported: 10, 30, 50, 100\."):
        make_suite("cec2017", 2, [1, 11])


@pytest.mark.parametrize(("number", "hint"), [(31, "Did you mean 30"), (0, "Did you mean 1"), ("F5", "are integers")])
def test_unknown_function_number_is_rejected_with_a_hint(number, hint):
    with pytest.raises(ValueError, match=rf"No function {number!r} in this suite 'cec2017'\. .*{hint}"):
        make_suite("cec2017", 10, [number])
    with pytest.raises(ValueError, match=hint):
        make_suite("cec2017", 10)[number]


def test_number_left_out_says_how_to_get_it():
    with pytest.raises(ValueError, match=r"No function 2 in this suite 'cec2017'\. It exists: .*functions=\[2\]"):
        make_suite("cec2017", 10)[2]
    with pytest.raises(ValueError, match=r"No function 2 "):
        paper_number("cec2017", 2)


@pytest.mark.parametrize("number", [0, 30, 1.5])
def test_paper_numbers_run_from_1_to_29(number):
    with pytest.raises(ValueError, match=rf"run from 1 to 29, got {number}"):
        make_suite("cec2017", 10).by_paper_number(number)


def test_empty_and_repeated_selections_are_rejected():
    with pytest.raises(ValueError, match="at least one function"):
        make_suite("cec2013", 10, [])
    with pytest.raises(ValueError, match=r"may be listed once, got \[3\]"):
        make_suite("cec2013", 10, [3, 4, 3])


def test_importing_and_making_suites_compiles_nothing():
    code = (
        "from de_gym.problems import make_suite; from de_gym.machine import kernel\n"
        "list(make_suite('cec2013', 10))\n"
        "assert not kernel.evaluate_programs.overloads, 'compiled at import'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_later_processes_load_the_compiled_code(tmp_path):
    code = (
        "from de_gym.problems import make_suite; from de_gym.machine import kernel\n"
        "problem = make_suite('cec2013', 10)[8]\n"
        "assert problem.evaluate(problem.optimal_position) == problem.optimum\n"
        "print(sum(kernel.evaluate_finite.stats.cache_hits.values()))\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    hits = [
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment).stdout
        for _ in range(2)
    ]
    assert [int(hit) for hit in hits] == [0, 1]
