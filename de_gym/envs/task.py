"""Task: which problems an environment draws from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.checks import numbers, shown
from de_gym.problems import Problem, ProblemBatch, make_suite
from de_gym.problems.base import checked_problems
from de_gym.registry import unknown_name_message

_SUITE_ARGUMENTS = {"suite": "cec2013", "functions": None, "dimension": 10}


@dataclass(frozen=True)
class Task:
    """A set of problems of one dimension.

    Attributes:
        problems: What episodes draw from.
        numbers: What ``info`` and ``options`` call them: official numbers, or positions in the user's list.
        dimension: Number of coordinates D.
    """

    problems: tuple[Problem, ...]
    numbers: IntArray
    dimension: int

    def position_of(self, number: object) -> int:
        """Return the position of the problem called ``number``."""
        is_number = isinstance(number, int | np.integer) and not isinstance(number, bool)
        matches = np.flatnonzero(self.numbers == number) if is_number else np.zeros(0, np.int64)
        if matches.size != 1:
            raise ValueError(unknown_name_message("function number", number, self.numbers.tolist()))
        return int(matches[0])

    def check_initial_population(self, population: object, size: int, problems: ProblemBatch) -> FloatArray:
        """Return the initial population as an array (R, N, D), or say what is wrong with it."""
        num_runs = len(problems)
        positions = numbers("initial_population", population)
        single = (size, self.dimension)
        if positions.shape not in (single, (num_runs, *single)):
            raise ValueError(f"`initial_population` must have shape {single}, got {positions.shape}.")
        if not np.isfinite(positions).all():
            raise ValueError("`initial_population` must be finite, got NaN or infinity.")
        everywhere = np.broadcast_to(positions, (num_runs, *single)).copy()
        if (everywhere < problems.lower[:, None]).any() or (everywhere > problems.upper[:, None]).any():
            raise ValueError("`initial_population` must lie inside the bounds, got a point outside.")
        return everywhere


def make_task(options: dict[str, Any]) -> Task:
    """Take the arguments that name problems out of an environment's ``options`` and return the task they describe.

    They are ``suite`` ("cec2013"), ``functions`` (official numbers; None takes the whole suite) and ``dimension`` (10)
    of a benchmark suite, or the user's own ``problems`` in its place.
    """
    problems = options.pop("problems", None)
    named = {name: options.pop(name) for name in tuple(options) if name in _SUITE_ARGUMENTS}
    if problems is None:
        chosen, numbers = _problems_of_suite(**(_SUITE_ARGUMENTS | named))
    else:
        if named:
            raise ValueError(f"`problems` take the place of a suite, so leave out {', '.join(map(repr, named))}.")
        chosen = _checked_problems(problems)
        numbers = np.arange(len(chosen))
    return Task(chosen, numbers, chosen[0].dimension)


def _problems_of_suite(suite: Any, functions: Any, dimension: Any) -> tuple[tuple[Problem, ...], IntArray]:
    chosen = make_suite(suite, dimension, functions)
    return tuple(chosen), np.array(chosen.numbers, np.int64)


def _checked_problems(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    chosen = checked_problems(problems)
    dimensions = sorted({problem.dimension for problem in chosen})
    if len(dimensions) > 1:
        raise ValueError(f"`problems` must all have one dimension, got {dimensions}.")
    return chosen


def check_options(options: dict[str, Any] | None, allowed: tuple[str, ...]) -> dict[str, Any]:
    """Return reset options as a dictionary, or name the key that is not one of ``allowed``."""
    if options is not None and not isinstance(options, dict):
        raise TypeError(f"`options` of `reset` must be a dictionary or None, got {shown(options)}.")
    for key in options or {}:
        if key not in allowed:
            raise ValueError(unknown_name_message("reset option", key, allowed))
    return dict(options or {})
