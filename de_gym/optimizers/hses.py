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
from de_gym.checks import LARGEST_SIZE, fraction, optional_whole, positive, real, store_plain, whole
from de_gym.evolution.populations import Trials
from de_gym.evolution.run_arrays import take_runs
from de_gym.optimizers.base import Optimizer
from de_gym.optimizers.cma_steps import cma_constants, log_weights
from de_gym.optimizers.hses_steps import (
    FIRST_CMA,
    REDRAWN,
    REFINING,
    SECOND_CMA,
    STRATEGY,
    UNIFORM,
    WRAPPED,
    advance_cma,
    fit_models,
    freeze_models,
    generation_bests,
    keep_results,
    make_state,
    sample_generation,
    scale_to_boxes,
)

_BOUND = 100.0


@dataclass(frozen=True)
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
        store_plain(self)
        whole("num_samples", self.num_samples, 2, LARGEST_SIZE)
        for name in ("num_selected", "num_refining_selected"):
            if whole(name, getattr(self, name), 2) > self.num_samples:
                raise ValueError(
                    f"`{name}` must be at most `num_samples`, got {getattr(self, name)} and {self.num_samples}."
                )
        whole("num_generations", self.num_generations, 1)
        whole("shrink_interval", self.shrink_interval, 1)
        optional_whole("num_cma_samples", self.num_cma_samples, 6, LARGEST_SIZE)
        positive("cma_step_size", self.cma_step_size)
        fraction("shrink_factor", self.shrink_factor)
        for name in ("cma_tolerance", "frozen_spread", "apart", "together", "near", "far"):
            real(name, getattr(self, name), 0.0)
        fraction("cma_fraction", self.cma_fraction)


class HSES(Optimizer):
    """Univariate sampling, CMA-ES twice, univariate sampling where the two disagree."""

    name = "hses"
    settings: HSESSettings
    takes_other_points = False

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
        self._state = make_state(self.num_runs, self._dimension)
        self._runs["size"] = settings.num_samples

    def _keep(self, runs: IntArray) -> None:
        self._state = take_runs(self._state, runs)

    def _ask(self, starts: IntArray) -> Trials:
        samplers = self._samplers()
        self._numbers, fresh = self._draw(samplers, starts)
        self._points = sample_generation(
            samplers, starts, self._numbers, fresh, self._state, self.settings.shrink_factor, _BOUND
        )
        return Trials(scale_to_boxes(self._points, starts, self._lower, self._upper, _BOUND), starts)

    def _samplers(self) -> IntArray:
        """Return where each run's next points come from, shape (R,)."""
        stage, generation = self._state.stage, self._state.generation
        redraws = (stage == REFINING) | (generation == 1)
        by_model = np.where(generation == 0, UNIFORM, np.where(redraws, REDRAWN, WRAPPED))
        return np.where(_is_cma(stage), STRATEGY, by_model)

    def _draw(self, samplers: IntArray, starts: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the random numbers of every point, and normals to redraw from, each of shape (T, D)."""
        numbers = np.empty((starts[-1], self._dimension))
        fresh = np.empty_like(numbers)
        for run, rng in enumerate(self._rngs):
            rows = slice(starts[run], starts[run + 1])
            if samplers[run] == UNIFORM:
                rng.random(out=numbers[rows])
                continue
            rng.standard_normal(out=numbers[rows])
            if samplers[run] == REDRAWN:
                rng.standard_normal(out=fresh[rows])
        return numbers, fresh

    def _tell(self, trials: Trials, values: FloatArray) -> None:
        asked = trials.starts[1:] > trials.starts[:-1]
        is_cma = _is_cma(self._state.stage)
        bests = generation_bests(trials.starts, values)
        sampling, strategies = np.flatnonzero(asked & ~is_cma), np.flatnonzero(asked & is_cma)
        if len(sampling):
            self._tell_sampling(sampling, trials.starts, values, bests)
        if len(strategies):
            self._tell_cma(strategies, trials.starts, values, bests)
        cma_size, size = self._num_cma_samples, self.settings.num_samples
        self._runs["size"] = np.where(_is_cma(self._state.stage), cma_size, size)

    def _tell_sampling(self, runs: IntArray, starts: IntArray, values: FloatArray, bests: FloatArray) -> None:
        state, settings = self._state, self.settings
        is_refining, generation = state.stage[runs] == REFINING, state.generation[runs]
        is_first = ~is_refining & (generation == 0)
        for chosen, weights in (
            (is_first, self._first_weights),
            (~is_refining & ~is_first, self._weights),
            (is_refining, self._refining_weights),
        ):
            if chosen.any():
                fit_models(runs[chosen], starts, self._points, values, weights, state)
        # The generation of uniform points is the first of the last phase, but is not counted in the first phase.
        self._watch_progress(runs, bests[runs], generation + is_refining, is_refining)
        if len(begins := runs[is_refining & (generation == 0)]):
            lengths = (settings.apart, settings.together, settings.near, settings.far, settings.frozen_spread)
            freeze_models(begins, state, lengths)
        state.generation[runs] += 1
        if len(finished := runs[~is_refining & (generation == settings.num_generations)]):
            state.results[finished] = self._scale_best(finished)[:, None, :]
            state.result_values[finished] = self._runs["best_fitness"][finished, None]
            self._begin_cma(finished, FIRST_CMA)

    def _watch_progress(self, runs: IntArray, bests: FloatArray, number: IntArray, may_recover: BoolArray) -> None:
        """Note the best of generation ``number`` (from 1), and let deviations shrink where progress has stalled."""
        state, interval = self._state, self.settings.shrink_interval
        state.previous_best[runs] = bests
        is_better = (bests < state.leader_value[runs]) & (number > 0)
        state.leader_value[runs[is_better]] = bests[is_better]
        state.leader_generation[runs[is_better]] = number[is_better]
        looks = (number >= 2 * interval) & (number % interval == 0)
        stalled = state.leader_generation[runs] < number - interval
        shrinks = stalled | (state.shrinks[runs] & ~may_recover)
        state.shrinks[runs[looks]] = shrinks[looks]

    def _scale_best(self, runs: IntArray) -> FloatArray:
        """Return the best points of the given runs, scaled to [-100, 100]."""
        lower, upper = self._lower[runs], self._upper[runs]
        return (self._best_position[runs] - 0.5 * (lower + upper)) / ((upper - lower) / (2.0 * _BOUND))

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

    def _tell_cma(self, runs: IntArray, starts: IntArray, values: FloatArray, bests: FloatArray) -> None:
        state = self._state
        advance_cma(runs, starts, self._points, self._numbers, values, state, self._constants)
        keep_results(runs, starts, self._points, values, state)
        best, previous = bests[runs], state.previous_best[runs]
        # Equal infinities count as no change; their difference is not a number.
        change = np.abs(np.where(best == previous, 0.0, best) - np.where(best == previous, 0.0, previous))
        spent = state.generation[runs] * self._num_cma_samples
        allowed = self.settings.cma_fraction * self._runs["max_evaluations"][runs]
        finished = (change < self.settings.cma_tolerance) | (spent >= allowed)
        state.previous_best[runs] = best
        if not finished.any():
            return
        first = runs[finished & (state.stage[runs] == FIRST_CMA)]
        second = runs[finished & (state.stage[runs] == SECOND_CMA)]
        self._begin_cma(first, SECOND_CMA)
        state.stage[second] = REFINING
        state.generation[second] = 0
        state.shrinks[second] = False
        state.leader_value[second] = np.inf


def _is_cma(stage: IntArray) -> BoolArray:
    is_cma: BoolArray = (stage == FIRST_CMA) | (stage == SECOND_CMA)
    return is_cma
