"""Methods on random problems that no training and no choice has seen: ``python -m de_gym.evaluation.held_out``.

It computes what ``results/held-out.npz`` lacks, cell by cell (method, number of coordinates, budget), and keeps every
finished one: after a kill the same command goes on. A method whose settings have changed, such as a default controller
that was trained again, is computed anew. ``python -m de_gym.evaluation.published`` prints the tables.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import tyro
from tqdm import tqdm

from de_gym.arrays import FloatArray
from de_gym.controllers import DEFAULT
from de_gym.evaluation.array_files import DamagedFileError, read_arrays, write_arrays
from de_gym.evaluation.backends import run_tasks
from de_gym.evaluation.methods import OptimizerMethod, make_methods
from de_gym.evaluation.protocol import Protocol
from de_gym.evaluation.result_files import RESULTS
from de_gym.evaluation.runner import Chunk, run_chunk
from de_gym.evaluation.store import ChunkKey
from de_gym.files import updating
from de_gym.problems import make_suite

HELD_OUT_FILE = RESULTS / "held-out.npz"
"""The raw errors that come with the package."""

SUITE = "random:20000"
"""By convention, seeds from 20 000 on are for final tests."""

_LABEL = "held-out errors 1"


@dataclass(frozen=True, order=True)
class Case:
    """A column of cells: the number of coordinates, and how many evaluations a run has for each of them."""

    dimension: int
    per_coordinate: int

    def protocol(self, num_problems: int, num_runs: int) -> Protocol:
        """Return the rules of the case; problems are the first ones of the held-out suite."""
        problems = tuple(range(1, num_problems + 1))
        return Protocol(SUITE, self.dimension, problems, num_runs, self.dimension * self.per_coordinate)


@dataclass
class HeldOutErrors:
    """Final errors by method and case, each of shape (problems, runs), and the settings of the methods."""

    errors: dict[str, dict[Case, FloatArray]] = field(default_factory=dict)
    settings: dict[str, Mapping[str, object]] = field(default_factory=dict)

    def keep(self, method: OptimizerMethod, case: Case, errors: FloatArray) -> None:
        """Add one cell; what was kept of the method under other settings is forgotten."""
        settings = _plain(method.settings)
        if self.settings.get(method.name) != settings:
            self.errors[method.name] = {}
        self.settings[method.name] = settings
        self.errors[method.name][case] = errors

    def has(self, method: OptimizerMethod, case: Case, shape: tuple[int, int]) -> bool:
        """Return whether a cell is kept, from the same settings and at least so large."""
        if self.settings.get(method.name) != _plain(method.settings) or case not in self.errors[method.name]:
            return False
        num_problems, num_runs = self.errors[method.name][case].shape
        return bool(num_problems >= shape[0] and num_runs >= shape[1])


def read_held_out(path: Path = HELD_OUT_FILE) -> HeldOutErrors:
    """Return what a file holds, nothing where there is none."""
    if not path.exists():
        return HeldOutErrors()
    try:
        arrays = read_arrays(path, _LABEL)
    except DamagedFileError as error:
        raise ValueError(f"The file of held-out errors is damaged: {error}") from error
    content = HeldOutErrors(settings=json.loads(str(arrays.pop("settings"))))
    content.errors = {name: {} for name in content.settings}
    for key, errors in arrays.items():
        name, dimension, per_coordinate = key.rsplit("/", 2)
        content.errors[name][Case(int(dimension), int(per_coordinate))] = errors.astype(np.float64, copy=False)
    return content


def write_held_out(content: HeldOutErrors, path: Path) -> None:
    """Write a file; the same content gives the same bytes."""
    arrays = {
        f"{name}/{case.dimension}/{case.per_coordinate}": errors
        for name, cases in sorted(content.errors.items())
        for case, errors in sorted(cases.items())
    }
    settings = np.array(json.dumps(content.settings, sort_keys=True))
    write_arrays(path, {**arrays, "settings": settings}, _LABEL, compress=True)


def cell_chunks(method: OptimizerMethod, protocol: Protocol) -> Iterator[Chunk]:
    """Yield one piece of work per problem: all its runs."""
    suite = make_suite(protocol.suite, protocol.dimension, protocol.functions)
    for number in protocol.functions:
        yield Chunk(ChunkKey(number, 0, protocol.num_runs, method.name), method, protocol, suite[number])


def cell_errors(method: OptimizerMethod, protocol: Protocol, jobs: int) -> FloatArray:
    """Return the final errors of a method on all problems, shape (problems, runs)."""
    finished = run_tasks(run_chunk, list(cell_chunks(method, protocol)), jobs=jobs)
    by_problem = {key.function: arrays["errors"] for key, arrays in finished}
    errors: FloatArray = np.stack([by_problem[number] for number in protocol.functions]).astype(np.float64)
    return errors


@dataclass(frozen=True)
class HeldOutConfig:
    """What to compute.

    Attributes:
        methods: Names, as ``evaluate.py --methods`` takes them; the tables compare the default with the others.
        dimensions: Numbers of coordinates.
        budgets: Evaluations of a run per coordinate.
        problems: Problems per cell.
        runs: Runs per problem; methods are paired, since all get the same seeds.
        jobs: Worker processes, -1 for one per core.
        out: The file.
    """

    methods: tuple[str, ...] = (DEFAULT, "l-srtde", "jso", "cma", "minion-arrde", "minion-lshade")
    dimensions: tuple[int, ...] = (2, 5, 10, 20, 30, 50)
    budgets: tuple[int, ...] = (50, 200, 1000, 2000)
    problems: int = 60
    runs: int = 3
    jobs: int = -1
    out: Path = HELD_OUT_FILE


def main(config: HeldOutConfig) -> int:
    """Compute and keep every cell that the file lacks, the cheapest first."""
    content = read_held_out(config.out)
    for case, method in tqdm(_missing(config, content), unit="cell"):
        errors = cell_errors(method, case.protocol(config.problems, config.runs), config.jobs)
        with updating(config.out):
            content = read_held_out(config.out)
            content.keep(method, case, errors)
            write_held_out(content, config.out)
    return 0


def _missing(config: HeldOutConfig, content: HeldOutErrors) -> Sequence[tuple[Case, OptimizerMethod]]:
    cases = [Case(dimension, budget) for dimension in config.dimensions for budget in config.budgets]
    cases.sort(key=lambda case: case.dimension * case.per_coordinate)
    shape = (config.problems, config.runs)
    wanted = [(case, make_methods([name], case.protocol(*shape))[0]) for case in cases for name in config.methods]
    return [(case, method) for case, method in wanted if not content.has(method, case, shape)]


def _plain(settings: Mapping[str, object]) -> dict[str, object]:
    """Return settings as they come back from a file."""
    plain: dict[str, object] = json.loads(json.dumps(dict(settings)))
    return plain


if __name__ == "__main__":
    sys.exit(main(tyro.cli(HeldOutConfig)))
