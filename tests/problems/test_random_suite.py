"""Random problems: fixed by seed, number and dimension, with the announced shares and a true optimum."""

from __future__ import annotations

import pickle
import subprocess
import sys
import weakref
from collections import Counter

import gymnasium
import numpy as np
import pytest

import de_gym.envs  # noqa: F401  (registers the environment)
from de_gym.machine import kernel
from de_gym.problems import Problem, ProblemBatch, make_suite
from de_gym.problems.random_suite import KINDS, UNROTATED_SHARE

LANDSCAPES = range(kernel.WEIGHTED_SQUARES, kernel.END_COMPONENT)


def kind_of(problem: Problem) -> str:
    return problem.name.split("-")[1]


def operations(problem: Problem) -> np.ndarray:
    instructions, _ = problem.program
    return instructions[:, kernel.OPERATION]


def first_of_kind(kind: str, dimension: int, count: int = 1) -> list[Problem]:
    problems = (problem for problem in make_suite("random", dimension, range(1, 2000)) if kind_of(problem) == kind)
    return [next(problems) for _ in range(count)]


def test_suite_is_like_any_other():
    suite = make_suite("random", 10, [3, 10**12], seed=7)
    problem = suite[10**12]
    assert (problem.suite, problem.number, problem.dimension) == ("random:7", 10**12, 10)
    assert [problem.number for problem in suite] == [3, 10**12]
    assert problem.name == f"random-{kind_of(problem)}-{10**12}"
    assert (problem.lower == -100.0).all()
    assert (problem.upper == 100.0).all()
    assert len(make_suite("random", 10)) == 60


def test_seed_number_and_dimension_each_make_another_problem():
    points = np.linspace(-90.0, 90.0, 5)[:, np.newaxis] * np.ones(5)
    values = {
        tuple(make_suite("random", dimension, seed=seed)[number].evaluate(points[:, :dimension]).tolist())
        for dimension in (4, 5)
        for seed in (0, 1, 2)
        for number in (1, 2, 3)
    }
    assert len(values) == 18


def test_names_that_carry_the_seed_give_the_same_objects():
    suite = make_suite("random:12", 10)
    assert suite[5] is make_suite("random", 10, seed=12)[5] is make_suite("random:12", 10, seed=12)[5]
    assert make_suite("random", 10)[5] is make_suite("random:0", 10)[5]


# Written down once: who has trained on these problems relies on getting them back.
FINGERPRINTS = {
    "random-hybrid-1": 2925.078932510527,
    "random-landscape-3": 3787.393231923818,
    "random-composition-4": 1527.3252832905869,
    "random-peaks-5": 2869.540819364278,
    "random-steps-9": 5373.827641614613,
    "random-valley-27": 11946979539.850418,
    "random-slope-87": 11680.0134770539,
}


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_problems_never_change(name):
    number = int(name.split("-")[2])
    problem = make_suite("random", 6, [number], seed=41)[number]
    value = float(problem.evaluate(np.arange(6.0) * 7.0 - 30.0))
    assert problem.name == name
    assert value == pytest.approx(FINGERPRINTS[name], rel=1e-12)


def test_other_processes_make_the_same_bits():
    code = (
        "import numpy as np; from de_gym.problems import make_suite\n"
        "for problem in make_suite('random', 7, range(1, 30), seed=5):\n"
        "    print(problem.name, float(problem.evaluate(np.full(7, 12.5))).hex())\n"
    )
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    here = [
        f"{problem.name} {float(problem.evaluate(np.full(7, 12.5))).hex()}"
        for problem in make_suite("random", 7, range(1, 30), seed=5)
    ]
    assert output.splitlines() == here


@pytest.mark.parametrize("dimension", [2, 3, 4, 7, 10, 30, 50])
def test_optimum_is_the_minimum(dimension, rng):
    for problem in make_suite("random", dimension, range(1, 61), seed=dimension):
        best = problem.optimal_position
        assert float(problem.evaluate(best)) == pytest.approx(problem.optimum, rel=0.0, abs=1e-9)
        assert (np.abs(best) <= 100.0).all()
        anywhere = rng.uniform(-100.0, 100.0, (5000, dimension))
        distances = 10.0 ** rng.uniform(-4.0, 1.5, (5000, 1))
        nearby = np.clip(best + distances * rng.normal(size=(5000, dimension)), -100.0, 100.0)
        values = problem.evaluate(np.concatenate([anywhere, nearby]))
        assert np.isfinite(values).all()
        assert values[:5000].min() > problem.optimum
        assert values.min() > problem.optimum - 1e-9
        assert np.ptp(values) > 0.0


def test_kinds_have_their_shares():
    problems = list(make_suite("random", 5, range(1, 4001), seed=1))
    counts = Counter(map(kind_of, problems))
    assert counts.keys() == KINDS.keys()
    assert sum(KINDS.values()) == pytest.approx(1.0)
    for kind, share in KINDS.items():
        assert counts[kind] / 4000 == pytest.approx(share, abs=0.025)


def test_more_than_a_third_is_not_rotated():
    problems = list(make_suite("random", 6, range(1, 501), seed=2))
    unrotated = [problem for problem in problems if kernel.ROTATE not in operations(problem)]
    assert UNROTATED_SHARE > 1.0 / 3.0
    assert len(unrotated) / 500 == pytest.approx(UNROTATED_SHARE, abs=0.08)
    multimodal = [kernel.RASTRIGIN, kernel.SCHWEFEL, kernel.WEIERSTRASS, kernel.ACKLEY, kernel.LEVY, kernel.PEAKS]
    assert sum(bool(np.isin(operations(problem), multimodal).any()) for problem in unrotated) > 100


def test_every_landscape_and_transformation_occurs():
    occurring = {
        int(operation) for problem in make_suite("random", 10, range(1, 301)) for operation in operations(problem)
    }
    missing = set(range(kernel.END + 1)) - occurring
    # Powers up to the dimension overflow the values of all else, and official rounding errors are of no use here.
    assert missing == {kernel.SUM_OF_POWERS, kernel.SKEW_EXACTLY}


@pytest.mark.parametrize(("dimension", "fewest", "most"), [(2, 2, 2), (3, 3, 3), (4, 3, 4), (10, 3, 5), (50, 3, 5)])
def test_hybrids_divide_all_coordinates_among_their_landscapes(dimension, fewest, most):
    numbers_of_parts = set()
    for problem in first_of_kind("hybrid", dimension, 40):
        instructions, _ = problem.program
        parts = instructions[np.isin(operations(problem), LANDSCAPES)]
        numbers_of_parts.add(len(parts))
        assert parts[:, kernel.LENGTH].sum() == dimension
        assert parts[:, kernel.LENGTH].min() >= 1
        starts = parts[:, kernel.SOURCE] % dimension
        assert sorted(starts) == starts.tolist()
    assert numbers_of_parts == set(range(fewest, most + 1))


def test_compositions_have_their_parts_raised_one_above_the_other():
    numbers_of_parts = set()
    for problem in first_of_kind("composition", 10, 60):
        instructions, data = problem.program
        ends = instructions[operations(problem) == kernel.END_COMPONENT]
        numbers_of_parts.add(len(ends))
        assert data[ends[:, kernel.DATA] + 1].tolist() == [100.0 * k for k in range(len(ends))]
        spreads = np.sqrt(data[ends[:, kernel.OTHER]] / 20.0)
        assert ((spreads >= 10.0) & (spreads <= 60.0)).all()
        centres = np.array([data[at + 1 : at + 11] for at in ends[:, kernel.OTHER]])
        np.testing.assert_array_equal(centres[0], problem.optimal_position)
        assert problem.evaluate(centres[1:]) - problem.optimum == pytest.approx(100.0 * np.arange(1, len(ends)))
    assert numbers_of_parts == {3, 4, 5, 6}


def test_slopes_fall_in_straight_lines_to_a_corner(rng):
    (problem,) = first_of_kind("slope", 6)
    corner = problem.optimal_position
    assert (np.abs(corner) == 100.0).all()
    first, second = rng.uniform(-100.0, 100.0, (2, 20, 6))
    middle = problem.evaluate((first + second) / 2.0)
    np.testing.assert_allclose(middle, (problem.evaluate(first) + problem.evaluate(second)) / 2.0, rtol=1e-12)
    for i in range(6):
        inward = corner.copy()
        inward[i] *= 0.9
        assert problem.evaluate(inward) > problem.optimum


def test_steps_have_plateaus():
    for problem in first_of_kind("steps", 5, 10):
        line = np.linspace(-95.0, -90.0, 4001)
        points = np.where(problem.optimal_position > 0.0, 1.0, -1.0) * np.outer(line, np.ones(5))
        values = problem.evaluate(points)
        assert len(np.unique(values)) < 1000


def test_peaks_are_many_and_of_different_heights(rng):
    for problem in first_of_kind("peaks", 3, 5):
        instructions, data = problem.program
        row = instructions[operations(problem) == kernel.PEAKS][0]
        peaks = data[row[kernel.DATA] + 3 :][: int(data[row[kernel.DATA] + 2]) * 7].reshape(-1, 7)
        assert len(peaks) in (21, 101)
        assert (peaks[0, :4] == 0.0).all()
        assert (peaks[1:, 0] < 0.0).all()
        assert np.ptp(np.exp(peaks[1:, 0])) > 0.5
        assert peaks[:, 4:].max() / peaks[:, 4:].min() > 30.0
        # The centres lie in the box: seen from there, the function is as high as the peak says, or lower.
        rotation = np.eye(3)
        if kernel.ROTATE in operations(problem):
            at = instructions[operations(problem) == kernel.ROTATE][0, kernel.DATA]
            rotation = data[at : at + 9].reshape(3, 3)
        centres = problem.optimal_position + peaks[:, 1:4] @ rotation
        assert (np.abs(centres) <= 100.0 + 1e-9).all()
        above = problem.evaluate(np.clip(centres, -100.0, 100.0)) - problem.optimum
        assert (above <= 100.0 * (1.0 - np.exp(peaks[:, 0])) + 1e-6).all()


def test_a_batch_gives_each_problem_its_own_values(rng):
    problems = [*make_suite("random", 10, range(1, 41)), *make_suite("cec2017", 10, [1, 29])]
    batch = ProblemBatch(problems)
    points = rng.uniform(-100.0, 100.0, (len(problems), 11, 10))
    alone = [problem.evaluate(row) for problem, row in zip(problems, points, strict=True)]
    np.testing.assert_array_equal(batch.evaluate(points), alone)


def test_coordinates_that_are_no_numbers_give_infinity_on_every_kind():
    problems = [first_of_kind(kind, 5)[0] for kind in KINDS]
    values = ProblemBatch(problems).evaluate(np.full((len(problems), 1, 5), np.nan))
    assert (values == np.inf).all()


def test_pickles_hold_the_name_only():
    problem = make_suite("random", 30, [9], seed=8)[9]
    pickled = pickle.dumps(problem)
    assert len(pickled) < 200
    assert pickle.loads(pickled) is problem


def test_problems_that_nobody_holds_are_freed():
    problem = make_suite("random", 10, [1234], seed=99)[1234]
    problem.evaluate(np.zeros(10))
    batch = ProblemBatch([problem, make_suite("cec2013", 10)[1]])
    batch.evaluate(np.zeros((2, 1, 10)))
    problem_alive, program_alive = weakref.ref(problem), weakref.ref(problem.program[1])
    del problem, batch
    assert problem_alive() is None
    assert program_alive() is None


def test_making_problems_writes_no_program():
    problem = make_suite("random", 10, [4321], seed=99)[4321]
    assert "arrays" not in vars(problem.evaluator)


def test_environments_take_random_problems():
    env = gymnasium.make("DEParamControl-v0", suite="random:7", functions=range(1, 5), dimension=3)
    _, info = env.reset(seed=1)
    assert info["function"] in range(1, 5)
    assert env.unwrapped.task.problems == tuple(make_suite("random", 3, range(1, 5), seed=7))


def test_problems_have_at_least_two_coordinates():
    with pytest.raises(ValueError, match="no functions of dimension 1; supported: 2 and more"):
        make_suite("random", 1)
    with pytest.raises(ValueError, match="`dimension` must be at least 1, got -3"):
        make_suite("random", -3)


@pytest.mark.parametrize("number", ["a", float("nan"), None, True])
def test_what_is_no_number_is_refused_at_once(number):
    # A search of all the numbers there are would not come to an end.
    with pytest.raises(ValueError, match=r"No function .* in this suite 'random:0'\. "):
        make_suite("random", 10, [number])


@pytest.mark.parametrize("number", [0, -5])
def test_numbers_start_at_one(number):
    with pytest.raises(ValueError, match=rf"No function {number} in this suite 'random:3'\. Did you mean 1\?"):
        make_suite("random", 10, [number], seed=3)


@pytest.mark.parametrize("seed", [-1, 1.5, "7"])
def test_seeds_are_not_negative_integers(seed):
    with pytest.raises((TypeError, ValueError), match=r"`seed` must be (at least 0|a whole number), got"):
        make_suite("random", 10, seed=seed)


@pytest.mark.parametrize("name", ["random:", "random:x", "random:-1", "random:1.5"])
def test_a_seed_in_a_name_is_an_integer(name):
    with pytest.raises(ValueError, match=f"seed in the name of suite '{name}' must be an integer"):
        make_suite(name, 10)


def test_two_different_seeds_are_rejected():
    with pytest.raises(ValueError, match=r"`seed` must be the one in the name of suite 'random:7', got 8"):
        make_suite("random:7", 10, seed=8)


def test_fixed_suites_take_no_seed():
    with pytest.raises(ValueError, match=r"Suite 'cec2017' is fixed and takes no `seed`, got 3"):
        make_suite("cec2017", 10, seed=3)
