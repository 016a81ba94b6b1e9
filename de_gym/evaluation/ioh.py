"""Export to the IOHprofiler format, for IOHanalyzer and iohinspector."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from de_gym.arrays import FloatArray
from de_gym.evaluation.protocol import Protocol
from de_gym.evaluation.results import Convergence, MethodResults
from de_gym.version import __version__


def export_ioh(methods: Sequence[MethodResults], protocol: Protocol, folder: str | Path) -> list[Path]:
    """Write the convergence of all methods that have it, and return the JSON files, one per method and function.

    Values are errors. The record holds what is known after whole generations, so a run's first row, evaluation 1,
    which the format demands, is ``inf`` until the initial population is complete; then follows a row for every
    recorded improvement, and one for the end of the run. Methods without a convergence record are left out.
    """
    written = []
    for method in methods:
        if method.convergence is None or method.evaluations is None:
            continue
        for index in range(len(protocol.functions)):
            written.append(_export_function(protocol, method, method.convergence, index, Path(folder)))
    if not written:
        raise ValueError("There is nothing to export: no method has a record of its convergence.")
    return written


def _export_function(
    protocol: Protocol, method: MethodResults, convergence: Convergence, index: int, folder: Path
) -> Path:
    number = protocol.functions[index]
    name = f"{protocol.suite}_f{number}"
    place = folder / method.name
    data = Path(f"data_f{number}_{name}") / f"IOHprofiler_f{number}_DIM{protocol.dimension}.dat"
    (place / data).parent.mkdir(parents=True, exist_ok=True)
    assert method.evaluations is not None  # our caller looked
    lines, runs = [], []
    for run in range(method.num_runs):
        rows = _rows(convergence, convergence.errors[index, run], int(method.evaluations[index, run]))
        lines += ["evaluations raw_y", *(f"{evaluations} {error!r}" for evaluations, error in rows)]
        best = min(rows, key=lambda row: (row[1], row[0]))
        runs.append({"instance": 1, "evals": rows[-1][0], "best": {"evals": best[0], "y": best[1], "x": []}})
    (place / data).write_text("\n".join(lines) + "\n", encoding="utf-8")
    description = {
        "version": "0.3.22",  # of the format
        "suite": protocol.suite,
        "function_id": number,
        "function_name": name,
        "maximization": False,
        "algorithm": {"name": method.label, "info": f"de_gym {__version__}"},
        "experiment_attributes": [{"seed": str(protocol.seed)}],
        "attributes": ["evaluations", "raw_y"],
        "scenarios": [{"dimension": protocol.dimension, "path": data.as_posix(), "runs": runs}],
    }
    path = place / f"IOHprofiler_f{number}_{name}.json"
    path.write_text(json.dumps(description, indent=1), encoding="utf-8")
    return path


def _rows(convergence: Convergence, errors: FloatArray, evaluations: int) -> list[tuple[int, float]]:
    """Return (evaluations, error) of one run: evaluation 1, every improvement on the grid, the end of the run."""
    rows = [(1, float("inf") if convergence.grid[0] > 1 else float(errors[0]))]
    for count, error in zip(convergence.grid.tolist(), errors.tolist(), strict=True):
        if 1 < count < evaluations and error < rows[-1][1]:
            rows.append((count, error))
    if evaluations > 1:
        rows.append((evaluations, float(errors[-1])))
    return rows
