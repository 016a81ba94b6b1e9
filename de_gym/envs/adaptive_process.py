"""The decision process of an adaptive Differential Evolution whose own rules act and whose agent adjusts them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from de_gym.arrays import Float32Array, FloatArray, IntArray, RunArray
from de_gym.checks import LARGEST_SIZE, optional_whole, real
from de_gym.controllers.training_envs import TrainingEnv
from de_gym.envs.extensions import (
    Observation,
    RewardFunction,
    RunView,
    check_observation,
    check_reward,
    compute_rewards,
    find_reward,
    join_parts,
)
from de_gym.envs.judging import (
    BEST_ERROR,
    BEST_FITNESS,
    EVALUATIONS,
    GENERATION,
    MEAN_CROSSOVER_RATE,
    MEAN_SCALE_FACTOR,
    REWARD,
    find_reference,
    judge_runs,
    warn_of_mistaken_optimum,
)
from de_gym.envs.process import Outcome, empty_outcome
from de_gym.envs.settings import CODES, NO_LIMIT, reward_code
from de_gym.envs.state import RUN
from de_gym.evolution import two_population
from de_gym.evolution.residuals import set_parameters
from de_gym.evolution.top_and_front import FRONT, MAIN, SMALLEST_SIZE, TOP, TwoPopulations
from de_gym.machine.streams import KeyArray
from de_gym.problems import ProblemBatch
from de_gym.problems.budgets import default_max_evaluations
from de_gym.registry import known_name

ADAPTIVE_SHELLS = {"l-srtde": "l-srtde"}
FEATURE_NAMES = tuple(feature.name for feature in two_population.FEATURES)


@dataclass(frozen=True)
class AdaptiveSettings:
    """Choices of ``AdaptiveDEControl-v0``.

    Attributes:
        shell: The adaptive algorithm, "l-srtde".
        population_size: Individuals N of the first population; None for the algorithm's own choice.
        max_evaluations: Evaluation budget (termination); None for 10 000 per coordinate.
        max_generations: Generation limit (truncation); None for no limit.
        target_error: Error below which the run counts as solved (termination).
        reward: Name in ``REWARDS``, a registered one, or a Python function of the best error before a generation,
            after it and of the initial population.
        observation: Names in ``FEATURE_NAMES``, registered ones, ``Observation`` objects or Python functions, in order.
    """

    shell: str = "l-srtde"
    population_size: int | None = None
    max_evaluations: int | None = None
    max_generations: int | None = None
    target_error: float = 1e-8
    reward: str | RewardFunction = "log"
    observation: tuple[str | Observation, ...] = FEATURE_NAMES

    def __post_init__(self) -> None:
        """Reject what no run could be made of, and store plain numbers."""
        smallest = SMALLEST_SIZE
        for name, value in (
            ("population_size", optional_whole("population_size", self.population_size, smallest, LARGEST_SIZE)),
            ("max_evaluations", optional_whole("max_evaluations", self.max_evaluations, 1)),
            ("max_generations", optional_whole("max_generations", self.max_generations, 1)),
            ("target_error", real("target_error", self.target_error, 0.0)),
            ("observation", check_observation(self.observation, FEATURE_NAMES)),
            ("shell", known_name("shell", self.shell, ADAPTIVE_SHELLS)),
            ("reward", check_reward(self.reward)),
        ):
            object.__setattr__(self, name, value)
        size, budget = self.population_size, self.max_evaluations
        if budget is not None and budget <= (size or smallest):
            raise ValueError(
                f"`max_evaluations` must pay for more than the initial population of at least {size or smallest}, "
                f"got {budget}."
            )

    def resolved(self, dimension: int) -> AdaptiveSettings:
        """Return the settings with sizes that were left open chosen for this number of coordinates."""
        budget = default_max_evaluations(dimension) if self.max_evaluations is None else self.max_evaluations
        size = self.population_size or two_population.initial_size(dimension, budget)
        return dataclasses.replace(self, population_size=size, max_evaluations=budget)

    def training_env(self, dimension: int | None) -> TrainingEnv:
        """Return what a policy that was trained with these settings needs.

        A population size that is the algorithm's own choice is chosen anew wherever the policy is used.
        """
        size, budget = self.population_size, self.max_evaluations
        if dimension is not None and budget is not None and size == two_population.initial_size(dimension, budget):
            size = None
        settings = {"shell": self.shell, "observation": self.observation}
        return TrainingEnv(settings, size, is_residual=True, action_size=len(two_population.CONTROLS))

    @cached_property
    def codes(self) -> RunArray:
        """The numbers that judging takes: one record of ``CODES``."""
        codes = np.zeros(1, CODES)
        codes["reward"] = reward_code(self.reward)
        codes["max_evaluations"] = self.max_evaluations
        codes["max_generations"] = NO_LIMIT if self.max_generations is None else self.max_generations
        codes["target_error"] = self.target_error
        return codes


class AdaptiveState(NamedTuple):
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
    """

    runs: RunArray
    lower: FloatArray
    upper: FloatArray
    shell_runs: RunArray
    positions: FloatArray
    rows: IntArray
    fitness: FloatArray
    ranking: IntArray
    successes: RunArray
    memory: FloatArray
    basis: FloatArray


def _populations(state: AdaptiveState) -> TwoPopulations:
    return TwoPopulations(*state[3:])


def _bounds(state: AdaptiveState) -> tuple[FloatArray, FloatArray]:
    return state.lower, state.upper


class AdaptiveProcess:
    """The process of ``AdaptiveDEControl-v0``: actions are residuals around the algorithm's own rules."""

    action_low: float = -1.0
    step_figures: tuple[str, ...] = ("success_rate", "mean_scale_factor", "mean_crossover_rate")

    def __init__(self, settings: AdaptiveSettings) -> None:
        """Store settings that are resolved for a dimension."""
        assert settings.population_size is not None
        self.settings = settings
        self.population_size = settings.population_size
        self.controls = tuple(control.name for control in two_population.CONTROLS)
        self.features = observation_names(settings.observation)
        self.action_size = len(self.controls)
        self.observation_low, self.observation_high = observation_bounds(settings.observation)
        self._reward = find_reward(settings.reward)

    def start(self, problems: ProblemBatch, positions: FloatArray, keys: KeyArray) -> AdaptiveState:
        """Return the state of R runs that begin with these positions (R, N, D)."""
        num_runs, size, dimension = positions.shape
        values = problems.evaluate(positions)
        points, starts = positions.reshape(-1, dimension), np.arange(num_runs + 1) * size
        budget, bounds = self.settings.max_evaluations, (problems.lower, problems.upper)
        assert budget is not None
        populations = two_population.start(keys, points, starts, values.reshape(-1), budget, *bounds)
        runs = np.zeros(num_runs, RUN)
        runs["has_optimum"] = np.isfinite(problems.optimum)
        runs["reference"] = find_reference(np.sort(values, axis=1), problems.optimum)
        state = AdaptiveState(runs, problems.lower.copy(), problems.upper.copy(), *populations)
        self._follow(state)
        runs["initial_error"] = runs["best_error"]
        return state

    def describe(self, state: AdaptiveState, problems: ProblemBatch) -> Outcome:
        """Return a description of the state, and zeros."""
        outcome = empty_outcome(len(state.runs), state.lower.shape[1], len(self.features))
        outcome.figures[:BEST_ERROR] = 0.0
        features = two_population.observe(_populations(state), state.lower, state.upper)
        outcome.observations[:] = observe(self.settings.observation, features, _populations(state), *_bounds(state))
        self._describe(state, outcome)
        return outcome

    def advance(self, state: AdaptiveState, problems: ProblemBatch, actions: FloatArray) -> Outcome:
        """Turn the state into that of one generation later, by checked residuals (R, A)."""
        populations, error_before = _populations(state), state.runs["best_error"].copy()
        parameters = set_parameters(populations.runs, actions)
        before = None if self._reward is None else state.runs.copy()
        features = two_population.advance(populations, problems, actions)
        self._follow(state)
        outcome = empty_outcome(len(state.runs), state.lower.shape[1], len(self.features))
        outcome.observations[:] = observe(self.settings.observation, features, populations, *_bounds(state))
        outcome.figures[MEAN_SCALE_FACTOR] = np.clip(parameters["mean_scale_factor"], 0.0, 1.0)
        rates = populations.memory[:, MAIN].mean(axis=1) + parameters["crossover_shift"]
        outcome.figures[MEAN_CROSSOVER_RATE] = np.clip(rates, 0.0, 1.0)
        self._describe(state, outcome)
        best = populations.runs["best_fitness"].copy()
        num_ended, num_mistaken = judge_runs(
            state.runs, best, error_before, self.settings.codes, outcome.figures, outcome.flags
        )
        if self._reward is not None and before is not None:
            outcome.figures[REWARD] = compute_rewards(self._reward, before, state.runs)
        warn_of_mistaken_optimum(num_mistaken)
        return outcome._replace(num_ended=num_ended)

    def parameters(self, state: AdaptiveState, actions: FloatArray) -> dict[str, FloatArray]:
        """Return the first run's residuals by the names of the controls."""
        return {name: actions[0, index : index + 1].copy() for index, name in enumerate(self.controls)}

    def populations(self, state: AdaptiveState) -> dict[str, FloatArray]:
        """Return the first run's two populations, the best points found and the newest successes."""
        size = int(state.shell_runs["size"][0])
        top = state.positions[0, TOP, state.rows[0, TOP, :size]].copy()
        slots = state.ranking[0, :size]
        return {"top": top, "front": state.positions[0, FRONT, state.rows[0, FRONT, slots]].copy()}

    def _follow(self, state: AdaptiveState) -> None:
        """Note in the records of ``RUN`` what the shell did."""
        runs, shell_runs = state.runs, state.shell_runs
        runs["num_trials"] = np.maximum(shell_runs["evaluations"] - runs["evaluations"], 1)
        for name in ("key", "generation", "evaluations", "num_successes"):
            runs[name] = shell_runs[name]
        # A run makes use of its budget to the last evaluation.
        runs["size"] = 1
        runs["best_error"] = np.maximum(shell_runs["best_fitness"] - runs["reference"], 0.0)

    def _describe(self, state: AdaptiveState, outcome: Outcome) -> None:
        """Write what an outcome says of the state."""
        runs = np.arange(len(state.runs))
        outcome.figures[BEST_ERROR] = state.runs["best_error"]
        outcome.figures[BEST_FITNESS] = state.shell_runs["best_fitness"]
        outcome.counts[EVALUATIONS], outcome.counts[GENERATION] = state.runs["evaluations"], state.runs["generation"]
        outcome.best_positions[:] = state.positions[runs, TOP, state.rows[runs, TOP, 0]]


def observation_names(parts: Sequence[str | Observation]) -> tuple[str, ...]:
    """Return the name of every entry of an observation; those of a Python function have its name."""
    names: list[str] = []
    for part in parts:
        names += [part] if isinstance(part, str) else [part.name] * part.size
    return tuple(names)


def observation_bounds(parts: Sequence[str | Observation]) -> tuple[Float32Array, Float32Array]:
    """Return the lower and the upper bound of every entry of an observation, each of shape (O,)."""
    largest = two_population.LARGEST_FEATURE
    ranges = [(1, -largest, largest) if isinstance(part, str) else (part.size, part.low, part.high) for part in parts]
    sizes, lows, highs = zip(*ranges, strict=True)
    return np.repeat(np.array(lows, np.float32), sizes), np.repeat(np.array(highs, np.float32), sizes)


def observe(
    parts: Sequence[str | Observation],
    features: Float32Array,
    populations: TwoPopulations,
    lower: FloatArray,
    upper: FloatArray,
) -> Float32Array:
    """Return observations (R, O) of the given parts.

    Args:
        parts: What they consist of, in order.
        features: All of ``FEATURE_NAMES``, shape (R, F).
        populations: R runs, which Python functions look at.
        lower: Lower bounds, shape (R, D).
        upper: Upper bounds, shape (R, D).
    """
    if tuple(parts) == FEATURE_NAMES:
        return features
    built_in = {name: features[:, index : index + 1] for index, name in enumerate(FEATURE_NAMES)}
    has_functions = not all(isinstance(part, str) for part in parts)
    return join_parts(parts, built_in, _views(populations, lower, upper) if has_functions else [])


def _views(populations: TwoPopulations, lower: FloatArray, upper: FloatArray) -> list[RunView]:
    """Return what Python functions see of each run: the best points found, and the run's progress."""
    views = []
    for index, run in enumerate(populations.runs):
        alive = populations.rows[index, TOP, : run["size"]]
        views.append(
            RunView(
                positions=populations.positions[index, TOP, alive],
                fitness=populations.fitness[index, TOP, : run["size"]].copy(),
                generation=int(run["generation"]),
                evaluations=int(run["evaluations"]),
                max_evaluations=int(run["max_evaluations"]),
                lower=lower[index].copy(),
                upper=upper[index].copy(),
            )
        )
    return views
