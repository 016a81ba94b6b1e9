"""Optimizer: a run that is asked for points and told their values, in any order, by anybody, at any pace."""

from __future__ import annotations

import json
import math
import zlib
from collections import deque
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from de_gym.arrays import FloatArray
from de_gym.checks import is_several, numbers, optional_whole, shown, whole
from de_gym.controllers import Controller, ResidualRule
from de_gym.minimizing.choosing import Choice, checked_rng, resolved_budget
from de_gym.minimizing.constraints import merit
from de_gym.minimizing.display import CompileListener, announced_compiling
from de_gym.minimizing.endings import RunRecord
from de_gym.minimizing.evaluations import Tally
from de_gym.minimizing.extra_points import extra_point
from de_gym.minimizing.front_door import naming_arguments
from de_gym.minimizing.open_generation import OpenGeneration
from de_gym.minimizing.plain_data import generator_of, state_of
from de_gym.minimizing.scipys import Result
from de_gym.minimizing.search_space import BoundsLike, SearchSpace
from de_gym.minimizing.told_log import UNASKED, ToldLog
from de_gym.optimizers import Optimizer as RunsOptimizer

_NO_PLACE = -1


@dataclass(frozen=True)
class _Errand:
    """A point that is under way, and its place in a generation."""

    point: FloatArray
    generation: int = _NO_PLACE
    place: int = _NO_PLACE


class Optimizer:
    """Any method of ``minimize`` with the loop in your hands.

    One generation after another, which gives the points of ``minimize`` with the same arguments::

        optimizer = de_gym.Optimizer([(-5, 5)] * 10, max_evaluations=5000, seed=0)
        while not optimizer.has_ended:
            points = optimizer.ask()                     # (P, D)
            optimizer.tell(points, [f(x) for x in points])
        print(optimizer.result.x)

    With workers that are never idle, whatever their speed: ``ask(1)`` whenever one is free, ``tell`` whenever one is
    done. A generation is complete when there are as many values as it has points, whichever points they belong to; who
    asks while values are missing gets extra points, bred from the population by plain Differential Evolution, and a
    value that comes late takes part in the next generation. Methods that cannot take points of others ("hses" and those
    of other packages) hand out nothing while values of their generation are missing: ``ask`` then returns no points.

    All methods may be called from several threads.

    Args:
        bounds: As for ``minimize``; coordinates of equal bounds are fixed.
        method: As for ``minimize``.
        controller: As for ``minimize``.
        max_evaluations: Points to hand out at most; the method plans its run by it.
        population_size: As for ``minimize``.
        seed: As for ``minimize``.
        x0: One point (D,) or several (K, D) to hand out first.
        integrality: As for ``minimize``; points handed out are rounded already.

    >>> optimizer = Optimizer([(-1, 1)] * 2, method="jade", max_evaluations=900, seed=0)
    >>> while not optimizer.has_ended:
    ...     points = optimizer.ask()
    ...     optimizer.tell(points, (points**2).sum(axis=1))
    >>> bool(optimizer.result.fun < 1e-6), optimizer.result.nfev
    (True, 900)
    """

    @naming_arguments
    def __init__(
        self,
        bounds: BoundsLike,
        *,
        method: str = "learned",
        controller: str | Path | Controller | ResidualRule = "default",
        max_evaluations: int | None = None,
        population_size: int | None = None,
        seed: int | np.random.SeedSequence | np.random.Generator | None = None,
        x0: ArrayLike | None = None,
        integrality: ArrayLike | None = None,
    ) -> None:
        self._space = SearchSpace.of(bounds, integrality)
        self._max_evaluations = resolved_budget(max_evaluations, self._space)
        self._choice = Choice.of(method, controller, optional_whole("population_size", population_size, 1))
        self._starts = self._space.checked_starts(x0)
        rng = checked_rng(seed)
        self._header = self._describe(controller, rng)
        # Extra points must not disturb the method's own random numbers, which are those of `minimize`.
        self._extra_rng = np.random.default_rng(zlib.crc32(json.dumps(self._header["random_state"]).encode()))
        self._lock, self._log, self._listener = RLock(), ToldLog(), CompileListener()
        self._tally = Tally(self._space.dimension)
        self._record = RunRecord(self._space, self._tally, None)
        self._errands: dict[int, _Errand] = {}
        self._tickets_of: dict[bytes, deque[int]] = {}
        self._strays: deque[tuple[FloatArray, float]] = deque()
        self._num_given = self._num_generations = self._checksum = 0
        self._generation: OpenGeneration | None = None
        self._engine = self._start(rng)

    def ask(self, k: int | None = None) -> FloatArray:
        """Return points (P, D) to evaluate.

        Args:
            k: How many; fewer come back where ``max_evaluations`` leaves fewer, or where the method has to wait. None
                for all points of the generation that nobody has; where there are none, for as many as miss a value.
        """
        num_points = None if k is None else whole("k", k, 1)
        with self._lock, self._announced_compiling():
            return self._hand_out(self._num_wanted() if num_points is None else num_points)

    def tell(self, points: ArrayLike, values: Any, violations: ArrayLike | None = None) -> None:
        """Take the values of points, any of those that were asked, or others: what is known already helps too.

        Args:
            points: One point (D,) or several (P, D), coordinates exactly as they were handed out.
            values: One number or P; None or NaN where an evaluation failed, which counts as +inf.
            violations: How far the points are from feasible, 0 for feasible ones; none by default. Feasible points are
                preferred and compared by value, others by violation.
        """
        told = self._checked_points(points)
        measured, amounts = _checked_values(values, len(told)), _checked_violations(violations, len(told))
        with self._lock, self._announced_compiling():
            for point, value, violation in zip(told, measured, amounts, strict=True):
                self._take(self._ticket_of(point), point, value, violation)

    @property
    def has_ended(self) -> bool:
        """Whether no more points will be handed out; those under way may still be told."""
        if self._num_given >= self._max_evaluations:
            return True
        if len(self._starts):
            return False
        return self._engine is None or (self._generation is None and bool(self._engine.has_ended[0]))

    @property
    def outstanding(self) -> FloatArray:
        """Points (P, D) that were handed out and not told, in that order: what a loaded run has to evaluate again."""
        with self._lock:
            return np.array([errand.point for errand in self._errands.values()]).reshape(-1, self._space.dimension)

    @property
    def result(self) -> Result:
        """The result so far, with the fields of ``minimize``; ``maxcv`` is the violation told of ``x``."""
        with self._lock:
            best = self._tally
            has_found = math.isfinite(best.best_value) and best.best_violation == 0.0
            message = "The run has ended." if self.has_ended else "The run goes on."
            if not has_found:
                message += " No feasible point of finite value was told."
            return self._record.result(has_found and self._record.num_generations > 0, message)

    def save(self, path: str | Path) -> None:
        """Write the run to a file, at any moment; the points under way belong to it. Nothing in it is code."""
        if self._header["controller"] is None:
            raise ValueError("`controller` must be a name or a path for a run to be saved, got an object.")
        with self._lock:
            self._log.save(Path(path), {**self._header, "checksum": self._checksum})

    @classmethod
    def load(cls, path: str | Path) -> Optimizer:
        """Return the run that was saved: what it will ask is what the saved one would have asked, bit for bit."""
        log, header = ToldLog.load(Path(path))
        try:
            checksum, lower, upper = (header.pop(key) for key in ("checksum", "lower", "upper"))
            header["seed"] = generator_of(header.pop("random_state"))
            header["x0"] = header["x0"] or None
            optimizer = cls(list(zip(lower, upper, strict=True)), **header)
            optimizer._repeat(log)
        except (LookupError, TypeError, AttributeError) as error:
            raise ValueError(f"{str(path)!r} holds no run that `Optimizer.save` could have written.") from error
        if optimizer._checksum != checksum:
            raise ValueError(f"{str(path)!r} was saved by another version, whose method asks for other points.")
        return optimizer

    def close(self) -> None:
        """Free what methods of other packages hold outside Python's memory; the result remains."""
        if self._engine is not None:
            self._engine.close()

    def _announced_compiling(self) -> AbstractContextManager[None]:
        """Say so where the first generation takes long because it is compiled."""
        return announced_compiling(self._listener) if self._record.num_generations == 0 else nullcontext()

    def _repeat(self, log: ToldLog) -> None:
        """Do again what was done."""
        for event in log.events():
            if isinstance(event, int):
                self._hand_out(event)
            else:
                ticket, point, value, violation = event
                told = self._errands[ticket].point if point is None else point
                self._take(ticket, told, value, violation)

    def _describe(self, controller: object, rng: np.random.Generator) -> dict[str, Any]:
        """Return what the run follows from, before it begins."""
        return {
            "lower": self._space.lower.tolist(),
            "upper": self._space.upper.tolist(),
            "integrality": self._space.integral.tolist(),
            "method": self._choice.name,
            "controller": str(controller) if isinstance(controller, str | Path) else None,
            "max_evaluations": self._max_evaluations,
            "population_size": self._choice.population_size,
            "x0": self._starts.tolist(),
            "random_state": state_of(rng),
        }

    def _start(self, rng: np.random.Generator) -> RunsOptimizer | None:
        """Return the started method; None where there is nothing to search or no evaluation left for it."""
        if not len(self._space.free):
            self._starts = self._space.lower[None].copy()
            return None
        takes_others = self._choice.build(self._choice.population_size).takes_other_points
        budget = self._max_evaluations - (0 if takes_others else len(self._starts))
        if budget < 1:
            return None
        self._record.optimizer = self._choice.start(self._space.box, rng, budget)
        return self._record.optimizer

    def _num_wanted(self) -> int:
        """Return how many points complete the generation."""
        if self._engine is None or (len(self._starts) and not self._engine.takes_other_points):
            return len(self._starts)
        if not self._is_open():
            return 0
        assert self._generation is not None
        return self._generation.num_fresh or self._generation.num_missing

    def _hand_out(self, num_points: int) -> FloatArray:
        points: list[FloatArray] = []
        while len(points) < num_points and not self.has_ended:
            errand = self._next_errand()
            if errand is None:
                break
            self._errands[self._num_given] = errand
            self._tickets_of.setdefault(_key(errand.point), deque()).append(self._num_given)
            self._num_given += 1
            points.append(errand.point)
        handed_out = np.array(points).reshape(-1, self._space.dimension)
        self._checksum = zlib.crc32(handed_out.tobytes(), self._checksum)
        self._log.note_ask(len(points))
        return handed_out

    def _next_errand(self) -> _Errand | None:
        engine = self._engine
        if len(self._starts) and (engine is None or not engine.takes_other_points):
            first, self._starts = self._starts[0], self._starts[1:]
            return _Errand(first)
        if engine is None or not self._is_open():
            return None
        generation = self._generation
        assert generation is not None
        if generation.num_fresh:
            place = generation.give()
            return _Errand(generation.points[place].copy(), generation.number, place)
        if not engine.takes_other_points:
            return None
        return _Errand(self._space.to_user(extra_point(engine, self._space.box, self._extra_rng)[None])[0])

    def _is_open(self) -> bool:
        """Begin a generation where none is open; return False where the method has ended."""
        engine = self._engine
        while self._generation is None and engine is not None:
            if engine.has_ended[0]:
                return False
            trials = engine.ask()
            points = self._space.to_user(trials.points).copy()
            given, self._starts = self._starts[: len(points)], self._starts[len(points) :]
            points[: len(given)], trials.points[: len(given)] = given, given[:, self._space.free]
            self._generation = OpenGeneration(self._num_generations, trials, points)
            self._num_generations += 1
            self._settle()
        return True

    def _ticket_of(self, point: FloatArray) -> int:
        """Return the number of an errand for this point, the oldest of several."""
        tickets = self._tickets_of.get(_key(point))
        return tickets[0] if tickets else UNASKED

    def _take(self, ticket: int, point: FloatArray, value: float, violation: float) -> None:
        self._log.note_tell(ticket, point, value, violation)
        # A failure is worse than any violation, which `merit` alone could not say.
        number = merit(value, violation) if violation > 0.0 else value
        self._tally.note(point, value, violation, number)
        errand = _Errand(point)
        if ticket == UNASKED:
            self._num_given += 1
        else:
            errand = self._errands.pop(ticket)
            tickets = self._tickets_of[_key(point)]
            tickets.remove(ticket)
            if not tickets:
                del self._tickets_of[_key(point)]
        generation = self._generation
        is_open = generation is not None and errand.generation == generation.number
        if not (is_open and generation is not None and generation.fill(errand.place, number)):
            self._strays.append((point.copy(), number))
        self._settle()

    def _settle(self) -> None:
        """Give strays the places that are left, and tell the method a generation that is complete."""
        generation, engine = self._generation, self._engine
        if generation is None or engine is None:
            return
        takes_others = engine.takes_other_points and not engine.is_searching_locally
        while self._strays and takes_others and generation.num_missing:
            point, number = self._strays.popleft()
            generation.fill_with(point, point[self._space.free], number)
        if generation.num_missing == 0:
            self._tally.last_points, self._tally.last_merits = generation.points, generation.merits
            self._generation = None
            engine.tell(generation.merits)
            self._record.note(engine)

    def _checked_points(self, points: ArrayLike) -> FloatArray:
        try:
            told = np.atleast_2d(np.asarray(points, dtype=np.float64))
        except (TypeError, ValueError):
            raise ValueError(f"`points` must be points of numbers, got {shown(points)}.") from None
        if told.ndim != 2 or told.shape[1] != self._space.dimension:
            raise ValueError(f"`points` must have {self._space.dimension} coordinates, got shape {np.shape(points)}.")
        if not ((told >= self._space.lower) & (told <= self._space.upper)).all():
            raise ValueError("`points` must lie inside the bounds, got a point outside or NaN.")
        return told


def _key(point: FloatArray) -> bytes:
    """Return what equal points have in common; the sum makes one zero of the two."""
    return (point + 0.0).tobytes()


def _checked_values(values: Any, num_points: int) -> list[float]:
    given = values if is_several(values) else [values]
    if len(given) != num_points:
        raise ValueError(f"`values` must be one per point, got {len(given)} for {num_points} points.")
    try:
        found = [math.inf if value is None else float(value) for value in given]
    except (TypeError, ValueError):
        raise TypeError(f"`values` must be numbers, or None where an evaluation failed, got {shown(values)}.") from None
    return [math.inf if number != number else number for number in found]


def _checked_violations(violations: ArrayLike | None, num_points: int) -> list[float]:
    if violations is None:
        return [0.0] * num_points
    amounts = np.atleast_1d(numbers("violations", violations))
    if amounts.shape != (num_points,) or not (amounts >= 0.0).all():
        raise ValueError(f"`violations` must be one number of at least 0 per point, got {shown(violations)}.")
    listed: list[float] = amounts.tolist()
    return listed
