"""Fixtures shared by all tests."""

from __future__ import annotations

import os

# One thread for each worker; and a process that has begun OpenMP's threads cannot be forked, as some tests do.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest

from de_gym import Problem


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240229)


@pytest.fixture(scope="session")
def sphere() -> Problem:
    """A two-dimensional sphere whose minimum lies off the centre of its box."""
    return Problem.from_function(
        lambda points: ((points - 1.0) ** 2).sum(axis=-1), [-4.0, -2.0], [6.0, 8.0], 0.0, vectorized=True, name="sphere"
    )
