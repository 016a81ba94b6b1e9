"""What the charts of a report are drawn from, as JSON of plain numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from de_gym.arrays import FloatArray
from de_gym.evaluation.comparison import Comparison
from de_gym.evaluation.curves import Curves
from de_gym.evaluation.figures import DARK, DASHES, LIGHT, method_color
from de_gym.evaluation.paper import function_label


def report_data(comparison: Comparison) -> str:
    """Return the JSON of a comparison: methods, functions, curves, final errors of all runs, marks, paper's means."""
    results, protocol = comparison.results, comparison.results.protocol
    ordered = [results.reference_results, *results.compared]
    content = {
        "dimension": protocol.dimension,
        "floor": max(protocol.target_error, 1e-12),
        "functions": [function_label(protocol.suite, function) for function in protocol.functions],
        "methods": [_method(comparison, method.name) for method in ordered],
        "curves": {method.name: _curves(method.curves) for method in ordered if method.curves is not None},
        "errors": {method.name: [_numbers(sorted(row)) for row in method.errors] for method in ordered},
        "marks": {name: list(marks) for name, marks in comparison.marks.items()},
        "paper": {name: _numbers(column.mean) for name, column in comparison.paper.items()},
    }
    # Inside a script element nothing may look like its end.
    return json.dumps(content, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _method(comparison: Comparison, name: str) -> dict[str, Any]:
    results = comparison.results
    method = results[name]
    light, turn = method_color(results, method, LIGHT)
    dark, _ = method_color(results, method, DARK)
    dash = DASHES[turn % len(DASHES)]
    return {
        "name": name,
        "label": method.label,
        "reference": name == results.reference,
        "colors": [light, dark],
        "dash": "" if isinstance(dash, str) else " ".join(map(str, dash[1] or ())),
    }


def _curves(curves: Curves) -> dict[str, Any]:
    return {
        "grid": curves.grid.tolist(),
        "quartiles": [[_numbers(row) for row in part] for part in curves.quartiles],
        "shares": _numbers(curves.shares.mean(axis=0)),
        "runs": curves.num_runs,
    }


def _numbers(values: FloatArray | Iterable[float]) -> list[Any]:
    """Return numbers of four digits, None for those that are not finite."""
    return [float(f"{value:.4g}") if math.isfinite(value) else None for value in values]
