"""The two-population shell: L-SRTDE, winner of CEC'24, with every parameter of its rule open to control.

Use, where problems are Python functions::

    points, starts = draw_initial_points(keys, sizes, lower, upper)
    state = start(keys, points, starts, evaluate(points, starts), max_evaluations, lower, upper)
    while not has_ended(state).all():
        parameters = set_parameters(state.runs, residuals)       # of zeros: L-SRTDE itself
        trials = breed(state, parameters, lower, upper)
        while len(trials.points):                                # a generation has a few parts
            select(state, parameters, trials, evaluate(trials.points, trials.starts))
            trials = breed(state, parameters, lower, upper, begins=False)
        features = observe(state, lower, upper)

``advance`` is the body of that loop for any problems, in one call where they are compiled. A run's future depends on
its own state, residuals and problem alone; one that has ended stays what it is.

Reference: Stanovov and Semenkin, "Success rate-based adaptive differential evolution L-SRTDE for CEC 2024
competition" (2024).
"""

from __future__ import annotations

import numpy as np

from de_gym.arrays import BoolArray, Float32Array, FloatArray
from de_gym.evolution.first_generation import draw_initial_points, initial_size, start
from de_gym.evolution.residuals import CONTROLS, PARAMETERS, set_parameters
from de_gym.machine.front_generations import Problems, advance_runs, breed_runs, observe_runs, select_runs
from de_gym.machine.run_features import FEATURES, LARGEST_FEATURE
from de_gym.machine.top_and_front import (
    TOP,
    RunArray,
    Trials,
    TwoPopulations,
    find_starts,
    make_trials,
)
from de_gym.problems import ProblemBatch
from de_gym.problems.compiled import as_kernel_array

__all__ = [
    "CONTROLS",
    "FEATURES",
    "LARGEST_FEATURE",
    "PARAMETERS",
    "Trials",
    "TwoPopulations",
    "advance",
    "advance_by",
    "best_positions",
    "breed",
    "draw_initial_points",
    "has_ended",
    "initial_size",
    "observe",
    "select",
    "set_parameters",
    "start",
]


def has_ended(state: TwoPopulations) -> BoolArray:
    """Return whether each run has spent its budget or reached its target, shape (R,)."""
    starts = find_starts(state.runs, True)
    return np.equal(starts[1:], starts[:-1])


def best_positions(state: TwoPopulations) -> FloatArray:
    """Return each run's best point, shape (R, D)."""
    runs = np.arange(len(state.runs))
    leading: FloatArray = state.positions[runs, TOP, state.rows[runs, TOP, 0]]
    is_best = state.runs["leading_fitness"] == state.runs["best_fitness"]
    return np.where(is_best[:, None], leading, state.former_best)


def breed(
    state: TwoPopulations, parameters: RunArray, lower: FloatArray, upper: FloatArray, begins: bool = True
) -> Trials:
    """Return the next trials of R runs, a part of a generation each.

    Args:
        state: R runs.
        parameters: What ``set_parameters`` returned when the generation began, shape (R,).
        lower: Lower bounds, shape (R, D).
        upper: Upper bounds, shape (R, D).
        begins: Whether runs begin a generation; otherwise those that have completed theirs make no trials.
    """
    _check_parameters(state, parameters)
    lower, upper = _checked_bounds(state, lower, upper)
    trials = make_trials(find_starts(state.runs, begins), lower.shape[1])
    breed_runs(state, parameters, lower, upper, trials)
    return trials


def select(state: TwoPopulations, parameters: RunArray, trials: Trials, values: FloatArray) -> None:
    """Turn R runs into what they are after these trials, whose values (T,) are given; NaN counts as infinity."""
    _check_parameters(state, parameters)
    values = as_kernel_array(values, "values")
    if values.shape != (len(trials.points),):
        raise ValueError(f"There must be one value per trial, got {values.shape} for {len(trials.points)} trials.")
    if len(trials.starts) != len(state.runs) + 1 or not select_runs(state, parameters, trials, values):
        raise ValueError("`trials` must be what `breed` returned for these runs, and must not have been selected yet.")


def observe(state: TwoPopulations, lower: FloatArray, upper: FloatArray) -> Float32Array:
    """Return the ``FEATURES`` of R runs, shape (R, K)."""
    features = np.empty((len(state.runs), len(FEATURES)), np.float32)
    observe_runs(state, *_checked_bounds(state, lower, upper), features)
    return features


def advance(state: TwoPopulations, problems: ProblemBatch, residuals: FloatArray) -> Float32Array:
    """Turn R runs into what they are a generation later, and return their ``FEATURES``, shape (R, K).

    Args:
        state: R runs, none in the middle of a generation.
        problems: One per run.
        residuals: One number for each of the ``CONTROLS``, clipped to [-1, 1], shape (R, A). Zeros are L-SRTDE.
    """
    return advance_by(state, problems, set_parameters(state.runs, residuals))


def advance_by(state: TwoPopulations, problems: ProblemBatch, parameters: RunArray) -> Float32Array:
    """Do what ``advance`` does, given what ``set_parameters`` returned."""
    lower, upper = _checked_bounds(state, problems.lower, problems.upper)
    features = np.empty((len(state.runs), len(FEATURES)), np.float32)
    if problems.programs is not None:
        advance_runs(state, parameters, Problems(lower, upper, *problems.programs), features)
        return features
    trials = breed(state, parameters, lower, upper)
    while len(trials.points):
        select(state, parameters, trials, problems.evaluate_ragged(trials.points, trials.starts))
        trials = breed(state, parameters, lower, upper, begins=False)
    observe_runs(state, lower, upper, features)
    return features


def _check_parameters(state: TwoPopulations, parameters: RunArray) -> None:
    num_runs = len(state.runs)
    if parameters.dtype != PARAMETERS or parameters.shape != (num_runs,):
        raise ValueError(f"`parameters` must be what `set_parameters` returns for {num_runs} runs.")
    if not np.isfinite(parameters.view(np.float64)).all() or not (parameters["rank_pressure"] > 0.0).all():
        raise ValueError("All `parameters` must be finite, and the rank pressure above zero.")


def _checked_bounds(state: TwoPopulations, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    shape = len(state.runs), state.positions.shape[-1]
    if lower.shape != shape or upper.shape != shape:
        raise ValueError(f"Bounds must have shape {shape}, got {lower.shape} and {upper.shape}.")
    return as_kernel_array(lower, "lower"), as_kernel_array(upper, "upper")
