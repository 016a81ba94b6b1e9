"""Population: the state of R independent Differential Evolution runs, each sorted best first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from de_gym.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Population:
    """R populations of one size.

    Attributes:
        positions: Shape (R, N, D), best individual first.
        fitness: Objective values, shape (R, N), ascending.
        evaluations: Points evaluated so far, shape (R,).
        generation: Generations since the initial population, shape (R,).
        num_successes: Trials of the last generation that replaced their parent, shape (R,).
    """

    positions: FloatArray
    fitness: FloatArray
    evaluations: IntArray
    generation: IntArray
    num_successes: IntArray

    @property
    def best_fitness(self) -> FloatArray:
        """Best value found, shape (R,); selection never loses it."""
        return self.fitness[:, 0]

    @property
    def best_position(self) -> FloatArray:
        """Position of the best value found, shape (R, D)."""
        return self.positions[:, 0]


def scale_to_bounds(uniforms: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return points (R, N, D), uniform in each run's box, from uniforms (R, N, D) and bounds (R, D)."""
    low, high = lower[:, None, :], upper[:, None, :]
    return low + uniforms * (high - low)


def initialize(positions: FloatArray, fitness: FloatArray) -> Population:
    """Return the sorted population of initial positions (R, N, D) and their values (R, N)."""
    num_runs, size, _ = positions.shape
    order = np.argsort(fitness, axis=1, kind="stable")
    none = np.zeros(num_runs, np.int64)
    return Population(
        positions=np.take_along_axis(positions, order[:, :, None], axis=1),
        fitness=np.take_along_axis(fitness, order, axis=1),
        evaluations=np.full(num_runs, size, np.int64),
        generation=none,
        num_successes=none.copy(),
    )
