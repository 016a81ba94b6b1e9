"""Residual controllers: what they compute, and files that say when they are damaged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from de_gym.controllers import ResidualController, load, load_residual_controller, save_residual_controller
from de_gym.controllers.residual import INPUTS, num_numbers
from de_gym.optimizers.adaptive import CONTROL_NAMES, FEATURE_NAMES


def make(seed: int = 0, number: int = 1) -> ResidualController:
    vectors = np.random.default_rng(seed).normal(0.0, 0.3, (number, num_numbers(len(CONTROL_NAMES))))
    return ResidualController.from_vectors(FEATURE_NAMES, CONTROL_NAMES, vectors)


def test_zeros_leave_everything_alone():
    controller = ResidualController.from_vectors(
        FEATURE_NAMES, CONTROL_NAMES, np.zeros((1, num_numbers(len(CONTROL_NAMES))))
    )
    features = np.random.default_rng(0).normal(size=(4, len(FEATURE_NAMES))).astype(np.float32)
    np.testing.assert_array_equal(controller(features), 0.0)
    np.testing.assert_array_equal(controller.size_residuals(10, np.array([1000, 10])), 0.0)


@pytest.mark.parametrize(
    ("budget", "shares"), [(-3.0, (1, 0)), (-1.5, (1, 0)), (-1.0, (2 / 3, 1 / 3)), (-0.3, (0.2, 0.8)), (0.4, (0, 1))]
)
def test_residuals_by_hand(budget, shares):
    controller = ResidualController.joined({(0.0, 0.0): make(1), (-1.5, 0.0): make(2)}, {})
    features = np.random.default_rng(2).normal(size=(3, len(FEATURE_NAMES))).astype(np.float32)
    features[:, FEATURE_NAMES.index("budget")] = budget
    weights = shares[0] * make(2).weights[0, 0] + shares[1] * make(1).weights[0, 0]
    for run, row in enumerate(features):
        named = dict(zip(FEATURE_NAMES, row.astype(float), strict=True)) | {"constant": 1.0}
        inputs = [named[name] for name in INPUTS]
        np.testing.assert_allclose(controller(features)[run], np.tanh(weights @ inputs), rtol=1e-5, atol=1e-7)


def test_maps_lie_on_a_grid_of_budgets_and_dimensions():
    parts = {(b, d): make(3 * b + d) for b in (0, 1, 2) for d in (0, 1)}
    places = {(b - 2.0, d / 2): part for (b, d), part in parts.items()}
    controller = ResidualController.joined(places, {})
    features = np.random.default_rng(2).normal(size=(1, len(FEATURE_NAMES))).astype(np.float32)
    features[:, FEATURE_NAMES.index("budget")], features[:, FEATURE_NAMES.index("dimension")] = -0.25, 0.125
    shares = {(1, 0): 0.25 * 0.75, (1, 1): 0.25 * 0.25, (2, 0): 0.75 * 0.75, (2, 1): 0.75 * 0.25}
    mean = sum(share * np.arctanh(parts[place](features)) for place, share in shares.items())
    np.testing.assert_allclose(np.arctanh(controller(features)), mean, rtol=1e-6)


def test_owners_choose_the_controller():
    several, features = make(3, 4), np.ones((2, len(FEATURE_NAMES)), np.float32)
    both = several(features, np.array([3, 1]))
    alone = ResidualController(several.features, several.controls, several.weights[3:], several.size_weights[3:])
    np.testing.assert_array_equal(both[0], alone(features)[0])


def test_first_size_depends_on_dimension_and_budget():
    vectors = np.zeros((2, num_numbers(len(CONTROL_NAMES))))
    vectors[:, -2:] = (0.1, 0.2), (-0.4, 0.0)
    parts = [ResidualController.from_vectors(FEATURE_NAMES, CONTROL_NAMES, vector[None]) for vector in vectors]
    controller = ResidualController.joined({(-1.0, 0.0): parts[0], (0.0, 0.0): parts[1]}, {})
    residuals = controller.size_residuals(100, np.array([1_000_000, 200_000, 100]))
    share = -np.log10(0.2)
    np.testing.assert_allclose(residuals, np.tanh([-0.4, share * 0.3 - (1 - share) * 0.4, 0.3]))


def test_file_gives_the_same_controller_and_equal_bytes(tmp_path):
    controller = ResidualController.joined({(-1.0, 0.0): make(4), (-1.0, 0.5): make(5)}, {"seed": 3})
    first = save_residual_controller(controller, tmp_path / "first.safetensors")
    second = save_residual_controller(controller, tmp_path / "second.safetensors")
    assert first.read_bytes() == second.read_bytes()
    again = load_residual_controller(first)
    np.testing.assert_array_equal(again.weights, controller.weights)
    np.testing.assert_array_equal(again.size_weights, controller.size_weights)
    assert (again.budgets, again.dimensions, again.info) == ((-1.0,), (0.0, 0.5), {"seed": 3})
    np.testing.assert_array_equal(again.descent_shares, np.zeros((1, 2)))
    sharing = replace(controller, descent_shares=np.array([[0.25, 0.0]]))
    again = load_residual_controller(save_residual_controller(sharing, tmp_path / "third.safetensors"))
    np.testing.assert_array_equal(again.descent_shares, sharing.descent_shares)
    assert isinstance(load(first), ResidualController)
    assert isinstance(load(str(first)), ResidualController)


def test_every_flipped_bit_is_noticed(tmp_path):
    content = save_residual_controller(make(5), tmp_path / "good.safetensors").read_bytes()
    damaged, rng = tmp_path / "damaged.safetensors", np.random.default_rng(0)
    for position in rng.integers(0, 8 * len(content), 300):
        flipped = bytearray(content)
        flipped[position // 8] ^= 1 << (position % 8)
        damaged.write_bytes(flipped)
        with pytest.raises(ValueError, match=r"damaged\.safetensors"):
            load_residual_controller(damaged)


def test_shapes_features_and_budgets_are_checked():
    controller = make(6)
    both = ResidualController.joined({(-1.0, 0.0): make(6), (0.0, 0.0): make(7)}, {})
    with pytest.raises(ValueError, match=r"must ascend, got \(0\.0, -1\.0\)"):
        replace(both, budgets=(0.0, -1.0))
    with pytest.raises(ValueError, match="must have the shapes"):
        ResidualController(controller.features, controller.controls[:-1], controller.weights, controller.size_weights)
    names = tuple(name for name in controller.features if name != "budget")
    with pytest.raises(ValueError, match=r"needs the features \['budget'\]"):
        ResidualController(names, controller.controls, controller.weights, controller.size_weights)
