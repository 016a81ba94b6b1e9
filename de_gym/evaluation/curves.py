"""Curves: how methods converge, in few enough numbers to come with the package; beside each result file.

``evaluate.py --add-to`` keeps them together with the final errors; ``python -m de_gym.evaluation.add_curves`` makes
them from the store of any evaluation, for methods whose final errors are kept already.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de_gym.arrays import FloatArray, IntArray
from de_gym.evaluation.array_files import DamagedFileError, read_arrays, write_arrays
from de_gym.evaluation.protocol import Protocol
from de_gym.evaluation.statistics import runtime_distribution, runtimes
from de_gym.files import updating

TARGETS = np.logspace(2, -8, 51)
"""Errors whose first crossing makes the runtime distribution, from coarse to solved."""

NUM_POINTS = 33
"""Points of a curve, on a log scale: a kink between two of them is no conclusion that a picture of it allows."""

_LABEL = "curves 1"


@dataclass(frozen=True, eq=False)
class Curves:
    """The course of some runs of one method.

    Attributes:
        grid: Evaluation counts, shape (G,).
        quartiles: Lower quartile, median and upper quartile of the error so far, shape (3, P, G); infinite before the
            initial population is known.
        shares: Share of runs and targets that are reached on each function, shape (P, G).
        num_runs: How many runs are behind it.
    """

    grid: IntArray
    quartiles: FloatArray
    shares: FloatArray
    num_runs: int

    def part(self, rows: Sequence[int]) -> Curves:
        """Return the curves on some of the functions."""
        return replace(self, quartiles=self.quartiles[:, list(rows)], shares=self.shares[list(rows)])


def make_curves(grid: IntArray, errors: FloatArray) -> Curves:
    """Return the curves of runs whose error so far is known at ``grid``, shape (P, R, G)."""
    wanted = np.geomspace(grid[0], grid[-1], NUM_POINTS)
    points = np.unique(np.searchsorted(grid, wanted * (1.0 - 1e-9)).clip(max=len(grid) - 1))
    times = runtimes(errors, grid.astype(np.float64), TARGETS)  # (P, R, T)
    kept = grid[points]
    # No interpolation between two runs, which may be infinitely far apart at first.
    quartiles = np.quantile(errors[..., points], [0.25, 0.5, 0.75], axis=1, method="inverted_cdf")
    shares = np.stack([runtime_distribution(function, kept) for function in times])
    return Curves(kept, quartiles, shares, errors.shape[1])


def curve_file(protocol: Protocol, folder: Path) -> Path:
    """Return where the curves under a protocol are kept."""
    return folder / f"curves-{protocol.table}.npz"


def read_curves(protocol: Protocol, folder: Path) -> dict[str, tuple[Curves, Mapping[str, object]]]:
    """Return curves and settings of every method that has some on all functions of the protocol."""
    arrays, metadata = _read(curve_file(protocol, folder), protocol)
    functions = metadata.get("functions", [])
    if not metadata or not set(protocol.functions) <= set(functions):
        return {}
    rows = [functions.index(function) for function in protocol.functions]
    found = {}
    for name, entry in metadata["methods"].items():
        grid = arrays["grid"].astype(np.int64)
        quartiles, shares = (arrays[f"{name}/{part}"].astype(np.float64) for part in ("quartiles", "shares"))
        found[name] = Curves(grid, quartiles, shares, entry["num_runs"]).part(rows), entry["settings"]
    return found


def add_curves(
    protocol: Protocol, curves: Mapping[str, tuple[Curves, Mapping[str, object]]], folder: Path
) -> Path | None:
    """Put curves into the file of a protocol, in place of those of the same methods; None where there are none."""
    if not curves:
        return None
    with updating(path := curve_file(protocol, folder)):
        _merge_curves(path, protocol, read_curves(protocol, folder), curves)
    return path


def _merge_curves(
    path: Path,
    protocol: Protocol,
    known: Mapping[str, tuple[Curves, Mapping[str, object]]],
    curves: Mapping[str, tuple[Curves, Mapping[str, object]]],
) -> None:
    grids = [kept.grid for kept, _ in (*known.values(), *curves.values())]
    if path.exists() and (not known or any(not np.array_equal(grid, grids[0]) for grid in grids)):
        raise ValueError(f"The file {str(path)!r} holds curves on another grid or on other functions.")
    merged = {**known, **curves}
    metadata = {
        "functions": list(protocol.functions),
        "methods": {
            name: {"num_runs": kept.num_runs, "settings": dict(settings)} for name, (kept, settings) in merged.items()
        },
    }
    # Half the space: six digits are more than a picture shows.
    arrays: dict[str, NDArray[np.generic]] = {"grid": grids[0], "metadata": np.array(json.dumps(metadata))}
    for name, (kept, _) in merged.items():
        arrays[f"{name}/quartiles"] = kept.quartiles.astype(np.float32)
        arrays[f"{name}/shares"] = kept.shares.astype(np.float32)
    write_arrays(path, arrays, _LABEL + protocol.table, compress=True)


def _read(path: Path, protocol: Protocol) -> tuple[dict[str, NDArray[np.generic]], dict[str, Any]]:
    if not path.exists():
        return {}, {}
    try:
        arrays = read_arrays(path, _LABEL + protocol.table)
        return arrays, json.loads(str(arrays["metadata"]))
    except (DamagedFileError, KeyError, ValueError) as error:
        raise ValueError(f"The file of curves is damaged: {error}") from error
