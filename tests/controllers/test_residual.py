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


@pytest.mark.parametrize("fades", [False, True])
@pytest.mark.parametrize(("budget", "faded"), [(0.0, 0.0), (0.3, 0.0), (-0.35, 0.5), (-0.7, 1.0), (-2.0, 1.0)])
def test_residuals_by_hand(budget, faded, fades):
    controller, strength = replace(make(1), fades=fades), faded if fades else 1.0
    features = np.random.default_rng(2).normal(size=(3, len(FEATURE_NAMES))).astype(np.float32)
    features[:, FEATURE_NAMES.index("budget")] = budget
    for run, row in enumerate(features):
        named = dict(zip(FEATURE_NAMES, row.astype(float), strict=True)) | {"constant": 1.0}
        inputs = [named[name] for name in INPUTS]
        expected = np.tanh(strength * (controller.weights[0] @ inputs))
        np.testing.assert_allclose(controller(features)[run], expected, rtol=1e-6, atol=1e-12)


def test_owners_choose_the_controller():
    several, features = make(3, 4), np.ones((2, len(FEATURE_NAMES)), np.float32)
    both = several(features, np.array([3, 1]))
    alone = ResidualController(several.features, several.controls, several.weights[3:], several.size_weights[3:])
    np.testing.assert_array_equal(both[0], alone(features)[0])


def test_first_size_depends_on_dimension_and_budget():
    vector = np.zeros((1, num_numbers(len(CONTROL_NAMES))))
    vector[0, -2:] = 0.1, 0.2
    controller = replace(ResidualController.from_vectors(FEATURE_NAMES, CONTROL_NAMES, vector), fades=True)
    residuals = controller.size_residuals(100, np.array([1_000_000, 200_000, 100]))
    np.testing.assert_allclose(residuals, np.tanh([0.0, 0.3 * np.log10(0.2) / -0.7, 0.3]))


def test_file_gives_the_same_controller_and_equal_bytes(tmp_path):
    controller = replace(make(4), fades=True, info={"seed": 3})
    first = save_residual_controller(controller, tmp_path / "first.safetensors")
    second = save_residual_controller(controller, tmp_path / "second.safetensors")
    assert first.read_bytes() == second.read_bytes()
    again = load_residual_controller(first)
    np.testing.assert_array_equal(again.weights, controller.weights)
    np.testing.assert_array_equal(again.size_weights, controller.size_weights)
    assert (again.fades, again.info) == (True, {"seed": 3})
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


def test_shapes_and_features_are_checked():
    controller = make(6)
    with pytest.raises(ValueError, match="must have the shapes"):
        ResidualController(controller.features, controller.controls[:-1], controller.weights, controller.size_weights)
    names = tuple(name for name in controller.features if name != "budget")
    with pytest.raises(ValueError, match=r"needs the features \['budget'\]"):
        ResidualController(names, controller.controls, controller.weights, controller.size_weights)
