"""Which optimiser runs, with how many individuals: every budget from one evaluation on is accepted."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.checks import LARGEST, shown
from de_gym.controllers import Controller, ResidualRule
from de_gym.evolution.populations import Trials
from de_gym.minimizing.search_space import SearchSpace
from de_gym.optimizers import Optimizer, find_controller, make_controlled_optimizer, make_optimizer, method_name
from de_gym.optimizers.registry import find_method
from de_gym.problems.budgets import BudgetTooSmall, default_max_evaluations

AnyController = str | Path | Controller | ResidualRule

LEARNED = "learned"

# With which every method that lets one choose can work, and how many generations a budget should pay for.
_SMALLEST_POPULATION, _FEWEST_GENERATIONS = 5, 4


class RandomPoints(Optimizer):
    """As many random points as the budget pays for, where that is too small for a method."""

    name = "random points"

    def _start(self) -> None:
        self._runs["size"] = self._runs["max_evaluations"]

    def _ask(self, starts: IntArray) -> Trials:
        points = [
            rng.uniform(low, high, (count, self._dimension))
            for rng, low, high, count in zip(self._rngs, self._lower, self._upper, np.diff(starts), strict=True)
        ]
        return Trials(np.concatenate(points), starts)

    def _tell(self, trials: Trials, values: FloatArray) -> None:
        pass

    def _keep(self, runs: IntArray) -> None:
        pass


@dataclass(frozen=True)
class Choice:
    """What the user chose.

    Attributes:
        name: The method's name, in lower case.
        controller: For the learned method, else None.
        population_size: Number of individuals, None for the method's own.
    """

    name: str
    controller: Controller | ResidualRule | None
    population_size: int | None

    @classmethod
    def of(cls, method: str, controller: AnyController, population_size: int | None) -> Choice:
        """Return the choice of ``minimize``'s arguments, or say what is wrong with them."""
        if not isinstance(method, str):
            raise TypeError(f"`method` must be a name, got {shown(method)}.")
        if method.lower() != LEARNED:
            name = method_name(method, LEARNED)
            if not isinstance(controller, str) or controller != "default":
                raise ValueError(
                    f"`controller` goes with method {LEARNED!r}, got {shown(controller)} with method {method!r}."
                )
            return cls(name, None, population_size)
        chosen = find_controller(controller)
        make_controlled_optimizer(chosen, population_size)  # says what does not fit
        return cls(LEARNED, chosen, population_size)

    def build(self, population_size: int | None) -> Optimizer:
        """Return the optimiser with the given number of individuals, or with its own."""
        if self.controller is None:
            return make_optimizer(self.name, population_size=population_size)
        return make_controlled_optimizer(self.controller, population_size)

    def start(self, box: tuple[FloatArray, FloatArray], rng: np.random.Generator, budget: int) -> Optimizer:
        """Return the optimiser, started in the box, with fewer individuals or none where the budget is small."""
        if self.population_size is not None and self.population_size > budget:
            raise ValueError(
                f"`population_size` must not be above `max_evaluations`, got {self.population_size} and {budget}."
            )
        lower, upper = box[0][None], box[1][None]
        state = rng.bit_generator.state
        try:
            optimizer = self.build(self.population_size)
            optimizer.start(lower, upper, [rng], budget)
        except BudgetTooSmall:
            rng.bit_generator.state = state
            can_be_smaller = self._lets_choose_size and budget >= _SMALLEST_POPULATION
            size = max(_SMALLEST_POPULATION, budget // _FEWEST_GENERATIONS)
            optimizer = self.build(size) if can_be_smaller else RandomPoints()
            optimizer.start(lower, upper, [rng], budget)
        return optimizer

    def start_with(
        self, box: tuple[FloatArray, FloatArray], rng: np.random.Generator, budget: int, num_given: int
    ) -> Optimizer | None:
        """Return the started optimiser with a budget that leaves evaluations for given points beyond its population.

        None where they leave no evaluation for it.
        """
        state, available = rng.bit_generator.state, budget
        while available > 0:
            optimizer = self.start(box, rng, available)
            surplus = max(num_given - num_places(optimizer), 0)
            if budget - surplus >= available:
                return optimizer
            optimizer.close()
            available, rng.bit_generator.state = budget - surplus, state
        return None

    @property
    def _lets_choose_size(self) -> bool:
        if self.population_size is not None:
            return False
        if self.controller is not None:
            return getattr(self.controller, "population_size", None) is None
        settings = find_method(self.name).default_settings()
        return "population_size" in {option.name for option in dataclasses.fields(settings)}


def num_places(optimizer: Optimizer) -> int:
    """Return how many given points a started optimiser can begin with."""
    return int(optimizer.num_next_points[0]) if optimizer.takes_other_points else 0


def resolved_budget(max_evaluations: Any, space: SearchSpace) -> int:
    """Return the budget as a plain ``int``, 10 000 per free coordinate for None, or say what is wrong with it."""
    if max_evaluations is None:
        return default_max_evaluations(max(len(space.free), 1))
    is_number = isinstance(max_evaluations, int | float | np.integer | np.floating) and max_evaluations <= LARGEST
    if not is_number or isinstance(max_evaluations, bool) or max_evaluations % 1 != 0 or max_evaluations < 1:
        raise ValueError(f"`max_evaluations` must be a positive whole number, got {shown(max_evaluations)}.")
    return int(max_evaluations)


def checked_rng(seed: Any) -> np.random.Generator:
    """Return the generator that a seed stands for, or say in one sentence that it is none."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise type(error)(f"`seed` must be what numpy.random.default_rng takes, got {shown(seed)}.") from error
