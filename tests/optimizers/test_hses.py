from __future__ import annotations

import numpy as np
import pytest

from de_gym import Problem
from de_gym.optimizers import HSES, HSESSettings, run
from de_gym.optimizers.hses_steps import (
    FIRST_CMA,
    REFINING,
    SAMPLING,
    SECOND_CMA,
    fit_model,
    freeze_agreed,
    freeze_threshold,
    redraw_outside,
    wrap_outside,
)

LENGTHS = (0.2, 0.01, 0.1, 10.0, 0.001)


def test_a_run_passes_through_its_phases_in_order(generations):
    optimizer = HSES()
    stages, sizes = [], []
    for points, _ in generations(optimizer, num_runs=1, dimension=10, max_evaluations=100_000):
        stages.append(int(optimizer._state.stage[0]))
        sizes.append(len(points))
    changes = np.flatnonzero(np.diff(stages)) + 1
    assert [stages[0], *[stages[change] for change in changes]] == [SAMPLING, FIRST_CMA, SECOND_CMA, REFINING]
    # The stage is read after `tell`: the 101st generation of 200 points ends the sampling.
    assert changes[0] == 100
    assert set(sizes[:101]) == {200}
    assert set(sizes[101 : changes[2] + 1]) == {86}
    assert set(sizes[changes[2] + 1 :]) == {200}
    assert sum(sizes[:101]) == 20_200


def test_each_cma_run_stops_after_its_share_of_the_budget(generations):
    # Random values never settle, so only the share of the budget stops the strategy.
    optimizer = HSES()
    upper = np.full((1, 10), 100.0)
    optimizer.start(-upper, upper, [np.random.default_rng(0)], 100_000)
    noise, count = np.random.default_rng(1), dict.fromkeys(range(4), 0)
    while not optimizer.has_ended.all():
        stage = int(optimizer._state.stage[0])
        points = optimizer.ask().points
        count[stage] += len(points)
        optimizer.tell(noise.random(len(points)))
    assert count[FIRST_CMA] == count[SECOND_CMA] == -(-25_000 // 86) * 86
    assert count[SAMPLING] == 20_200


def test_cma_stops_when_generations_no_longer_differ(generations):
    optimizer = HSES()
    upper = np.full((2, 5), 100.0)
    optimizer.start(-upper, upper, [np.random.default_rng(seed) for seed in range(2)], 100_000)
    for _ in range(101):
        optimizer.tell(np.full(len(optimizer.ask().points), 3.0))
    assert np.all(optimizer._state.stage == FIRST_CMA)
    optimizer.tell(np.full(len(optimizer.ask().points), 3.0))
    assert np.all(optimizer._state.stage == SECOND_CMA)
    optimizer.tell(np.full(len(optimizer.ask().points), 3.0))
    assert np.all(optimizer._state.stage == REFINING)


def test_runs_of_different_phases_ask_for_different_numbers_of_points():
    optimizer = HSES()
    upper = np.full((2, 5), 100.0)
    optimizer.start(-upper, upper, [np.random.default_rng(seed) for seed in range(2)], 100_000)
    noise = np.random.default_rng(0)
    for _ in range(103):
        points, starts = optimizer.ask()
        values = noise.random(len(points))
        values[: starts[1]] = 3.0  # the first run settles at once
        optimizer.tell(values)
    assert optimizer._state.stage[0] == REFINING
    assert optimizer._state.stage[1] == FIRST_CMA
    assert np.array_equal(optimizer.ask().starts, [0, 200, 284])


def test_deviations_shrink_once_progress_stalls(generations):
    optimizer = HSES()
    upper = np.full((2, 3), 100.0)
    optimizer.start(-upper, upper, [np.random.default_rng(seed) for seed in range(2)], 100_000)
    for generation in range(61):
        fitness = np.full((2, 200), 100.0)
        fitness[0] -= generation  # the first run improves, the second has its best in generation 25
        fitness[1, 0] = 0.0 if generation == 25 else 50.0
        optimizer.ask()
        optimizer.tell(fitness.ravel())
        # At 40 the best is not yet older than 20 generations, at 60 it is.
        assert np.array_equal(optimizer._state.shrinks, [False, generation >= 60])


def test_model_is_the_weighted_mean_and_plain_deviation_of_the_best():
    points = np.array([[0.0], [10.0], [4.0], [99.0]])
    mean, deviation = fit_model(points, np.array([2.0, 1.0, 3.0, 4.0]), np.array([0.5, 0.3, 0.2]))
    assert mean[0] == pytest.approx(0.5 * 10.0 + 0.3 * 0.0 + 0.2 * 4.0)
    assert deviation[0] == pytest.approx(np.std([0.0, 10.0, 4.0], ddof=1))


def test_wrapping_lands_on_the_same_side_of_zero():
    wrapped = wrap_outside(np.array([[130.0, -130.0, 100.0, -99.0, 250.0, -200.0]]), 100.0)
    assert wrapped[0] == pytest.approx([30.0, -30.0, 100.0, -99.0, 50.0, 0.0])


def test_redrawing_replaces_outside_coordinates_once():
    points, fresh = np.array([[150.0, -150.0, 20.0]]), np.array([[30.0, -170.0, 1.0]])
    assert np.array_equal(redraw_outside(points, fresh, 100.0), [[30.0, -100.0, 20.0]])


@pytest.mark.parametrize(
    ("distances", "threshold"),
    [
        ([0.3, 5.0, 0.5], 0.0),  # apart everywhere
        ([0.001, 0.009, 0.002], 1.0),  # together everywhere
        ([0.001, 5.0, 0.002], 4.999),  # the largest gap leads to a distance in between
        ([0.001, 50.0, 0.002], 49.999),  # from together to far apart
        ([0.05, 50.0, 20.0], 0.049),  # gaps end beyond `far` but do not begin below `together`
        ([0.001, 0.15, 60.0], 0.149),  # gap ratios 149 and 399: the larger one begins too high, the next serves
        ([0.0, 3.0], 2.999),  # a gap from zero is infinite
    ],
)
def test_threshold_of_agreement(distances, threshold):
    assert freeze_threshold(np.array(distances), *LENGTHS) == pytest.approx(threshold)


def test_agreed_coordinates_are_frozen_at_the_better_result():
    mean, deviation = np.array([7.0, 7.0]), np.array([9.0, 9.0])
    results = np.array([[1.0, 30.0], [1.1, -30.0]])
    freeze_agreed(mean, deviation, results, 1, 0.5, 0.001)
    assert np.array_equal(mean, [1.1, 7.0])
    assert np.array_equal(deviation, [0.001, 9.0])


def test_other_boxes_are_scaled_to_the_published_one():
    # The same function in other units is the same search, so the same seeds end at the same values.
    scale, offset = np.array([0.5, 4.0, 64.0]), np.array([8.0, -16.0, 0.0])

    def bowl(points):
        return np.sum((points - 3.0) ** 2, axis=1)

    published = Problem.from_function(bowl, -100.0, 100.0, 0.0, dimension=3, vectorized=True)
    other = Problem.from_function(
        lambda points: bowl((points - offset) / scale), offset - 100.0 * scale, offset + 100.0 * scale, 0.0,
        vectorized=True,
    )  # fmt: skip
    first, second = (run(HSES(), problem, num_runs=2, max_evaluations=3_000) for problem in (published, other))
    assert np.allclose(first.errors, second.errors, rtol=1e-6)
    assert np.allclose((second.best_positions - offset) / scale, first.best_positions)


def test_settings_out_of_range_are_errors():
    with pytest.raises(ValueError, match="`num_refining_selected` must be at most `num_samples`, got 160 and 150"):
        HSESSettings(num_samples=150)
    with pytest.raises(ValueError, match="`num_selected` must be at most `num_samples`, got 201 and 200"):
        HSESSettings(num_selected=201)
    with pytest.raises(ValueError, match="`num_cma_samples` must be at least 6, got 5"):
        HSESSettings(num_cma_samples=5)
