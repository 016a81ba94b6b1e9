"""Runs at the edges of what kernels are written for; prints a hash of what came out of each, one JSON object.

``python tests/machine/edges.py [PART OF A NAME]``: all of them, or some.

Kernels address memory without a check, and a mistake may go unnoticed: what they read beyond an array, or after it was
freed, often is what it should be. ``test_memory.py`` therefore repeats these runs where memory looks different.

Dimensions lie around the widths of registers, where a block of coordinates is no longer full, and around the largest
number of axes; populations are as small as they can be, and around blocks of trials; budgets end in the middle.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import de_gym  # noqa: F401  (registers the environments)
from de_gym import Problem, ProblemBatch, make_suite
from de_gym.controllers import DEFAULT, load
from de_gym.evolution.run_arrays import take_runs
from de_gym.evolution.two_population import (
    CONTROLS,
    advance,
    breed,
    draw_initial_points,
    has_ended,
    select,
    set_parameters,
    start,
)
from de_gym.machine.breeding import BOUND_REPAIRS
from de_gym.machine.top_and_front import LARGEST_WITH_AXES
from de_gym.optimizers import AdaptiveDE, AdaptiveDESettings, make_optimizer, run

DIMENSIONS = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17)
PAPER_METHODS = ("de", "jade", "jade-archive", "jso", "jso-lde-paper", "cobide", "cobide-pcm", "cde", "cde-pcm")
# The last one has a local search in runs as short as these.
METHODS = (*PAPER_METHODS, "l-srtde", "learned")


def paraboloid(points: np.ndarray) -> np.ndarray:
    return ((points - 0.3) ** 2).sum(axis=-1)


def plateau(points: np.ndarray) -> np.ndarray:
    return np.ones(points.shape[:-1])


def python_problem(dimension: int) -> Problem:
    return Problem.from_function(paraboloid, -1.0, 2.0, 0.0, dimension=dimension, vectorized=True)


def compiled_problems(dimension: int, count: int) -> list[Problem]:
    suite = make_suite("random", dimension)
    return [suite[number] for number in range(1, count + 1)]


def digest(*arrays: object) -> str:
    """Return the hash of some arrays."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def two_populations(problems: list[Problem], size: int, spare: int, budget: int) -> str:
    """Return the hash of two-population runs whose every control goes anywhere, trial by trial for the last one."""
    batch, rng = ProblemBatch(problems), np.random.default_rng(3)
    num_runs, keys = len(batch), rng.integers(0, 2**64, len(batch), dtype=np.uint64)
    points, starts = draw_initial_points(keys, np.full(num_runs, size), batch.lower, batch.upper)
    values = batch.evaluate_ragged(points, starts)
    state = start(keys, points, starts, values, budget, batch.lower, batch.upper, capacity=size + spare)
    seen = []
    while not has_ended(state).all():
        seen.append(advance(state, batch, rng.uniform(-1.0, 1.0, (num_runs, len(CONTROLS)))))
    last = take_runs(state, np.array([num_runs - 1]))
    last.runs["max_evaluations"] += 3 * size
    alone = batch.take(np.array([num_runs - 1]))
    while not has_ended(last).all():
        parameters = set_parameters(last.runs, rng.uniform(-1.0, 1.0, (1, len(CONTROLS))))
        trials = breed(last, parameters, alone.lower, alone.upper)
        select(last, parameters, trials, alone.evaluate_ragged(trials.points, trials.starts))
        seen.append(trials.points)
    return digest(*seen, state.runs, last.runs, *[state.fitness[:, 0, 0], last.fitness[:, 0, 0]])


def method(name: str, problems: list[Problem], budget: int, population_size: int | None) -> str:
    """Return the hash of the results of a method."""
    learned = AdaptiveDE(AdaptiveDESettings(population_size), load(DEFAULT))
    optimizer = learned if name == "learned" else make_optimizer(name, population_size=population_size)
    result = run(optimizer, problems, seed=2, max_evaluations=budget)
    return digest(result.errors, result.evaluations, result.best_positions, result.convergence)


def environment(problems: list[Problem], **settings: object) -> str:
    """Return the hash of a few episodes."""
    options = {"num_envs": 3, "vectorization_mode": "vector_entry_point", "problems": problems, **settings}
    envs, rng = gym.make_vec("DEParamControl-v0", **options), np.random.default_rng(4)
    seen = [envs.reset(seed=1)[0]]
    for _ in range(12):
        actions = rng.uniform(-0.1, 1.1, envs.action_space.shape).astype(np.float32)
        seen += envs.step(actions)[:2]
    return digest(*seen)


def evaluations(suite: str, dimension: int) -> str:
    """Return the hash of values of every function of a suite, for numbers of points around a block."""
    rng, seen = np.random.default_rng(5), []
    for problem in make_suite(suite, dimension):
        for count in (1, 7, 8, 9):
            seen.append(problem.evaluate(rng.uniform(problem.lower, problem.upper, (count, dimension))))
    return digest(*seen)


def cases() -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield every case with its name."""
    for dimension in (*DIMENSIONS, LARGEST_WITH_AXES, LARGEST_WITH_AXES + 1):
        own = [python_problem(dimension)] * 2
        for size, spare in ((4, 0), (9, 2), (37, 0)) if dimension < 100 else ((5, 1),):
            several = partial(two_populations, size=size, spare=spare, budget=size * 8 + 3)
            yield f"two populations of {size}, {dimension}d, Python", partial(several, own)
            if dimension > 1:
                yield f"two populations of {size}, {dimension}d", partial(several, compiled_problems(dimension, 5))
    # With nothing left to find populations begin anew.
    flat = [Problem.from_function(plateau, -1.0, 2.0, 0.0, dimension=9, vectorized=True)] * 2
    yield "two populations, 9d, flat", partial(two_populations, flat, 9, 2, 300)
    # More trials than are made at once, and runs that share blocks of the evaluation.
    yield "many runs", partial(two_populations, compiled_problems(5, 3) * 20, 30, 0, 200)
    yield "one large run", partial(two_populations, compiled_problems(5, 1), 1100, 0, 3000)
    for name in METHODS:
        for dimension in DIMENSIONS:
            problems = [python_problem(dimension)] if dimension == 1 else compiled_problems(dimension, 2)
            yield f"{name}, {dimension}d", partial(method, name, problems, 40 * dimension + 30, None)
        yield f"{name}, few", partial(method, name, compiled_problems(6, 3), 97, 4 if name[:3] != "cde" else 5)
    yield "hses", partial(method, "hses", compiled_problems(3, 2), 4000, None)
    for dimension in DIMENSIONS[1:]:
        for repair in BOUND_REPAIRS:
            few = {"population_size": 4 + dimension % 6, "bound_repair": repair, "max_evaluations": 60}
            yield f"environment, {dimension}d, {repair}", partial(environment, compiled_problems(dimension, 3), **few)
    for suite, dimension in (("random", 2), ("random", 9), ("cec2013", 2), ("cec2013", 10), ("cec2017", 10)):
        yield f"{suite}, {dimension}d", partial(evaluations, suite, dimension)


def watch_memory() -> None:
    """Have the allocator of ``guard_pages.c`` begin to guard blocks, where it was loaded before this program."""
    begin = getattr(ctypes.CDLL(None), "guard_blocks", None)
    if begin is not None:
        begin()


if __name__ == "__main__":
    watch_memory()
    wanted = "".join(sys.argv[1:])
    print(json.dumps({name: case() for name, case in cases() if wanted in name}))
