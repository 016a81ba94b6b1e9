"""Result files: the final errors of many methods under one protocol, one file for each protocol.

``results/`` comes with the package: the compared algorithms, fixed and random parameters, and the controllers whose
weights the package has. ``studies/`` stays in the repository: what else was compared once, to learn what matters.
``evaluate.py --add-to`` is what makes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.evaluation.array_files import DamagedFileError, read_arrays, write_arrays
from de_gym.evaluation.protocol import Protocol
from de_gym.files import updating

RESULTS, STUDIES = (Path(__file__).parent / name for name in ("results", "studies"))
"""The folders of result files: what comes with the package, and what only the repository has."""

_FORMAT = "de_gym final errors 1"


@dataclass(frozen=True, eq=False)
class StoredRuns:
    """The final errors of one method, as a result file holds them.

    Attributes:
        functions: Official numbers of the functions.
        errors: Final errors, shape (P, R), below the protocol's target as 0.
        evaluations: Points evaluated, shape (P, R).
        settings: Everything the results depend on besides protocol and seeds.
        making: Root seed, the rule by which a run's seed follows from it, and the version of the package.
    """

    functions: tuple[int, ...]
    errors: FloatArray
    evaluations: IntArray
    settings: Mapping[str, object]
    making: Mapping[str, object]


def result_file(protocol: Protocol, folder: Path = RESULTS) -> Path:
    """Return where results under a protocol are kept: every limit of a run is part of the name."""
    return folder / f"{protocol.table}.npz"


def read_runs(protocol: Protocol, folder: Path = RESULTS) -> dict[str, StoredRuns]:
    """Return all methods that were run under the limits of a protocol, by name; none where there is no file."""
    path = result_file(protocol, folder)
    if not path.exists():
        return {}
    try:
        arrays = read_arrays(path, protocol.table)
        metadata = json.loads(str(arrays["metadata"]))
    except (DamagedFileError, KeyError, ValueError) as error:
        raise ValueError(f"The result file is damaged: {error}") from error
    if metadata.get("format") != _FORMAT:
        raise ValueError(f"The file {str(path)!r} does not hold results of this package (format {_FORMAT!r}).")
    if metadata["limits"] != protocol.limits:
        return {}
    return {
        name: StoredRuns(
            functions=tuple(entry["functions"]),
            errors=arrays[f"{name}/errors"].astype(np.float64, copy=False),
            evaluations=arrays[f"{name}/evaluations"].astype(np.int64, copy=False),
            settings=entry["settings"],
            making=entry["making"],
        )
        for name, entry in metadata["methods"].items()
    }


def add_runs(protocol: Protocol, runs: Mapping[str, StoredRuns], folder: Path) -> Path:
    """Put methods into the file of a protocol, in place of those of the same name, and return its path.

    Results are never replaced by fewer runs or functions, nor mixed with those of other limits.
    """
    path = result_file(protocol, folder)
    with updating(path):
        _write_runs(path, protocol, _merged(path, protocol, read_runs(protocol, folder), runs))
    return path


def _merged(
    path: Path, protocol: Protocol, known: Mapping[str, StoredRuns], runs: Mapping[str, StoredRuns]
) -> dict[str, StoredRuns]:
    """Return what the file holds then, or say why it must not."""
    if path.exists() and not known:
        raise ValueError(f"The file {str(path)!r} holds results under other limits than {dict(protocol.limits)}.")
    for name, new in runs.items():
        old = known.get(name, new)
        if new.errors.shape[1] < old.errors.shape[1] or not set(old.functions) <= set(new.functions):
            raise ValueError(
                f"The file {str(path)!r} holds more of {name!r}: {old.errors.shape[1]} runs of {len(old.functions)} "
                f"functions; they are not replaced by {new.errors.shape[1]} runs of {len(new.functions)}."
            )
    return {**known, **runs}


def _write_runs(path: Path, protocol: Protocol, merged: Mapping[str, StoredRuns]) -> None:
    metadata = {
        "format": _FORMAT,
        "limits": dict(protocol.limits),
        "methods": {
            name: {
                "functions": list(method.functions),
                "num_runs": method.errors.shape[1],
                "making": dict(method.making),
                "settings": dict(method.settings),
            }
            for name, method in merged.items()
        },
    }
    arrays = {f"{name}/errors": method.errors for name, method in merged.items()}
    counts = {f"{name}/evaluations": method.evaluations for name, method in merged.items()}
    content = {**arrays, **counts, "metadata": np.array(json.dumps(metadata))}
    write_arrays(path, content, protocol.table, compress=True)
