"""The shipped results of algorithms and controllers, so that a new method is compared without re-running them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.files import replacing
from de_gym.registry import unknown_name_message

RESULTS_DIRECTORY = Path(__file__).parent / "results"


@dataclass(frozen=True)
class StoredResults:
    """Final errors of one algorithm on a suite.

    Attributes:
        functions: Official numbers of the functions, shape (P,).
        errors: Final errors, shape (P, R), below 1e-8 reported as 0.
        evaluations: Points evaluated, shape (P, R).
        metadata: How they were made: algorithm, settings, suite, dimension, budget, seed, package version.
    """

    functions: IntArray
    errors: FloatArray
    evaluations: IntArray
    metadata: Mapping[str, object]


def results_name(
    suite: str,
    dimension: int,
    algorithm: str,
    max_generations: int | None = None,
    max_evaluations: int | None = None,
) -> str:
    """Return the file name of stored results; limits other than 10 000 evaluations per coordinate are in it.

    >>> results_name("cec2017", 10, "jso"), results_name("cec2013", 10, "jade", 50)
    ('cec2017_10d_jso.npz', 'cec2013_10d_50g_jade.npz')
    >>> results_name("cec2017", 10, "jso", max_evaluations=2500)
    'cec2017_10d_2500e_jso.npz'
    """
    limits = "" if max_evaluations in (None, 10_000 * dimension) else f"_{max_evaluations}e"
    limits += "" if max_generations is None else f"_{max_generations}g"
    return f"{suite}_{dimension}d{limits}_{algorithm}.npz"


def load_results(suite: str, dimension: int, algorithm: str, max_generations: int | None = None) -> StoredResults:
    """Return the shipped results of an algorithm, for example ``load_results("cec2017", 10, "jso")``."""
    path = RESULTS_DIRECTORY / results_name(suite, dimension, algorithm, max_generations)
    if not path.exists():
        available = sorted(file.stem for file in RESULTS_DIRECTORY.glob("*.npz"))
        raise ValueError(unknown_name_message("stored results", path.stem, available))
    return read_results(path)


def read_results(path: Path) -> StoredResults:
    """Return the results in a file that ``write_results`` wrote."""
    with np.load(path, allow_pickle=False) as file:
        metadata = json.loads(str(file["metadata"]))
        return StoredResults(file["functions"], file["errors"], file["evaluations"], metadata)


def write_results(path: Path, results: StoredResults) -> None:
    """Write results to ``path`` so that an interruption never leaves half a file."""
    with replacing(path) as file:
        np.savez_compressed(
            file,
            functions=results.functions,
            errors=results.errors,
            evaluations=results.evaluations,
            metadata=np.array(json.dumps(results.metadata, sort_keys=True)),
        )
