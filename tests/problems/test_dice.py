"""Dice: the same choices for the same key, fair ones, and rotations that are orthogonal."""

from __future__ import annotations

import numpy as np
import pytest

from de_gym.problems.dice import Dice


def test_a_key_fixes_every_choice():
    def choices(*key):
        dice = Dice(*key)
        return [dice.uniform(2.0, 3.0), dice.integer(1, 10**6), *dice.order(9), *dice.rotation(3).ravel()]

    assert choices(1, 2, 3) == choices(1, 2, 3)
    others = [choices(1, 2), choices(1, 2, 4), choices(1, 3, 2), choices(2, 1, 3)]
    assert all(choices(1, 2, 3) != other for other in others)


def test_uniforms_are_the_generators_own():
    raw = np.random.Generator(np.random.PCG64(np.random.SeedSequence((4, 5)))).random(4)
    dice = Dice(4, 5)
    assert dice.uniform(-1.0, 3.0) == -1.0 + 4.0 * raw[0]
    assert dice.integer(10, 12) == 10 + int(3.0 * raw[1])
    assert dice.uniforms(0.0, 2.0, 2).tolist() == (2.0 * raw[2:]).tolist()


def test_integers_reach_both_ends_equally_often():
    dice = Dice(1)
    counts = np.bincount([dice.integer(0, 3) for _ in range(4000)])
    assert counts.tolist() == pytest.approx([1000.0] * 4, abs=120.0)


def test_names_come_in_their_shares():
    dice = Dice(2)
    drawn = [dice.pick_by_share({"a": 0.1, "b": 0.6, "c": 0.3}) for _ in range(4000)]
    assert [drawn.count(name) / 4000 for name in "abc"] == pytest.approx([0.1, 0.6, 0.3], abs=0.03)
    assert {dice.pick(("x", "y")) for _ in range(50)} == {"x", "y"}
    assert sum(dice.happens(0.25) for _ in range(4000)) == pytest.approx(1000, abs=120)


def test_orders_hold_every_number_once():
    dice = Dice(3)
    orders = [dice.order(5).tolist() for _ in range(200)]
    assert all(sorted(order) == list(range(5)) for order in orders)
    assert len({tuple(order) for order in orders}) > 90


@pytest.mark.parametrize("dimension", [1, 2, 10, 100])
def test_rotations_are_orthogonal(dimension):
    rotation = Dice(dimension).rotation(dimension)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(dimension), rtol=0.0, atol=1e-14)


def test_rotations_prefer_no_direction():
    dice = Dice(4)
    entries = np.array([dice.rotation(3) for _ in range(4000)])
    # On a sphere in three dimensions every coordinate is uniform: mean 0, square 1/3, fourth power 1/5.
    np.testing.assert_allclose(entries.mean(axis=0), 0.0, atol=0.04)
    np.testing.assert_allclose((entries**2).mean(axis=0), 1.0 / 3.0, atol=0.02)
    np.testing.assert_allclose((entries**4).mean(axis=0), 1.0 / 5.0, atol=0.02)
    assert np.mean(np.linalg.det(entries) > 0.0) == pytest.approx(0.5, abs=0.05)
