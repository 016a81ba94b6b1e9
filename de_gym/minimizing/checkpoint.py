"""EvaluationLog: a file that has every value as soon as it is known, from which a killed run goes on.

Layout: one line of JSON that says which run it belongs to, with a checksum, and then one record per evaluated point, in
the order in which the run asked for them: its D coordinates, value and violation as float64, and a CRC-32. The file
only ever grows. A run that is called again takes the stored values instead of evaluating, through the same optimiser
with the same random numbers, so that it comes to where it was killed and goes on as if nothing had happened.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from de_gym.arrays import FloatArray
from de_gym.minimizing.plain_data import generator_of, plain, state_of

Outcome = tuple[float, float]
"""Value and violation of a point."""

_FORMAT = "de_gym evaluations 1"
_CHECKSUM = struct.Struct("<I")
_BEGINNING = b'{"checksum": '


class EvaluationLog:
    """The evaluations of one run on disk.

    Attributes:
        rng: The generator with which the run begins, in the stored state where the user has given no seed.
    """

    def __init__(self, path: str | Path, run: Mapping[str, object], rng: np.random.Generator, is_seeded: bool) -> None:
        """Open the log of a run, or begin one.

        Args:
            path: The file.
            run: What the run depends on, in JSON's terms; the log of another run is refused.
            rng: The generator of a new run.
            is_seeded: Whether the user has given one.
        """
        self.rng = rng
        self._path, self._dimension = Path(path), len(np.atleast_1d(np.asarray(run["lower"])))
        self._file = _open_alone(self._path)
        try:
            self._stored = self._read({"format": _FORMAT, **run}, is_seeded)
        except BaseException:
            self._file.close()
            raise

    def replay(self, points: FloatArray) -> list[Outcome]:
        """Return the stored outcomes of the first of the points, as many as there are."""
        outcomes, self._stored = self._stored[: len(points)], self._stored[len(points) :]
        asked = points[: len(outcomes)]
        if len(outcomes) and not np.array_equal(outcomes[:, :-2], asked):
            raise ValueError(
                f"The checkpoint {str(self._path)!r} holds other points than this run asks for: it is of another "
                "version of a package or of another seed; use another file."
            )
        return [(float(value), float(violation)) for value, violation in outcomes[:, -2:]]

    def append(self, outcomes: Sequence[tuple[FloatArray, Outcome]]) -> None:
        """Put points with their outcomes on disk; when this returns, they are there."""
        records = (np.append(point, outcome).astype("<f8").tobytes() for point, outcome in outcomes)
        self._write(b"".join(record + _CHECKSUM.pack(zlib.crc32(record)) for record in records))

    def close(self) -> None:
        """Give the file free for other processes."""
        self._file.close()

    def _write(self, content: bytes) -> None:
        self._file.write(content)
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self, run: dict[str, Any], is_seeded: bool) -> FloatArray:
        """Return the stored records (K, D + 2), after the header has been checked or written."""
        content, own_state = self._file.read(), state_of(self.rng)
        header, found, records = content.partition(b"\n")
        if not found:
            # Not even the header was completely written when the process was killed, or there is no file yet.
            if content[: len(_BEGINNING)] != _BEGINNING[: len(content)]:
                raise ValueError(f"The checkpoint {str(self._path)!r} is no file of this kind; use another file.")
            self._file.truncate(0)
            self._write(_pack_header({**run, "random_state": own_state}))
            return np.empty((0, self._dimension + 2))
        stored = _unpack_header(header)
        state = stored.pop("random_state", None)
        if stored != plain(run) or (is_seeded and state != own_state):
            wrong = [key for key in run if stored.get(key) != plain(run[key])] or ["seed"]
            raise ValueError(
                f"The checkpoint {str(self._path)!r} belongs to a run of other arguments ({', '.join(wrong)}); "
                "use another file, or remove it."
            )
        if not is_seeded:
            self.rng = generator_of(state)
        complete = self._complete_records(records)
        # What follows was under way when the process was killed.
        self._file.truncate(len(header) + 1 + len(complete) * (8 * (self._dimension + 2) + _CHECKSUM.size))
        self._file.seek(0, os.SEEK_END)
        return complete

    def _complete_records(self, content: bytes) -> FloatArray:
        """Return the records up to the first whose checksum is wrong or which is cut off."""
        length = 8 * (self._dimension + 2)
        records = []
        for begin in range(0, len(content) - length - _CHECKSUM.size + 1, length + _CHECKSUM.size):
            record = content[begin : begin + length]
            if _CHECKSUM.unpack_from(content, begin + length)[0] != zlib.crc32(record):
                break
            records.append(np.frombuffer(record, "<f8"))
        return np.array(records, np.float64).reshape(-1, self._dimension + 2)


def _open_alone(path: Path) -> BinaryIO:
    """Open a file for reading and appending, for this process only where the system can see to it."""
    try:
        file = path.open("a+b")
    except OSError as error:
        raise ValueError(f"`checkpoint` must be a file that can be written, got {str(path)!r}: {error}.") from error
    with suppress(ImportError):
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise ValueError(f"The checkpoint {str(path)!r} is in use by another run.") from None
    file.seek(0)
    return file


def _pack_header(run: Mapping[str, object]) -> bytes:
    text = json.dumps(plain(run), sort_keys=True)
    return json.dumps({"checksum": zlib.crc32(text.encode()), "run": text}).encode() + b"\n"


def _unpack_header(line: bytes) -> dict[str, Any]:
    """Return what a log says it belongs to; nothing where it is damaged or no log."""
    try:
        header = json.loads(line)
        text = header["run"]
        run = json.loads(text) if zlib.crc32(text.encode()) == header["checksum"] else {}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
    return run if isinstance(run, dict) else {}
