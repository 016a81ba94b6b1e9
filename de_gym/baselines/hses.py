"""HSES: Zhang and Shi, Hybrid Sampling Evolution Strategy for Solving Single Objective Problems (CEC 2018).

Three phases: univariate Gaussian sampling, two runs of CMA-ES from its best point, and univariate sampling again,
narrowed to the coordinates on which both runs agree. All lengths refer to a box of [-100, 100]: other boxes are
scaled to it, coordinate by coordinate, and this one is left as it is.

NOTE: departures from the authors' program: arrays of one run do not leak into the next; a coordinate that is
still outside after its one redraw is set to the bound, since a user's function may not exist there; and the
last phase is not charged for evaluations it does not make.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from de_gym.arrays import BoolArray, FloatArray, IntArray
from de_gym.baselines.base import Optimizer, check_at_least, check_fraction, take_runs
from de_gym.baselines.cma_steps import cma_constants, log_weights
from de_gym.baselines.hses_steps import (
    advance_cma,
    fit_models,
    freeze_models,
    keep_results,
    redraw_outside,
    sample_cma,
    wrap_outside,
)
from de_gym.evolution import draw_normals, draw_uniforms

# Stages of a run. Runs of a batch enter the last one together: those that get there first wait for the others.
SAMPLING, FIRST_CMA, SECOND_CMA, REFINING = 0, 1, 2, 3
_BOUND = 100.0


@dataclass(frozen=True, slots=True)
class HSESSettings:
    """Constants of HSES for up to 30 dimensions; lengths in a box of [-100, 100].

    Attributes:
        num_samples: Points of a generation of univariate sampling.
        num_selected: Points of the first phase's model.
        num_generations: Generations of the first phase after its uniform points.
        num_refining_selected: Points of the third phase's model.
        shrink_factor: Factor of the deviations once progress stalls.
        shrink_interval: Generations after which progress counts as stalled, and between two looks at it.
        num_cma_samples: Points of a CMA generation; None for floor(3 ln n) + 80.
        cma_step_size: First step size of CMA-ES.
        cma_fraction: Share of the budget after which each CMA run stops.
        cma_tolerance: Change of the best value of a generation below which it stops earlier.
        frozen_spread: Deviation of a coordinate on which both results agree.
        apart: The results agree nowhere if their smallest distance exceeds this.
        together: They agree everywhere if their largest distance is below this.
        near: Smallest distance that counts as disagreement after a gap.
        far: Distance from which only a gap from below ``together`` counts.
    """

    num_samples: int = 200
    num_selected: int = 100
    num_generations: int = 100
    num_refining_selected: int = 160
    shrink_factor: float = 0.96
    shrink_interval: int = 20
    num_cma_samples: int | None = None
    cma_step_size: float = 0.2
    cma_fraction: float = 0.25
    cma_tolerance: float = 1e-11
    frozen_spread: float = 0.001
    apart: float = 0.2
    together: float = 0.01
    near: float = 0.1
    far: float = 10.0

    def __post_init__(self) -> None:
        check_at_least("num_selected", self.num_selected, 2)
        check_at_least("num_refining_selected", self.num_refining_selected, 2)
        check_at_least("num_samples", self.num_samples, max(self.num_selected, self.num_refining_selected))
        check_at_least("num_generations", self.num_generations, 1)
        check_at_least("shrink_interval", self.shrink_interval, 1)
        check_at_least("num_cma_samples", self.num_cma_samples, 6)
        check_fraction("cma_fraction", self.cma_fraction)


@dataclass(frozen=True, slots=True)
class HSESState:
    """Arrays of R runs, updated in place; positions are scaled to [-100, 100].

    Attributes:
        stage: One of the stages above, shape (R,).
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


def _new_state(num_runs: int, dimension: int) -> HSESState:
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


class HSES(Optimizer):
    """Univariate sampling, CMA-ES twice, univariate sampling where the two disagree."""

    name = "hses"
    settings: HSESSettings

    def __init__(self, settings: HSESSettings | None = None) -> None:
        self.settings = settings or HSESSettings()

    def _start(self) -> None:
        settings = self.settings
        num_cma_samples = settings.num_cma_samples or int(3.0 * math.log(self._dimension)) + 80
        self._num_cma_samples = num_cma_samples
        self._constants = cma_constants(self._dimension, num_cma_samples)
        self._first_weights = np.full(settings.num_selected, 1.0 / settings.num_selected)
        self._weights = log_weights(settings.num_selected)
        self._refining_weights = log_weights(settings.num_refining_selected)
        self._state = _new_state(self.num_runs, self._dimension)

    def _keep(self, runs: IntArray) -> None:
        self._state = take_runs(self._state, runs)

    def _next_cost(self) -> IntArray:
        is_cma = (self._state.stage == FIRST_CMA) | (self._state.stage == SECOND_CMA)
        return np.where(is_cma, self._num_cma_samples, self.settings.num_samples)

    def _next_active(self) -> IntArray:
        ended = self.has_ended
        # Both CMA stages have samples of one size and go on side by side.
        turn = np.where(self._state.stage == SECOND_CMA, FIRST_CMA, self._state.stage)
        turn = np.where(ended & ~ended.all(), REFINING + 1, turn)
        return np.flatnonzero(turn == turn.min())

    def _ask(self) -> FloatArray:
        runs, state = self._active, self._state
        stage, generation = state.stage[runs[0]], state.generation[runs[0]]
        if stage in (FIRST_CMA, SECOND_CMA):
            self._normals = self._draw_normals(self._num_cma_samples)
            self._points = sample_cma(
                runs, self._normals, state.cma_mean, state.step_size, state.basis, state.axis_lengths, _BOUND
            )
        elif generation == 0:
            rngs = [self._rngs[run] for run in runs]
            uniforms = draw_uniforms(rngs, self.settings.num_samples, self._dimension)
            self._points = 2.0 * _BOUND * uniforms - _BOUND
        else:
            self._points = self._sample_model(redraw=stage == REFINING or generation == 1)
        return self._unscale(self._points)

    def _draw_normals(self, num_samples: int) -> FloatArray:
        return draw_normals([self._rngs[run] for run in self._active], num_samples, self._dimension)

    def _sample_model(self, redraw: bool) -> FloatArray:
        """Return samples of the univariate models of the active runs, repaired by a redraw or by wrapping."""
        runs, state = self._active, self._state
        factors = np.where(state.shrinks[runs], self.settings.shrink_factor, 1.0)
        mean, deviation = state.mean[runs, None, :], (factors[:, None] * state.deviation[runs])[:, None, :]
        points = mean + deviation * self._draw_normals(self.settings.num_samples)
        flat = points.reshape(-1, self._dimension)
        if redraw:
            fresh = mean + deviation * self._draw_normals(self.settings.num_samples)
            return redraw_outside(flat, fresh.reshape(flat.shape), _BOUND).reshape(points.shape)
        return wrap_outside(flat, _BOUND).reshape(points.shape)

    def _unscale(self, points: FloatArray) -> FloatArray:
        """Return points (A, K, D) of the active runs in their boxes; exact where the box is [-100, 100]."""
        lower, upper = self._lower[self._active][:, None, :], self._upper[self._active][:, None, :]
        return np.clip(0.5 * (lower + upper) + points * ((upper - lower) / (2.0 * _BOUND)), lower, upper)

    def _tell(self, trials: FloatArray, fitness: FloatArray) -> None:
        if self._state.stage[self._active[0]] in (FIRST_CMA, SECOND_CMA):
            self._tell_cma(fitness)
        else:
            self._tell_sampling(fitness)

    def _tell_sampling(self, fitness: FloatArray) -> None:
        runs, state, settings = self._active, self._state, self.settings
        is_refining = bool(state.stage[runs[0]] == REFINING)
        generation = int(state.generation[runs[0]])
        sampling_weights = self._first_weights if generation == 0 else self._weights
        weights = self._refining_weights if is_refining else sampling_weights
        fit_models(runs, self._points, fitness, weights, state.mean, state.deviation)
        # The generation of uniform points is the first of the last phase, but is not counted in the first phase.
        number = generation + 1 if is_refining else generation
        self._watch_progress(fitness.min(axis=1), number, may_recover=is_refining)
        if is_refining and generation == 0:
            freeze_models(
                runs,
                state.results,
                state.result_values,
                state.mean,
                state.deviation,
                (settings.apart, settings.together, settings.near, settings.far, settings.frozen_spread),
            )
        state.generation[runs] += 1
        if not is_refining and generation == settings.num_generations:
            for slot in range(2):
                state.results[runs, slot] = self._scale_best()
                state.result_values[runs, slot] = self._best_fitness[runs]
            self._begin_cma(runs, FIRST_CMA)

    def _watch_progress(self, generation_best: FloatArray, number: int, may_recover: bool) -> None:
        """Note the best of generation ``number`` (from 1), and let deviations shrink where progress has stalled."""
        runs, state, interval = self._active, self._state, self.settings.shrink_interval
        state.previous_best[runs] = generation_best
        if number == 0:
            return
        better = runs[generation_best < state.leader_value[runs]]
        state.leader_value[better] = generation_best[generation_best < state.leader_value[runs]]
        state.leader_generation[better] = number
        if number >= 2 * interval and number % interval == 0:
            stalled = state.leader_generation[runs] < number - interval
            state.shrinks[runs] = stalled | (state.shrinks[runs] & (not may_recover))

    def _scale_best(self) -> FloatArray:
        """Return the best points of the active runs, scaled to [-100, 100]."""
        lower, upper = self._lower[self._active], self._upper[self._active]
        return (self._best_position[self._active] - 0.5 * (lower + upper)) / ((upper - lower) / (2.0 * _BOUND))

    def _begin_cma(self, runs: IntArray, stage: int) -> None:
        state = self._state
        state.stage[runs] = stage
        state.generation[runs] = 0
        # The second result is still the first phase's best point, from which both runs start.
        state.cma_mean[runs] = state.results[runs, 1]
        state.step_size[runs] = self.settings.cma_step_size
        state.step_path[runs] = 0.0
        state.covariance_path[runs] = 0.0
        state.covariance[runs] = np.eye(self._dimension)
        state.basis[runs] = np.eye(self._dimension)
        state.axis_lengths[runs] = 1.0

    def _tell_cma(self, fitness: FloatArray) -> None:
        runs, state = self._active, self._state
        advance_cma(
            runs,
            self._points,
            self._normals,
            fitness,
            state.generation,
            state.cma_mean,
            state.step_size,
            state.step_path,
            state.covariance_path,
            state.covariance,
            state.basis,
            state.axis_lengths,
            self._constants,
        )
        keep_results(runs, state.stage - FIRST_CMA, self._points, fitness, state.results, state.result_values)
        best, previous = fitness.min(axis=1), state.previous_best[runs]
        # Equal infinities count as no change; their difference is not a number.
        change = np.abs(np.where(best == previous, 0.0, best) - np.where(best == previous, 0.0, previous))
        spent = state.generation[runs] * self._num_cma_samples
        finished = (change < self.settings.cma_tolerance) | (
            spent >= self.settings.cma_fraction * self._max_evaluations
        )
        state.previous_best[runs] = best
        first, second = (
            runs[finished & (state.stage[runs] == FIRST_CMA)],
            runs[finished & (state.stage[runs] == SECOND_CMA)],
        )
        self._begin_cma(first, SECOND_CMA)
        state.stage[second] = REFINING
        state.generation[second] = 0
        state.shrinks[second] = False
        state.leader_value[second] = np.inf
