"""Steps of HSES, compiled, in a box scaled to [-bound, bound]: univariate sampling of one run, then loops over runs."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from de_gym.arrays import BoolArray, FloatArray, IntArray
from de_gym.machine.compiling import compiled, shared
from de_gym.machine.ordering import rank_by_fitness
from de_gym.machine.replacement import copy_row, copy_rows
from de_gym.optimizers.cma_steps import CMAConstants, decompose, sample_steps, update_strategy

# Where the points of a generation come from: the box, a univariate model with outside coordinates redrawn or wrapped,
# or CMA-ES. The compiled code switches on the numbers.
UNIFORM, REDRAWN, WRAPPED, STRATEGY = 0, 1, 2, 3


# Stages of a run.
SAMPLING, FIRST_CMA, SECOND_CMA, REFINING = 0, 1, 2, 3


class HSESState(NamedTuple):
    """Arrays of R runs, updated in place; positions are scaled to [-100, 100].

    Attributes:
        stage: SAMPLING, FIRST_CMA, SECOND_CMA or REFINING, shape (R,).
        generation: Generations told in the current stage, shape (R,).
        mean: Of the univariate model, shape (R, D).
        deviation: Of the univariate model, shape (R, D).
        shrinks: Whether deviations shrink because progress stalled, shape (R,).
        leader_value: Best generation-best of the current sampling stage, shape (R,).
        leader_generation: Its generation, shape (R,).
        previous_best: Best value of the last generation, shape (R,).
        results: Best point of each CMA run, shape (R, 2, D).
        result_values: Their values, shape (R, 2).
        cma_mean: Shape (R, D).
        step_size: Shape (R,).
        step_path: Shape (R, D).
        covariance_path: Shape (R, D).
        covariance: Shape (R, D, D).
        basis: Eigenvectors of the covariance in columns, shape (R, D, D).
        axis_lengths: Square roots of its eigenvalues, shape (R, D).
    """

    stage: IntArray
    generation: IntArray
    mean: FloatArray
    deviation: FloatArray
    shrinks: BoolArray
    leader_value: FloatArray
    leader_generation: IntArray
    previous_best: FloatArray
    results: FloatArray
    result_values: FloatArray
    cma_mean: FloatArray
    step_size: FloatArray
    step_path: FloatArray
    covariance_path: FloatArray
    covariance: FloatArray
    basis: FloatArray
    axis_lengths: FloatArray


def make_state(num_runs: int, dimension: int) -> HSESState:
    """Return the state of runs that begin."""
    vectors, matrices = (num_runs, dimension), (num_runs, dimension, dimension)
    return HSESState(
        stage=np.full(num_runs, SAMPLING),
        generation=np.zeros(num_runs, np.int64),
        mean=np.zeros(vectors),
        deviation=np.zeros(vectors),
        shrinks=np.zeros(num_runs, np.bool_),
        leader_value=np.full(num_runs, np.inf),
        leader_generation=np.zeros(num_runs, np.int64),
        previous_best=np.full(num_runs, np.inf),
        results=np.zeros((num_runs, 2, dimension)),
        result_values=np.zeros((num_runs, 2)),
        cma_mean=np.zeros(vectors),
        step_size=np.zeros(num_runs),
        step_path=np.zeros(vectors),
        covariance_path=np.zeros(vectors),
        covariance=np.zeros(matrices),
        basis=np.zeros(matrices),
        axis_lengths=np.zeros(vectors),
    )


@compiled
def fit_model(points: FloatArray, fitness: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the weighted mean and the plain standard deviation (n - 1) of the best points, both (D,).

    Args:
        points: Shape (K, D).
        fitness: Shape (K,).
        weights: Weights of the best ``len(weights)`` points, best first; they add up to one.
    """
    best = points[rank_by_fitness(fitness)[: weights.shape[0]]]
    num_best, dimension = best.shape
    mean, centre, deviation = np.zeros(dimension), np.zeros(dimension), np.zeros(dimension)
    for rank in range(num_best):
        mean += weights[rank] * best[rank]
        centre += best[rank] / num_best
    for rank in range(num_best):
        deviation += (best[rank] - centre) ** 2 / (num_best - 1)
    return mean, np.sqrt(deviation)


@compiled
def wrap_outside(points: FloatArray, bound: float) -> FloatArray:
    """Return points with each outside coordinate taken modulo the bound, on its own side of zero."""
    wrapped = np.empty_like(points)
    for i in range(points.shape[0]):
        for j in range(points.shape[1]):
            value = points[i, j]
            inside = math.copysign(abs(value) % bound, value)
            wrapped[i, j] = inside if abs(value) > bound else value
    return wrapped


@compiled
def redraw_outside(points: FloatArray, fresh: FloatArray, bound: float) -> FloatArray:
    """Return points with each outside coordinate replaced by that of ``fresh``, set to the bound if outside too."""
    redrawn = np.empty_like(points)
    for i in range(points.shape[0]):
        for j in range(points.shape[1]):
            value = fresh[i, j] if abs(points[i, j]) > bound else points[i, j]
            redrawn[i, j] = min(max(value, -bound), bound)
    return redrawn


@compiled
def freeze_threshold(
    distances: FloatArray, apart: float, together: float, near: float, far: float, spread: float
) -> float:
    """Return the distance below which two results count as agreeing in a coordinate.

    Nothing agrees if even the smallest distance exceeds ``apart``; everything does if all are below
    ``together``. Otherwise the sorted distances are cut at the largest relative gap that leads to a distance
    between ``near`` and ``far``, or from below ``together`` to beyond ``far``; failing that at the smallest.

    Args:
        distances: Standard deviation of the two values in each coordinate, shape (D,).
        apart: See above.
        together: See above.
        near: See above.
        far: See above.
        spread: How far below the distance after the gap the threshold lies.
    """
    ascending = distances[rank_by_fitness(distances)]
    if ascending[0] > apart:
        return 0.0
    if ascending[-1] < together:
        return 1.0
    gaps = np.full(ascending.shape[0], -1.0)  # the first position is visited last
    for j in range(1, ascending.shape[0]):
        if ascending[j] > ascending[j - 1]:
            gaps[j] = (ascending[j] - ascending[j - 1]) / ascending[j - 1]
        else:
            gaps[j] = 0.0
    for j in rank_by_fitness(-gaps):
        beyond = j > 0 and ascending[j] >= far and ascending[j - 1] < together
        if near < ascending[j] < far or beyond:
            return float(ascending[j] - spread)
    return float(ascending[0] - spread)


@compiled
def freeze_agreed(
    mean: FloatArray, deviation: FloatArray, results: FloatArray, better: int, threshold: float, spread: float
) -> None:
    """Narrow the model, in place, to the better result in every coordinate on which both results agree.

    Args:
        mean: Of the model, shape (D,).
        deviation: Of the model, shape (D,).
        results: The two points, shape (2, D).
        better: Row of the better one.
        threshold: From ``freeze_threshold``.
        spread: Deviation of a frozen coordinate.
    """
    for j in range(mean.shape[0]):
        if abs(results[0, j] - results[1, j]) / math.sqrt(2.0) < threshold:
            mean[j] = results[better, j]
            deviation[j] = spread


@compiled
def sample_generation(
    samplers: IntArray,
    starts: IntArray,
    numbers: FloatArray,
    fresh: FloatArray,
    state: HSESState,
    shrink_factor: float,
    bound: float,
) -> FloatArray:
    """Return points (T, D) of all runs, each by its own sampler, in a box of [-bound, bound].

    Args:
        samplers: One of UNIFORM, REDRAWN, WRAPPED and STRATEGY for each run, shape (R,).
        starts: Run r has the points ``starts[r]`` to ``starts[r + 1]``, shape (R + 1,).
        numbers: Uniforms or normals of each point, shape (T, D).
        fresh: Normals to redraw from, shape (T, D).
        state: Models and strategies.
        shrink_factor: Factor of the deviations of runs that shrink them.
        bound: See above.
    """
    points = np.empty_like(numbers)
    for run in range(samplers.shape[0]):
        rows = slice(starts[run], starts[run + 1])
        if starts[run] == starts[run + 1]:
            continue
        if samplers[run] == UNIFORM:
            copy_rows(2.0 * bound * numbers[rows] - bound, points[rows])
        elif samplers[run] == STRATEGY:
            steps = sample_steps(numbers[rows], state.basis[run], state.axis_lengths[run])
            copy_rows(wrap_outside(state.cma_mean[run] + state.step_size[run] * steps, bound), points[rows])
        else:
            mean, deviation = state.mean[run], (shrink_factor if state.shrinks[run] else 1.0) * state.deviation[run]
            drawn = mean + deviation * numbers[rows]
            if samplers[run] == REDRAWN:
                copy_rows(redraw_outside(drawn, mean + deviation * fresh[rows], bound), points[rows])
            else:
                copy_rows(wrap_outside(drawn, bound), points[rows])
    return points


@compiled
def scale_to_boxes(
    points: FloatArray, starts: IntArray, lower: FloatArray, upper: FloatArray, bound: float
) -> FloatArray:
    """Return points (T, D) in [-bound, bound] in the boxes of their runs; exact where the box is that one."""
    scaled = np.empty_like(points)
    for run in range(lower.shape[0]):
        for i in range(starts[run], starts[run + 1]):
            for j in range(points.shape[1]):
                low, high = lower[run, j], upper[run, j]
                value = 0.5 * (low + high) + points[i, j] * ((high - low) / (2.0 * bound))
                scaled[i, j] = min(max(value, low), high)
    return scaled


@compiled
def generation_bests(starts: IntArray, values: FloatArray) -> FloatArray:
    """Return the best of each run's values (T,), infinite where there are none, shape (R,)."""
    bests = np.full(starts.shape[0] - 1, np.inf)
    for run in range(bests.shape[0]):
        for i in range(starts[run], starts[run + 1]):
            bests[run] = min(bests[run], values[i])
    return bests


@compiled
def fit_models(
    runs: IntArray, starts: IntArray, points: FloatArray, values: FloatArray, weights: FloatArray, state: HSESState
) -> None:
    """Replace the models of the given runs, in place, by those of their points."""
    for run in runs:
        rows = slice(starts[run], starts[run + 1])
        mean, deviation = fit_model(points[rows], values[rows], weights)
        _copy(mean, state.mean[run])
        _copy(deviation, state.deviation[run])


@shared
def _copy(source: FloatArray, target: FloatArray) -> None:
    """Copy all numbers."""
    for j in range(source.shape[0]):
        target[j] = source[j]


@compiled
def freeze_models(runs: IntArray, state: HSESState, lengths: tuple[float, float, float, float, float]) -> None:
    """Narrow the models of the given runs, in place, where their two CMA results agree."""
    apart, together, near, far, spread = lengths
    for run in runs:
        results, values = state.results[run], state.result_values[run]
        distances = np.abs(results[0] - results[1]) / math.sqrt(2.0)
        threshold = freeze_threshold(distances, apart, together, near, far, spread)
        better = 1 if values[1] < values[0] else 0
        freeze_agreed(state.mean[run], state.deviation[run], results, better, threshold, spread)


@compiled
def advance_cma(
    runs: IntArray,
    starts: IntArray,
    points: FloatArray,
    normals: FloatArray,
    values: FloatArray,
    state: HSESState,
    constants: CMAConstants,
) -> None:
    """Advance the strategies of the given runs, in place, by one generation."""
    step_size, covariance = state.step_size, state.covariance
    step_path, path = state.step_path, state.covariance_path
    for run in runs:
        rows = slice(starts[run], starts[run + 1])
        state.generation[run] += 1
        mean, step_size[run], next_step_path, next_path, next_covariance = update_strategy(
            points[rows],
            normals[rows],
            values[rows],
            step_size[run],
            step_path[run],
            path[run],
            covariance[run],
            state.basis[run],
            state.axis_lengths[run],
            state.generation[run],
            constants,
        )
        _copy(mean, state.cma_mean[run])
        _copy(next_step_path, step_path[run])
        _copy(next_path, path[run])
        copy_rows(next_covariance, covariance[run])
        basis, axis_lengths = decompose(next_covariance)
        copy_rows(basis, state.basis[run])
        _copy(axis_lengths, state.axis_lengths[run])


@compiled
def keep_results(runs: IntArray, starts: IntArray, points: FloatArray, values: FloatArray, state: HSESState) -> None:
    """Replace the result of each run's current strategy, in place, where one of its points is better."""
    for run in runs:
        leader, slot = starts[run] + np.argmin(values[starts[run] : starts[run + 1]]), state.stage[run] - FIRST_CMA
        if values[leader] < state.result_values[run, slot]:
            state.result_values[run, slot] = values[leader]
            copy_row(points, leader, state.results[run], slot)
