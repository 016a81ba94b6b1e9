"""ResidualController: a linear map from what a run looks like to how its adaptive rule is adjusted.

An adaptive Differential Evolution has rules of its own; the controller's residuals bend them, and zeros leave them
alone. Its inputs are scale-free features of the run. Short runs want other rules than long ones, and runs with many
coordinates others than those with few; a linear map cannot react to these and to a feature together. So a controller
has a grid of maps, one for each of a few budgets and dimensions, and in between the weighted mean of the neighbours.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from de_gym.arrays import Float32Array, FloatArray, IntArray
from de_gym.checks import numbers, shown
from de_gym.machine.compiling import compiled, shared
from de_gym.tensor_files import TensorFile, check_tensor_file, read_tensor_file, write_tensor_file

# What the map is linear in: the constant 1 and features.
INPUTS = (
    "constant",
    "spent",
    "success_rate",
    "lasting_success_rate",
    "diversity",
    "stagnation",
    "crossover_memory",
    "dimension",
)

# The first population's size is adjusted by tanh(a + b log10(n / 10)).
NUM_SIZE_WEIGHTS = 2

FORMAT = "de_gym residual controller"
FORMAT_VERSION = "2"


class Grid(NamedTuple):
    """A controller's maps as compiled code reads them.

    Attributes:
        weights: Of P controllers, shape (P, B E, A, K), one number after another.
        positions: Of every input among the features, -1 for the constant, shape (K,).
        axes: Positions of the features that place a run in the grid: budget and dimension.
        budgets: See ``ResidualController``.
        dimensions: See there.
    """

    weights: FloatArray
    positions: IntArray
    axes: IntArray
    budgets: FloatArray
    dimensions: FloatArray


@dataclass(frozen=True)
class ResidualController:
    """One or several linear controllers over one set of features and controls.

    Attributes:
        features: Names of a run's features, in the order in which they are observed.
        controls: Names of the controls, in the order in which residuals are taken.
        weights: Of every map, control and input, shape (P, B E, A, K); the dimensions of a budget are neighbours.
        size_weights: Of the first population's size, shape (P, B E, 2).
        budgets: Ascending log10(budget / (10^4 n)) of the grid of maps, shape (B,).
        dimensions: Ascending log10(n / 10) of the grid of maps, shape (E,).
        info: Where it comes from: training, seed, cost, results, as JSON values.
        descent_shares: Share of the budget, at the end of a run, in which a local search may begin, for each map,
            shape (P, B E); where nothing is given, none ever does.
    """

    features: tuple[str, ...]
    controls: tuple[str, ...]
    weights: FloatArray
    size_weights: FloatArray
    budgets: tuple[float, ...] = (0.0,)
    dimensions: tuple[float, ...] = (0.0,)
    info: Mapping[str, object] = field(default_factory=dict)
    descent_shares: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def population_size(self) -> None:
        """None: it controls populations of any size."""
        return

    def __post_init__(self) -> None:
        """Reject arrays that do not fit together."""
        leading = len(self.weights), len(self.budgets) * len(self.dimensions)
        shares = numbers("descent_shares", self.descent_shares)
        object.__setattr__(self, "descent_shares", shares if shares.size else np.zeros(leading))
        expected = (*leading, len(self.controls), len(INPUTS)), (*leading, NUM_SIZE_WEIGHTS), leading
        shapes = self.weights.shape, self.size_weights.shape, self.descent_shares.shape
        if shapes != expected:
            raise ValueError(f"The arrays of a residual controller must have the shapes {expected}, got {shapes}.")
        if not ((self.descent_shares >= 0.0) & (self.descent_shares <= 1.0)).all():
            raise ValueError(f"`descent_shares` must lie in [0, 1], got {shown(self.descent_shares)}.")
        if not (np.isfinite(self.weights).all() and np.isfinite(self.size_weights).all()):
            raise ValueError("The weights of a residual controller must be finite.")
        for name, knots in (("budgets", self.budgets), ("dimensions", self.dimensions)):
            if not knots or not all(one < other for one, other in itertools.pairwise(knots)):
                raise ValueError(f"`{name}` of a residual controller must ascend, got {knots}.")
        missing = {*INPUTS, "budget"}.difference(self.features, {"constant"})
        if missing:
            raise ValueError(f"A residual controller needs the features {sorted(missing)}, got {self.features}.")

    @classmethod
    def from_vectors(cls, features: Sequence[str], controls: Sequence[str], vectors: FloatArray) -> ResidualController:
        """Return the controllers of one map whose numbers are the rows of ``vectors``, shape (P, ``num_numbers``)."""
        num_weights = len(controls) * len(INPUTS)
        weights = vectors[:, :num_weights].reshape(len(vectors), 1, len(controls), -1)
        sizes = vectors[:, None, num_weights:]
        return cls(tuple(features), tuple(controls), np.ascontiguousarray(weights), np.ascontiguousarray(sizes))

    @classmethod
    def joined(
        cls, parts: Mapping[tuple[float, float], ResidualController], info: Mapping[str, object]
    ) -> ResidualController:
        """Return one controller that has the only map of each part at its (budget, dimension), which form a grid."""
        budgets, dimensions = (tuple(sorted(set(knots))) for knots in zip(*parts, strict=True))
        grid = [parts[place] for place in itertools.product(budgets, dimensions)]
        return cls(
            grid[0].features,
            grid[0].controls,
            np.concatenate([part.weights for part in grid], axis=1),
            np.concatenate([part.size_weights for part in grid], axis=1),
            budgets,
            dimensions,
            info,
            np.concatenate([part.descent_shares for part in grid], axis=1),
        )

    def __call__(self, observations: Float32Array, owners: IntArray | None = None) -> FloatArray:
        """Return residuals (R, A) in [-1, 1], given features (R, F).

        Args:
            observations: What the runs look like.
            owners: Which of several controllers adjusts each run, shape (R,); the first adjusts all by default.
        """
        chosen = np.zeros(len(observations), np.int64) if owners is None else owners
        residuals = np.empty((len(chosen), len(self.controls)))
        _write_residuals(observations, chosen, self.grid, residuals)
        return residuals

    def size_residuals(self, dimension: int, budgets: IntArray, owners: IntArray | None = None) -> FloatArray:
        """Return the residual of each run's first population size, shape (R,), given budgets (R,)."""
        coordinates = math.log10(dimension / 10.0)
        chosen = self.size_weights[..., 0] + self.size_weights[..., 1] * coordinates
        return np.array([math.tanh(mean) for mean in self._between_maps(chosen, dimension, budgets, owners).tolist()])

    def find_descent_shares(self, dimension: int, budgets: IntArray, owners: IntArray | None = None) -> FloatArray:
        """Return the share of each run's budget, at its end, in which a local search may begin, shape (R,)."""
        return self._between_maps(self.descent_shares, dimension, budgets, owners)

    def _between_maps(
        self, numbers: FloatArray, dimension: int, budgets: IntArray, owners: IntArray | None
    ) -> FloatArray:
        """Return the mean, for each run, of what there is one number of for every map, shape (P, B E)."""
        coordinates, means = math.log10(dimension / 10.0), np.zeros(len(budgets))
        chosen = numbers[np.zeros(len(budgets), np.int64) if owners is None else owners].tolist()
        for run, budget in enumerate(np.log10(budgets / (1e4 * dimension)).tolist()):
            for k, number in enumerate(chosen[run]):
                means[run] += _find_share(budget, coordinates, k, self.grid) * number
        return means

    @cached_property
    def grid(self) -> Grid:
        """The maps as compiled code reads them."""
        positions = [-1 if name == "constant" else self.features.index(name) for name in INPUTS]
        return Grid(
            self.weights.ravel(),
            np.array(positions),
            np.array([self.features.index("budget"), self.features.index("dimension")]),
            np.array(self.budgets),
            np.array(self.dimensions),
        )


def num_numbers(num_controls: int) -> int:
    """Return how many numbers a map of so many controls consists of."""
    return num_controls * len(INPUTS) + NUM_SIZE_WEIGHTS


@shared
def _find_share(budget: float, dimension: float, k: int, grid: Grid) -> float:
    """Return how much map ``k`` counts for a run at a place of the grid."""
    row, column = divmod(k, len(grid.dimensions))
    return _hat(budget, grid.budgets, row) * _hat(dimension, grid.dimensions, column)


@shared
def _hat(place: float, knots: FloatArray, k: int) -> float:
    """Return the share of knot ``k``: 1 at it and beyond the outermost, and linear down to 0 at its neighbours."""
    if place == knots[k]:
        return 1.0
    neighbour = k - 1 if place < knots[k] else k + 1
    if neighbour < 0 or neighbour == len(knots):
        return 1.0
    share = (knots[neighbour] - place) / (knots[neighbour] - knots[k])
    return float(share) if share > 0.0 else 0.0


@shared
def write_residuals(features: Float32Array, owner: int, grid: Grid, residuals: FloatArray) -> None:
    """Write tanh of every control's weighted sum of a run's inputs (F,), the mean over the maps, in a fixed order."""
    for control in range(len(residuals)):
        residuals[control] = 0.0
    budget, dimension = float(features[grid.axes[0]]), float(features[grid.axes[1]])
    num_maps, num_inputs = len(grid.budgets) * len(grid.dimensions), len(grid.positions)
    for k in range(num_maps):
        share = _find_share(budget, dimension, k, grid)
        if share > 0.0:
            first = (owner * num_maps + k) * len(residuals) * num_inputs
            for control in range(len(residuals)):
                at = first + control * num_inputs
                total = grid.weights[at]
                for entry in range(1, num_inputs):
                    total += grid.weights[at + entry] * features[grid.positions[entry]]
                residuals[control] += share * total
    for control in range(len(residuals)):
        residuals[control] = math.tanh(residuals[control])


@compiled
def _write_residuals(observations: Float32Array, owners: IntArray, grid: Grid, residuals: FloatArray) -> None:
    for run in range(len(owners)):
        write_residuals(observations[run], owners[run], grid, residuals[run])


def save_residual_controller(controller: ResidualController, path: str | Path) -> Path:
    """Write one controller to ``path`` and return the path; equal controllers give equal bytes."""
    metadata = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "features": json.dumps(controller.features),
        "controls": json.dumps(controller.controls),
        "inputs": json.dumps(INPUTS),
        "budgets": json.dumps(controller.budgets),
        "dimensions": json.dumps(controller.dimensions),
        "info": json.dumps(dict(controller.info), sort_keys=True),
    }
    write_tensor_file(Path(path), residual_tensors(controller), metadata)
    return Path(path)


def residual_tensors(controller: ResidualController) -> dict[str, FloatArray]:
    """Return the numbers of a controller by the names under which its file has them; shares only where it has some."""
    tensors = {"weights": controller.weights, "size_weights": controller.size_weights}
    return tensors | ({"descent_shares": controller.descent_shares} if controller.descent_shares.any() else {})


def is_residual_controller(content: TensorFile) -> bool:
    """Return whether a file that was read says that it is a residual controller."""
    return content.metadata.get("format") == FORMAT


def load_residual_controller(path: str | Path) -> ResidualController:
    """Return the controller stored at ``path``, or say in one sentence why it cannot be used."""
    source = Path(path)
    content = read_tensor_file(source)
    metadata = content.metadata
    if not is_residual_controller(content) or metadata.get("format_version") != FORMAT_VERSION:
        raise ValueError(f"{str(source)!r} is not a residual controller of format version {FORMAT_VERSION}.")
    check_tensor_file(source, content)
    try:
        if tuple(json.loads(metadata["inputs"])) != INPUTS:
            raise ValueError("it was trained with other inputs than this version of the package computes.")
        return ResidualController(
            tuple(json.loads(metadata["features"])),
            tuple(json.loads(metadata["controls"])),
            content.tensors["weights"].astype(np.float64),
            content.tensors["size_weights"].astype(np.float64),
            tuple(float(budget) for budget in json.loads(metadata["budgets"])),
            tuple(float(dimension) for dimension in json.loads(metadata["dimensions"])),
            json.loads(metadata["info"]),
            content.tensors.get("descent_shares", np.zeros((0, 0))).astype(np.float64),
        )
    except KeyError as error:
        raise ValueError(f"Controller file {str(source)!r} lacks its entry {error}.") from error
    except ValueError as error:
        raise ValueError(f"Controller file {str(source)!r} cannot be used: {error}") from error
