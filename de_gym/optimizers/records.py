"""RunResult: what R finished runs of any optimiser have in common, and how their convergence is recorded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.machine.compiling import compiled, inlined
from de_gym.problems.budgets import ZERO_ERROR
from de_gym.problems.minima import is_below_minimum

NUM_GRID_POINTS = 100


@dataclass(frozen=True, slots=True)
class RunResult:
    """The outcome of R independent runs.

    An error is the best value found minus the problem's optimum, reported as 0 below ``ZERO_ERROR``. Where the
    optimum is unknown nothing is subtracted and nothing rounded: errors are then the values themselves. Negative errors
    say that the stated optimum is none.

    Attributes:
        errors: Final error of each run, shape (R,).
        evaluations: Points each run evaluated, shape (R,); the initial population counts.
        best_positions: Best point of each run, shape (R, D).
        grid: Evaluation counts at which convergence was recorded, ascending, shape (G,).
        convergence: Shape (R, G): the error after the last generation completed within that many evaluations;
            infinite before the first is complete, constant once a run has ended.
    """

    errors: FloatArray
    evaluations: IntArray
    best_positions: FloatArray
    grid: IntArray
    convergence: FloatArray


def evaluation_grid(max_evaluations: int, num_points: int = NUM_GRID_POINTS) -> IntArray:
    """Return evaluation counts that split the budget into ``num_points`` equal parts, the last being the budget.

    >>> evaluation_grid(1000, 4)
    array([ 250,  500,  750, 1000])
    """
    fractions = np.arange(1, num_points + 1) / num_points
    return np.unique(np.maximum(np.rint(fractions * max_evaluations).astype(np.int64), 1))


@compiled
def report_errors(best_fitness: FloatArray, optimum: FloatArray) -> FloatArray:
    """Return the errors of ``RunResult`` for values (R,) and optima (R,), the latter NaN where unknown."""
    errors = np.empty(best_fitness.shape[0])
    for run in range(errors.shape[0]):
        errors[run] = _report_error(best_fitness[run], optimum[run])
    return errors


@inlined
def _report_error(best_fitness: float, optimum: float) -> float:
    if optimum != optimum:
        return best_fitness
    error = best_fitness - optimum
    return 0.0 if error < ZERO_ERROR and not is_below_minimum(best_fitness, optimum) else error


class ConvergenceRecord:
    """The convergence array of ``RunResult`` while the runs are under way."""

    def __init__(self, grid: IntArray, num_runs: int) -> None:
        self.grid = np.ascontiguousarray(grid, dtype=np.int64)
        if self.grid.ndim != 1 or self.grid.size == 0 or not (np.diff(self.grid, prepend=0) > 0).all():
            raise ValueError(f"The grid must be an ascending list of positive evaluation counts, got {grid}.")
        self.convergence = np.full((num_runs, self.grid.size), np.inf)

    def update(self, runs: IntArray, evaluations: IntArray, best_fitness: FloatArray, optimum: FloatArray) -> None:
        """Note the errors of the ``runs`` (A,) that have just completed a generation.

        Args:
            runs: Row of each run in the record.
            evaluations: Points each of them has evaluated so far, shape (A,).
            best_fitness: Best value of each so far, shape (A,).
            optimum: Minimum of the problem of each, NaN where unknown, shape (A,).
        """
        _fill_onwards(self.convergence, self.grid, runs, evaluations, best_fitness, optimum)


@compiled
def _fill_onwards(
    convergence: FloatArray,
    grid: IntArray,
    runs: IntArray,
    evaluations: IntArray,
    best_fitness: FloatArray,
    optimum: FloatArray,
) -> None:
    """Write each run's error to every grid point from its evaluation count on; later generations overwrite it."""
    for row in range(runs.shape[0]):
        error = _report_error(best_fitness[row], optimum[row])
        for point in range(np.searchsorted(grid, evaluations[row]), grid.shape[0]):
            convergence[runs[row], point] = error
