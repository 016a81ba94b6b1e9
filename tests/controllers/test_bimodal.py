from __future__ import annotations

import numpy as np
import pytest
from de_gym.baselines import CoBiDE, CoBiDEPCM, CoBiDEPCMSettings, CoBiDESettings, run
from de_gym.baselines.cobide import learn_eigenvectors, refresh_failed

from de_gym import Problem

MODES = ((0.65, 1.0), (0.1, 0.95))


def test_population_sizes_are_the_papers(generations):
    assert next(generations(CoBiDE(), dimension=10))[0].shape[1] == 60
    assert next(generations(CoBiDE(), dimension=30))[0].shape[1] == 60
    assert next(generations(CoBiDEPCM(), dimension=10))[0].shape[1] == 50
    assert next(generations(CoBiDEPCM(), dimension=30))[0].shape[1] == 150


def test_parameters_are_bimodal():
    rng = np.random.default_rng(0)
    zeros = np.zeros((1, 20_000))
    factors, rates = refresh_failed(zeros.astype(bool), zeros, zeros, rng.random((1, 80_000)), *MODES, 0.1, 0.1)
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
    zeros = np.zeros((1, 2))
    factors, rates = refresh_failed(zeros.astype(bool), zeros, zeros, uniforms, *MODES, 0.1, 0.1)
    assert factors[0] == pytest.approx([0.65, 1.0], abs=0.02)
    assert rates[0] == pytest.approx([0.95, 0.1])


def test_successful_individuals_keep_their_parameters_and_others_do_not(generations):
    for optimizer in (CoBiDE(), CoBiDEPCM()):
        before = None
        for step, _ in enumerate(generations(optimizer)):
            state = optimizer._state
            if before is not None and before.succeeded.any():
                kept = before.succeeded
                assert np.array_equal(state.scale_factors[kept], before.scale_factors[kept])
                assert np.array_equal(state.crossover_rates[kept], before.crossover_rates[kept])
                # Fresh draws repeat only at the ends of the range.
                repeated = state.scale_factors[~kept] == before.scale_factors[~kept]
                assert np.all(state.scale_factors[~kept][repeated] == 1.0)
            before = state
            if step == 10:
                break
        assert before.succeeded.any()


def test_eigen_crossover_is_used_at_its_rate(generations):
    optimizer = CoBiDE()
    used = []
    for _ in generations(optimizer, num_runs=8, max_evaluations=30_000):
        used.append(optimizer._state.used_eigenvectors)
    assert np.mean(used[1:]) == pytest.approx(0.4, abs=0.03)


def test_eigenvectors_are_those_of_the_best_half():
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    positions = rng.normal(size=(60, 4)) * [1.0, 5.0, 20.0, 100.0] @ rotation.T
    positions[30:] = rng.normal(size=(30, 4)) * 1e4  # the worse half would spoil it
    basis = learn_eigenvectors(positions, np.arange(60.0), 30)
    covariance = np.cov(positions[:30], rowvar=False)
    diagonal = basis.T @ covariance @ basis
    assert np.allclose(basis.T @ basis, np.eye(4), atol=1e-12)
    assert np.allclose(diagonal, np.diag(np.diag(diagonal)), atol=1e-8 * diagonal.max())


def test_eigen_crossover_of_one_coordinate_changes_along_one_eigenvector(generations):
    # With CR near zero only the forced coordinate crosses over, in the rotated system.
    optimizer = CoBiDE(CoBiDESettings(eigen_probability=1.0))
    steps = generations(optimizer, num_runs=1, dimension=4)
    next(steps)
    parents, fitness = optimizer._state.positions[0], optimizer._state.fitness[0]
    trials, _ = next(steps)
    basis = learn_eigenvectors(parents, fitness, 30)
    inside = np.all(np.abs(trials[0]) < 99.0, axis=1)
    changes = np.abs((trials[0] - parents)[inside] @ basis) > 1e-9
    low = optimizer.last_parameters.crossover_rates[0][inside] < 0.15
    assert np.mean(changes[low].sum(axis=1) == 1) > 0.4
    assert np.mean(np.abs((trials[0] - parents)[inside][low]) > 1e-9) > 0.9


def test_best_1_uses_the_best_individual(generations):
    optimizer = CoBiDEPCM(CoBiDEPCMSettings(population_size=30))
    steps = generations(optimizer, num_runs=1)
    next(steps)
    parents, fitness = optimizer._state.positions[0].copy(), optimizer._state.fitness[0]
    trials, _ = next(steps)
    best = parents[fitness.argmin()]
    factors = optimizer.last_parameters.scale_factors[0]
    # Every changed coordinate inside the box is best + F times a difference of two members.
    differences = parents[:, None, :] - parents[None, :, :]
    checked = 0
    for i in range(30):
        for j in np.flatnonzero(trials[0, i] != parents[i]):
            donors = best[j] + factors[i] * differences[:, :, j]
            bounds = 0.5 * (parents[i, j] + np.array([-100.0, 100.0]))
            matches = np.isclose(donors, trials[0, i, j], rtol=0.0, atol=1e-9).any()
            assert matches or np.isclose(trials[0, i, j], bounds).any()
            checked += matches
    assert checked > 30


def test_covariance_learning_pays_off_on_a_rotated_ellipsoid():
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 6)))[0]
    scales = 10.0 ** np.linspace(0.0, 3.0, 6)

    def ellipsoid(points):
        return np.sum((points @ rotation * scales) ** 2, axis=1)

    problem = Problem.from_function(ellipsoid, -100.0, 100.0, 0.0, dimension=6, vectorized=True)
    with_learning = run(CoBiDE(), problem, num_runs=5, seed=2)
    without = run(CoBiDE(CoBiDESettings(eigen_probability=0.0)), problem, num_runs=5, seed=2)
    assert np.median(with_learning.evaluations) < 0.8 * np.median(without.evaluations)


def test_settings_out_of_range_are_errors():
    with pytest.raises(ValueError, match=r"`eigen_probability` must lie in \[0, 1\], got 2"):
        CoBiDESettings(eigen_probability=2.0)
    with pytest.raises(ValueError, match="`population_size` must be at least 4, got 2"):
        CoBiDEPCMSettings(population_size=2)
