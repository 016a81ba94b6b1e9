"""A whole generation: hand-computed steps, counting, monotony, independence of the runs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numba import njit
from scipy import stats

from de_gym import Problem, ProblemBatch
from de_gym.arrays import FloatArray, IntArray
from de_gym.envs.state import RUN
from de_gym.evolution import draw_keys, draw_uniforms, scale_to_bounds
from de_gym.machine.breeding import (
    BOUND_REPAIRS,
    TrialNumbers,
    choose_rows,
    force_coordinates,
    make_workspace,
    num_uniforms,
    trials_of_rows,
    write_trials,
)
from de_gym.machine.coordinates import to_mirror
from de_gym.machine.lanes import moved, pointer_to
from de_gym.machine.picks import pick_distinct
from de_gym.machine.ranked_generations import breed_by_rank, select_by_rank


class Population(NamedTuple):
    """What these tests carry from one generation to the next."""

    positions: FloatArray
    order: IntArray
    fitness: FloatArray
    evaluations: IntArray
    generation: IntArray
    num_successes: IntArray


def start(problems: ProblemBatch, rngs, size: int) -> Population:
    positions = scale_to_bounds(draw_uniforms(rngs, size, problems.dimension), problems.lower, problems.upper)
    none = np.zeros(len(rngs), np.int64)
    fitness = problems.evaluate(positions)
    order = np.argsort(fitness, axis=1, kind="stable")
    return Population(positions, order, np.take_along_axis(fitness, order, axis=1), none + size, none, none)


def as_runs(keys, generation, size: int):
    runs = np.zeros(len(keys), RUN)
    runs["key"], runs["generation"], runs["size"] = keys, generation, size
    return runs


def breed_all(positions, order, actions, num_pbest, keys, generation, lower, upper, repair) -> np.ndarray:
    """Return the trials (R, N, D) of R runs that are all of one size."""
    num_runs, size = order.shape
    trials, starts = np.empty((num_runs * size, positions.shape[2])), np.empty(num_runs + 1, np.int64)
    runs = as_runs(keys, generation, size)
    breed_by_rank(runs, positions, order, actions, num_pbest, lower, upper, repair, starts, trials)
    np.testing.assert_array_equal(starts, np.arange(num_runs + 1) * size)
    return trials.reshape(num_runs, size, -1)


def select_better(positions, order, fitness, trials, trial_fitness) -> np.ndarray:
    """Turn R populations of one size into the next ones, in place, and return the numbers of successes."""
    num_runs, size = order.shape
    runs, starts = as_runs(np.zeros(num_runs, np.uint64), 0, size), np.arange(num_runs + 1) * size
    select_by_rank(
        runs, positions, order, fitness, starts, trials.reshape(-1, trials.shape[2]), trial_fitness.reshape(-1)
    )
    np.testing.assert_array_equal(runs["num_trials"], size)
    return runs["num_successes"]


def step(population: Population, problems: ProblemBatch, keys, repair: str = "midpoint", num_pbest: int = 2):
    num_runs, size, _ = population.positions.shape
    actions, leading = np.tile(np.repeat([0.7, 0.6], size), (num_runs, 1)), np.full(num_runs, num_pbest)
    time, bounds = (keys, population.generation), (problems.lower, problems.upper)
    trials = breed_all(*population[:2], actions, leading, *time, *bounds, BOUND_REPAIRS[repair])
    selected = [array.copy() for array in population[:3]]
    num_successes = select_better(*selected, trials, problems.evaluate(trials))
    return Population(*selected, population.evaluations + size, population.generation + 1, num_successes)


def best_first(positions, order):
    return np.take_along_axis(positions, order[:, :, None], axis=1)


def uniforms_for(size: int, dimension: int, repair: str) -> int:
    return num_uniforms(size, dimension, BOUND_REPAIRS[repair])


def bred(parents, actions, num_pbest, uniforms, lower, upper, repair) -> np.ndarray:
    """Return the trials of parents (N, D) given best first; they are stored the other way round."""
    positions, order = parents[None, ::-1].copy(), np.arange(len(parents))[None, ::-1].copy()
    workspace, trials = make_workspace(*parents.shape, repair), np.empty((1, *parents.shape))
    workspace.uniforms[: len(uniforms)] = uniforms
    _breed_once(positions, order, actions[None], num_pbest, lower[None], upper[None], repair, workspace, trials)
    return trials[0]


@njit
def _breed_once(positions, order, actions, num_pbest, lower, upper, repair, workspace, trials):
    _, size, dimension = positions.shape
    factors, uniforms = pointer_to(actions), pointer_to(workspace.uniforms)
    rates, crossing = moved(factors, size), moved(uniforms, 4 * size)
    bounds, rows = (pointer_to(lower), pointer_to(upper)), pointer_to(workspace.picks)
    numbers = TrialNumbers(pointer_to(positions), rows, factors, factors, rates, crossing, *bounds, pointer_to(trials))
    choose_rows(size, num_pbest, size, 0, pointer_to(order), uniforms, rows, pointer_to(workspace.taken))
    force_coordinates(size, dimension, moved(uniforms, 3 * size), crossing)
    write_trials(size, dimension, repair, numbers)


def test_generation_by_hand():
    parents, actions = np.array([[0.0], [1.0], [3.0], [7.0]]), np.repeat([0.5, 1.0], 4)
    uniforms = np.zeros(uniforms_for(4, 1, "midpoint"))
    # p-best is rank 1 of one candidate; the smallest uniforms pick the first rows that are free: r1 then r2
    trials = bred(parents, actions, 1, uniforms, np.array([-10.0]), np.array([10.0]), BOUND_REPAIRS["midpoint"])
    # x_i + 0.5 (0 - x_i) + 0.5 (x_r1 - x_r2) with (r1, r2) = (1, 2), (0, 2), (0, 1), (0, 1)
    np.testing.assert_allclose(trials[:, 0], [-1.0, 0.5 - 1.5, 1.5 - 0.5, 3.5 - 0.5])


def test_first_half_of_the_actions_scales_and_second_half_crosses():
    parents = np.array([[0.0, 0.0], [1.0, 1.0], [3.0, 3.0], [7.0, 7.0]])
    uniforms = np.full(uniforms_for(4, 2, "midpoint"), 0.5)
    bounds = (np.full(2, -10.0), np.full(2, 10.0))
    only_factors = bred(parents, np.repeat([1.0, 0.0], 4), 1, uniforms, *bounds, BOUND_REPAIRS["midpoint"])
    only_rates = bred(parents, np.repeat([0.0, 1.0], 4), 1, uniforms, *bounds, BOUND_REPAIRS["midpoint"])
    assert ((only_factors != parents).sum(axis=1) <= 1).all()  # nothing but the forced coordinate
    np.testing.assert_array_equal(only_rates, parents)  # all coordinates of donors that equal their parents


@pytest.mark.parametrize("dimension", [1, 3, 4, 5, 8, 10, 19])
@pytest.mark.parametrize("repair", BOUND_REPAIRS)
def test_one_pass_equals_the_operators_one_after_the_other(repair, dimension):
    rng = np.random.default_rng(3)
    size, num_pbest = 12, 4
    parents, actions = rng.uniform(-1, 1, (size, dimension)), rng.random(2 * size)
    actions[size], actions[size + 1] = 0.0, 1.0
    uniforms = rng.random(uniforms_for(size, dimension, repair))
    lower, upper = np.full(dimension, -1.0), np.full(dimension, 1.0)
    pbest = (uniforms[:size] * num_pbest).astype(int)
    r1, r2 = pick_distinct(uniforms[size : 3 * size].reshape(2, size), size)
    factors, rates = actions[:size, None], actions[size:, None]
    donors = parents + factors * (parents[pbest] - parents) + factors * (parents[r1] - parents[r2])
    crossing = uniforms[4 * size :].reshape(-1, size, dimension)
    taken = (crossing[0] <= rates) & (rates > 0.0)
    taken[np.arange(size), (uniforms[3 * size : 4 * size] * dimension).astype(int)] = True
    trials = np.where(taken, donors, parents)
    bounds = np.where(trials < lower, lower, upper)
    outside = {
        "midpoint": lambda: 0.5 * (parents + bounds),
        "clip": lambda: bounds,
        "reflect": lambda: np.vectorize(to_mirror)(trials, lower, upper),
        "resample": lambda: lower + crossing[-1] * (upper - lower),
    }[repair]()
    repaired = np.where((trials < lower) | (trials > upper), outside, trials)
    assert (trials != repaired).any()
    ours = bred(parents, actions, num_pbest, uniforms, lower, upper, BOUND_REPAIRS[repair])
    np.testing.assert_array_equal(ours, repaired)


@njit
def _of_rows(pool, rows, weights, factors, rates, uniforms, lower, upper, trials):
    trials_of_rows(pool, rows, weights, factors, rates, uniforms, lower, upper, trials)


@pytest.mark.parametrize("dimension", [2, 4, 7])
def test_rows_of_an_archive_and_a_weight_of_the_pull(dimension):
    pool = np.random.default_rng(4).uniform(-1, 1, (9, dimension))
    rows = np.array([[0, 1, 2], [1, 0, 0], [2, 2, 1], [8, 6, 3]])  # r2 stands behind a population of six
    weights, factors, trials = np.array([0.3, 0.7, 0.0]), np.array([0.5, 0.1, 0.0]), np.empty((3, dimension))
    bounds = np.full(dimension, -9.0), np.full(dimension, 9.0)
    _of_rows(pool, rows, weights, factors, np.ones(3), np.full(3 * (1 + dimension), 0.5), *bounds, trials)
    parents, best, plus, minus = pool[rows]
    np.testing.assert_array_equal(
        trials, parents + weights[:, None] * (best - parents) + factors[:, None] * (plus - minus)
    )
    np.testing.assert_array_equal(trials[2], pool[2])  # neither pull nor difference


def test_selection_keeps_the_better_accepts_ties_and_sorts():
    positions, order = np.array([[[2.0], [3.0], [1.0]]]), np.array([[2, 0, 1]])
    trials = np.array([[[10.0], [20.0], [30.0]]])
    fitness, trial_fitness = np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 5.0, 0.5]])
    num_successes = select_better(positions, order, fitness, trials, trial_fitness)
    np.testing.assert_array_equal(fitness, [[0.5, 1.0, 2.0]])
    np.testing.assert_array_equal(positions[0, :, 0], [2.0, 30.0, 10.0])  # the second of three stays where it was
    np.testing.assert_array_equal(order, [[1, 2, 0]])
    np.testing.assert_array_equal(num_successes, [2])


@pytest.mark.parametrize("dimension", [1, 3, 4, 5, 8, 10, 19])
@pytest.mark.parametrize("size", [4, 50, 150])
def test_selection_equals_numpy_and_leaves_neighbouring_runs_alone(size, dimension):
    rng = np.random.default_rng(size + dimension)
    positions, trials = rng.random((2, 3, size, dimension))
    order = rng.permuted(np.tile(np.arange(size), (3, 1)), axis=1)
    fitness = np.sort(rng.integers(0, size, (3, size)), axis=1).astype(np.float64)  # with ties
    trial_fitness = rng.integers(0, 2 * size, (3, size)).astype(np.float64)
    replaced = trial_fitness <= fitness
    better = np.where(replaced, trial_fitness, fitness)
    ranks = np.argsort(better, axis=1, kind="stable")
    survivors = np.where(replaced[:, :, None], trials, best_first(positions, order))
    num_successes = select_better(positions, order, fitness, trials, trial_fitness)
    np.testing.assert_array_equal(fitness, np.take_along_axis(better, ranks, axis=1))
    np.testing.assert_array_equal(best_first(positions, order), best_first(survivors, ranks))
    np.testing.assert_array_equal(num_successes, replaced.sum(axis=1))


@pytest.mark.parametrize("repair", BOUND_REPAIRS)
def test_runs_stay_inside_and_never_worsen(sphere, repair):
    problems = ProblemBatch([sphere] * 3)
    rngs = [np.random.default_rng(seed) for seed in range(3)]
    population, keys = start(problems, rngs, 6), draw_keys(rngs)
    for generation in range(1, 21):
        following = step(population, problems, keys, repair)
        assert (following.fitness[:, 0] <= population.fitness[:, 0]).all()
        assert (np.diff(following.fitness, axis=1) >= 0).all()
        assert (following.positions >= sphere.lower).all()
        assert (following.positions <= sphere.upper).all()
        ranked = best_first(following.positions, following.order)
        np.testing.assert_array_equal(following.fitness, problems.evaluate(ranked))
        np.testing.assert_array_equal(following.evaluations, 6 * (generation + 1))
        np.testing.assert_array_equal(following.generation, generation)
        population = following
    assert (population.fitness[:, 0] < 1.0).all()


@pytest.mark.parametrize("repair", BOUND_REPAIRS)
def test_a_run_in_a_batch_equals_the_run_alone(sphere, repair):
    other = Problem.from_function(lambda points: np.abs(points).sum(axis=-1), -5, 5, dimension=2, vectorized=True)
    chosen = [sphere, other, sphere, other]

    def finish(runs: list[int]) -> Population:
        problems = ProblemBatch([chosen[run] for run in runs])
        rngs = [np.random.default_rng(100 + run) for run in runs]
        population, keys = start(problems, rngs, 7), draw_keys(rngs)
        for _ in range(15):
            population = step(population, problems, keys, repair)
        return population

    together = finish([0, 1, 2, 3])
    for run in range(4):
        alone = finish([run])
        np.testing.assert_array_equal(together.positions[run], alone.positions[0])
        np.testing.assert_array_equal(together.fitness[run], alone.fitness[0])


def draw_trials(seed: int, actions, num_generations: int, dimension: int = 3):
    """Return parents (N, D) and the trials (T, N, D) that one key gives them in T generations."""
    size = actions.shape[1] // 2
    parents = np.random.default_rng(seed).uniform(-1, 1, (size, dimension))
    bounds = np.full((1, dimension), -1e9), np.full((1, dimension), 1e9)
    keys = draw_keys([np.random.default_rng(seed)])
    order, trials = np.arange(size)[None], np.empty((num_generations, 1, size, dimension))
    for generation in range(num_generations):
        leading, when = np.array([size]), np.array([generation])
        trials[generation] = breed_all(parents[None], order, actions, leading, keys, when, *bounds, 0)
    return parents, trials[:, 0]


def test_crossover_takes_the_share_of_coordinates_that_its_rate_says():
    size, dimension = 50, 10
    rates = np.linspace(0.0, 1.0, size)
    parents, trials = draw_trials(5, np.concatenate([np.full(size, 0.5), rates])[None], 400, dimension)
    taken = trials != parents
    # One coordinate is always taken, each of the others with probability CR.
    expected = (1.0 + (dimension - 1) * rates) / dimension
    np.testing.assert_allclose(taken.mean(axis=(0, 2)), expected, atol=5 * 0.5 / np.sqrt(400 * dimension))
    assert taken.any(axis=2).all()
    assert taken[:, 0].sum(axis=1).max() == 1  # CR = 0: the forced coordinate alone
    assert taken[:, -1].all()  # CR = 1: the donor


def test_forced_coordinate_is_uniform():
    size, dimension, num_generations = 20, 10, 400
    actions = np.repeat([0.5, 0.0], size)[None]
    parents, trials = draw_trials(6, actions, num_generations, dimension)
    counts = (trials != parents).sum(axis=(0, 1))
    assert stats.chisquare(counts).pvalue > 1e-3


def test_r1_and_r2_are_uniform_over_the_pairs_without_the_individual():
    size, num_generations = 6, 2000
    parents = (8.0 ** np.arange(size))[:, None]
    # With F = 1 and one p-best the donor is x_0 + x_r1 - x_r2, and differences of powers of 8 tell r1 and r2.
    pair_of = {
        parents[plus, 0] - parents[minus, 0]: (plus, minus)
        for plus in range(size)
        for minus in range(size)
        if plus != minus
    }
    bounds = np.full((1, 1), -1e9), np.full((1, 1), 1e9)
    keys = draw_keys([np.random.default_rng(8)])
    counts, population = np.zeros((size, size, size), np.int64), (parents[None], np.arange(size)[None])
    actions = np.ones((1, 2 * size))
    for generation in range(num_generations):
        when = np.array([generation])
        trials = breed_all(*population, actions, np.array([1]), keys, when, *bounds, 0)
        for individual, donor in enumerate(trials[0, :, 0]):
            counts[individual, *pair_of[donor - parents[0, 0]]] += 1
    for individual in range(size):
        others = [rank for rank in range(size) if rank != individual]
        allowed = [counts[individual, plus, minus] for plus in others for minus in others if plus != minus]
        assert sum(allowed) == num_generations
        assert stats.chisquare(allowed).pvalue > 1e-4


def test_pbest_comes_from_the_leading_individuals_only():
    parents = np.arange(20.0)[:, None]
    uniforms = np.random.default_rng(0).random(uniforms_for(20, 1, "clip"))
    uniforms[20:60] = 0.0  # r1 and r2 fixed: the donors differ only through p-best
    trials = bred(parents, np.ones(40), 3, uniforms, np.array([-99.0]), np.array([99.0]), BOUND_REPAIRS["clip"])
    # with F = 1 the donor is x_pbest + x_r1 - x_r2, and x_r1 - x_r2 = -1 from the fourth individual on
    assert set(trials[3:, 0] + 1.0) == {0.0, 1.0, 2.0}


def test_flat_function_replaces_every_parent():
    flat = Problem.from_function(lambda points: np.zeros(len(points)), -1, 1, 0.0, dimension=3, vectorized=True)
    problems, rngs = ProblemBatch([flat]), [np.random.default_rng(1)]
    following = step(start(problems, rngs, 5), problems, draw_keys(rngs))
    assert following.num_successes[0] == 5


def test_nan_values_rank_last_and_are_replaced():
    def undefined_left(points):
        return np.where(points[:, 0] < 0, np.nan, points[:, 0])

    problem = Problem.from_function(undefined_left, -1, 1, 0.0, dimension=2, vectorized=True)
    problems, rngs = ProblemBatch([problem]), [np.random.default_rng(2)]
    population = start(problems, rngs, 8)
    assert np.isinf(population.fitness[0, -1])
    keys = draw_keys(rngs)
    for _ in range(40):
        population = step(population, problems, keys)
    assert np.isfinite(population.fitness).all()


def test_beaten_parents_go_to_the_archive_and_are_chosen_as_r2():
    size, dimension, capacity = 6, 2, 6
    rng = np.random.default_rng(0)
    runs = as_runs(np.array([7], np.uint64), 0, size)
    positions = np.concatenate([rng.random((1, size, dimension)), np.zeros((1, capacity, dimension))], axis=1)
    order, fitness = np.arange(size)[None], np.arange(1.0, 1.0 + size)[None]
    trials, values = rng.random((size, dimension)), np.array([1.0, 1.5, 9.0, 0.5, 9.0, 9.0])
    parents = positions[0, :size].copy()
    select_by_rank(runs, positions, order, fitness, np.array([0, size]), trials, values)
    assert runs["num_successes"][0] == 3  # a tie replaces
    assert runs["archive_size"][0] == 2  # and is not archived
    np.testing.assert_array_equal(positions[0, size : size + 2], parents[[1, 3]])
    runs["archive_size"] = capacity
    positions[0, size:] = 1000.0
    starts, bred_trials, box = np.empty(2, np.int64), np.empty((size, dimension)), np.full((1, dimension), 1e9)
    actions, leading = np.ones((1, 2 * size)), np.array([1])
    breed_by_rank(runs, positions, order, actions, leading, -box, box, 0, starts, bred_trials)
    from_archive = (bred_trials < -900.0).all(axis=1)
    assert 0 < from_archive.sum() < size


def test_a_full_archive_loses_members_at_random():
    size, slots_hit = 5, set()
    for key in range(40):
        runs = as_runs(np.array([key], np.uint64), 3, size)
        runs["archive_size"] = size
        positions, order, fitness = np.zeros((1, 2 * size, 1)), np.arange(size)[None], np.arange(1.0, 1.0 + size)[None]
        positions[0, 0, 0] = 5.0
        values = np.array([0.0, 9.0, 9.0, 9.0, 9.0])
        select_by_rank(runs, positions, order, fitness, np.array([0, size]), np.ones((size, 1)), values)
        assert runs["archive_size"][0] == size
        slots_hit.add(int(np.flatnonzero(positions[0, size:, 0] == 5.0)[0]))
    assert slots_hit == set(range(size))
