"""Small populations for tests of selection and breeding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from de_gym.evolution.populations import RUN, Population, Trials
from de_gym.evolution.shell import Shell
from de_gym.machine.draws import DrawLayout, GenerationDraws


@pytest.fixture
def settled() -> Callable[..., Population]:
    """Return a function that makes a shell's populations of given coordinates (R, N) and fitness (R, N), n = 1."""

    def make(shell: Shell, coordinates: object, fitness: object) -> Population:
        points, values = np.array(coordinates, dtype=np.float64), np.array(fitness, dtype=np.float64)
        state = shell.start(np.zeros(len(points), RUN), 1)
        starts = np.arange(len(points) + 1) * points.shape[1]
        shell.settle(state, Trials(points.reshape(-1, 1), starts), values.ravel())
        return state

    return make


@pytest.fixture
def drawn() -> Callable[..., GenerationDraws]:
    """Return a function that makes the draws of a shell's generation with the numbers put in by hand."""

    def make(shell: Shell, uniforms: object) -> GenerationDraws:
        numbers = np.array(uniforms, dtype=np.float64)
        layout = DrawLayout(0, *shell.num_uniforms(1), 0)
        draws = GenerationDraws([np.random.default_rng(0)] * len(numbers), shell.population_size, layout)
        draws.starts = np.arange(len(numbers) + 1) * shell.population_size
        draws.uniforms[:] = numbers
        return draws

    return make
