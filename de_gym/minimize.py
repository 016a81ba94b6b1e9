"""minimize: the learned optimiser, and the compared algorithms, for anybody with a function and bounds."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import Bounds, OptimizeResult

from de_gym.arrays import BoolArray, FloatArray
from de_gym.controllers import Controller, ResidualRule
from de_gym.optimizers import (
    Optimizer,
    Progress,
    advance,
    make_controlled_optimizer,
    make_optimizer,
    method_name,
)
from de_gym.problems import Problem, ProblemBatch
from de_gym.problems.budgets import default_max_evaluations

Objective = Callable[..., Any]
Callback = Callable[[OptimizeResult], object]
MapLike = Callable[[Objective, Sequence[FloatArray]], Any]

LEARNED = "learned"


def minimize(
    fun: Objective,
    bounds: Sequence[tuple[float, float]] | Bounds,
    args: tuple[Any, ...] = (),
    *,
    method: str = "learned",
    controller: str | Path | Controller | ResidualRule = "default",
    max_evaluations: int | None = None,
    population_size: int | None = None,
    seed: int | np.random.SeedSequence | np.random.Generator | None = None,
    target: float | None = None,
    vectorized: bool = False,
    workers: int | MapLike = 1,
    x0: ArrayLike | None = None,
    callback: Callback | None = None,
) -> OptimizeResult:
    """Minimise ``fun`` inside a box, by Differential Evolution with learned parameter control.

    Args:
        fun: The objective, ``fun(x, *args)`` with one point of shape (D,), returning a number. With ``vectorized``,
            ``fun(points, *args)`` with points of shape (P, D), returning P numbers (note: points are rows here, and
            columns in scipy). A NaN counts as +inf.
        bounds: One (lower, upper) pair per coordinate, or a ``scipy.optimize.Bounds``; all finite.
        args: Further arguments of ``fun``.
        method: "learned", or the name of another algorithm such as "jso", in any case: see
            ``de_gym.optimizers.METHODS``. Those of other packages, such as "cma" and "minion-arrde", need
            ``pip install 'de-gym[peers]'``.
        controller: For "learned": "default" takes the shipped controller for all numbers of coordinates and all
            budgets; else a shipped name, the path of a ``.safetensors`` file, or a controller itself, such as
            ``de_gym.controllers.from_policy`` makes of an agent and the environment it was trained on.
        max_evaluations: Points that may be evaluated, 10 000 per coordinate by default. Every method plans its run by
            this budget, so choose it as large as you can afford rather than stopping early. Never exceeded.
        population_size: Number of individuals, for methods that let you choose; a learned controller has its own.
        seed: Anything that ``numpy.random.default_rng`` takes; the same seed gives the same result.
        target: Stop as soon as a value is not above this.
        vectorized: Whether ``fun`` takes many points at once.
        workers: Number of processes that share the evaluations of a generation (-1 for one per core; ``fun`` must
            then be picklable), or a function that works like ``map``.
        x0: One point (D,) or several (K, D) to put in place of the first random individuals.
        callback: Called as ``callback(intermediate_result)`` after every generation; it stops the run by raising
            ``StopIteration`` or by returning True.

    Returns:
        An ``OptimizeResult`` with these fields.

        * ``x``, ``fun``: the best point and its value.
        * ``nfev``: points evaluated; ``nit``: generations after the initial population.
        * ``success``, ``message``: False where no finite value was found, where ``target`` was given and not reached,
          or where the run was stopped by the callback or by Ctrl-C, which returns the best point so far.
        * ``population``, ``population_fitness``: the last generation's points and values, best first.
        * ``history``: arrays over generations: ``evaluations``, ``best_fitness``, and the population's mean
          ``scale_factor`` and ``crossover_rate``, NaN where a method has none.

    Raises:
        TypeError, ValueError: An argument is not what it should be, or ``fun`` returned something else than numbers.
        ImportError: The method needs a package that is not installed.
        RuntimeError: ``fun`` raised an exception, which is its ``__cause__``.

    Notes:
        The learned method is L-SRTDE, an adaptive Differential Evolution with two populations, whose rules a trained
        controller adjusts every generation. With a recurrent controller such as "long-10d" it is Algorithm 2 of Sun,
        Liu, Bäck and Xu, "Learning Adaptive Differential Evolution Algorithm from Optimization Experiences by Policy
        Gradient": DE/current-to-pbest/1/bin whose F and CR a network chooses for every individual.

    Examples:
        >>> import numpy as np
        >>> from de_gym import minimize
        >>> def rosenbrock(x):
        ...     return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
        >>> result = minimize(rosenbrock, [(-5, 5)] * 4, method="jso", max_evaluations=20_000, seed=1)
        >>> result.success, bool(result.fun < 1e-6), result.nfev <= 20_000
        (True, True, True)
    """
    lower, upper = _split_bounds(bounds)
    budget = default_max_evaluations(len(lower)) if max_evaluations is None else _checked_budget(max_evaluations)
    optimizer = _make_optimizer(method, controller, population_size)
    if target is not None and np.isnan(target):
        raise ValueError("`target` must be a number or None, got NaN.")
    starts = _checked_starts(x0, lower, upper)
    with _as_problem(fun, args, lower, upper, vectorized, workers) as problem:
        optimizer.start(lower[None], upper[None], [np.random.default_rng(seed)], budget)
        record = _Record(optimizer)
        stops = _Stops(record, target, callback)
        try:
            advance(optimizer, ProblemBatch([problem]), [record, stops], starts)
            ending = stops.ending()
        except KeyboardInterrupt:
            if not record.evaluations:
                raise
            ending = (False, "The run was interrupted; this is the best point so far.")
        finally:
            optimizer.close()
        return record.result(*ending)


class _Record:
    """Observer: what one run's generations were like, and the result they make."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.evaluations: list[int] = []
        self._best_fitness: list[float] = []
        self._scale_factor: list[float] = []
        self._crossover_rate: list[float] = []

    def __call__(self, progress: Progress) -> None:
        """Take note of the generation."""
        optimizer = progress.optimizer
        parameters = optimizer.last_parameters
        self._last_generation = progress.trials.points, progress.values
        self.evaluations.append(int(optimizer.evaluations[0]))
        self._best_fitness.append(float(optimizer.best_fitness[0]))
        self._scale_factor.append(np.nan if parameters is None else _mean(parameters.scale_factors[0]))
        self._crossover_rate.append(np.nan if parameters is None else _mean(parameters.crossover_rates[0]))

    def result(self, success: bool, message: str) -> OptimizeResult:
        """Return the result so far."""
        optimizer = self.optimizer
        points, fitness = self._population()
        return OptimizeResult(
            x=optimizer.best_position[0].copy(),
            fun=float(optimizer.best_fitness[0]),
            nfev=int(optimizer.evaluations[0]),
            nit=len(self.evaluations) - 1,
            success=success,
            message=message,
            population=points,
            population_fitness=fitness,
            history={
                "evaluations": np.array(self.evaluations, dtype=np.float64),
                "best_fitness": np.array(self._best_fitness),
                "scale_factor": np.array(self._scale_factor),
                "crossover_rate": np.array(self._crossover_rate),
            },
        )

    def _population(self) -> tuple[FloatArray, FloatArray]:
        """Return the current points and values, best first."""
        population = self.optimizer.population
        points, fitness = self._last_generation if population is None else (population[0][0], population[1][0])
        order = np.argsort(fitness, kind="stable")
        return points[order], fitness[order]


def _mean(values: FloatArray) -> float:
    """Return the mean without the ceremony of ``np.mean``, which costs more than its sum."""
    return float(np.add.reduce(values) / len(values))


class _Stops:
    """Observer: ends the run at the target, or where the callback says so."""

    def __init__(self, record: _Record, target: float | None, callback: Callback | None) -> None:
        self._record, self._callback = record, callback
        self._target = target
        self._callback_stopped = False

    def __call__(self, progress: Progress) -> BoolArray | None:
        """Return whether the one run must end."""
        if self._callback is not None and progress.generation > 0:
            try:
                self._callback_stopped = self._callback(self._record.result(False, "in progress")) is True
            except StopIteration:
                self._callback_stopped = True
        reached = self._target is not None and progress.optimizer.best_fitness[0] <= self._target
        return np.array([True]) if reached or self._callback_stopped else None

    def ending(self) -> tuple[bool, str]:
        """Return whether the run succeeded, and how it ended."""
        best, target = self._record.optimizer.best_fitness[0], self._target
        if self._callback_stopped:
            return False, "The callback stopped the run."
        if target is not None and best <= target:
            return True, f"The target {target:g} was reached."
        if not np.isfinite(best):
            return False, "The budget is spent and the function returned no finite value."
        if target is not None:
            return False, f"The budget is spent and the target {target:g} was not reached."
        return True, "The budget is spent."


def _split_bounds(bounds: Sequence[tuple[float, float]] | Bounds) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds, each of shape (D,)."""
    if isinstance(bounds, Bounds):
        low, high = np.broadcast_arrays(
            np.atleast_1d(np.asarray(bounds.lb, np.float64)), np.atleast_1d(np.asarray(bounds.ub, np.float64))
        )
        return low.copy(), high.copy()
    try:
        pairs = np.asarray(bounds, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`bounds` must be (lower, upper) pairs of numbers, got {bounds!r}.") from error
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise ValueError(f"`bounds` must be one (lower, upper) pair per coordinate, got shape {pairs.shape}.")
    return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])


def _make_optimizer(
    method: str, controller: str | Path | Controller | ResidualRule, population_size: int | None
) -> Optimizer:
    if method.lower() != LEARNED:
        if controller != "default":
            raise ValueError(f"`controller` goes with method {LEARNED!r}, got {controller!r} with method {method!r}.")
        return make_optimizer(method_name(method, LEARNED), population_size=population_size)
    return make_controlled_optimizer(controller, population_size)


def _checked_budget(max_evaluations: int) -> int:
    if max_evaluations != int(max_evaluations) or max_evaluations < 1:
        raise ValueError(f"`max_evaluations` must be a positive whole number, got {max_evaluations}.")
    return int(max_evaluations)


def _checked_starts(x0: ArrayLike | None, lower: FloatArray, upper: FloatArray) -> FloatArray | None:
    """Return the given starting points, shape (K, D)."""
    if x0 is None:
        return None
    starts = np.atleast_2d(np.asarray(x0, dtype=np.float64))
    if starts.ndim != 2 or starts.shape[1] != len(lower):
        raise ValueError(f"`x0` must be points of {len(lower)} coordinates, got shape {np.shape(x0)}.")
    if not ((starts >= lower) & (starts <= upper)).all():
        raise ValueError("`x0` must lie inside the bounds, got a point outside or NaN.")
    return starts


@contextmanager
def _as_problem(
    fun: Objective,
    args: tuple[Any, ...],
    lower: FloatArray,
    upper: FloatArray,
    vectorized: bool,
    workers: int | MapLike,
) -> Iterator[Problem]:
    """Give the objective as a problem, with worker processes around it where they are wanted."""
    if not callable(fun):
        raise TypeError(f"`fun` must be callable, got {type(fun).__name__}.")
    name = str(getattr(fun, "__name__", type(fun).__name__))
    objective = _WithArguments(fun, tuple(args)) if args else fun
    if not callable(workers) and (workers != int(workers) or not (workers == -1 or workers >= 1)):
        raise ValueError(f"`workers` must be -1, a positive whole number or a map-like callable, got {workers}.")
    if workers == 1:
        yield Problem.from_function(objective, lower, upper, vectorized=vectorized, name=name)
        return
    if vectorized:
        raise ValueError(
            "`workers` and `vectorized` exclude each other: a vectorised function takes all points itself."
        )
    if callable(workers):
        yield Problem.from_function(partial(_mapped, objective, workers), lower, upper, vectorized=True, name=name)
        return
    with multiprocessing.Pool(None if workers == -1 else workers) as pool:
        yield Problem.from_function(partial(_mapped, objective, pool.map), lower, upper, vectorized=True, name=name)


@dataclass(frozen=True)
class _WithArguments:
    """The objective with its further arguments; a class, because a lambda could not be sent to workers."""

    fun: Objective
    args: tuple[Any, ...]

    def __call__(self, x: FloatArray) -> Any:
        return self.fun(x, *self.args)


def _mapped(objective: Objective, map_like: MapLike, points: FloatArray) -> list[Any]:
    """Return the values of points (P, D), one by one through a function that works like ``map``."""
    return list(map_like(objective, list(points)))
