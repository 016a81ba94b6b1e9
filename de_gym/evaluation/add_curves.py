"""Keep the curves of an evaluation beside the package's results: ``python -m de_gym.evaluation.add_curves``.

For methods whose final errors are kept already. A few runs are enough for a median, so that the curves of all
algorithms cost minutes; for methods whose final errors are new, ``evaluate.py --add-to`` keeps both.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import tyro

from de_gym.evaluation.protocol import PROTOCOLS
from de_gym.evaluation.result_files import RESULTS
from de_gym.evaluation.results import add_curves_of, load_results
from de_gym.evaluation.store import ResultStore


@dataclass(frozen=True)
class AddCurvesConfig:
    """Which evaluation to take.

    Attributes:
        protocol: Its name in ``PROTOCOLS``.
        store: Its folder ``store``.
        runs: How many runs it has.
        seed: Its root seed.
        folder: Where the curves go.
    """

    protocol: str
    store: Path
    runs: int
    seed: int = 0
    folder: Path = RESULTS


def main(config: AddCurvesConfig) -> int:
    """Add the curves of every method in the store."""
    protocol = replace(PROTOCOLS[config.protocol], num_runs=config.runs, seed=config.seed)
    print(f"Curves: {add_curves_of(load_results(ResultStore(config.store, protocol)), protocol, config.folder)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(AddCurvesConfig)))
