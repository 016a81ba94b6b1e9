"""EvolutionStrategy: a residual controller trained by CMA-ES to win against the field on ever new problems.

A candidate is a vector of weights. Every generation draws problems (number of coordinates, budget, landscape, seed),
lets each candidate and the anchor (the algorithm without residuals) run once on each, and scores a candidate by the
share of all these runs that its own runs end better than. Ranks need no scale: a problem counts as much as another,
whatever the size of its errors.

Everything follows from the seed and the scores, so a training is kept as the list of its generations' scores and
resumed by telling them to a fresh strategy: no object is stored that would have to be unpickled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import cma
import numpy as np

from de_gym.arrays import Float32Array, FloatArray, IntArray
from de_gym.controllers.residual import ResidualController, num_numbers
from de_gym.envs.adaptive_process import FEATURE_NAMES
from de_gym.evaluation import backends
from de_gym.evaluation.statistics import COMPARED_DECIMALS
from de_gym.optimizers.adaptive import CONTROL_NAMES
from de_gym.optimizers.whole_runs import final_errors
from de_gym.problems import Problem, make_suite

from .checked_json import read_checked_json, write_checked_json

# Of the file of a training.
_ENTRIES = {"stage", "num_candidates", "step_size", "scales", "seed", "initial", "free", "scores", "anchor_scores"}

# Of a generation, so that no two generations of a training draw the same ones.
_LARGEST_NUMBER_OF_PROBLEMS = 1000

# Scores are noisy, and so is the middle of the search distribution: the second half of the training, but no more than
# so many generations, is averaged.
_LARGEST_NUMBER_AVERAGED = 10


@dataclass(frozen=True)
class Stage:
    """How long a training is meant to last, and what its problems are drawn from.

    Attributes:
        num_generations: Generations that are enough for it.
        dimensions: Numbers of coordinates, which the problems of a generation have in turn.
        smallest_budget: Evaluations per coordinate of the shortest runs.
        largest_budget: Of the longest; the logarithm is uniform in between.
        num_problems: Problems of a generation.
        cec2013_share: Probability that a problem is one of CEC'13, where that has the dimension; else it is random.
        descent_share: Last share of every run's budget, in which a local search may begin; it is no part of the search.
    """

    num_generations: int = 50
    dimensions: tuple[int, ...] = (2, 3, 5, 10, 20)
    smallest_budget: float = 50.0
    largest_budget: float = 2000.0
    num_problems: int = 60
    cec2013_share: float = 0.2
    descent_share: float = 0.0


@dataclass(frozen=True)
class Task:
    """One run that every candidate makes."""

    problem: Problem
    budget: int
    key: int


def draw_tasks(stage: Stage, seed: int, generation: int) -> list[Task]:
    """Return the tasks of a generation, which follow from the seed and its number alone."""
    rng = np.random.default_rng([seed, generation])
    return [_draw_task(stage, rng, seed, generation, number) for number in range(stage.num_problems)]


def _draw_task(stage: Stage, rng: np.random.Generator, seed: int, generation: int, number: int) -> Task:
    dimension = stage.dimensions[number % len(stage.dimensions)]
    per_coordinate = np.exp(rng.uniform(np.log(stage.smallest_budget), np.log(stage.largest_budget)))
    key, official = int(rng.integers(2**63)), int(rng.integers(1, 29))
    if rng.random() < stage.cec2013_share and dimension in (2, 5, 10, 20, 30, 40, 50):
        problem = make_suite("cec2013", dimension, [official])[official]
    else:
        drawn = 1 + generation * _LARGEST_NUMBER_OF_PROBLEMS + number
        problem = make_suite("random", dimension, [drawn], seed=seed)[drawn]
    return Task(problem, int(per_coordinate * dimension), key)


class Chunk(NamedTuple):
    """Some tasks of all controllers: what a worker gets at once.

    Attributes:
        indices: Which of the tasks these are.
        tasks: The tasks, all of one dimension.
        controller: Several controllers.
    """

    indices: list[int]
    tasks: list[Task]
    controller: ResidualController


def run_tasks(
    tasks: Sequence[Task], controller: ResidualController, backend: str = "local", workers: int = 1
) -> FloatArray:
    """Return the final errors (P, T) of P controllers on T tasks, whatever the backend and the number of workers.

    Args:
        tasks: The runs that every controller makes.
        controller: P controllers.
        backend: A key of ``de_gym.evaluation.backends.BACKENDS``: this machine, or a cluster.
        workers: Processes; -1 for one per core, or all of the cluster.
    """
    chunks = [Chunk(indices, [tasks[index] for index in indices], controller) for indices in _chunks(tasks)]
    errors = np.empty((len(controller.weights), len(tasks)))
    for indices, part in backends.run_tasks(_run_chunk, chunks, backend, workers):
        errors[:, indices] = part
    return errors


def _chunks(tasks: Sequence[Task], largest_cost: float = 2e6) -> list[list[int]]:
    """Return groups of tasks of one dimension, the longest first, each of limited cost."""
    order = sorted(range(len(tasks)), key=lambda index: (tasks[index].problem.dimension, tasks[index].budget))
    chunks: list[list[int]] = []
    cost = np.inf
    for index in reversed(order):
        dimension = tasks[index].problem.dimension
        if cost > largest_cost or tasks[chunks[-1][0]].problem.dimension != dimension:
            chunks.append([])
            cost = 0.0
        chunks[-1].append(index)
        cost += tasks[index].budget * dimension
    return sorted(chunks, key=lambda chunk: -sum(tasks[i].budget * tasks[i].problem.dimension for i in chunk))


def _run_chunk(chunk: Chunk) -> tuple[list[int], FloatArray]:
    """Return which tasks these were, and the final errors of all controllers on them."""
    tasks, num_controllers = chunk.tasks, len(chunk.controller.weights)
    problems = [task.problem for _ in range(num_controllers) for task in tasks]
    budgets = np.tile([task.budget for task in tasks], num_controllers)
    keys = np.tile(np.array([task.key for task in tasks], np.uint64), num_controllers)
    owners = np.repeat(np.arange(num_controllers), len(tasks))
    errors = final_errors(problems, budgets, keys, chunk.controller, owners)
    return chunk.indices, errors.reshape(num_controllers, len(tasks))


def win_shares(errors: FloatArray) -> FloatArray:
    """Return the share of a task's other runs that each run ends better than, ties one half, shape (P, T).

    Errors count as equal where they are to eight decimals, as an error below 1e-8 counts as none: where all runs end in
    the same local minimum, rounding errors say nothing.

    >>> win_shares(np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 5.0]]))
    array([[1.  , 0.75],
           [0.5 , 0.75],
           [0.  , 0.  ]])
    """
    errors = errors.round(COMPARED_DECIMALS)
    better = (errors[:, None] < errors[None]).sum(axis=1)
    equal = (errors[:, None] == errors[None]).sum(axis=1) - 1
    shares: FloatArray = (better + 0.5 * equal) / (len(errors) - 1)
    return shares


class EvolutionStrategy:
    """CMA-ES over the weights of a ``ResidualController``.

    >>> strategy = EvolutionStrategy(Stage(1, (2,), largest_budget=60.0, num_problems=2), num_candidates=4)
    >>> strategy.learn(1).num_generations
    1

    Attributes:
        stage: What the problems are drawn from.
        num_candidates: Candidates of a generation.
        step_size: First standard deviation of every weight, times its scale.
        seed: Root seed of the training.
        scores: Score of every candidate of every generation so far, shape (G, P).
        anchor_scores: Mean share of wins of the candidates against the anchor alone, shape (G,).
    """

    def __init__(
        self,
        stage: Stage | None = None,
        *,
        num_candidates: int = 20,
        step_size: float = 0.1,
        seed: int = 0,
        workers: int = 1,
        backend: str = "local",
        initial: FloatArray | None = None,
        scales: FloatArray | None = None,
        free: IntArray | None = None,
    ) -> None:
        """Prepare a training.

        Args:
            stage: What the problems are drawn from.
            num_candidates: Candidates of a generation.
            step_size: First standard deviation of every weight, times its scale.
            seed: Root seed.
            workers: Processes that share the runs, -1 for all there are; they do not change the result.
            backend: Where they are: "local", or a cluster of "ray" or "dask", as ``evaluate.py`` has them.
            initial: Numbers of the controller to start from; zeros, the anchor, by default.
            scales: Of every number of the controller; ones by default, smaller where runs are sensitive.
            free: Positions of the numbers to search; all by default. The others stay as they are.
        """
        self.stage = stage or Stage()
        self.num_candidates = num_candidates
        self.step_size = step_size
        self.seed = seed
        self.workers = workers
        self.backend = backend
        size = num_numbers(len(CONTROL_NAMES))
        self._initial = np.zeros(size) if initial is None else np.array(initial, dtype=np.float64)
        self._scales = np.ones(size) if scales is None else np.array(scales, dtype=np.float64)
        self._free = np.arange(size) if free is None else np.array(free, dtype=np.int64)
        self.scores: list[list[float]] = []
        self._means: list[FloatArray] = []
        self.anchor_scores: list[float] = []
        self._strategy = self._new_strategy()

    @property
    def settings(self) -> dict[str, object]:
        """Everything that decides how the training goes."""
        return {
            "seed": self.seed,
            "stage": asdict(self.stage),
            "num_candidates": self.num_candidates,
            "step_size": self.step_size,
            "initial": self._initial.tolist(),
            "scales": self._scales.tolist(),
            "free": self._free.tolist(),
        }

    @property
    def num_generations(self) -> int:
        """Generations so far."""
        return len(self.scores)

    @property
    def num_evaluations(self) -> int:
        """Points that the training may have evaluated so far; runs that are solved early take fewer."""
        tasks = (draw_tasks(self.stage, self.seed, number) for number in range(self.num_generations))
        return sum(task.budget for drawn in tasks for task in drawn) * (self.num_candidates + 1)

    @property
    def mean(self) -> FloatArray:
        """The controller's numbers in the middle of the last search distributions, what training is for."""
        num_averaged = min(_LARGEST_NUMBER_AVERAGED, (len(self._means) + 1) // 2)
        last = self._means[len(self._means) - num_averaged :] or [np.array(self._strategy.mean)]
        mean: FloatArray = self._complete(np.mean(last, axis=0)[None])[0]
        return mean

    def controller(self) -> ResidualController:
        """Return the controller of ``mean``."""
        return self._as_controller(self.mean[None])

    def predict(
        self, observation: Float32Array, state: None = None, episode_start: object = None, deterministic: bool = True
    ) -> tuple[FloatArray, None]:
        """Return the action for an observation of ``AdaptiveDEControl-v0``, or for a batch, as agents of SB3 do."""
        actions = self.controller()(np.atleast_2d(observation))
        return actions.reshape(*np.shape(observation)[:-1], -1), None

    def learn(self, num_generations: int, callback: Callable[[EvolutionStrategy], object] | None = None) -> Self:
        """Go on for so many generations; ``callback`` is called after each and may return True to stop."""
        for _ in range(num_generations):
            candidates = np.array(self._strategy.ask())
            tasks = draw_tasks(self.stage, self.seed, self.num_generations)
            complete = np.concatenate([self._complete(candidates), np.zeros((1, len(self._initial)))])
            errors = run_tasks(tasks, self._as_controller(complete), self.backend, self.workers)
            scores = win_shares(errors)[:-1].mean(axis=1)
            self.anchor_scores.append(float(np.mean([win_shares(errors[[p, -1]])[0] for p in range(len(candidates))])))
            self._tell(candidates, scores.tolist())
            if callback is not None and callback(self) is True:
                break
        return self

    def save(self, path: str | Path) -> None:
        """Write the training so far; the file appears complete or not at all."""
        content = {**self.settings, "scores": self.scores, "anchor_scores": self.anchor_scores}
        write_checked_json(Path(path), content)

    @classmethod
    def load(cls, path: str | Path, *, workers: int = 1, backend: str = "local") -> EvolutionStrategy:
        """Return a training as it was when it was saved, bit for bit."""
        content = read_checked_json(Path(path))
        if set(content) != _ENTRIES:
            raise ValueError(f"{str(path)!r} is not the file of a training: its entries must be {sorted(_ENTRIES)}.")
        strategy = cls(
            Stage(**(content["stage"] | {"dimensions": tuple(content["stage"]["dimensions"])})),
            num_candidates=content["num_candidates"],
            step_size=content["step_size"],
            seed=content["seed"],
            workers=workers,
            backend=backend,
            initial=np.array(content["initial"]),
            scales=np.array(content["scales"]),
            free=np.array(content["free"]),
        )
        strategy.anchor_scores = content["anchor_scores"]
        for scores in content["scores"]:
            strategy._tell(np.array(strategy._strategy.ask()), scores)
        return strategy

    def _complete(self, candidates: FloatArray) -> FloatArray:
        """Return the numbers (P, ...) of controllers of which candidates are the free ones."""
        complete = np.tile(self._initial, (len(candidates), 1))
        complete[:, self._free] = candidates
        return complete

    def _tell(self, candidates: FloatArray, scores: list[float]) -> None:
        self._strategy.tell(list(candidates), [-score for score in scores])
        self.scores.append(scores)
        self._means.append(np.array(self._strategy.mean))

    def _new_strategy(self) -> Any:
        rng = np.random.default_rng([self.seed, 2**32])
        options = {
            "CMA_diagonal": True,
            "CMA_stds": self._scales[self._free],
            "popsize": self.num_candidates,
            "randn": lambda *shape: rng.standard_normal(shape),
            "verbose": -9,
            "seed": np.nan,  # cma then leaves numpy's global generator alone
        }
        return cma.CMAEvolutionStrategy(self._initial[self._free], self.step_size, options)

    def _as_controller(self, vectors: FloatArray) -> ResidualController:
        """Return controllers of the numbers (P, ...)."""
        controller = ResidualController.from_vectors(FEATURE_NAMES, CONTROL_NAMES, vectors)
        shares = np.full(controller.descent_shares.shape, self.stage.descent_share)
        return replace(controller, descent_shares=shares)
