"""L-SRTDE under ``AdaptiveDEControl-v0``: two populations, adjusted around the success-rate rule."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from de_gym.arrays import Float32Array, FloatArray, IntArray, RunArray
from de_gym.envs.adaptive_shells import Following, Generation
from de_gym.envs.run_views import RunViews
from de_gym.envs.state import RUN
from de_gym.evolution import two_population
from de_gym.evolution.residuals import set_parameters
from de_gym.machine.streams import KeyArray
from de_gym.machine.top_and_front import FRONT, MAIN, TOP, TwoPopulations
from de_gym.problems import ProblemBatch


class TwoPopulationState(NamedTuple):
    """Populations of R runs, what their errors count from, and their boxes; the runs are the first axis of all arrays.

    Attributes:
        runs: Scalars of every run that judging needs, a record of ``RUN`` each, shape (R,).
        lower: Lower bounds, shape (R, D).
        upper: Upper bounds, shape (R, D).
        shell_runs: The first array of ``TwoPopulations``, as all that follow are the others.
        positions: See there.
        rows: See there.
        fitness: See there.
        ranking: See there.
        successes: See there.
        memory: See there.
        basis: See there.
        former_best: See there.
    """

    runs: RunArray
    lower: FloatArray
    upper: FloatArray
    shell_runs: RunArray
    positions: FloatArray
    rows: IntArray
    fitness: FloatArray
    ranking: IntArray
    successes: FloatArray
    memory: FloatArray
    basis: FloatArray
    former_best: FloatArray

    @property
    def shell(self) -> TwoPopulations:
        """What the algorithm itself remembers."""
        return TwoPopulations(*self[3:])


class TwoPopulationShell:
    """L-SRTDE; see ``AdaptiveShell``."""

    controls = tuple(control.name for control in two_population.CONTROLS)
    features = tuple(feature.name for feature in two_population.FEATURES)

    def initial_size(self, dimension: int, max_evaluations: int) -> int:
        """Return 20 individuals per dimension, fewer with small budgets."""
        return two_population.initial_size(dimension, max_evaluations)

    def smallest_budget(self, population_size: int) -> int:
        """Return one more than the initial population: a run makes use of its budget to the last evaluation."""
        return population_size + 1

    def start(
        self, problems: ProblemBatch, positions: FloatArray, values: FloatArray, keys: KeyArray, max_evaluations: int
    ) -> TwoPopulationState:
        """Return R runs that begin with these positions (R, N, D) and their values (R, N)."""
        num_runs, size, dimension = positions.shape
        points, starts = positions.reshape(-1, dimension), np.arange(num_runs + 1) * size
        lower, upper = problems.lower.copy(), problems.upper.copy()
        populations = two_population.start(keys, points, starts, values.reshape(-1), max_evaluations, lower, upper)
        return TwoPopulationState(np.zeros(num_runs, RUN), lower, upper, *populations)

    def advance(self, state: TwoPopulationState, problems: ProblemBatch, residuals: FloatArray) -> Generation:
        """Turn R runs into what they are a generation later, by checked residuals (R, A)."""
        populations = state.shell
        parameters = set_parameters(populations.runs, residuals)
        features = two_population.advance_by(populations, problems, parameters)
        rates = populations.memory[:, MAIN].mean(axis=1) + parameters["crossover_shift"]
        factors = np.clip(parameters["mean_scale_factor"], 0.0, 1.0)
        return Generation(features, factors, np.clip(rates, 0.0, 1.0))

    def observe(self, state: TwoPopulationState) -> Float32Array:
        """Return all features, shape (R, K)."""
        return two_population.observe(state.shell, state.lower, state.upper)

    def follow(self, state: TwoPopulationState) -> Following:
        """Return what judging has to know."""
        runs = state.shell_runs
        return Following(
            generation=runs["generation"],
            evaluations=runs["evaluations"],
            num_trials=np.maximum(runs["evaluations"] - state.runs["evaluations"], 1),
            num_successes=runs["num_successes"],
            next_size=np.ones(len(runs), np.int64),
            best_fitness=runs["best_fitness"],
        )

    def best_positions(self, state: TwoPopulationState) -> FloatArray:
        """Return each run's best point, shape (R, D)."""
        return two_population.best_positions(state.shell)

    def populations(self, state: TwoPopulationState) -> dict[str, FloatArray]:
        """Return the first run's best points found and newest successes."""
        size = int(state.shell_runs["size"][0])
        top = state.positions[0, TOP, state.rows[0, TOP, :size]].copy()
        slots = state.ranking[0, :size]
        return {"top": top, "front": state.positions[0, FRONT, state.rows[0, FRONT, slots]].copy()}

    def views(self, state: TwoPopulationState) -> RunViews:
        """Return what functions of the user see: the best points found, and the run's progress."""
        return run_views(state.shell, state.lower, state.upper)


def run_views(populations: TwoPopulations, lower: FloatArray, upper: FloatArray) -> RunViews:
    """Return what functions of the user see, given bounds (R, D)."""
    runs, ranks = populations.runs, (populations.rows[:, TOP], populations.fitness[:, TOP])
    counts = runs["size"], runs["generation"], runs["evaluations"], runs["max_evaluations"]
    return RunViews(populations.positions[:, TOP], *ranks, *counts, lower, upper)
