"""What observation functions of the user see of runs: ``RunView``, and how they are called.

A Python function is called run by run; one that numba has compiled (``numba.njit``) is called by compiled code.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from de_gym.arrays import FloatArray, IntArray


class RunView(NamedTuple):
    """What a user's observation function sees of one run, in arrays of its own.

    Attributes:
        positions: The living individuals, best first, shape (N, D).
        fitness: Their values, ascending, shape (N,).
        generation: Generations since the initial population.
        evaluations: Points evaluated so far.
        max_evaluations: The budget.
        lower: Lower bounds, shape (D,).
        upper: Upper bounds, shape (D,).
    """

    positions: FloatArray
    fitness: FloatArray
    generation: int
    evaluations: int
    max_evaluations: int
    lower: FloatArray
    upper: FloatArray


class RunViews(NamedTuple):
    """What there is to see of R runs, in the arrays of their state.

    Attributes:
        positions: Rows of each run, shape (R, C, D).
        rows: Row of the individual of each rank, shape (R, N).
        fitness: Values by rank, shape (R, N).
        sizes: How many individuals live, shape (R,).
        generations: Generations since the initial population, shape (R,).
        evaluations: Points evaluated so far, shape (R,).
        max_evaluations: The budgets, shape (R,).
        lower: Lower bounds, shape (R, D).
        upper: Upper bounds, shape (R, D).
    """

    positions: FloatArray
    rows: IntArray
    fitness: FloatArray
    sizes: IntArray
    generations: IntArray
    evaluations: IntArray
    max_evaluations: IntArray
    lower: FloatArray
    upper: FloatArray


def view_run(views: RunViews, run: int) -> RunView:
    """Return what there is to see of one run, in copies."""
    size = views.sizes[run]
    return RunView(
        views.positions[run][views.rows[run, :size]],
        views.fitness[run, :size].copy(),
        int(views.generations[run]),
        int(views.evaluations[run]),
        int(views.max_evaluations[run]),
        views.lower[run].copy(),
        views.upper[run].copy(),
    )


@njit
def _fill_view(views: Any, run: int, view: Any) -> Any:
    """Return what ``view_run`` returns, written to the arrays of ``view``, which are large enough for any run."""
    size = views.sizes[run]
    for rank in range(size):
        row = views.rows[run, rank]
        view.fitness[rank] = views.fitness[run, rank]
        for index in range(view.positions.shape[1]):
            view.positions[rank, index] = views.positions[run, row, index]
    for index in range(len(view.lower)):
        view.lower[index], view.upper[index] = views.lower[run, index], views.upper[run, index]
    counts = views.generations[run], views.evaluations[run], views.max_evaluations[run]
    return RunView(view.positions[:size], view.fitness[:size], *counts, view.lower, view.upper)


@njit
def observe_by_compiled(function: Any, views: RunViews, low: float, high: float, columns: FloatArray) -> int:
    """Write what a compiled function sees of every run to ``columns`` (R, k), clipped; compiled for each anew.

    Returns:
        The first run for which it did not return k numbers, -1 where there is none.
    """
    most, dimension = views.rows.shape[1], views.lower.shape[1]
    # One view for all runs: to make arrays for each would cost more than most functions.
    arrays = RunView(np.empty((most, dimension)), np.empty(most), 0, 0, 0, np.empty(dimension), np.empty(dimension))
    for run in range(columns.shape[0]):
        values = np.asarray(function(_fill_view(views, run, arrays)))
        if values.ndim > 1 or values.size != columns.shape[1]:
            return run
        for index, value in enumerate(values.flat):
            number = np.float64(value)
            if np.isnan(number):
                return run
            columns[run, index] = min(max(number, low), high)
    return -1
