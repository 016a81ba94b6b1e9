"""What the default controller does, and which parts of it matter: ``python -m de_gym.evaluation.insight``.

Every control's residual is set to zero, and every input to the value zero, one at a time; the whole controller should
then end better. And the residuals themselves are noted along the runs, by kind of problem. All of it on validation
problems, since nothing is claimed of how good the controller is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import numpy as np
import tyro
from tqdm import tqdm

from de_gym.arrays import Float32Array, FloatArray, IntArray
from de_gym.controllers import DEFAULT, ResidualController, load
from de_gym.controllers.residual import INPUTS
from de_gym.controllers.storage import tensor_checksum
from de_gym.evaluation.array_files import read_arrays, write_arrays
from de_gym.evaluation.held_out import Case
from de_gym.evaluation.result_files import RESULTS
from de_gym.evaluation.statistics import bootstrap_interval, superiority
from de_gym.evaluation.table import Cell, Table, interval_text, table
from de_gym.optimizers.whole_runs import final_errors
from de_gym.problems import Problem, make_suite
from de_gym.problems.random_suite import KINDS

INSIGHT_FILE = RESULTS / "insight.npz"
"""What comes with the package."""

SUITE = "random:10000"
"""By convention, seeds from 10 000 on are for validation."""

CASES = (Case(10, 200), Case(10, 10_000), Case(30, 200), Case(30, 10_000))
NUM_BINS = 20
_LABEL = "insight 1"


@dataclass
class Insight:
    """What was found with one controller.

    Attributes:
        checksum: Of the controller's weights.
        controls: Names of its controls.
        errors: Final errors by case, of the whole controller, without each control and without each input, of shape
            (1 + A + K - 1, problems, runs).
        residuals: Mean residual by case, for each kind of problem and twentieth of the budget, NaN where there was no
            generation, shape (kinds, NUM_BINS, A).
    """

    checksum: str
    controls: tuple[str, ...]
    errors: dict[Case, FloatArray] = field(default_factory=dict)
    residuals: dict[Case, FloatArray] = field(default_factory=dict)


def read_insight(path: Path = INSIGHT_FILE) -> Insight:
    """Return what a file holds."""
    arrays = read_arrays(path, _LABEL)
    content = Insight(str(arrays["checksum-of-weights"]), tuple(arrays["controls"].astype(str).tolist()))
    for case in CASES:
        name = f"{case.dimension}/{case.per_coordinate}"
        if f"errors/{name}" in arrays:
            content.errors[case] = arrays[f"errors/{name}"].astype(np.float64)
            content.residuals[case] = arrays[f"residuals/{name}"].astype(np.float64)
    return content


def write_insight(content: Insight, path: Path) -> None:
    """Write a file; the same content gives the same bytes."""
    arrays = {"checksum-of-weights": np.array(content.checksum), "controls": np.array(content.controls)}
    for kind, by_case in (("errors", content.errors), ("residuals", content.residuals)):
        for case, values in by_case.items():
            arrays[f"{kind}/{case.dimension}/{case.per_coordinate}"] = values.astype(np.float32)
    write_arrays(path, arrays, _LABEL, compress=True)


def ablated(controller: ResidualController) -> ResidualController:
    """Return the controller itself, without each of its controls, and without each of its inputs but the constant."""
    num_controls = len(controller.controls)
    weights = np.repeat(controller.weights, 1 + num_controls + len(INPUTS) - 1, axis=0)
    for control in range(num_controls):
        weights[1 + control, :, control] = 0.0
    for entry in range(1, len(INPUTS)):
        weights[num_controls + entry, :, :, entry] = 0.0
    return _with_weights(controller, weights)


def _with_weights(controller: ResidualController, weights: FloatArray) -> ResidualController:
    num_copies = len(weights) // len(controller.weights)
    sizes, shares = (
        np.repeat(array, num_copies, axis=0) for array in (controller.size_weights, controller.descent_shares)
    )
    return replace(controller, weights=weights, size_weights=sizes, descent_shares=shares)


@dataclass(frozen=True)
class _Noting:
    """A controller that adds up its residuals by owner and twentieth of the budget."""

    controller: ResidualController
    sums: FloatArray
    counts: FloatArray

    def size_residuals(self, dimension: int, budgets: IntArray, owners: IntArray) -> FloatArray:
        return self.controller.size_residuals(dimension, budgets, owners)

    def find_descent_shares(self, dimension: int, budgets: IntArray, owners: IntArray) -> FloatArray:
        return self.controller.find_descent_shares(dimension, budgets, owners)

    def __call__(self, observations: Float32Array, owners: IntArray) -> FloatArray:
        residuals = self.controller(observations, owners)
        spent = observations[:, self.controller.features.index("spent")]
        places = owners, np.minimum((spent * NUM_BINS).astype(np.int64), NUM_BINS - 1)
        np.add.at(self.sums, places, residuals)
        np.add.at(self.counts, places, 1.0)
        return residuals


def ablation_errors(controller: ResidualController, case: Case, num_problems: int, num_runs: int) -> FloatArray:
    """Return the final errors of ``ablated`` controllers, shape (variants, problems, runs), with common seeds."""
    problems, variants = _problems(case, num_problems), ablated(controller)
    rows = [
        [_run(variants, case, problem, number, np.full(num_runs, variant)) for number, problem in enumerate(problems)]
        for variant in tqdm(range(len(variants.weights)), unit="variant", leave=False, disable=None)
    ]
    return np.array(rows)


def mean_residuals(controller: ResidualController, case: Case, num_problems: int, num_runs: int) -> FloatArray:
    """Return the mean residual of every control, shape (kinds, NUM_BINS, A)."""
    sums, counts = np.zeros((len(KINDS), NUM_BINS, len(controller.controls))), np.zeros((len(KINDS), NUM_BINS))
    # Owners tell kinds of problems apart, so each needs a controller, all of them the same.
    same = _with_weights(controller, np.repeat(controller.weights, len(KINDS), axis=0))
    noting = cast(ResidualController, _Noting(same, sums, counts))
    for number, problem in enumerate(_problems(case, num_problems)):
        kind = list(KINDS).index(problem.name.split("-")[1])
        _run(noting, case, problem, number, np.full(num_runs, kind))
    with np.errstate(invalid="ignore"):
        means: FloatArray = sums / counts[:, :, None]
    return means


def _problems(case: Case, num_problems: int) -> list[Problem]:
    numbers = list(range(1, num_problems + 1))
    suite = make_suite(SUITE, case.dimension, numbers)
    return [suite[number] for number in numbers]


def _run(controller: ResidualController, case: Case, problem: Problem, number: int, owners: IntArray) -> FloatArray:
    """Return the final errors of runs whose seeds depend on the problem's number alone."""
    num_runs = len(owners)
    keys = np.random.default_rng([case.dimension, case.per_coordinate, number]).integers(2**63, size=num_runs)
    budgets = np.full(num_runs, case.dimension * case.per_coordinate)
    return final_errors([problem] * num_runs, budgets, keys.astype(np.uint64), controller, owners)


def insight_table(content: Insight) -> Table:
    """Return per control and input how often the whole controller ends better than one without it."""
    names = [f"control `{name}`" for name in content.controls] + [f"input `{name}`" for name in INPUTS[1:]]
    rows = [
        [Cell(name), *(_cell(errors, 1 + row) for errors in content.errors.values())] for row, name in enumerate(names)
    ]
    return table(["without", *(f"n = {case.dimension}, {case.per_coordinate:,} n" for case in content.errors)], rows)


def _cell(errors: FloatArray, variant: int) -> Cell:
    shares: Sequence[float] = superiority(errors[variant], errors[0]).tolist()
    mean, (low, high) = float(np.mean(shares)), bootstrap_interval(shares)
    return Cell(f"{mean:.2f}", mean, strong=low > 0.5, note=interval_text(low, high))


@dataclass(frozen=True)
class InsightConfig:
    """How much to compute.

    Attributes:
        controller: Name or file of a residual controller.
        problems: Validation problems for each number of coordinates and budget.
        runs: Runs of every variant on every problem in the shortest case, fewer in longer ones.
        out: The file.
    """

    controller: str = DEFAULT
    problems: int = 60
    runs: int = 16
    out: Path = INSIGHT_FILE


def main(config: InsightConfig) -> int:
    """Compute what the file lacks of this controller, case by case."""
    controller = load(config.controller)
    if not isinstance(controller, ResidualController):
        print(f"`controller` must be a residual controller, got {config.controller!r}.", file=sys.stderr)
        return 2
    content = Insight(checksum_of(controller), controller.controls)
    if config.out.exists() and (kept := read_insight(config.out)).checksum == content.checksum:
        content = kept
    for case in tqdm(CASES, unit="case", disable=None):
        num_runs = max(1, config.runs * CASES[0].per_coordinate // case.per_coordinate)
        shape = config.problems, num_runs
        if case not in content.errors or content.errors[case].shape[1:] != shape:
            content.errors[case] = ablation_errors(controller, case, *shape)
            content.residuals[case] = mean_residuals(controller, case, *shape)
            write_insight(content, config.out)
    return 0


def checksum_of(controller: ResidualController) -> str:
    """Return what tells one controller's weights from another's."""
    return tensor_checksum({"weights": controller.weights, "size_weights": controller.size_weights})


if __name__ == "__main__":
    sys.exit(main(tyro.cli(InsightConfig)))
