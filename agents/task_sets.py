"""What a training sees and what only its measurement sees: functions of suites, or the user's own problems."""

from __future__ import annotations

from typing import NamedTuple

from de_gym.problems import make_suite
from de_gym.problems.own_suites import find_problems, is_own, own_dimensions

from .config import QUICK, TrainConfig

# As many as give the policy's mean return a small error at a small price.
_NUM_VALIDATION_PROBLEMS = 20


class TaskSet(NamedTuple):
    """Functions of one suite in one dimension."""

    suite: str
    dimension: int
    functions: tuple[int, ...]

    def labels(self, with_dimension: bool) -> tuple[str, ...]:
        """Return what tables call the functions where their numbers are not enough, and nothing where they are."""
        own = is_own(self.suite)
        if not own and not with_dimension:
            return ()
        names = [find_problems(self.suite)[number].name if own else f"f{number}" for number in self.functions]
        return tuple(f"{name} (n = {self.dimension})" if with_dimension else name for name in names)


def training_sets(config: TrainConfig) -> list[TaskSet]:
    """Return what every update sees, a set for each dimension."""
    if config.problems is None:
        return _of_suite(config, config.functions)
    if config.functions != QUICK.functions:
        raise ValueError(f"`problems` take the place of `functions`, which must be left out, got {config.functions}.")
    return _of_collection(config, config.problems)


def held_out_sets(config: TrainConfig) -> list[TaskSet]:
    """Return what only the measurement sees; nothing where own problems are trained on and no others are named."""
    if config.test_problems is not None:
        return _of_collection(config, config.test_problems)
    return [] if config.problems is not None else _of_suite(config, config.test_functions)


def validation_sets(config: TrainConfig) -> list[TaskSet]:
    """Return what the policy is tried on while it is trained; of own problems, those in the training's dimensions."""
    name, dimensions = config.validation_problems, [part.dimension for part in training_sets(config)]
    if is_own(name):
        dimensions = [dimension for dimension in own_dimensions(name) if dimension in dimensions]
    sets = [TaskSet(name, dimension, make_suite(name, dimension).numbers) for dimension in dimensions]
    if not sets:
        raise ValueError(f"`validation_problems` must have some of the training's dimensions, got {name!r}.")
    return [part._replace(functions=part.functions[:_NUM_VALIDATION_PROBLEMS]) for part in sets]


def _of_suite(config: TrainConfig, functions: tuple[int, ...]) -> list[TaskSet]:
    return [
        TaskSet(config.suite, dimension, make_suite(config.suite, dimension, functions).numbers)
        for dimension in config.dimensions or (config.dimension,)
    ]


def _of_collection(config: TrainConfig, name: str) -> list[TaskSet]:
    """Return all problems of a suite or of the user's own collection, by default in all dimensions that this has."""
    own = own_dimensions(name) if is_own(name) else (config.dimension,)
    return [TaskSet(name, dimension, make_suite(name, dimension).numbers) for dimension in config.dimensions or own]
