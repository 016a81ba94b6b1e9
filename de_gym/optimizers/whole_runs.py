"""The final errors of whole runs of adjusted L-SRTDE, as fast as they can be had: what training asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.controllers.residual import ResidualController
from de_gym.evolution import two_population
from de_gym.evolution.populations import RUN, RunRecords
from de_gym.evolution.run_arrays import take_runs
from de_gym.machine.streams import KeyArray
from de_gym.optimizers.adaptive import initial_sizes
from de_gym.optimizers.base import note_values
from de_gym.optimizers.local_search import Descents
from de_gym.problems import Problem, ProblemBatch
from de_gym.problems.budgets import ZERO_ERROR

# Ended runs stay in the batch until they are so many: leaving them out copies all others.
_DROPPED_SHARE = 0.2


class Reached(NamedTuple):
    """How far R runs have got.

    Attributes:
        runs: Evaluations, budget and best value of each, dtype ``RUN``, shape (R,).
        points: Best point of each, shape (R, D).
    """

    runs: RunRecords
    points: FloatArray


def final_errors(
    problems: Sequence[Problem], budgets: IntArray, keys: KeyArray, controller: ResidualController, owners: IntArray
) -> FloatArray:
    """Return the final errors (R,), 0 below 1e-8, of whole runs of ``AdaptiveDE`` on compiled problems.

    Args:
        problems: One per run, with a known minimum.
        budgets: Evaluations of each run, shape (R,).
        keys: What each run's random numbers follow from, shape (R,).
        controller: One or several controllers.
        owners: Which of them adjusts each run, shape (R,).
    """
    batch = ProblemBatch(problems)
    bounds = batch.lower, batch.upper
    sizes = initial_sizes(batch.dimension, budgets, controller.size_residuals(batch.dimension, budgets, owners))
    points, starts = two_population.draw_initial_points(keys, sizes, *bounds)
    values, targets = batch.evaluate_ragged(points, starts), batch.optimum + ZERO_ERROR
    state = two_population.start(keys, points, starts, values, budgets, *bounds, target_fitness=targets)
    descents = Descents(budgets, *bounds, controller.find_descent_shares(batch.dimension, budgets, owners))
    reached = Reached(np.zeros(len(keys), RUN), np.empty_like(batch.lower))
    reached.runs["best_fitness"], reached.runs["max_evaluations"] = np.inf, budgets
    features = two_population.observe(state, *bounds)
    errors, alive = np.empty(len(keys)), np.arange(len(keys))
    while len(alive):
        features = two_population.advance(state, batch, controller(features, owners[alive]))
        _note_generation(reached, state)
        descents.begin_anew(state.runs["begins_anew"] == 1)
        if _descend(reached, state, descents, batch):
            features = two_population.observe(state, batch.lower, batch.upper)
        ended = two_population.has_ended(state) | (reached.runs["best_fitness"] - batch.optimum < ZERO_ERROR)
        if ended.mean() > _DROPPED_SHARE:
            errors[alive[ended]] = reached.runs["best_fitness"][ended] - batch.optimum[ended]
            kept = np.flatnonzero(~ended)
            state, reached, batch = take_runs(state, kept), take_runs(reached, kept), batch.take(kept)
            features, alive = features[kept], alive[kept]
            descents.keep(kept)
    return np.where(errors < ZERO_ERROR, 0.0, errors)


def _note_generation(reached: Reached, state: two_population.TwoPopulations) -> None:
    """Note what the populations have found."""
    runs, best = reached.runs, state.runs["best_fitness"]
    is_better = best < runs["best_fitness"]
    reached.points[is_better] = two_population.best_positions(state)[is_better]
    runs["best_fitness"] = np.where(is_better, best, runs["best_fitness"])
    runs["evaluations"] = state.runs["evaluations"]


def _descend(reached: Reached, state: two_population.TwoPopulations, descents: Descents, batch: ProblemBatch) -> bool:
    """Make the descents that are due, of runs between two generations; return whether there were any."""
    runs = reached.runs
    due = descents.is_due & (runs["evaluations"] >= descents.begins) & ~two_population.has_ended(state)
    for run in np.flatnonzero(due).tolist():
        evaluations = int(runs["evaluations"][run])
        descents.begin(run, reached.points[run], float(runs["best_fitness"][run]), evaluations)
    while descents.are_under_way:
        trials = descents.ask(np.append(0, np.cumsum(descents.num_points)))
        values = batch.evaluate_ragged(trials.points, trials.starts)
        note_values(runs, reached.points, trials.points, trials.starts, values)
        is_solved = runs["best_fitness"] - batch.optimum < ZERO_ERROR
        descents.tell(trials, values, np.where(is_solved, runs["max_evaluations"], runs["evaluations"]))
    state.runs["evaluations"] = runs["evaluations"]
    return bool(due.any())
