"""The decision process of an adaptive Differential Evolution whose own rules act and whose agent adjusts them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np

from de_gym.arrays import Float32Array, FloatArray, RunArray
from de_gym.checks import LARGEST_SIZE, optional_whole, real
from de_gym.controllers.training_envs import TrainingEnv
from de_gym.envs.adaptive_shells import AdaptiveShell, AdaptiveState
from de_gym.envs.extensions import (
    Observation,
    RewardFunction,
    check_observation,
    check_reward,
    compute_rewards,
    find_reward,
    join_parts,
)
from de_gym.envs.process import (
    BEST_ERROR,
    BEST_FITNESS,
    EVALUATIONS,
    GENERATION,
    MEAN_CROSSOVER_RATE,
    MEAN_SCALE_FACTOR,
    REWARD,
    Outcome,
    empty_outcome,
    judge_runs,
    note_reference,
)
from de_gym.envs.run_views import RunViews
from de_gym.envs.settings import CODES, NO_LIMIT, reward_code
from de_gym.envs.success_history_shell import SuccessHistoryShell
from de_gym.envs.two_population_shell import TwoPopulationShell, run_views
from de_gym.machine.scale_free import LARGEST_FEATURE
from de_gym.machine.streams import KeyArray
from de_gym.machine.top_and_front import TwoPopulations
from de_gym.problems import ProblemBatch
from de_gym.problems.budgets import BudgetTooSmall, default_max_evaluations
from de_gym.problems.minima import warn_of_mistaken_optimum
from de_gym.registry import known_name

ADAPTIVE_SHELLS: Mapping[str, AdaptiveShell] = MappingProxyType(
    {"l-srtde": TwoPopulationShell(), "jso": SuccessHistoryShell()}
)
FEATURE_NAMES = TwoPopulationShell.features
_SMALLEST_SIZE = 4


@dataclass(frozen=True)
class AdaptiveSettings:
    """Choices of ``AdaptiveDEControl-v0``.

    Attributes:
        shell: The adaptive algorithm, a name of ``ADAPTIVE_SHELLS``.
        population_size: Individuals N of the first population; None for the algorithm's own choice.
        max_evaluations: Evaluation budget (termination); None for 10 000 per coordinate.
        max_generations: Generation limit (truncation); None for no limit.
        target_error: Error below which the run counts as solved (termination).
        reward: Name in ``REWARDS``, a registered one, or a Python function of the best error before a generation,
            after it and of the initial population.
        observation: Names of the algorithm's features, registered ones, ``Observation`` objects or Python functions,
            in order; None for all features.
    """

    shell: str = "l-srtde"
    population_size: int | None = None
    max_evaluations: int | None = None
    max_generations: int | None = None
    target_error: float = 1e-8
    reward: str | RewardFunction = "log"
    observation: tuple[str | Observation, ...] | None = None

    def __post_init__(self) -> None:
        """Reject what no run could be made of, and store plain numbers."""
        shell = known_name("shell", self.shell, ADAPTIVE_SHELLS)
        algorithm = ADAPTIVE_SHELLS[shell]
        parts = algorithm.features if self.observation is None else self.observation
        for name, value in (
            ("population_size", optional_whole("population_size", self.population_size, _SMALLEST_SIZE, LARGEST_SIZE)),
            ("max_evaluations", optional_whole("max_evaluations", self.max_evaluations, 1)),
            ("max_generations", optional_whole("max_generations", self.max_generations, 1)),
            ("target_error", real("target_error", self.target_error, 0.0)),
            ("observation", check_observation(parts, algorithm.features)),
            ("shell", shell),
            ("reward", check_reward(self.reward)),
        ):
            object.__setattr__(self, name, value)
        size, budget = self.population_size or _SMALLEST_SIZE, self.max_evaluations
        if budget is not None and budget < algorithm.smallest_budget(size):
            raise BudgetTooSmall(
                f"`max_evaluations` must pay for more than the initial population, that is at least "
                f"{algorithm.smallest_budget(size)} with a population of {size}, got {budget}."
            )

    def resolved(self, dimension: int) -> AdaptiveSettings:
        """Return the settings with sizes that were left open chosen for this number of coordinates."""
        budget = default_max_evaluations(dimension) if self.max_evaluations is None else self.max_evaluations
        size = self.population_size or self.algorithm.initial_size(dimension, budget)
        return dataclasses.replace(self, population_size=size, max_evaluations=budget)

    def training_env(self, dimension: int | None) -> TrainingEnv:
        """Return what a policy that was trained with these settings needs.

        A population size that is the algorithm's own choice is chosen anew wherever the policy is used.
        """
        size, budget = self.population_size, self.max_evaluations
        if dimension is not None and budget is not None and size == self.algorithm.initial_size(dimension, budget):
            size = None
        settings = {"shell": self.shell, "observation": self.observation}
        return TrainingEnv(settings, size, is_residual=True, action_size=len(self.algorithm.controls))

    @property
    def algorithm(self) -> AdaptiveShell:
        """The algorithm that the shell's name means."""
        return ADAPTIVE_SHELLS[self.shell]

    @property
    def parts(self) -> tuple[str | Observation, ...]:
        """What an observation consists of."""
        assert self.observation is not None
        return self.observation

    @cached_property
    def codes(self) -> RunArray:
        """The numbers that judging takes: one record of ``CODES``."""
        codes = np.zeros(1, CODES)
        codes["reward"] = reward_code(self.reward)
        codes["max_evaluations"] = self.max_evaluations
        codes["max_generations"] = NO_LIMIT if self.max_generations is None else self.max_generations
        codes["target_error"] = self.target_error
        return codes


class AdaptiveProcess:
    """The process of ``AdaptiveDEControl-v0``: actions are residuals around the algorithm's own rules."""

    action_low: float = -1.0
    step_figures: tuple[str, ...] = ("success_rate", "mean_scale_factor", "mean_crossover_rate")

    def __init__(self, settings: AdaptiveSettings) -> None:
        """Store settings that are resolved for a dimension."""
        assert settings.population_size is not None
        self.settings = settings
        self.population_size = settings.population_size
        self.controls = settings.algorithm.controls
        self.features = observation_names(settings.parts)
        self.action_size = len(self.controls)
        self.observation_low, self.observation_high = observation_bounds(settings.parts)
        self._shell = settings.algorithm
        self._reward = find_reward(settings.reward)

    def start(self, problems: ProblemBatch, positions: FloatArray, keys: KeyArray) -> AdaptiveState:
        """Return the state of R runs that begin with these positions (R, N, D)."""
        assert self.settings.max_evaluations is not None
        values = problems.evaluate(positions)
        state = self._shell.start(problems, positions, values, keys, self.settings.max_evaluations)
        state.runs["key"] = keys
        note_reference(state.runs, np.sort(values, axis=1), problems.optimum)
        self._follow(state)
        state.runs["initial_error"] = state.runs["best_error"]
        return state

    def describe(self, state: AdaptiveState, problems: ProblemBatch) -> Outcome:
        """Return a description of the state, and zeros."""
        return self._outcome(state, self._shell.observe(state))

    def advance(self, state: AdaptiveState, problems: ProblemBatch, actions: FloatArray) -> Outcome:
        """Turn the state into that of one generation later, by checked residuals (R, A)."""
        before = state.runs.copy()
        generation = self._shell.advance(state, problems, actions)
        self._follow(state)
        outcome = self._outcome(state, generation.features)
        outcome.figures[MEAN_SCALE_FACTOR] = generation.mean_scale_factors
        outcome.figures[MEAN_CROSSOVER_RATE] = generation.mean_crossover_rates
        judged = before["best_error"].copy(), self.settings.codes, outcome.figures, outcome.flags
        num_ended, num_mistaken = judge_runs(state.runs, outcome.figures[BEST_FITNESS].copy(), *judged)
        if self._reward is not None:
            outcome.figures[REWARD] = compute_rewards(self._reward, before, state.runs)
        warn_of_mistaken_optimum(num_mistaken)
        return outcome._replace(num_ended=num_ended)

    def parameters(self, state: AdaptiveState, actions: FloatArray) -> dict[str, FloatArray]:
        """Return the first run's residuals by the names of the controls."""
        return {name: actions[0, index : index + 1].copy() for index, name in enumerate(self.controls)}

    def populations(self, state: AdaptiveState) -> dict[str, FloatArray]:
        """Return the first run's populations, for pictures."""
        return self._shell.populations(state)

    def _follow(self, state: AdaptiveState) -> None:
        """Note in the records of ``RUN`` what the algorithm did."""
        runs, following = state.runs, self._shell.follow(state)
        for name in ("generation", "num_trials", "num_successes", "evaluations"):
            runs[name] = getattr(following, name)
        runs["size"] = following.next_size
        runs["best_error"] = np.maximum(following.best_fitness - runs["reference"], 0.0)

    def _outcome(self, state: AdaptiveState, features: Float32Array) -> Outcome:
        """Return what there is to say of a state, and zeros for what a generation was worth."""
        parts, shell = self.settings.parts, self._shell
        outcome = empty_outcome(len(state.runs), state.lower.shape[1], len(self.features))
        outcome.figures[:BEST_ERROR] = 0.0
        outcome.observations[:] = join_features(parts, shell.features, features, lambda: shell.views(state))
        outcome.figures[BEST_ERROR] = state.runs["best_error"]
        outcome.figures[BEST_FITNESS] = shell.follow(state).best_fitness
        outcome.counts[EVALUATIONS], outcome.counts[GENERATION] = state.runs["evaluations"], state.runs["generation"]
        outcome.best_positions[:] = shell.best_positions(state)
        return outcome


def observation_names(parts: Sequence[str | Observation]) -> tuple[str, ...]:
    """Return the name of every entry of an observation; those of a Python function have its name."""
    names: list[str] = []
    for part in parts:
        names += [part] if isinstance(part, str) else [part.name] * part.size
    return tuple(names)


def observation_bounds(parts: Sequence[str | Observation]) -> tuple[Float32Array, Float32Array]:
    """Return the lower and the upper bound of every entry of an observation, each of shape (O,)."""
    largest = LARGEST_FEATURE
    ranges = [(1, -largest, largest) if isinstance(part, str) else (part.size, part.low, part.high) for part in parts]
    sizes, lows, highs = zip(*ranges, strict=True)
    return np.repeat(np.array(lows, np.float32), sizes), np.repeat(np.array(highs, np.float32), sizes)


def join_features(
    parts: Sequence[str | Observation],
    names: tuple[str, ...],
    features: Float32Array,
    views: Callable[[], RunViews],
) -> Float32Array:
    """Return observations (R, O) of the given parts.

    Args:
        parts: What they consist of, in order.
        names: What the algorithm's features are called.
        features: All of them, shape (R, K).
        views: Returns what functions of the user see.
    """
    if tuple(parts) == names:
        return features
    built_in = {name: features[:, index : index + 1] for index, name in enumerate(names)}
    return join_parts(parts, built_in, views())


def observe(
    parts: Sequence[str | Observation],
    features: Float32Array,
    populations: TwoPopulations,
    lower: FloatArray,
    upper: FloatArray,
) -> Float32Array:
    """Return observations (R, O) of runs with two populations.

    Args:
        parts: What they consist of, in order.
        features: All of ``FEATURE_NAMES``, shape (R, F).
        populations: R runs, which functions of the user look at.
        lower: Lower bounds, shape (R, D).
        upper: Upper bounds, shape (R, D).
    """
    return join_features(parts, FEATURE_NAMES, features, lambda: run_views(populations, lower, upper))
