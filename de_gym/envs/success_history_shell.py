"""jSO under ``AdaptiveDEControl-v0``: one population with an archive, adjusted around its memory of successes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from de_gym.arrays import Float32Array, FloatArray, IntArray, RunArray
from de_gym.controllers.jso import JSOSettings, make_jso
from de_gym.controllers.success_history import CONTROLS
from de_gym.envs.adaptive_shells import Following, Generation
from de_gym.envs.run_views import RunViews
from de_gym.envs.state import RUN
from de_gym.evolution.history_features import FEATURES, begin_progress, note_progress, observe
from de_gym.evolution.populations import RUN as SHELL_RUN
from de_gym.evolution.populations import Population, Trials
from de_gym.evolution.shell import View
from de_gym.machine.draws import DrawLayout, GenerationDraws
from de_gym.machine.streams import KeyArray
from de_gym.problems import ProblemBatch


class SuccessHistoryState(NamedTuple):
    """Populations of R runs, what they remember and what their errors count from; the runs are the first axis.

    Attributes:
        runs: Scalars of every run that judging needs, a record of ``RUN`` each, shape (R,).
        lower: Lower bounds, shape (R, D).
        upper: Upper bounds, shape (R, D).
        shell_runs: The first array of ``Population``, as the six that follow are the others.
        positions: See there.
        fitness: See there.
        order: See there.
        improvements: See there.
        parent_fitness: See there.
        origins: See there.
        memory: As in ``SuccessHistory``, shape (R, 2, H).
        history: See there, shape (R,).
        progress: What features remember, of type ``PROGRESS``, shape (R,).
        generators: Each run's own source of random numbers, as the optimiser has it, shape (R,).
    """

    runs: RunArray
    lower: FloatArray
    upper: FloatArray
    shell_runs: RunArray
    positions: FloatArray
    fitness: FloatArray
    order: IntArray
    improvements: FloatArray
    parent_fitness: FloatArray
    origins: IntArray
    memory: FloatArray
    history: RunArray
    progress: RunArray
    generators: NDArray[np.object_]

    @property
    def population(self) -> Population:
        """The populations themselves."""
        return Population(*self[3:10])


class SuccessHistoryShell:
    """jSO; see ``AdaptiveShell``."""

    controls = tuple(control.name for control in CONTROLS)
    features = tuple(feature.name for feature in FEATURES)

    def initial_size(self, dimension: int, max_evaluations: int) -> int:
        """Return jSO's own number, which depends on the dimension alone."""
        return make_jso(JSOSettings(), dimension)[0].population_size

    def smallest_budget(self, population_size: int) -> int:
        """Return twice the initial population: a generation that would exceed the budget is not begun."""
        return 2 * population_size

    def start(
        self, problems: ProblemBatch, positions: FloatArray, values: FloatArray, keys: KeyArray, max_evaluations: int
    ) -> SuccessHistoryState:
        """Return R runs that begin with these positions (R, N, D) and their values (R, N)."""
        num_runs, size, dimension = positions.shape
        shell, rule = make_jso(JSOSettings(population_size=size), dimension)
        shell_runs = np.zeros(num_runs, SHELL_RUN)
        population = shell.start(shell_runs, dimension)
        rule.reset(population)
        shell_runs["evaluations"], shell_runs["max_evaluations"] = size, max_evaluations
        trials = Trials(positions.reshape(-1, dimension), np.arange(num_runs + 1) * size)
        shell.settle(population, trials, _without_nan(values.reshape(-1)))
        lower, upper = problems.lower.copy(), problems.upper.copy()
        progress = begin_progress(population, lower, upper)
        generators: NDArray[np.object_] = np.empty(num_runs, object)
        generators[:] = [np.random.default_rng(int(key)) for key in keys]
        runs, remembered = np.zeros(num_runs, RUN), (rule.memory, rule.history, progress)
        return SuccessHistoryState(runs, lower, upper, *population, *remembered, generators)

    def advance(self, state: SuccessHistoryState, problems: ProblemBatch, residuals: FloatArray) -> Generation:
        """Turn R runs into what they are a generation later, by checked residuals (R, A)."""
        population = state.population
        shell, rule = make_jso(JSOSettings(population_size=population.capacity), problems.dimension)
        rule.resume(population, state.memory, state.history)
        rule.set_residuals(residuals)
        layout = DrawLayout(rule.num_uniforms, *shell.num_uniforms(problems.dimension), rule.num_normals)
        draws = GenerationDraws(list(state.generators), population.capacity, layout)
        starts = np.append(0, population.runs["size"].cumsum())
        draws.draw(starts)
        parameters = rule(View(population, draws))
        trials = shell.breed(population, parameters, draws, state.lower, state.upper)
        values = _without_nan(problems.evaluate_ragged(trials.points, starts))
        rule.learn(shell.select(population, parameters, draws, trials, values))
        population.runs["evaluations"] += np.diff(starts)
        note_progress(population, starts, state.progress)
        used = np.arange(population.capacity) < np.diff(starts)[:, None]
        factors = parameters.scale_factors.mean(axis=1, where=used)
        return Generation(self.observe(state), factors, parameters.crossover_rates.mean(axis=1, where=used))

    def observe(self, state: SuccessHistoryState) -> Float32Array:
        """Return all features, shape (R, K)."""
        return observe(state.population, state.memory, state.progress, state.lower, state.upper)

    def follow(self, state: SuccessHistoryState) -> Following:
        """Return what judging has to know."""
        runs, progress = state.shell_runs, state.progress
        counts = progress["num_trials"], progress["num_successes"]
        return Following(progress["generation"], runs["evaluations"], *counts, runs["size"], progress["best_fitness"])

    def best_positions(self, state: SuccessHistoryState) -> FloatArray:
        """Return each run's best point, shape (R, D)."""
        best: FloatArray = state.positions[np.arange(len(state.runs)), state.order[:, 0]]
        return best

    def populations(self, state: SuccessHistoryState) -> dict[str, FloatArray]:
        """Return the first run's population and its archive."""
        run, capacity = state.shell_runs[0], state.order.shape[1]
        archive = state.positions[0, capacity : capacity + run["archive_size"]]
        return {"population": state.positions[0, state.order[0, : run["size"]]], "archive": archive.copy()}

    def views(self, state: SuccessHistoryState) -> RunViews:
        """Return what functions of the user see."""
        return run_views(state.population, state.progress, state.lower, state.upper)


def run_views(population: Population, progress: RunArray, lower: FloatArray, upper: FloatArray) -> RunViews:
    """Return what functions of the user see, given bounds (R, D)."""
    runs, order = population.runs, population.order
    fitness = np.take_along_axis(population.fitness, order, axis=1)
    counts = runs["size"], progress["generation"], runs["evaluations"], runs["max_evaluations"]
    return RunViews(population.positions, order, fitness, *counts, lower, upper)


def _without_nan(values: FloatArray) -> FloatArray:
    """Return values of which those that are not a number are infinite."""
    return np.where(np.isnan(values), np.inf, values)
