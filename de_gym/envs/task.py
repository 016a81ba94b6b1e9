"""Task: which problems an environment draws from, and the decision process on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from de_gym.arrays import FloatArray, IntArray
from de_gym.envs.settings import (
    DEFAULT_OBSERVATION,
    EnvSettings,
    default_max_evaluations,
    default_population_size,
)
from de_gym.envs.stepping import clip_actions
from de_gym.problems import Problem, ProblemBatch, make_suite
from de_gym.registry import unknown_name_message

_ACTION_TYPES = (np.dtype(np.float32), np.dtype(np.float64))


class TaskOptions(TypedDict, total=False):
    """Keyword arguments of both environments; ``make_task`` documents them and holds their defaults."""

    suite: str
    functions: Sequence[int] | None
    dimension: int
    problems: Sequence[Problem] | None
    population_size: int | None
    num_bins: int
    history_window: int | None
    max_generations: int | None
    max_evaluations: int | None
    target_error: float
    pbest: str | float
    bound_repair: str
    reward: str
    histogram: str
    observation: Sequence[str]


@dataclass(frozen=True)
class Task:
    """A set of problems of one dimension and the decision process on them.

    Attributes:
        problems: What episodes draw from.
        numbers: What ``info`` and ``options`` call them: official numbers, or positions in the user's list.
        dimension: Number of coordinates D.
        settings: The decision process.
    """

    problems: tuple[Problem, ...]
    numbers: IntArray
    dimension: int
    settings: EnvSettings

    def position_of(self, number: object) -> int:
        """Return the position of the problem called ``number``."""
        matches = np.flatnonzero(self.numbers == number)
        if matches.size != 1:
            raise ValueError(unknown_name_message("function number", number, self.numbers.tolist()))
        return int(matches[0])

    def check_initial_population(self, population: object, problems: ProblemBatch) -> FloatArray:
        """Return the initial population as an array (R, N, D), or say what is wrong with it."""
        num_runs = len(problems)
        positions = np.asarray(population, dtype=np.float64)
        single = (self.settings.population_size, self.dimension)
        if positions.shape not in (single, (num_runs, *single)):
            raise ValueError(f"`initial_population` must have shape {single}, got {positions.shape}.")
        if not np.isfinite(positions).all():
            raise ValueError("`initial_population` must be finite, got NaN or infinity.")
        everywhere = np.broadcast_to(positions, (num_runs, *single)).copy()
        if (everywhere < problems.lower[:, None]).any() or (everywhere > problems.upper[:, None]).any():
            raise ValueError("`initial_population` must lie inside the bounds, got a point outside.")
        return everywhere


def make_task(
    *,
    suite: str = "cec2013",
    functions: Sequence[int] | None = None,
    dimension: int = 10,
    problems: Sequence[Problem] | None = None,
    population_size: int | None = None,
    num_bins: int = 5,
    history_window: int | None = 5,
    max_generations: int | None = 50,
    max_evaluations: int | None = None,
    target_error: float = 1e-8,
    pbest: str | float = "linear",
    bound_repair: str = "midpoint",
    reward: str = "relative",
    histogram: str = "fractions",
    observation: Sequence[str] = DEFAULT_OBSERVATION,
) -> Task:
    """Return the task that an environment's keyword arguments describe.

    Args:
        suite: Benchmark suite, "cec2013" or "cec2017".
        functions: Official function numbers; None takes the whole suite.
        dimension: Number of coordinates of the suite's functions.
        problems: The user's own problems, in place of a suite.
        population_size: N; by default the paper's 50 at n = 10 and 100 at n = 30 (25 + 2.5 n in general).
        num_bins: Histogram bins b.
        history_window: Past generations g in the moving average; None for all.
        max_generations: Generation limit T; None for no limit.
        max_evaluations: Evaluation budget; by default 10 000 per coordinate.
        target_error: Error below which a run is solved.
        pbest: "linear" (from all of the population to the best two as the budget is spent) or a constant fraction.
        bound_repair: "midpoint", "clip", "reflect" or "resample".
        reward: "relative", "log" or "initial_gap".
        histogram: "fractions" or "counts".
        observation: Names of the observation's parts, in order.
    """
    if problems is None:
        chosen = tuple(make_suite(suite, dimension, functions))
        numbers = np.array([problem.number for problem in chosen], np.int64)
    else:
        chosen = _check_problems(problems)
        dimension = chosen[0].dimension
        numbers = np.arange(len(chosen))
    settings = EnvSettings(
        population_size=default_population_size(dimension) if population_size is None else population_size,
        max_evaluations=default_max_evaluations(dimension) if max_evaluations is None else max_evaluations,
        num_bins=num_bins,
        history_window=history_window,
        max_generations=max_generations,
        target_error=target_error,
        pbest=pbest,
        bound_repair=bound_repair,
        reward=reward,
        histogram=histogram,
        observation=tuple(observation),
    )
    return Task(chosen, numbers, dimension, settings)


def _check_problems(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    chosen = tuple(problems)
    if not chosen:
        raise ValueError("`problems` must hold at least one problem, got none.")
    for problem in chosen:
        if not isinstance(problem, Problem):
            raise TypeError(
                f"`problems` must hold Problem objects, got {type(problem).__name__}; "
                f"Problem.from_function turns a callable into one."
            )
    dimensions = sorted({problem.dimension for problem in chosen})
    if len(dimensions) > 1:
        raise ValueError(f"`problems` must all have one dimension, got {dimensions}.")
    return chosen


def check_actions(actions: ArrayLike, checked: FloatArray) -> FloatArray:
    """Return actions copied to ``checked`` and clipped to [0, 1], or say what is wrong with them.

    Clipped, as documented, because Gaussian policies leave the box all the time.
    """
    array = np.asarray(actions)
    if array.shape != checked.shape:
        raise ValueError(f"Actions must have shape {checked.shape}, got {array.shape}.")
    # The kernel is compiled for these kinds of arrays; anything else, read-only ones included, is copied into one.
    if array.dtype not in _ACTION_TYPES or not array.flags.carray:
        array = np.array(array, dtype=np.float64, order="C")
    if not clip_actions(array.reshape(-1), checked.reshape(-1)):
        raise ValueError("Actions must be numbers in [0, 1], got NaN.")
    return checked


def check_options(options: dict[str, Any] | None, allowed: tuple[str, ...]) -> dict[str, Any]:
    """Return reset options as a dictionary, or name the key that is not one of ``allowed``."""
    for key in options or {}:
        if key not in allowed:
            raise ValueError(unknown_name_message("reset option", key, allowed))
    return dict(options or {})
