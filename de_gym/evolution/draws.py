"""Random numbers for one generation, drawn at once from each run's own generator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from de_gym.arrays import FloatArray


def draw_uniforms(rngs: Sequence[np.random.Generator], *shape: int) -> FloatArray:
    """Return uniforms in [0, 1), shape (R, *shape), row r from ``rngs[r]``.

    This loop is the only one over runs outside compiled code: a run's numbers come from its own stream, so
    they do not depend on which other runs share the batch.
    """
    uniforms = np.empty((len(rngs), *shape))
    for rng, row in zip(rngs, uniforms, strict=True):
        rng.random(out=row)
    return uniforms


def draw_normals(rngs: Sequence[np.random.Generator], *shape: int) -> FloatArray:
    """Return standard normals, shape (R, *shape), row r from ``rngs[r]``."""
    normals = np.empty((len(rngs), *shape))
    for rng, row in zip(rngs, normals, strict=True):
        rng.standard_normal(out=row)
    return normals
