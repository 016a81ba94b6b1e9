from __future__ import annotations

import numpy as np
import pytest

from de_gym.controllers.competing import Competing, CompetingSettings, choose_settings, count_successes


def chosen_of(counts, uniforms, reset_probability=0.0):
    counts, chosen = np.array([counts]), np.zeros((1, len(uniforms)), np.int64)
    starts = np.array([0, len(uniforms)])
    choose_settings(counts, 2.0, reset_probability, np.array([uniforms]), starts, chosen)
    return counts[0], chosen[0]


def test_every_strategy_competes_with_every_f_and_cr():
    rule = Competing()
    pool = set(zip(rule.pool_strategies.tolist(), *rule.pool.tolist(), strict=True))
    assert pool == {(s, f, r) for s in (0, 2) for f in (0.5, 0.8, 1.0) for r in (0.0, 0.5, 1.0)}


def test_settings_are_drawn_in_proportion_to_their_successes():
    _, chosen = chosen_of([0, 3, 1], (np.arange(1000) + 0.5) / 1000)
    assert np.bincount(chosen).tolist() == [200, 500, 300]


def test_an_improbable_setting_resets_all_counts():
    # Two settings, n0 = 2: the rarer one has probability 2 / (4 + count).
    assert chosen_of([0, 16], [0.5], 0.1)[0].tolist() == [0, 16]
    assert chosen_of([0, 17], [0.5], 0.1)[0].tolist() == [0, 0]


def test_replacements_ties_included_are_counted_for_the_setting_that_made_them():
    counts = np.zeros((1, 3), np.int64)
    improvements, chosen = np.array([[1.0, 0.0, -1.0, 2.0]]), np.array([[0, 2, 1, 2]])
    count_successes(improvements, np.array([0, 4]), chosen, counts)
    assert counts.tolist() == [[1, 0, 2]]


def test_unknown_strategies_are_errors():
    with pytest.raises(ValueError, match="Unknown strategy 'rand/2'"):
        CompetingSettings(strategies=("rand/2",))
