"""Optimisers of other packages behind the same ask / tell; install ``de-gym[peers]``.

Only what they are handed and what they evaluate is ours: budget, best point and counters are taken from the evaluations
themselves, not from what the packages report.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from types import ModuleType
from typing import TypeAlias

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.evolution.populations import Trials
from de_gym.optimizers.base import Optimizer

# A third of the box's half-width is what the package's documentation recommends as first step size.
_CMA_STEP_SIZE = 1.0 / 3.0

Conversation: TypeAlias = Generator[FloatArray, FloatArray, None]
"""Yields points (K, D), is sent their values (K,), and returns when the package has had enough."""


class _Ended(Exception):
    """The run is over, whatever the package thinks."""


@dataclass(frozen=True)
class PeerSettings:
    """Which algorithm of which package runs, with its own defaults.

    Attributes:
        package: Name of the package, "cma" or "minionpy".
        algorithm: What the package calls the algorithm.
    """

    package: str
    algorithm: str


class PeerOptimizer(Optimizer):
    """R runs of an algorithm of another package; runs that it ends on its own have ended before their budget."""

    settings: PeerSettings
    takes_other_points = False

    def __init__(self, name: str, settings: PeerSettings) -> None:
        self.name, self.settings = name, settings

    def _start(self) -> None:
        package = import_peer(self.settings.package, self.name)
        budgets = self._runs["max_evaluations"].tolist()
        boxes = zip(self._lower, self._upper, self._rngs, budgets, strict=True)
        converse = _CONVERSATIONS[self.settings.package]
        self._conversations = [converse(package, self.settings.algorithm, *box) for box in boxes]
        self._wanted = [next(conversation) for conversation in self._conversations]
        self._runs["size"] = [min(len(points), budget) for points, budget in zip(self._wanted, budgets, strict=True)]

    def _ask(self, starts: IntArray) -> Trials:
        points = np.empty((starts[-1], self._dimension))
        for run, wanted in enumerate(self._wanted):
            within = wanted[: starts[run + 1] - starts[run]]
            points[starts[run] : starts[run + 1]] = np.clip(within, self._lower[run], self._upper[run])
        return Trials(points, starts)

    def _tell(self, trials: Trials, values: FloatArray) -> None:
        remaining = (self._runs["max_evaluations"] - self._runs["evaluations"]).tolist()
        for run, conversation in enumerate(self._conversations):
            told = values[trials.starts[run] : trials.starts[run + 1]]
            if not len(told):
                continue
            try:
                if remaining[run] == 0:
                    raise StopIteration
                self._wanted[run] = conversation.send(told)
                self._runs["size"][run] = min(len(self._wanted[run]), remaining[run])
            except StopIteration:
                conversation.close()
                self._runs["size"][run] = 0

    def _keep(self, runs: IntArray) -> None:
        kept = set(runs.tolist())
        for run, conversation in enumerate(self._conversations):
            if run not in kept:
                conversation.close()
        self._conversations = [self._conversations[run] for run in runs]
        self._wanted = [self._wanted[run] for run in runs]

    def close(self) -> None:
        """End the packages' own runs."""
        for conversation in self._conversations:
            conversation.close()


def import_peer(package: str, method: str) -> ModuleType:
    """Return the package, or say in one sentence what to install."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(f"Method {method!r} needs the package {package!r}: pip install 'de-gym[peers]'.") from error


def _converse_with_cma(
    cma: ModuleType, algorithm: str, lower: FloatArray, upper: FloatArray, rng: np.random.Generator, budget: int
) -> Conversation:
    """Run CMA-ES of the package ``cma``, restarted with twice the samples whenever it stops."""
    centre, half_width = 0.5 * (lower + upper), 0.5 * (upper - lower)
    num_samples = int(4 + 3 * np.log(len(lower)))
    while True:
        options = {
            "bounds": [-1.0, 1.0],
            "popsize": num_samples,
            "randn": lambda *shape: rng.standard_normal(shape),
            "seed": np.nan,  # the numbers come from the line above, and numpy's global state stays untouched
            "verbose": -9,
        }
        strategy = cma.CMAEvolutionStrategy(rng.uniform(-1.0, 1.0, len(lower)), _CMA_STEP_SIZE, options)
        while not strategy.stop():
            samples = strategy.ask()
            values = yield centre + half_width * np.array(samples)
            strategy.tell(samples, values.tolist())
        num_samples *= 2


def _converse_with_minion(
    minionpy: ModuleType, algorithm: str, lower: FloatArray, upper: FloatArray, rng: np.random.Generator, budget: int
) -> Conversation:
    """Run an algorithm of ``minionpy``, which calls an objective and therefore needs a thread of its own."""
    wanted: SimpleQueue[FloatArray | BaseException | None] = SimpleQueue()
    told: SimpleQueue[FloatArray | None] = SimpleQueue()
    bounds, seed = list(zip(lower.tolist(), upper.tolist(), strict=True)), int(rng.integers(2**31))

    def objective(points: object, _: object = None) -> FloatArray:
        wanted.put(np.array(points, dtype=np.float64))
        values = told.get()
        if values is None:
            raise _Ended
        return values

    def optimize() -> None:
        try:
            # Made in its thread: the package's random numbers belong to the thread that seeds them.
            minionpy.Minimizer(func=objective, bounds=bounds, algo=algorithm, maxevals=budget, seed=seed).optimize()
        except BaseException as error:
            wanted.put(error)
        else:
            wanted.put(None)

    thread = Thread(target=optimize, daemon=True)
    thread.start()
    try:
        while (points := wanted.get()) is not None:
            if isinstance(points, BaseException):
                raise points
            values = yield points
            told.put(values.copy())
    finally:
        # The package's core turns our exception into one of its own, which nobody looks at any more.
        told.put(None)
        thread.join()


_CONVERSATIONS: dict[str, Callable[..., Conversation]] = {"cma": _converse_with_cma, "minionpy": _converse_with_minion}
