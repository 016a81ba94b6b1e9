"""Random numbers for one generation, drawn at once from each run's own generator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from de_gym.arrays import FloatArray, IntArray


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


class DrawLayout(NamedTuple):
    """How many random numbers a generation takes: first the controller's uniforms, then the shell's, then normals.

    Attributes:
        controller_uniforms: Per individual.
        shell_uniforms: Per individual.
        run_uniforms: Per run, after all those of individuals.
        normals: Per individual, the controller's.
    """

    controller_uniforms: int
    shell_uniforms: int
    run_uniforms: int
    normals: int


class GenerationDraws:
    """The random numbers of one generation after another, each run's from its own generator.

    Attributes:
        layout: What the numbers are.
        starts: As in ``Trials``: run r has ``starts[r + 1] - starts[r]`` individuals to draw for, shape (R + 1,).
        uniforms: Uniforms in [0, 1); those of run r begin row r, shape (R, U).
        normals: Standard normals, likewise, shape (R, M).
    """

    def __init__(self, rngs: Sequence[np.random.Generator], capacity: int, layout: DrawLayout) -> None:
        self.layout = layout
        self.starts = np.zeros(len(rngs) + 1, np.int64)
        per_individual = layout.controller_uniforms + layout.shell_uniforms
        self.uniforms = np.empty((len(rngs), capacity * per_individual + layout.run_uniforms))
        self.normals = np.empty((len(rngs), capacity * layout.normals))
        self._rngs = list(rngs)
        self._drawn_for = b""

    def draw(self, starts: IntArray) -> None:
        """Draw the numbers of the next generation; a run without points draws none."""
        self.starts = starts
        if starts.tobytes() != self._drawn_for:
            self._rows = self._views(np.diff(starts).tolist())
            self._drawn_for = starts.tobytes()
        for rng, row, normals in self._rows:
            rng.random(out=row)
            if normals is not None:
                rng.standard_normal(out=normals)

    def _views(self, sizes: list[int]) -> list[tuple[np.random.Generator, FloatArray, FloatArray | None]]:
        """Return each run's generator and the memory for its numbers, which change only with its size."""
        layout = self.layout
        per_individual = layout.controller_uniforms + layout.shell_uniforms
        return [
            (
                rng,
                row[: size * per_individual + layout.run_uniforms],
                normals[: size * layout.normals] if layout.normals else None,
            )
            for rng, row, normals, size in zip(self._rngs, self.uniforms, self.normals, sizes, strict=True)
            if size
        ]

    def keep(self, runs: IntArray) -> None:
        """Go on with the given runs only; numbers drawn before are lost."""
        self._rngs = [self._rngs[run] for run in runs]
        self.starts = np.append(0, np.diff(self.starts)[runs].cumsum())
        self.uniforms, self.normals = self.uniforms[: len(runs)], self.normals[: len(runs)]
        self._drawn_for = b""

    def __getstate__(self) -> dict[str, object]:
        # Views would not be views of the copied arrays.
        return {**self.__dict__, "_rows": [], "_drawn_for": b""}
