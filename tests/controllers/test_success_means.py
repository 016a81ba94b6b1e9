from __future__ import annotations

import numpy as np
import pytest
from de_gym.baselines import JADE, JADESettings, JADEWithArchive
from de_gym.baselines.jade import _follow_successes, _propose, _select_and_archive


@pytest.mark.parametrize(("dimension", "size"), [(2, 30), (10, 30), (30, 100), (100, 400)])
def test_population_size_is_the_papers(dimension, size):
    assert JADE()._population_size(dimension) == size


def test_means_move_from_one_half(generations):
    optimizer = JADE()
    for step, _ in enumerate(generations(optimizer)):
        if step == 30:
            break
    assert np.all(np.abs(optimizer._state.mean_scale_factor - 0.5) > 1e-3)
    assert np.all(np.abs(optimizer._state.mean_crossover_rate - 0.5) > 1e-3)


def test_means_follow_the_lehmer_mean_of_f_and_the_mean_of_cr():
    succeeded = np.array([[True, False, True], [False, False, False]])
    factors = np.array([[0.2, 0.9, 0.6], [0.1, 0.1, 0.1]])
    rates = np.array([[0.1, 0.9, 0.5], [0.1, 0.1, 0.1]])
    half = np.full(2, 0.5)
    factor, rate = _follow_successes(succeeded, factors, rates, half, half, 0.1)
    assert factor == pytest.approx([0.9 * 0.5 + 0.1 * (0.04 + 0.36) / 0.8, 0.5])
    assert rate == pytest.approx([0.9 * 0.5 + 0.1 * 0.3, 0.5])


def test_only_strictly_better_trials_replace_and_retire_their_parent():
    positions = np.zeros((1, 6, 1))  # three individuals, archive of three
    positions[0, :3, 0] = [1.0, 2.0, 3.0]
    trials = np.array([[[10.0], [20.0], [30.0]]])
    fitness, trial_fitness = np.array([[5.0, 5.0, 5.0]]), np.array([[4.0, 5.0, 6.0]])
    next_positions, next_fitness, archive_size = _select_and_archive(
        positions, fitness, np.array([0]), trials, trial_fitness, np.zeros((1, 3))
    )
    assert np.array_equal(next_positions[0, :4, 0], [10.0, 2.0, 3.0, 1.0])
    assert np.array_equal(next_fitness, [[4.0, 5.0, 5.0]])
    assert archive_size[0] == 1


def test_members_leave_a_full_archive_at_random_old_and_new_alike():
    rng = np.random.default_rng(0)
    num_runs = 6_000
    positions = np.tile(np.array([1.0, 2.0, 3.0, 4.0])[None, :, None], (num_runs, 1, 1))  # archive holds 3 and 4
    trials = np.full((num_runs, 2, 1), 9.0)
    next_positions, _, archive_size = _select_and_archive(
        positions,
        np.ones((num_runs, 2)),
        np.full(num_runs, 2),
        trials,
        np.zeros((num_runs, 2)),
        rng.random((num_runs, 2)),
    )
    assert np.all(archive_size == 2)
    kept = next_positions[:, 2:, 0]
    shares = [np.mean(np.any(kept == member, axis=1)) for member in (1.0, 2.0, 3.0, 4.0)]
    assert shares == pytest.approx([0.5] * 4, abs=0.03)


def test_archive_fills_with_beaten_parents_up_to_the_population_size(generations):
    optimizer = JADEWithArchive()
    parents, retired = None, 0
    for step, _ in enumerate(generations(optimizer)):
        state = optimizer._state
        if step == 1:
            known = {tuple(row) for row in parents[0]}
            archived = state.positions[0, 30 : 30 + state.archive_size[0]]
            assert len(archived) > 0
            assert all(tuple(row) in known for row in archived)
            assert not any(tuple(row) in {tuple(r) for r in state.positions[0, :30]} for row in archived)
        parents = state.positions[:, :30].copy()
        retired = max(retired, int(state.archive_size.max()))
        if step == 40:
            break
    assert retired == 30


def test_without_archive_there_is_none(generations):
    optimizer = JADE()
    for step, _ in enumerate(generations(optimizer)):
        if step == 5:
            break
    assert optimizer._state.positions.shape[1] == 30


def test_second_difference_reaches_into_the_archive():
    positions = np.zeros((1, 8, 1))  # archive rows all at 50, population at 0
    positions[0, 4:, 0] = 50.0
    uniforms = np.full((1, 4 * 7), 0.99)  # r2 is the last row of the pool
    fitness, means = np.arange(4.0)[None], np.array([0.5])
    box = np.full((1, 1), 100.0)
    with_archive, factors, _ = _propose(
        positions, fitness, np.array([4]), means, means, 2, 0.1, uniforms, np.zeros((1, 4)), -box, box
    )
    without, _, _ = _propose(
        positions, fitness, np.array([0]), means, means, 2, 0.1, uniforms, np.zeros((1, 4)), -box, box
    )
    assert with_archive[0, :, 0] == pytest.approx(-50.0 * factors[0])
    assert np.all(without == 0.0)


def test_pbest_is_among_the_two_best_of_thirty(generations):
    # With F = 1 (largest Cauchy quantile), equal r1 and r2 contributions vanish when all but p-best coincide.
    positions = np.zeros((1, 30, 1))
    fitness = np.arange(30.0)[None]
    positions[0, 0, 0], positions[0, 1, 0] = 1.0, 2.0
    rng = np.random.default_rng(0)
    uniforms = rng.random((1, 30 * 7))
    uniforms[0, :30] = 0.0
    uniforms[0, 60:120] = 0.999  # r1 and r2 far from both leaders
    half, box = np.array([0.5]), np.full((1, 1), 100.0)
    trials, factors, _ = _propose(
        positions, fitness, np.array([0]), half, half, 2, 0.1, uniforms, np.zeros((1, 30)), -box, box
    )
    assert np.all(factors == 1.0)
    assert set(trials[0, 2:, 0]) == {1.0, 2.0}


def test_settings_out_of_range_are_errors():
    with pytest.raises(ValueError, match="`min_pbest` must be at least 1, got 0"):
        JADESettings(min_pbest=0)
    with pytest.raises(ValueError, match=r"`learning_rate` must lie in \[0, 1\]"):
        JADESettings(learning_rate=-0.1)
