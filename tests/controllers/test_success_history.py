from __future__ import annotations

import numpy as np
import pytest
from de_gym.baselines import JSO, JSOSettings
from de_gym.baselines.jso_steps import (
    drop_worst,
    gain_weights,
    pick_other_leading,
    remember_successes,
    sample_parameters,
    select_and_archive,
)


@pytest.mark.parametrize(("dimension", "size"), [(1, 25), (2, 25), (10, 182), (30, 466)])
def test_initial_population_size_is_the_papers(dimension, size):
    assert JSO()._population_size(dimension) == size


def test_population_follows_the_linear_plan_to_four(generations):
    optimizer = JSO()
    steps = generations(optimizer, num_runs=2, dimension=10, max_evaluations=20_000)
    next(steps)
    for _ in steps:
        planned = int(182 - 178 * optimizer.evaluations[0] / 20_000 + 0.5)
        assert optimizer._state.fitness.shape == (2, planned)
    assert planned == 4


def test_archive_fills_keeps_its_capacity_and_holds_beaten_parents(generations):
    optimizer = JSO()
    full = False
    parents: set[tuple[float, ...]] = set()
    for _ in generations(optimizer, num_runs=1, max_evaluations=20_000):
        state = optimizer._state
        size, count = state.fitness.shape[1], state.archive_size[0]
        archived = state.positions[0, size : size + count]
        assert count <= size
        assert state.positions.shape[1] == 2 * size
        assert all(tuple(row) in parents for row in archived)
        parents |= {tuple(row) for row in state.positions[0, :size]}
        full |= count == size
    assert full


def test_lde_paper_settings_cap_the_archive_and_start_higher(generations):
    optimizer = JSO(JSOSettings.lde_paper())
    steps = generations(optimizer)
    next(steps)
    assert np.all(optimizer._state.memory_scale_factor == 0.5)
    for _ in steps:
        size = optimizer._state.fitness.shape[1]
        assert optimizer._state.positions.shape[1] == size + min(20, size)


def test_memory_moves_in_every_slot_and_the_slot_cycles(generations):
    optimizer = JSO()
    for step, _ in enumerate(generations(optimizer)):
        if step == 1:
            assert np.array_equal(optimizer._state.memory_slot, [1, 1, 1])
            assert np.all(optimizer._state.memory_scale_factor[:, 1:] == 0.3)
        if step == 7:
            break
    assert np.all(optimizer._state.memory_scale_factor != 0.3)
    assert np.all(optimizer._state.memory_crossover_rate != 0.8)


def test_memory_entry_is_averaged_with_the_gain_weighted_lehmer_mean():
    fitness, trial_fitness = np.array([[10.0, 10.0, 10.0]]), np.array([[9.0, 7.0, 10.0]])
    factors, rates = np.array([[0.2, 0.6, 0.9]]), np.array([[0.5, 1.0, 0.3]])
    memory = np.array([[0.3, 0.3]])
    factor, rate, slot = remember_successes(fitness, trial_fitness, factors, rates, memory, memory, np.array([1]))
    lehmer_factor = (0.25 * 0.04 + 0.75 * 0.36) / (0.25 * 0.2 + 0.75 * 0.6)
    lehmer_rate = (0.25 * 0.25 + 0.75 * 1.0) / (0.25 * 0.5 + 0.75 * 1.0)
    assert factor[0] == pytest.approx([0.3, 0.5 * (0.3 + lehmer_factor)])
    assert rate[0] == pytest.approx([0.3, 0.5 * (0.3 + lehmer_rate)])
    assert slot[0] == 0


def test_successes_with_zero_rates_remember_minus_one_and_no_success_changes_nothing():
    fitness, better, ones = np.array([[2.0]]), np.array([[1.0]]), np.ones((1, 1))
    memory = np.array([[0.6, 0.6]])
    _, rate, _ = remember_successes(fitness, better, 0.5 * ones, 0.0 * ones, memory, memory, np.array([0]))
    assert rate[0] == pytest.approx([0.5 * (0.6 - 1.0), 0.6])
    factor, rate, slot = remember_successes(fitness, fitness, ones, ones, memory, memory, np.array([0]))
    assert np.array_equal(factor, memory)
    assert np.array_equal(rate, memory)
    assert slot[0] == 0


def test_infinite_gains_outweigh_finite_ones_and_count_alike():
    fitness = np.array([np.inf, np.inf, 5.0, np.inf])
    weights = gain_weights(fitness, np.array([1.0, 2.0, 1.0, np.inf]))
    assert np.array_equal(weights, [1.0, 1.0, 0.0, 0.0])


def test_parameters_respect_floor_ceiling_and_the_fixed_entry():
    rng = np.random.default_rng(0)
    memory_factor, memory_rate = np.full((1, 5), 0.3), np.full((1, 5), -0.1)
    factors, rates = sample_parameters(
        memory_factor, memory_rate, rng.random((1, 4000)), np.zeros((1, 2000)), 0.9, 0.1, 0.7, 0.0
    )
    assert factors.max() == 0.7
    # Four entries are negative, hence rate 0; the fifth always reads 0.9.
    assert set(rates[0]) == {0.0, 0.9}
    assert np.mean(rates == 0.9) == pytest.approx(0.2, abs=0.03)
    assert np.median(factors[rates == 0.0]) == pytest.approx(0.3, abs=0.03)
    floored = sample_parameters(
        memory_factor, memory_rate, rng.random((1, 4000)), np.zeros((1, 2000)), 0.9, 0.1, 1.0, 0.6
    )[1]
    assert set(floored[0]) == {0.6, 0.9}


def test_limits_follow_the_budget(generations):
    optimizer = JSO()
    previous = 0
    for _ in generations(optimizer, max_evaluations=10_000):
        parameters = optimizer.last_parameters
        if parameters is not None:
            progress = previous / 10_000
            floor = 0.7 if progress < 0.25 else 0.6 if progress < 0.5 else 0.0
            assert parameters.crossover_rates.min() >= floor
            if progress < 0.6:
                assert parameters.scale_factors.max() <= 0.7
        previous = optimizer.evaluations[0]


def test_other_leading_never_returns_the_individual_itself_and_is_uniform():
    order = np.array([2, 0, 1, 3])
    counts = np.zeros((4, 4))
    for uniform in (np.arange(600) + 0.5) / 600:
        for i, picked in enumerate(pick_other_leading(np.full(4, uniform), order, 3)):
            counts[i, picked] += 1
    assert np.array_equal(counts, [[0, 300, 300, 0], [300, 0, 300, 0], [300, 300, 0, 0], [200, 200, 200, 0]])


def test_ties_replace_but_do_not_retire_and_a_full_archive_overwrites_a_random_slot():
    positions = np.array([1.0, 2.0, 3.0, 7.0, 8.0, 9.0])[None, :, None]
    trials = np.array([10.0, 20.0, 30.0])[None, :, None]
    fitness, trial_fitness = np.array([[5.0, 5.0, 5.0]]), np.array([[5.0, 4.0, 6.0]])
    uniforms = np.array([[0.0, 0.5, 0.99]])
    next_positions, next_fitness, count = select_and_archive(
        positions, fitness, np.array([3]), trials, trial_fitness, uniforms
    )
    assert np.array_equal(next_positions[0, :, 0], [10.0, 20.0, 3.0, 7.0, 2.0, 9.0])
    assert np.array_equal(next_fitness, [[5.0, 4.0, 5.0]])
    assert count[0] == 3


def test_reduction_drops_the_first_of_equal_worst_and_keeps_the_order():
    positions = np.arange(8.0)[None, :, None]
    fitness = np.array([[3.0, 9.0, 1.0, 9.0]])
    next_positions, next_fitness = drop_worst(positions, fitness, 3, 2)
    assert np.array_equal(next_positions[0, :, 0], [0.0, 2.0, 3.0, 4.0, 5.0])
    assert np.array_equal(next_fitness, [[3.0, 1.0, 9.0]])


def test_settings_out_of_range_are_errors():
    with pytest.raises(ValueError, match="`min_pbest` must be at least 2, got 1"):
        JSOSettings(min_pbest=1)
    with pytest.raises(ValueError, match="`max_archive_size` must be at least 0, got -1"):
        JSOSettings(max_archive_size=-1)
