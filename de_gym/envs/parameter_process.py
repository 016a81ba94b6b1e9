"""The paper's decision process of R runs: start, breed, select, advance, observe; functions of a ``RunState``.

The environment and the controlled optimiser are thin shells on these.
"""

from __future__ import annotations

import numpy as np

from de_gym.arrays import Float32Array, FloatArray
from de_gym.envs.extensions import compute_rewards, find_reward, join_parts
from de_gym.envs.features import FEATURES, empty_history
from de_gym.envs.process import (
    BEST_ERROR,
    NUM_FIGURES,
    REWARD,
    Outcome,
    empty_outcome,
    judge_runs,
    note_reference,
)
from de_gym.envs.run_views import RunViews
from de_gym.envs.settings import EnvSettings
from de_gym.envs.state import RUN, RunState, ranked_positions
from de_gym.envs.stepping import (
    advance_runs,
    average_actions,
    breed_runs,
    describe_runs,
    observe_runs,
    select_runs,
    summarize,
)
from de_gym.machine.streams import KeyArray
from de_gym.problems import ProblemBatch
from de_gym.problems.minima import warn_of_mistaken_optimum


class ParameterProcess:
    """The process of ``DEParamControl-v0``: actions set F and CR of individuals."""

    action_low: float = 0.0
    step_figures: tuple[str, ...] = ("success_rate", "mean_scale_factor", "mean_crossover_rate")

    def __init__(self, settings: EnvSettings) -> None:
        """Store settings that are resolved for a dimension."""
        self.settings = settings
        self._reward = find_reward(settings.reward)
        self.population_size = settings.capacity
        self.action_size = settings.action_size
        self.observation_low, self.observation_high = observation_bounds(settings)

    def start(self, problems: ProblemBatch, positions: FloatArray, keys: KeyArray) -> RunState:
        """Return the state of R runs that begin with these positions (R, N, D)."""
        return start(positions, problems.evaluate(positions), problems.optimum, keys, self.settings)

    def describe(self, state: RunState, problems: ProblemBatch) -> Outcome:
        """Return a description of the state, and zeros."""
        return self._with_python_parts(self._describe(state), state, problems)

    def advance(self, state: RunState, problems: ProblemBatch, actions: FloatArray) -> Outcome:
        """Turn the state into that of one generation later, by checked actions (R, A)."""
        before = None if self._reward is None else state.runs.copy()
        parameters = self.settings.action_map.expand(actions, state.runs, self.population_size)
        advance = self._advance_apart if problems.programs is None else self._advance_together
        outcome, num_mistaken = advance(state, problems, parameters)
        warn_of_mistaken_optimum(num_mistaken)
        if self._reward is not None and before is not None:
            outcome.figures[REWARD] = compute_rewards(self._reward, before, state.runs)
        return self._with_python_parts(outcome, state, problems)

    def _advance_together(self, state: RunState, problems: ProblemBatch, parameters: FloatArray) -> tuple[Outcome, int]:
        """Return the outcome of a generation in one call, and how many stated minima turned out to be none."""
        settings, programs = self.settings, problems.programs
        assert programs is not None
        outcome = empty_outcome(len(state.runs), state.positions.shape[2], settings.compiled_size)
        num_ended, num_mistaken = advance_runs(
            *state,
            parameters,
            problems.lower,
            problems.upper,
            *programs,
            settings.codes,
            settings.parts,
            outcome.figures,
            outcome.counts,
            outcome.flags,
            outcome.best_positions,
            outcome.observations,
        )
        return outcome._replace(num_ended=num_ended), num_mistaken

    def _advance_apart(self, state: RunState, problems: ProblemBatch, parameters: FloatArray) -> tuple[Outcome, int]:
        """Do what ``_advance_together`` does, step by step, where some problem is a Python function."""
        runs, codes = state.runs, self.settings.codes
        error_before, means = runs["best_error"].copy(), np.empty((NUM_FIGURES, len(runs)))
        average_actions(runs, parameters, means)
        trials, starts = breed_runs(state, parameters, problems.lower, problems.upper, codes)
        select_runs(state, starts, trials, problems.evaluate_ragged(trials, starts), codes)
        outcome = self._describe(state)
        outcome.figures[:BEST_ERROR] = means[:BEST_ERROR]
        judged = judge_runs(runs, state.fitness[:, 0], error_before, codes, outcome.figures, outcome.flags)
        return outcome._replace(num_ended=judged[0]), judged[1]

    def _describe(self, state: RunState) -> Outcome:
        """Return the outcome of having done nothing, as far as compiled code writes it."""
        settings = self.settings
        outcome = empty_outcome(len(state.runs), state.positions.shape[2], settings.compiled_size)
        outcome.figures[:BEST_ERROR] = 0.0
        describe_runs(state, outcome.figures, outcome.counts, outcome.best_positions)
        observe_runs(state, settings.codes, settings.parts, outcome.observations)
        return outcome

    def _with_python_parts(self, outcome: Outcome, state: RunState, problems: ProblemBatch) -> Outcome:
        """Return the outcome with observations that include the parts which are Python functions."""
        if len(self.settings.compiled_parts) == len(self.settings.observation):
            return outcome
        joined = _join(outcome.observations, state, self.settings, problems.lower, problems.upper)
        return outcome._replace(observations=joined)

    def parameters(self, state: RunState, actions: FloatArray) -> dict[str, FloatArray]:
        """Return F and CR of the first run's individuals, by rank."""
        expanded = self.settings.action_map.expand(actions, state.runs, self.settings.capacity)
        factors, rates = np.split(expanded[0].copy(), 2)
        size = state.runs["size"][0]
        return {"F": factors[:size], "CR": rates[:size]}

    def populations(self, state: RunState) -> dict[str, FloatArray]:
        """Return the first run's population, best first."""
        return {"population": ranked_positions(state)[0]}


def start(
    positions: FloatArray, fitness: FloatArray, optimum: FloatArray, keys: KeyArray, settings: EnvSettings
) -> RunState:
    """Return the state of R runs at generation 0.

    Where no minimum is known, errors count from as far below the best initial value as the worst initial value
    lies above it: rewards then measure improvement against the first population's spread.

    Args:
        positions: Initial positions, shape (R, N, D).
        fitness: Their values, shape (R, N).
        optimum: Minimum of each run's problem, NaN where unknown, shape (R,).
        keys: What each run's random numbers follow from, shape (R,).
        settings: The decision process.
    """
    num_runs, size, dimension = positions.shape
    num_archived = round(settings.population.archive_share * size)
    order = np.argsort(fitness, axis=1, kind="stable")
    sorted_fitness = np.take_along_axis(fitness, order, axis=1)
    runs = np.zeros(num_runs, RUN)
    runs["key"], runs["evaluations"], runs["size"] = keys, size, size
    note_reference(runs, sorted_fitness, optimum)
    state = RunState(
        runs=runs,
        positions=np.concatenate([positions, np.zeros((num_runs, num_archived, dimension))], axis=1),
        order=order,
        fitness=sorted_fitness,
        history=empty_history(num_runs, settings.num_bins, settings.history_window),
        histogram=np.empty((num_runs, settings.num_bins)),
    )
    summarize(state, np.empty(fitness.shape))
    runs["initial_error"] = runs["best_error"]
    return state


def observe(state: RunState, settings: EnvSettings, lower: FloatArray, upper: FloatArray) -> Float32Array:
    """Return the observations, a fresh array of shape (R, O), given bounds (R, D)."""
    observations = np.empty((len(state.runs), settings.compiled_size), np.float32)
    observe_runs(state, settings.codes, settings.parts, observations)
    return _join(observations, state, settings, lower, upper)


def observation_bounds(settings: EnvSettings) -> tuple[Float32Array, Float32Array]:
    """Return the lower and the upper bound of every entry of an observation, each of shape (O,)."""
    bin_scale, sizes = (
        float(settings.codes["bin_scale"][0]),
        [settings.part_size(part) for part in settings.observation],
    )
    lows = [0.0 if isinstance(part, str) else part.low for part in settings.observation]
    highs = [FEATURES[part].high(bin_scale) if isinstance(part, str) else part.high for part in settings.observation]
    return np.repeat(np.array(lows, np.float32), sizes), np.repeat(np.array(highs, np.float32), sizes)


def _join(
    compiled: Float32Array, state: RunState, settings: EnvSettings, lower: FloatArray, upper: FloatArray
) -> Float32Array:
    """Return whole observations (R, O), given the parts (R, O') that compiled code wrote."""
    names = settings.compiled_parts
    if len(names) == len(settings.observation):
        return compiled
    ends = np.cumsum([settings.part_size(name) for name in names]).tolist()
    built_in = {name: compiled[:, end - settings.part_size(name) : end] for name, end in zip(names, ends, strict=True)}
    return join_parts(settings.observation, built_in, _views(state, settings, lower, upper))


def _views(state: RunState, settings: EnvSettings, lower: FloatArray, upper: FloatArray) -> RunViews:
    """Return what functions of the user see."""
    runs = state.runs
    budgets = np.full(len(runs), settings.max_evaluations)
    progress = runs["size"], runs["generation"], runs["evaluations"], budgets
    return RunViews(state.positions, state.order, state.fitness, *progress, lower, upper)
