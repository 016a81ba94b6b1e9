from __future__ import annotations

import numpy as np
import pytest
from de_gym.baselines import CDE, CDEPCM, CDESettings
from de_gym.baselines.cde import _competing_donors, choose_settings, reset_counts


def test_population_sizes_are_the_papers(generations):
    assert next(generations(CDE(), dimension=10))[0].shape[1] == 20
    assert next(generations(CDE(), dimension=30))[0].shape[1] == 60
    assert next(generations(CDEPCM(), dimension=10))[0].shape[1] == 50


def test_the_pools_are_the_papers(generations):
    optimizer = CDE()
    next(generations(optimizer))
    pool = zip(optimizer._pool_strategies, optimizer._pool_scale_factors, optimizer._pool_crossover_rates, strict=True)
    assert set(pool) == {(s, f, r) for s in (0, 2) for f in (0.5, 0.8, 1.0) for r in (0.0, 0.5, 1.0)}
    for dimension, strategy in ((10, 0), (30, 1)):
        control = CDEPCM()
        next(generations(control, dimension=dimension))
        assert np.array_equal(control._pool_strategies, np.full(9, strategy))


def test_settings_are_drawn_in_proportion_to_their_successes():
    uniforms = ((np.arange(1000) + 0.5) / 1000)[None]
    chosen = choose_settings(np.array([[0, 3, 1]]), 2.0, uniforms, 1000)
    assert np.array_equal(np.bincount(chosen[0]), [200, 500, 300])


def test_an_improbable_setting_resets_all_counts():
    # Two settings, n0 = 2: the rarer one has probability 2 / (4 + count).
    counts = np.array([[0, 16], [0, 17]])
    kept = reset_counts(counts, 2.0, 0.1)
    assert np.array_equal(kept, [[0, 16], [0, 0]])


def test_probabilities_adapt_and_reset_during_a_run(generations):
    optimizer = CDE()
    totals = []
    for _ in generations(optimizer, num_runs=1):
        totals.append(optimizer._state.counts.sum())
    drops = np.diff(totals) < 0
    assert max(totals) > 20
    assert 0 < drops.sum() < len(totals)


def test_replacements_are_counted_for_the_setting_that_made_them(generations):
    optimizer = CDEPCM()
    steps = generations(optimizer)
    next(steps)
    for _ in range(3):
        before = optimizer._state
        next(steps)
        after = optimizer._state
        replaced = np.any(after.positions != before.positions, axis=2)
        for run in range(3):
            gained = np.bincount(after.chosen[run][replaced[run]], minlength=9)
            reset = after.counts[run].sum() < before.counts[run].sum()
            assert reset or np.array_equal(after.counts[run] - before.counts[run], gained)


def test_each_strategy_makes_its_donors():
    positions = 2.0 ** np.arange(6)[:, None]  # 1, 2, 4, ..., 32
    strategies, halves = np.array([0, 1, 2, 0, 1, 2]), np.full(6, 0.5)
    donors = _competing_donors(positions, 5, strategies, halves, np.zeros(24))[:, 0]
    # With zero uniforms the picks are the four first rows other than i, in order.
    assert donors[0] == 2.0 + 0.5 * (4.0 - 8.0)
    assert donors[1] == 32.0 + 0.5 * (1.0 - 4.0)
    assert donors[2] == 32.0 + 0.5 * (1.0 + 2.0 - 8.0 - 16.0)
    assert donors[3] == 1.0 + 0.5 * (2.0 - 4.0)


def test_a_rate_of_zero_changes_exactly_one_coordinate(generations):
    optimizer = CDE(CDESettings(crossover_rates=(0.0,)))
    steps = generations(optimizer, dimension=6)
    next(steps)
    parents = optimizer._state.positions
    trials, _ = next(steps)
    assert np.all(np.sum(trials != parents, axis=2) == 1)


def test_crossover_forces_nothing_where_it_already_took_something(generations):
    # Share of changed coordinates at CR = 0.5, D = 2: 1/2 plus the forced one when both stay, that is 5/8.
    changed = []
    for reflect in (True, False):
        optimizer = CDE(CDESettings(population_size=400, crossover_rates=(0.5,), reflect=reflect))
        steps = generations(optimizer, num_runs=10, dimension=2)
        next(steps)
        parents = optimizer._state.positions
        trials, _ = next(steps)
        changed.append(np.mean(trials != parents))
    assert changed == pytest.approx([0.625, 0.75], abs=0.02)


def test_unknown_strategies_and_small_populations_are_errors():
    with pytest.raises(ValueError, match="Unknown strategy 'rand/2'"):
        CDESettings(strategies=("rand/2",))
    with pytest.raises(ValueError, match="`population_size` must be at least 5, got 4"):
        CDESettings(population_size=4)
