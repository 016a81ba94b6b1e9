"""ToldLog: everything that happened to an ask / tell run, in a file from which it can happen again."""

from __future__ import annotations

import json
import tokenize
import zipfile
import zlib
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from de_gym.arrays import FloatArray
from de_gym.files import replacing
from de_gym.minimizing.plain_data import plain

UNASKED = -1
"""In place of the number of a point that was told without having been asked."""

_FORMAT = "de_gym ask and tell 1"
_ARRAYS = {"events": "i8", "tickets": "i8", "values": "f8", "violations": "f8", "unasked": "f8"}

# Everything that numpy, zipfile, zlib and json raise for bytes that are not what they should be.
_READ_ERRORS = (
    ValueError, LookupError, TypeError, AttributeError, EOFError, OSError, RuntimeError, ArithmeticError, MemoryError,
    zipfile.BadZipFile, zlib.error, tokenize.TokenError,  # the last by numpy, where the bracket of a shape is gone
)  # fmt: skip


class ToldLog:
    """A list of asks, each a number of points, and of tells, each a point's number with its value and violation."""

    def __init__(self) -> None:
        # Points asked between tells are positive events, points told between asks negative ones.
        self._events, self._tickets = array("q"), array("q")
        self._values, self._violations = array("d"), array("d")
        self._unasked: list[FloatArray] = []

    def note_ask(self, num_points: int) -> None:
        """Take note that so many points were handed out."""
        self._count(num_points)

    def note_tell(self, ticket: int, point: FloatArray, value: float, violation: float) -> None:
        """Take note of a value; the point itself is only kept where it was not asked for."""
        self._count(-1)
        self._tickets.append(ticket)
        self._values.append(value)
        self._violations.append(violation)
        if ticket == UNASKED:
            self._unasked.append(point.copy())

    def events(self) -> Iterator[int | tuple[int, FloatArray | None, float, float]]:
        """Yield numbers of points asked, and what was told: number, point if it was not asked, value, violation."""
        unasked, done = iter(self._unasked), 0
        for event in self._events:
            if event > 0:
                yield event
                continue
            for place in range(done, done - event):
                ticket = self._tickets[place]
                point = next(unasked, None) if ticket == UNASKED else None
                yield ticket, point, self._values[place], self._violations[place]
            done -= event

    def save(self, path: Path, header: Mapping[str, object]) -> None:
        """Write the log to a file, which is never half there, with what else the run follows from."""
        text = json.dumps(plain({"format": _FORMAT, **header}), sort_keys=True)
        arrays: dict[str, Any] = {name: np.array(getattr(self, f"_{name}"), kind) for name, kind in _ARRAYS.items()}
        with replacing(path) as file:
            np.savez_compressed(file, header=np.frombuffer(text.encode(), np.uint8), **arrays)

    @classmethod
    def load(cls, path: Path) -> tuple[ToldLog, dict[str, Any]]:
        """Return a log and what was saved beside it."""
        try:
            with np.load(path, allow_pickle=False) as stored:
                header = json.loads(stored["header"].tobytes())
                contents = {name: stored[name].astype(kind) for name, kind in _ARRAYS.items()}
            if header.pop("format") != _FORMAT:
                raise ValueError
        except FileNotFoundError:
            raise
        except _READ_ERRORS as error:
            raise ValueError(f"{str(path)!r} is no file that `Optimizer.save` wrote, or is damaged.") from error
        log = cls()
        for name in ("events", "tickets", "values", "violations"):
            getattr(log, f"_{name}").frombytes(contents[name].tobytes())
        log._unasked = list(contents["unasked"])
        return log, header

    def _count(self, signed: int) -> None:
        if self._events and (self._events[-1] > 0) == (signed > 0):
            self._events[-1] += signed
        elif signed:
            self._events.append(signed)
