"""EnvSettings: every choice that defines the decision process, checked once at construction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from de_gym.arrays import IntArray
from de_gym.envs.observations import OBSERVATION_PARTS
from de_gym.envs.pbest import CONSTANT_PBEST, PBEST_SCHEDULES
from de_gym.envs.rewards import REWARDS
from de_gym.evolution import BOUND_REPAIRS
from de_gym.registry import lookup

HISTOGRAM_KINDS = {"fractions": "fractions", "counts": "counts"}
DEFAULT_OBSERVATION = ("fitness", "histogram", "mean_past_histogram")


@dataclass(frozen=True)
class EnvSettings:
    """The decision process of one run; the defaults are the LDE paper's where it states one.

    Attributes:
        population_size: Individuals N.
        num_bins: Histogram bins b.
        history_window: Past generations g in the moving average; None averages over all of them.
        max_generations: Generation limit T (truncation); None for no limit.
        max_evaluations: Evaluation budget (termination).
        target_error: Error below which the run counts as solved (termination).
        pbest: Name in ``PBEST_SCHEDULES``, or a constant fraction in (0, 1].
        bound_repair: Name in ``BOUND_REPAIRS``.
        reward: Name in ``REWARDS``.
        histogram: "fractions" of the population, or "counts" of individuals.
        observation: Names in ``OBSERVATION_PARTS``, in order.
    """

    population_size: int
    max_evaluations: int
    num_bins: int = 5
    history_window: int | None = 5
    max_generations: int | None = 50
    target_error: float = 1e-8
    pbest: str | float = "linear"
    bound_repair: str = "midpoint"
    reward: str = "relative"
    histogram: str = "fractions"
    observation: tuple[str, ...] = DEFAULT_OBSERVATION

    def __post_init__(self) -> None:
        """Reject what no run could be made of."""
        _at_least("population_size", self.population_size, 4)
        _at_least("num_bins", self.num_bins, 1)
        if self.history_window is not None:
            _at_least("history_window", self.history_window, 1)
        if self.max_generations is not None:
            _at_least("max_generations", self.max_generations, 1)
        if self.max_evaluations < 2 * self.population_size:
            raise ValueError(
                f"`max_evaluations` must pay for the initial population and one generation, that is at least "
                f"{2 * self.population_size} with a population of {self.population_size}, got {self.max_evaluations}."
            )
        if not (math.isfinite(self.target_error) and self.target_error >= 0):
            raise ValueError(f"`target_error` must be a finite number of at least 0, got {self.target_error}.")
        if isinstance(self.pbest, str):
            lookup("p-best schedule", self.pbest, PBEST_SCHEDULES)
        elif not 0 < self.pbest <= 1:
            raise ValueError(f"`pbest` must be a schedule's name or a fraction in (0, 1], got {self.pbest}.")
        lookup("bound repair", self.bound_repair, BOUND_REPAIRS)
        lookup("reward", self.reward, REWARDS)
        lookup("histogram kind", self.histogram, HISTOGRAM_KINDS)
        if not self.observation:
            raise ValueError(f"`observation` must name at least one part of {', '.join(OBSERVATION_PARTS)}, got none.")
        for part in self.observation:
            lookup("observation part", part, OBSERVATION_PARTS)

    @cached_property
    def codes(self) -> SettingsCodes:
        """The settings as the numbers that compiled code takes, found once."""
        has_schedule = isinstance(self.pbest, str)
        return SettingsCodes(
            bound_repair=BOUND_REPAIRS[self.bound_repair],
            has_window=self.history_window is not None,
            pbest_schedule=PBEST_SCHEDULES[str(self.pbest)] if has_schedule else CONSTANT_PBEST,
            pbest_constant=math.nan if has_schedule else float(self.pbest),
            max_evaluations=self.max_evaluations,
            max_generations=_NO_LIMIT if self.max_generations is None else self.max_generations,
            target_error=float(self.target_error),
            reward=list(REWARDS).index(self.reward),
            parts=np.array([list(OBSERVATION_PARTS).index(name) for name in self.observation]),
            bin_scale=float(self.population_size) if self.histogram == "counts" else 1.0,
        )

    @cached_property
    def observation_size(self) -> int:
        """Entries of an observation, O."""
        parts = [OBSERVATION_PARTS[name] for name in self.observation]
        return sum(part.size(self.population_size, self.num_bins) for part in parts)


class SettingsCodes(NamedTuple):
    """``EnvSettings`` in numbers, in the order in which ``advance_runs`` takes them.

    Attributes:
        bound_repair: A value of ``BOUND_REPAIRS``.
        has_window: Whether the moving average has a window.
        pbest_schedule: A value of ``PBEST_SCHEDULES``, or ``CONSTANT_PBEST``.
        pbest_constant: The constant fraction, if any.
        reward: Position in ``REWARDS``.
        max_evaluations: Evaluation budget.
        max_generations: Generation limit; one that no run reaches where there is none.
        target_error: Error below which a run is solved.
        parts: Positions in ``OBSERVATION_PARTS``.
        bin_scale: What a full bin of a histogram counts: 1 as a fraction, N as a count.
    """

    bound_repair: int
    has_window: bool
    pbest_schedule: int
    pbest_constant: float
    reward: int
    max_evaluations: int
    max_generations: int
    target_error: float
    parts: IntArray
    bin_scale: float


_NO_LIMIT = 2**62


def _at_least(name: str, value: int, minimum: int) -> None:
    if value < minimum:
        raise ValueError(f"`{name}` must be at least {minimum}, got {value}.")


def default_population_size(dimension: int) -> int:
    """Return the paper's population size: 50 at n = 10 and 100 at n = 30, on the straight line between and beyond."""
    return max(25, 25 + round(2.5 * dimension))


def default_max_evaluations(dimension: int) -> int:
    """Return the budget of the CEC competitions, 10 000 evaluations per coordinate."""
    return 10_000 * dimension
