from __future__ import annotations

import numpy as np
import pytest

from de_gym.controllers.bimodal import Bimodal, refresh_failed

MODES = np.array([[0.65, 1.0], [0.1, 0.95]])


def refreshed(uniforms, improvements=None, origins=None, before=(0.0, 0.0)):
    """Return F and CR of one run; by default everybody has failed."""
    size = uniforms.shape[1] // 4
    improvements = np.full((1, size), -1.0) if improvements is None else np.array([improvements])
    origins = np.arange(size)[None] if origins is None else np.array([origins])
    factors, rates = (np.array(np.broadcast_to(np.array(values, dtype=float), (1, size))) for values in before)
    refresh_failed(improvements, origins, MODES, 0.1, 0.1, uniforms, np.array([0, size]), factors, rates)
    return factors[0], rates[0]


def test_parameters_are_bimodal():
    factors, rates = refreshed(np.random.default_rng(0).random((1, 80_000)))
    # Cauchy numbers lie within their spread of the location half of the time.
    assert np.mean(np.abs(factors - 0.65) < 0.1) == pytest.approx(0.25 + 0.5 * 0.041, abs=0.03)
    assert np.mean(factors == 1.0) == pytest.approx(0.5 * 0.5 + 0.5 * 0.089, abs=0.03)
    assert np.mean(np.abs(rates - 0.95) < 0.05) == pytest.approx(0.5 * 0.295, abs=0.03)
    assert rates.max() == 1.0
    # A quarter of the low mode lies below zero and becomes exactly 0.1.
    assert np.mean(rates == 0.1) == pytest.approx(0.5 * 0.25 + 0.5 * 0.033, abs=0.02)
    assert rates.min() > 0.0


def test_modes_of_f_and_cr_are_independent_coins():
    uniforms = np.full((1, 8), 0.5)  # the median of each chosen mode
    uniforms[0, 0:2] = [0.2, 0.7]
    uniforms[0, 4:6] = [0.7, 0.2]
    factors, rates = refreshed(uniforms)
    assert factors == pytest.approx([0.65, 1.0], abs=0.02)
    assert rates == pytest.approx([0.95, 0.1])


def test_who_was_not_worse_keeps_both():
    before = ([0.31, 0.32, 0.33], [0.41, 0.42, 0.43])
    factors, rates = refreshed(np.full((1, 12), 0.5), improvements=[0.0, -1.0, 2.0], before=before)
    assert factors[[0, 2]].tolist() == [0.31, 0.33]
    assert rates[[0, 2]].tolist() == [0.41, 0.43]
    assert factors[1] == pytest.approx(1.0, abs=0.02)


def test_who_has_moved_to_another_row_takes_its_parameters_along():
    before = ([0.31, 0.32, 0.33], [0.41, 0.42, 0.43])
    uniforms = np.full((1, 12), 0.5)
    factors, _ = refreshed(uniforms, improvements=[-1.0, 1.0, 1.0], origins=[1, 2, 2], before=before)
    assert factors[:2].tolist() == [0.32, 0.33]


def test_unknown_strategies_are_errors():
    with pytest.raises(ValueError, match="Unknown strategy 'rand/2'"):
        Bimodal(strategy="rand/2")
