from __future__ import annotations

import numpy as np
import pytest

from de_gym.optimizers.cma_steps import cma_constants, decompose, log_weights, sample_steps, update_strategy


def test_weights_are_logarithmic_and_add_up_to_one():
    weights = log_weights(3)
    raw = np.log(3.5) - np.log([1.0, 2.0, 3.0])
    assert weights == pytest.approx(raw / raw.sum())


def test_constants_are_the_tutorials():
    constants = cma_constants(10, 86)
    weights = log_weights(43)
    parents = 1.0 / np.sum(weights**2)
    assert constants.effective_parents == pytest.approx(parents)
    assert constants.step_rate == pytest.approx((parents + 2) / (15 + parents))
    assert constants.step_damping == pytest.approx(
        1 + 2 * max(0, np.sqrt((parents - 1) / 11) - 1) + constants.step_rate
    )
    assert constants.path_rate == pytest.approx((4 + parents / 10) / (14 + 2 * parents / 10))
    assert constants.rank_one_rate == pytest.approx(2 / (11.3**2 + parents))
    assert constants.rank_parents_rate == pytest.approx(2 * (parents - 2 + 1 / parents) / (144 + parents))
    assert constants.expected_length == pytest.approx(3.0847265)
    assert constants.num_flat == 61


def test_samples_have_the_covariance():
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(3, 3))
    covariance = factor @ factor.T
    steps = sample_steps(rng.normal(size=(200_000, 3)), *decompose(covariance))
    assert np.allclose(np.cov(steps, rowvar=False), covariance, atol=0.05 * covariance.max())


def evolve(objective, dimension, num_generations, seed=0):
    """Run the strategy from (1, ..., 1) and return mean, step size and covariance."""
    rng = np.random.default_rng(seed)
    num_samples = 20
    constants = cma_constants(dimension, num_samples)
    mean, step_size, step_path, path = np.ones(dimension), 0.5, np.zeros(dimension), np.zeros(dimension)
    covariance = np.eye(dimension)
    for generation in range(1, num_generations + 1):
        basis, lengths = decompose(covariance)
        normals = rng.normal(size=(num_samples, dimension))
        points = mean + step_size * sample_steps(normals, basis, lengths)
        mean, step_size, step_path, path, covariance = update_strategy(
            points, normals, objective(points), step_size, step_path, path, covariance, basis, lengths, generation,
            constants,
        )  # fmt: skip
    return mean, step_size, covariance


def test_a_badly_scaled_rotated_ellipsoid_is_solved_and_its_shape_learned():
    rotation = np.linalg.qr(np.random.default_rng(3).normal(size=(5, 5)))[0]
    scales = 10.0 ** np.linspace(0.0, 6.0, 5)

    def ellipsoid(points):
        return np.sum(scales * (points @ rotation) ** 2, axis=1)

    mean, _, covariance = evolve(ellipsoid, 5, 400)
    assert ellipsoid(mean[None])[0] < 1e-10
    learned = rotation.T @ covariance @ rotation
    spread = np.sqrt(np.diag(learned))
    assert spread[:-1] / spread[1:] == pytest.approx(10.0**0.75, rel=0.3)


def test_the_step_size_grows_on_a_slope_and_on_a_plateau():
    assert evolve(lambda points: points[:, 0], 4, 15)[1] > 5.0
    assert evolve(lambda points: np.zeros(len(points)), 4, 15)[1] > 5.0


def test_the_step_size_stays_finite_on_an_endless_plateau():
    mean, step_size, _ = evolve(lambda points: np.zeros(len(points)), 2, 500)
    assert step_size <= 1e8
    assert np.all(np.isfinite(mean))
