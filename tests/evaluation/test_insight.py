"""What the default controller does: ablations by hand, notes along a run, and a stored file that belongs to it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from de_gym.controllers import DEFAULT, load
from de_gym.controllers.residual import INPUTS
from de_gym.evaluation import insight
from de_gym.evaluation.held_out import Case
from de_gym.evaluation.insight import (
    NUM_BINS,
    Insight,
    ablated,
    ablation_errors,
    checksum_of,
    insight_table,
    mean_residuals,
    read_insight,
    write_insight,
)
from de_gym.problems.random_suite import KINDS

SMALL = Case(2, 50)


@pytest.fixture(scope="module")
def controller():
    return load(DEFAULT)


def test_each_variant_lacks_one_control_or_one_input(controller):
    variants = ablated(controller).weights
    # The local search is no control: all have it.
    assert (ablated(controller).descent_shares == controller.descent_shares).all()
    num_controls = len(controller.controls)
    assert len(variants) == 1 + num_controls + len(INPUTS) - 1
    np.testing.assert_array_equal(variants[0], controller.weights[0])
    for row, variant in enumerate(variants[1:]):
        changed = variant != controller.weights[0]
        _, controls, inputs = np.nonzero(changed)
        assert not variant[changed].any()
        if row < num_controls:
            assert set(controls) == {row}
        else:
            assert set(inputs) == {1 + row - num_controls}


def test_errors_of_all_variants_and_residuals_within_their_range(controller):
    errors = ablation_errors(controller, SMALL, num_problems=2, num_runs=3)
    assert errors.shape == (1 + len(controller.controls) + len(INPUTS) - 1, 2, 3)
    # Seeds are common, so a variant differs by what it lacks alone.
    assert (errors[1:] != errors[0]).any()
    assert (errors[1:] == errors[0]).any()
    residuals = mean_residuals(controller, SMALL, num_problems=6, num_runs=3)
    assert residuals.shape == (len(KINDS), NUM_BINS, len(controller.controls))
    assert np.nanmax(np.abs(residuals)) <= 1.0
    assert np.isfinite(residuals).any(axis=(1, 2)).sum() >= 2


def test_residuals_of_a_constant_controller_are_that_constant(controller):
    weights = np.zeros_like(controller.weights)
    weights[..., 0] = 0.3
    constant = dataclasses.replace(controller, weights=weights)
    residuals = mean_residuals(constant, SMALL, num_problems=3, num_runs=2)
    np.testing.assert_allclose(residuals[np.isfinite(residuals)], np.tanh(0.3))


def test_a_variant_that_always_loses_makes_the_part_worth_one(controller, tmp_path, monkeypatch):
    monkeypatch.setattr(insight, "CASES", (SMALL,))
    errors = np.zeros((1 + len(controller.controls) + len(INPUTS) - 1, 4, 2))
    errors[1] = 1.0
    content = Insight("x", controller.controls, {SMALL: errors}, {SMALL: np.zeros((len(KINDS), NUM_BINS, 15))})
    write_insight(content, tmp_path / "insight.npz")
    rows = insight_table(read_insight(tmp_path / "insight.npz")).rows
    assert [rows[0][0].text, rows[0][1].text, rows[0][1].strong] == [
        f"control `{controller.controls[0]}`",
        "1.00",
        True,
    ]
    assert [rows[1][1].text, rows[1][1].strong] == ["0.50", False]
    assert rows[-1][0].text == f"input `{INPUTS[-1]}`"


def test_what_is_stored_belongs_to_the_default(controller):
    assert read_insight().checksum == checksum_of(controller)
