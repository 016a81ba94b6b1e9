"""Population: the state of R independent Differential Evolution runs, each sorted best first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.problems import ProblemBatch


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


def scale_to_bounds(uniforms: FloatArray, problems: ProblemBatch) -> FloatArray:
    """Return points (R, N, D) uniform in each run's box from uniforms (R, N, D)."""
    lower, upper = problems.lower[:, None, :], problems.upper[:, None, :]
    return lower + uniforms * (upper - lower)


def initialize(positions: FloatArray, problems: ProblemBatch) -> Population:
    """Return the evaluated and sorted population of the given initial positions (R, N, D)."""
    num_runs, size, _ = positions.shape
    fitness = problems.evaluate(np.ascontiguousarray(positions))
    order = np.argsort(fitness, axis=1, kind="stable")
    none = np.zeros(num_runs, np.int64)
    return Population(
        positions=np.take_along_axis(positions, order[:, :, None], axis=1),
        fitness=np.take_along_axis(fitness, order, axis=1),
        evaluations=np.full(num_runs, size, np.int64),
        generation=none,
        num_successes=none.copy(),
    )
