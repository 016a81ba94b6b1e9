"""EnvSettings: every choice that defines the decision process, written and checked once."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np

from de_gym.arrays import IntArray, RunArray
from de_gym.checks import LARGEST_SIZE, fraction, optional_whole, real, shown, whole
from de_gym.controllers.training_envs import TrainingEnv
from de_gym.envs.actions import ACTIONS, ActionMap
from de_gym.envs.extensions import Observation, RewardFunction, check_observation, check_reward
from de_gym.envs.features import FEATURES
from de_gym.envs.rewards import REWARDS
from de_gym.envs.shells import CONSTANT_PBEST, PBEST_SCHEDULES, SHELLS, Shell
from de_gym.machine.breeding import BOUND_REPAIRS
from de_gym.problems.budgets import BudgetTooSmall, default_max_evaluations
from de_gym.registry import known_name, unknown_name_message

HISTOGRAM_KINDS = {"fractions": "fractions", "counts": "counts"}


@dataclass(frozen=True)
class EnvSettings:
    """The decision process of one run; the defaults are the LDE paper's where it states one.

    Attributes:
        population_size: Individuals N; None for the paper's 50 at n = 10 and 100 at n = 30, 25 + 2.5 n in general.
        max_evaluations: Evaluation budget (termination); None for 10 000 per coordinate.
        num_bins: Histogram bins b.
        history_window: Past generations g in the moving average; None averages over all of them.
        max_generations: Generation limit T (truncation); None for no limit.
        target_error: Error below which the run counts as solved (termination).
        shell: Name in ``SHELLS``: "pbest", or "l-shade" with an archive and a population that shrinks.
        pbest: Name in ``PBEST_SCHEDULES``, "linear" (from all of the population to the best two as the budget is
            spent), or a constant fraction in (0, 1].
        bound_repair: Name in ``BOUND_REPAIRS``: "midpoint", "clip", "reflect" or "resample".
        action: Name in ``ACTIONS``: "by_rank", "knots" or "mean_and_spread".
        reward: Name in ``REWARDS``, "relative", "log" or "initial_gap", a registered one, or a Python function of the
            best error before a generation, after it and of the initial population.
        histogram: "fractions" of the population, or "counts" of individuals.
        observation: Names in ``FEATURES``, registered ones, ``Observation`` objects or Python functions, in order.
    """

    population_size: int | None = None
    max_evaluations: int | None = None
    num_bins: int = 5
    history_window: int | None = 5
    max_generations: int | None = 50
    target_error: float = 1e-8
    shell: str = "pbest"
    pbest: str | float = "linear"
    bound_repair: str = "midpoint"
    action: str = "by_rank"
    reward: str | RewardFunction = "relative"
    histogram: str = "fractions"
    observation: tuple[str | Observation, ...] = ("fitness", "histogram", "mean_past_histogram")

    def __post_init__(self) -> None:
        """Reject what no run could be made of, and store plain numbers."""
        self._store(
            population_size=optional_whole("population_size", self.population_size, 4, LARGEST_SIZE),
            max_evaluations=optional_whole("max_evaluations", self.max_evaluations, 1),
            num_bins=whole("num_bins", self.num_bins, 1, LARGEST_SIZE),
            history_window=optional_whole("history_window", self.history_window, 1, LARGEST_SIZE),
            max_generations=optional_whole("max_generations", self.max_generations, 1),
            target_error=real("target_error", self.target_error, 0.0),
            observation=check_observation(self.observation, tuple(FEATURES)),
            shell=known_name("shell", self.shell, SHELLS),
            pbest=_checked_pbest(self.pbest),
            bound_repair=known_name("bound repair", self.bound_repair, BOUND_REPAIRS),
            action=known_name("action", self.action, ACTIONS),
            reward=check_reward(self.reward),
            histogram=known_name("histogram kind", self.histogram, HISTOGRAM_KINDS),
        )
        size, budget = self.population_size, self.max_evaluations
        if size is not None and budget is not None and budget < 2 * size:
            raise BudgetTooSmall(
                f"`max_evaluations` must pay for the initial population and one generation, that is at least "
                f"{2 * size} with a population of {size}, got {budget}."
            )

    def _store(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def resolved(self, dimension: int) -> EnvSettings:
        """Return the settings with sizes that were left open chosen for this number of coordinates."""
        size, budget = self.population_size, self.max_evaluations
        return dataclasses.replace(
            self,
            population_size=default_population_size(dimension) if size is None else size,
            max_evaluations=default_max_evaluations(dimension) if budget is None else budget,
        )

    def training_env(self, dimension: int | None) -> TrainingEnv:
        """Return what a policy that was trained with these settings needs; sizes left open follow from a dimension."""
        if self.population_size is None and dimension is None:
            raise ValueError("The settings that a policy was trained with must name its `population_size`, got None.")
        settings = self if dimension is None else self.resolved(dimension)
        return TrainingEnv(
            settings={name: getattr(self, name) for name in POLICY_SETTINGS},
            population_size=settings.population_size,
            is_residual=False,
            action_size=settings.action_size,
        )

    @cached_property
    def capacity(self) -> int:
        """Individuals N of the initial population, once resolved."""
        assert self.population_size is not None
        return self.population_size

    @cached_property
    def population(self) -> Shell:
        """What the populations are like."""
        return SHELLS[self.shell]

    @cached_property
    def action_map(self) -> ActionMap:
        """What an action means."""
        return ACTIONS[self.action]

    @cached_property
    def action_size(self) -> int:
        """Numbers of an action, A."""
        return self.action_map.size(self.capacity)

    @cached_property
    def codes(self) -> RunArray:
        """The settings as the numbers that compiled code takes: one record of ``CODES``."""
        codes = np.zeros(1, CODES)
        has_schedule = isinstance(self.pbest, str)
        codes["bound_repair"] = BOUND_REPAIRS[self.bound_repair]
        codes["has_window"] = self.history_window is not None
        codes["pbest_schedule"] = PBEST_SCHEDULES[str(self.pbest)] if has_schedule else CONSTANT_PBEST
        codes["pbest_constant"] = math.nan if has_schedule else float(self.pbest)
        codes["reward"] = reward_code(self.reward)
        codes["max_evaluations"] = self.max_evaluations
        codes["max_generations"] = NO_LIMIT if self.max_generations is None else self.max_generations
        codes["target_error"] = self.target_error
        codes["bin_scale"] = self.capacity if self.histogram == "counts" else 1.0
        codes["final_size"] = self.population.final_size or self.capacity
        return codes

    @cached_property
    def parts(self) -> IntArray:
        """Positions in ``FEATURES`` of the observation's parts that compiled code writes."""
        return np.array([list(FEATURES).index(name) for name in self.compiled_parts], np.int64)

    @cached_property
    def compiled_parts(self) -> tuple[str, ...]:
        """Names of the observation's parts that compiled code writes, in order."""
        return tuple(part for part in self.observation if isinstance(part, str))

    @cached_property
    def compiled_size(self) -> int:
        """Entries that compiled code writes."""
        return sum(self.part_size(name) for name in self.compiled_parts)

    def part_size(self, part: str | Observation) -> int:
        """Return the number of entries of one of the observation's parts."""
        return FEATURES[part].size(self.capacity, self.num_bins) if isinstance(part, str) else part.size


POLICY_SETTINGS = (
    "shell",
    "num_bins",
    "history_window",
    "histogram",
    "observation",
    "pbest",
    "bound_repair",
    "action",
)
"""What actions depend on; the rest of the settings say when and how a policy is trained."""

CODES = np.dtype(
    [
        ("bound_repair", "i8"),  # a value of BOUND_REPAIRS
        ("has_window", "?"),  # whether the moving average has a window
        ("pbest_schedule", "i8"),  # a value of PBEST_SCHEDULES, or CONSTANT_PBEST
        ("pbest_constant", "f8"),  # the constant fraction, if any
        ("reward", "i8"),  # position in REWARDS
        ("max_evaluations", "i8"),
        ("max_generations", "i8"),  # one that no run reaches where there is no limit
        ("target_error", "f8"),
        ("bin_scale", "f8"),  # what a full bin of a histogram counts: 1 as a fraction, N as a count
        ("final_size", "i8"),  # individuals left when the budget is spent
    ],
    align=True,
)
# A number of generations that no run reaches.
NO_LIMIT = 2**62


def _checked_pbest(pbest: object) -> str | float:
    """Return the name of a schedule, or a constant fraction above 0."""
    if isinstance(pbest, str):
        return known_name("schedule for `pbest`", pbest, PBEST_SCHEDULES, "a fraction in (0, 1]")
    share = fraction("pbest", pbest)
    if share == 0.0:
        raise ValueError(f"`pbest` must be a schedule's name or a fraction in (0, 1], got {shown(pbest)}.")
    return share


def reward_code(reward: str | RewardFunction) -> int:
    """Return what compiled code switches on; where the reward is a Python function, any, which that then replaces."""
    return list(REWARDS).index(reward) if isinstance(reward, str) and reward in REWARDS else 0


class _Resolvable(Protocol):
    """Settings whose open sizes can be chosen for a number of coordinates."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def max_generations(self) -> int | None:
        """The limit of an episode."""
        ...

    def resolved(self, dimension: int) -> Self:
        """Return the settings without open sizes."""
        ...


Settings = TypeVar("Settings", bound=_Resolvable)


def make_settings(kind: type[Settings], dimension: int, options: dict[str, Any]) -> Settings:
    """Return the settings that an environment's keyword arguments describe, resolved for a dimension.

    Gymnasium wraps single environments to obey its own ``max_episode_steps``, and passes it on to native vector ones.
    """
    names = [field.name for field in dataclasses.fields(kind)]
    steps = optional_whole("max_episode_steps", options.pop("max_episode_steps", None), 1)
    for name in options:
        if name not in names:
            choices = [*names, "suite", "functions", "dimension", "problems"]
            raise TypeError(unknown_name_message("argument", name, choices))
    settings = kind(**options)
    limits = [limit for limit in (steps, settings.max_generations) if limit is not None]
    return dataclasses.replace(settings, max_generations=min(limits, default=None)).resolved(dimension)


def default_population_size(dimension: int) -> int:
    """Return the paper's population size: 50 at n = 10 and 100 at n = 30, on the straight line between and beyond."""
    return max(25, 25 + round(2.5 * dimension))
