"""Shell: one generation of Differential Evolution but for the numbers that a controller chooses.

A shell is the only thing that evolves populations, a controller the only thing that sets parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.checks import whole
from de_gym.evolution.populations import PLAN, PlanRecords, Population, RunRecords, Trials, make_population, settle
from de_gym.machine.draws import GenerationDraws
from de_gym.machine.replacement import ARCHIVE_RULES, drop_worst, replace_parents
from de_gym.registry import known_name


class Control(NamedTuple):
    """Something that a controller sets.

    Attributes:
        name: A field of ``Parameters`` or, per run, of its ``plans``.
        scope: "individual" or "run".
        meaning: What it is.
    """

    name: str
    scope: str
    meaning: str


SCALE_FACTORS = Control("scale_factors", "individual", "F, the factor of the difference of two individuals")
CROSSOVER_RATES = Control("crossover_rates", "individual", "CR, the probability that a coordinate is the donor's")
NEXT_SIZE = Control("next_size", "run", "how many individuals go on after the generation, at most as many as there are")


class Parameters(NamedTuple):
    """What a controller sets for one generation; rows of a run beyond its size mean nothing.

    Attributes:
        scale_factors: Shape (R, C).
        crossover_rates: Shape (R, C).
        pbest_weights: Factor of the difference to p-best, shape (R, C).
        strategies: What the donor is made of, shape (R, C).
        plans: Of type ``PLAN``, shape (R,).
    """

    scale_factors: FloatArray
    crossover_rates: FloatArray
    pbest_weights: FloatArray
    strategies: IntArray
    plans: PlanRecords


class View(NamedTuple):
    """What a controller sees before a generation.

    Attributes:
        population: The state of all runs.
        draws: The random numbers; the first of every run are the controller's.
    """

    population: Population
    draws: GenerationDraws


class Feedback(NamedTuple):
    """What became of a generation.

    Attributes:
        improvements: As in ``Population``, shape (R, C): who succeeded, and by how much.
        starts: As in ``Trials``, shape (R + 1,): how many trials each run made.
        parameters: What the trials were made with.
    """

    improvements: FloatArray
    starts: IntArray
    parameters: Parameters


def make_parameters(num_runs: int, capacity: int) -> Parameters:
    """Return parameters for a controller that sets but a few: sizes stay, p-best weights are F, p is a twentieth."""
    shape = (num_runs, capacity)
    plans = np.zeros(num_runs, PLAN)
    plans["num_pbest"], plans["next_size"] = max(capacity // 20, 2), capacity
    scale_factors = np.zeros(shape)
    return Parameters(scale_factors, np.zeros(shape), scale_factors, np.zeros(shape, np.int64), plans)


def check_parameters(parameters: Parameters, population: Population) -> Parameters:
    """Return what somebody's controller has set as compiled code reads it, or say what is wrong with it."""
    if not isinstance(parameters, Parameters):
        raise TypeError(f"A controller of a shell must return `Parameters`, got {type(parameters).__name__}.")
    shape, plans = (len(population.runs), population.capacity), parameters.plans
    is_live = np.arange(population.capacity) < population.runs["size"][:, np.newaxis]
    for name, table in zip(Parameters._fields[:-1], parameters[:-1], strict=True):
        if not isinstance(table, np.ndarray) or table.shape != shape or table.dtype.kind not in "iuf":
            raise ValueError(f"`{name}` of a controller must be numbers of shape {shape}, got {_described(table)}.")
        if not np.isfinite(table[is_live]).all():
            raise ValueError(f"`{name}` of a controller must be finite, got NaN or infinity.")
    if not isinstance(plans, np.ndarray) or plans.dtype != PLAN or plans.shape != shape[:1]:
        raise ValueError(
            f"`plans` of a controller must be of type `PLAN` and shape {shape[:1]}, got {_described(plans)}."
        )
    factors, rates, weights = (np.ascontiguousarray(table, np.float64) for table in parameters[:3])
    return Parameters(factors, rates, weights, np.ascontiguousarray(parameters.strategies, np.int64), plans.copy())


def _described(array: object) -> str:
    """Return what kind of array something is."""
    return f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__


@dataclass(frozen=True)
class Shell(ABC):
    """What all shells have in common: one-to-one selection, an archive or none, sizes that may fall.

    Attributes:
        population_size: Individuals of a run at the start, which is the capacity C.
        archive_fraction: Capacity of the archive in multiples of the current size; 0 for none.
        max_archive_size: Largest capacity of the archive.
        archive_rule: A name of ``ARCHIVE_RULES``.
        strictly: Whether a trial has to be better than its parent to replace it, not just as good.
    """

    controls: ClassVar[tuple[Control, ...]]

    population_size: int
    archive_fraction: float = 0.0
    max_archive_size: int = 2**31
    archive_rule: str = "overwrite"
    strictly: bool = False

    def __post_init__(self) -> None:
        if self.archive_rule not in (*ARCHIVE_RULES,):
            object.__setattr__(self, "archive_rule", known_name("archive rule", self.archive_rule, ARCHIVE_RULES))

    @property
    @abstractmethod
    def smallest_size(self) -> int:
        """How many individuals a trial is made of: fewer would be drawn from memory that is not theirs."""

    @abstractmethod
    def num_uniforms(self, dimension: int) -> tuple[int, int]:
        """Return how many uniforms a generation takes per individual, and how many more per run."""

    @abstractmethod
    def breed(
        self, state: Population, parameters: Parameters, draws: GenerationDraws, lower: FloatArray, upper: FloatArray
    ) -> Trials:
        """Return one trial of every individual of the runs that ``draws.starts`` gives points to."""

    def start(self, runs: RunRecords, dimension: int) -> Population:
        """Return the state of R runs whose first individuals are still to be evaluated."""
        archive_rows = min(int(self.archive_fraction * self.population_size), self.max_archive_size)
        # Where members leave at random, there must be room for all who come before they do.
        overflow = self.population_size if archive_rows and self.archive_rule == "random-leaving" else 0
        whole("population_size", self.population_size, self.smallest_size)
        runs["size"] = self.population_size
        return make_population(runs, self.population_size, archive_rows + overflow, dimension)

    def settle(self, state: Population, trials: Trials, values: FloatArray) -> None:
        """Make the evaluated first individuals the populations of ``state``."""
        settle(state.positions, state.fitness, state.order, trials, values)

    def select(
        self, state: Population, parameters: Parameters, draws: GenerationDraws, trials: Trials, values: FloatArray
    ) -> Feedback:
        """Have the trials meet their parents, in place; return what became of them."""
        # The archive's numbers are the last of the individuals'.
        first_uniform = draws.layout.controller_uniforms + draws.layout.shell_uniforms - 1
        rule, share, largest = ARCHIVE_RULES[self.archive_rule], self.archive_fraction, self.max_archive_size
        replace_parents(*state, *trials, values, draws.uniforms, first_uniform, self.strictly, rule, share, largest)
        if NEXT_SIZE in self.controls:
            drop_worst(*state, parameters.plans, self.smallest_size, share, largest)
        return Feedback(state.improvements, trials.starts, parameters)
