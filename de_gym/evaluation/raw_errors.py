"""Final errors that others published, from a CSV file with the columns algorithm, dim, func, run and error."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np

from de_gym.evaluation.protocol import Protocol
from de_gym.evaluation.results import MethodResults

_COLUMNS = ("algorithm", "dim", "func", "run", "error")


@dataclass(frozen=True)
class PublishedErrors:
    """What others published under the rules of a protocol.

    Attributes:
        methods: The entries, on the functions below.
        functions: The protocol's functions that all entries have, by official number.
        digits: Significant digits that all entries were printed with at least; later ones say nothing.
    """

    methods: tuple[MethodResults, ...]
    functions: tuple[int, ...]
    digits: int


def read_raw_errors(path: str | Path, protocol: Protocol) -> PublishedErrors:
    """Return the entries of a file in the protocol's dimension.

    Functions have their official numbers; errors below the protocol's target count as 0. An entry has as many runs as
    it has on every function. Runs are shuffled, with a fixed seed: some publish them in order of their errors, and the
    first half would be the best.

    Args:
        path: The file.
        protocol: The rules under which the errors were obtained; the file does not say.
    """
    printed: dict[str, dict[int, list[str]]] = {}
    for algorithm, dimension, function, error in _rows(Path(path)):
        if dimension == protocol.dimension and function in protocol.functions:
            printed.setdefault(algorithm, {}).setdefault(function, []).append(error)
    functions = tuple(number for number in protocol.functions if all(number in entry for entry in printed.values()))
    if not printed or not functions:
        raise ValueError(
            f"The file {str(path)!r} has no function in {protocol.dimension} dimensions that all its algorithms share."
        )
    entries, digits = [], []
    for algorithm, entry in printed.items():
        num_runs = min(len(entry[number]) for number in functions)
        texts = [_shuffled(entry[number], algorithm, number)[:num_runs] for number in functions]
        errors = np.array(texts).astype(np.float64)
        errors = np.where(errors < protocol.target_error, 0.0, errors)
        entries.append(MethodResults(f"{algorithm} (published)", errors, origin=Path(path).name))
        digits.append(max(_significant_digits(text) for row in texts for text in row))
    return PublishedErrors(tuple(entries), functions, max(1, min(digits)))


def _shuffled(texts: list[str], algorithm: str, function: int) -> list[str]:
    order = np.random.default_rng([crc32(algorithm.encode()), function]).permutation(len(texts))
    return [texts[place] for place in order]


def _significant_digits(text: str) -> int:
    """Return how many digits of a number matter, as far as its text tells.

    >>> _significant_digits("0.0123400"), _significant_digits("1e-8"), _significant_digits("200")
    (4, 1, 1)
    """
    return len(text.lower().split("e")[0].strip("+-").replace(".", "").strip("0"))


def _rows(path: Path) -> Iterator[tuple[str, int, int, str]]:
    """Yield algorithm, dimension, function and error, as it is written, of every run."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if missing := [name for name in _COLUMNS if name not in (reader.fieldnames or ())]:
            raise ValueError(f"The file {str(path)!r} must have the columns {', '.join(_COLUMNS)}; it lacks {missing}.")
        for row in reader:
            try:
                dimension, function, error = int(row["dim"]), int(row["func"]), float(row["error"])
            except (TypeError, ValueError) as problem:
                raise ValueError(f"Line {reader.line_num} of {str(path)!r} is not a result ({problem}).") from problem
            if not (math.isfinite(error) and error >= 0.0):
                raise ValueError(f"Line {reader.line_num} of {str(path)!r} has the error {error}, which is none.")
            yield row["algorithm"], dimension, function, row["error"].strip()
