"""Eigenvectors by rotations: right, orthonormal, and the same bits whatever the linear algebra library."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from numba import njit

from de_gym.evolution.eigenvectors import learn_eigenvectors
from de_gym.optimizers.cma_steps import decompose

RUNS = """
from de_gym import minimize

def valley(x):
    return float(sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2))

for method, dimension, budget in (("cobide", 10, 4000), ("hses", 30, 30_000)):
    result = minimize(valley, [(-5.0, 5.0)] * dimension, method=method, max_evaluations=budget, seed=1)
    print(method, result.fun.hex(), result.x.tobytes().hex())
"""


@njit
def learned(points):
    return learn_eigenvectors(points, np.arange(len(points)))


@pytest.mark.parametrize("dimension", [1, 2, 7, 30])
def test_a_covariance_is_what_its_axes_and_lengths_say(rng, dimension):
    factors = rng.normal(size=(dimension, dimension)) * 10.0 ** rng.uniform(-3.0, 3.0, dimension)
    covariance = factors.T @ factors
    basis, lengths = decompose(covariance)
    np.testing.assert_allclose(basis.T @ basis, np.eye(dimension), atol=1e-13)
    np.testing.assert_allclose(basis * lengths**2 @ basis.T, covariance, atol=1e-9 * np.abs(covariance).max())
    np.testing.assert_allclose(np.sort(lengths**2), np.linalg.eigvalsh(covariance), atol=1e-12 * lengths.max() ** 2)


def test_axes_of_points_in_a_plane_are_orthonormal(rng):
    points = rng.normal(size=(20, 2)) @ rng.normal(size=(2, 6))
    basis = learned(points)
    np.testing.assert_allclose(basis.T @ basis, np.eye(6), atol=1e-13)
    spread = np.sort(np.std(points @ basis, axis=0))
    assert (spread[:4] < 1e-6 * spread[-1]).all()
    assert (spread[4:] > 1e-3).all()


def test_points_whose_spread_overflows_keep_their_coordinates():
    points = np.array([[1e300, -1e300], [-1e300, 1e300], [0.0, 0.0]])
    np.testing.assert_array_equal(learned(points), np.eye(2))


def test_algorithms_with_eigenvectors_give_the_same_bits_with_any_linear_algebra_library():
    cores = ("Nehalem", "Haswell")
    outputs = [
        subprocess.run(
            [sys.executable, "-c", RUNS],
            env=os.environ | {"OPENBLAS_CORETYPE": core},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for core in cores
    ]
    assert outputs[0].count("\n") == 2
    assert outputs[0] == outputs[1]
