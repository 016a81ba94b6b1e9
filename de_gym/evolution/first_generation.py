"""How runs of the two-population shell begin: how many points, which ones, and what is remembered of them."""

from __future__ import annotations

import math

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.machine.chances import find_base, uniform_at
from de_gym.machine.compiling import compiled
from de_gym.machine.front_generations import observe_runs
from de_gym.machine.run_features import FEATURES
from de_gym.machine.scale_free import FIRST_SUCCESS_RATE
from de_gym.machine.streams import KeyArray
from de_gym.machine.top_and_front import (
    FIRST_SHARE,
    LARGEST_WITH_AXES,
    MAIN,
    MAIN_RATE,
    MEMORY_SIZE,
    POOL,
    RUN,
    SMALLEST_SIZE,
    SPARSE,
    SPARSE_RATE,
    TwoPopulations,
)
from de_gym.problems.compiled import as_kernel_array

# Initial individuals per dimension: of L-SRTDE, and with the smallest budget for which these numbers were chosen.
_SIZE_PER_DIMENSION, _SMALL_SIZE_PER_DIMENSION = 20.0, 8.0
_SMALL_BUDGET_PER_DIMENSION = 200.0
_RESIDUAL_SCALE = 1.2
# However small the budget, there are so many individuals; and as large as they are, there are so many generations.
_SMALLEST_START, _FEWEST_GENERATIONS = 8, 4

# Number of the streams of the initial points, before that of the first generation.
_BEFORE_ALL = -1


def initial_size(dimension: int, max_evaluations: int, residual: float = 0.0) -> int:
    """Return how many points a run begins with: 20 per dimension, fewer for budgets below 3125 per dimension.

    Then it grows with the cube root of the budget, from 8 per dimension at 200 evaluations per dimension, but is never
    below 8 nor above a quarter of the budget. A residual from -1 to 1 multiplies it by exp(1.2 a).

    >>> initial_size(30, 300_000), initial_size(10, 2000), initial_size(10, 40)
    (600, 80, 10)
    """
    growth = math.cbrt(max_evaluations / (_SMALL_BUDGET_PER_DIMENSION * dimension))
    planned = dimension * min(_SIZE_PER_DIMENSION, _SMALL_SIZE_PER_DIMENSION * growth)
    size = max(round(planned * math.exp(_RESIDUAL_SCALE * residual)), _SMALLEST_START)
    return min(size, max(max_evaluations // _FEWEST_GENERATIONS, _SMALLEST_START), max_evaluations)


def draw_initial_points(
    keys: KeyArray, sizes: IntArray, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, IntArray]:
    """Return points uniform in each run's box, one run after another.

    Args:
        keys: What each run's random numbers follow from, shape (R,).
        sizes: Number of points of each run, shape (R,).
        lower: Lower bounds, shape (R, D).
        upper: Upper bounds, shape (R, D).

    Returns:
        Points (T, D), and the ``starts`` (R + 1,) of each run's.
    """
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    points = np.empty((starts[-1], lower.shape[1]))
    _draw_points(keys, starts, lower, upper, points)
    return points, starts


@compiled
def _draw_points(keys: KeyArray, starts: IntArray, lower: FloatArray, upper: FloatArray, points: FloatArray) -> None:
    dimension = points.shape[1]
    for index in range(len(keys)):
        base, first = find_base(keys[index], _BEFORE_ALL, 0), starts[index]
        for point in range(first, starts[index + 1]):
            for j in range(dimension):
                low, high = lower[index, j], upper[index, j]
                points[point, j] = low + uniform_at(base, (point - first) * dimension + j) * (high - low)


def start(
    keys: KeyArray,
    points: FloatArray,
    starts: IntArray,
    values: FloatArray,
    max_evaluations: int | IntArray,
    lower: FloatArray,
    upper: FloatArray,
    *,
    target_fitness: float | FloatArray = -np.inf,
    capacity: int | None = None,
) -> TwoPopulations:
    """Return R runs at generation 0.

    Args:
        keys: What each run's random numbers follow from, shape (R,).
        points: Initial points of all runs, shape (T, D); each inside the box of its run.
        starts: Run r owns the points ``starts[r]`` to ``starts[r + 1]``, at least four, shape (R + 1,).
        values: Their values, shape (T,); NaN counts as infinity.
        max_evaluations: Budget of all runs or of each, the initial points included.
        lower: Lower bounds, shape (R, D).
        upper: Upper bounds, shape (R, D).
        target_fitness: A run ends with the generation in which its best value falls below; -inf never does.
        capacity: Individuals that the arrays have room for; as many as the largest run has by default. Runs that
            replace others need the capacity of those.
    """
    sizes, capacity = _checked_sizes(keys, points, starts, values, max_evaluations, capacity)
    num_runs, dimension = len(keys), points.shape[1]
    if lower.shape != (num_runs, dimension) or upper.shape != lower.shape:
        raise ValueError(f"Bounds must have shape ({num_runs}, {dimension}), got {lower.shape} and {upper.shape}.")
    runs = np.zeros(num_runs, RUN)
    runs["key"], runs["max_evaluations"], runs["target_fitness"] = keys, max_evaluations, target_fitness
    runs["evaluations"] = runs["size"] = runs["initial_size"] = sizes
    for name in ("success_rate", "recent_success_rate", "lasting_success_rate"):
        runs[name] = FIRST_SUCCESS_RATE
    runs["shares"], runs["basis_evaluations"] = FIRST_SHARE, -1
    memory = np.empty((num_runs, 2, MEMORY_SIZE))
    memory[:, MAIN], memory[:, SPARSE] = MAIN_RATE, SPARSE_RATE
    state = TwoPopulations(
        runs=runs,
        positions=np.zeros((num_runs, 2, capacity, dimension)),
        rows=np.zeros((num_runs, 2, capacity), np.int64),
        fitness=np.zeros((num_runs, 3, capacity)),
        ranking=np.zeros((num_runs, capacity), np.int64),
        successes=np.zeros((num_runs, 3, capacity)),
        memory=memory,
        basis=np.tile(np.eye(dimension if dimension <= LARGEST_WITH_AXES else 0), (num_runs, 1, 1)),
        former_best=np.zeros((num_runs, dimension)),
    )
    for index in range(num_runs):
        own = slice(starts[index], starts[index + 1])
        _fill(index, state, points[own], values[own])
    # The first look at a run notes what later ones compare with.
    observe_runs(state, as_kernel_array(lower), as_kernel_array(upper), np.empty((num_runs, len(FEATURES)), np.float32))
    return state


def _checked_sizes(
    keys: KeyArray,
    points: FloatArray,
    starts: IntArray,
    values: FloatArray,
    max_evaluations: int | IntArray,
    capacity: int | None,
) -> tuple[IntArray, int]:
    """Return the number of each run's points, shape (R,), and the capacity."""
    if points.ndim != 2 or values.shape != (len(points),):
        raise ValueError(f"There must be one value per point, got {values.shape} values for {points.shape} points.")
    if starts.shape != (len(keys) + 1,) or starts[0] != 0 or starts[-1] != len(points):
        raise ValueError(f"`starts` must rise from 0 to {len(points)} over {len(keys)} runs, got {starts.tolist()}.")
    sizes = np.diff(starts)
    # Runs that can afford no trial need nobody to make it from.
    is_spent = sizes == max_evaluations
    if (sizes > max_evaluations).any() or (sizes < 1).any() or (sizes[~is_spent] < SMALLEST_SIZE).any():
        raise ValueError(
            f"Every run needs at least {SMALLEST_SIZE} initial points, but no more than its budget of "
            f"{max_evaluations}, got {sizes.tolist()}."
        )
    largest = int(sizes.max())
    if capacity is not None and capacity < largest:
        raise ValueError(f"`capacity` must be at least {largest}, the size of the largest run, got {capacity}.")
    return sizes, largest if capacity is None else capacity


def _fill(index: int, state: TwoPopulations, points: FloatArray, values: FloatArray) -> None:
    """Write the initial populations of run ``index``, top and front alike, best first."""
    fitness = np.where(np.isnan(values), np.inf, values)
    order, size = np.argsort(fitness, kind="stable"), len(fitness)
    state.positions[index, :, :size] = points[order]
    state.fitness[index, :POOL, :size] = fitness[order]
    state.rows[index, :, :size] = state.ranking[index, :size] = np.arange(size)
    state.runs["best_fitness"][index] = state.runs["leading_fitness"][index] = fitness[order[0]]
