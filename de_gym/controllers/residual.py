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

import numpy as np

from de_gym.arrays import Float32Array, FloatArray, IntArray
from de_gym.machine.compiling import compiled
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
    """

    features: tuple[str, ...]
    controls: tuple[str, ...]
    weights: FloatArray
    size_weights: FloatArray
    budgets: tuple[float, ...] = (0.0,)
    dimensions: tuple[float, ...] = (0.0,)
    info: Mapping[str, object] = field(default_factory=dict)

    @property
    def population_size(self) -> None:
        """None: it controls populations of any size."""
        return

    def __post_init__(self) -> None:
        """Reject arrays that do not fit together."""
        leading = len(self.weights), len(self.budgets) * len(self.dimensions)
        expected = (*leading, len(self.controls), len(INPUTS)), (*leading, NUM_SIZE_WEIGHTS)
        shapes = self.weights.shape, self.size_weights.shape
        if shapes != expected:
            raise ValueError(f"The arrays of a residual controller must have the shapes {expected}, got {shapes}.")
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
        )

    def __call__(self, observations: Float32Array, owners: IntArray | None = None) -> FloatArray:
        """Return residuals (R, A) in [-1, 1], given features (R, F).

        Args:
            observations: What the runs look like.
            owners: Which of several controllers adjusts each run, shape (R,); the first adjusts all by default.
        """
        chosen = np.zeros(len(observations), np.int64) if owners is None else owners
        budgets, dimensions = (observations[:, self.features.index(name)] for name in ("budget", "dimension"))
        shares, residuals = self._shares(budgets, dimensions), np.zeros((len(chosen), len(self.controls)))
        _write_residuals(observations, chosen, self.weights, self._positions, shares, residuals)
        return residuals

    def size_residuals(self, dimension: int, budgets: IntArray, owners: IntArray | None = None) -> FloatArray:
        """Return the residual of each run's first population size, shape (R,), given budgets (R,)."""
        weights = self.size_weights[np.zeros(len(budgets), np.int64) if owners is None else owners]
        coordinates = math.log10(dimension / 10.0)
        sums = weights[:, :, 0] + weights[:, :, 1] * coordinates
        shares = self._shares(np.log10(budgets / (1e4 * dimension)), np.full(len(budgets), coordinates))
        residuals: FloatArray = np.tanh((shares * sums).sum(axis=1))
        return residuals

    def _shares(self, budgets: FloatArray | Float32Array, dimensions: FloatArray | Float32Array) -> FloatArray:
        """Return how much each map counts, shape (R, B E), where the runs lie in the grid, shape (R,) each."""
        by_budget, by_dimension = _hats(budgets, self.budgets), _hats(dimensions, self.dimensions)
        return (by_budget[:, :, None] * by_dimension[:, None, :]).reshape(len(budgets), -1)

    @cached_property
    def _positions(self) -> IntArray:
        """Position of every input among the features, -1 for the constant, shape (K,)."""
        return np.array([-1 if name == "constant" else self.features.index(name) for name in INPUTS])


def _hats(places: FloatArray | Float32Array, knots: tuple[float, ...]) -> FloatArray:
    """Return the shares of the knots at R places, linear between neighbours and constant outside, shape (R, K)."""
    return np.stack([np.interp(places, knots, row) for row in np.eye(len(knots))], axis=1)


def num_numbers(num_controls: int) -> int:
    """Return how many numbers a map of so many controls consists of."""
    return num_controls * len(INPUTS) + NUM_SIZE_WEIGHTS


@compiled
def _write_residuals(
    observations: Float32Array,
    owners: IntArray,
    weights: FloatArray,
    positions: IntArray,
    shares: FloatArray,
    residuals: FloatArray,
) -> None:
    """Write tanh of every control's weighted sum of inputs, the mean over the maps, added up in a fixed order."""
    num_maps, num_controls, num_inputs = weights.shape[1:]
    for run in range(len(owners)):
        owner = owners[run]
        for k in range(num_maps):
            if shares[run, k] > 0.0:
                for control in range(num_controls):
                    total = weights[owner, k, control, 0]
                    for entry in range(1, num_inputs):
                        total += weights[owner, k, control, entry] * observations[run, positions[entry]]
                    residuals[run, control] += shares[run, k] * total
        for control in range(num_controls):
            residuals[run, control] = math.tanh(residuals[run, control])


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
    tensors = {"weights": controller.weights, "size_weights": controller.size_weights}
    write_tensor_file(Path(path), tensors, metadata)
    return Path(path)


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
        )
    except KeyError as error:
        raise ValueError(f"Controller file {str(source)!r} lacks its entry {error}.") from error
    except ValueError as error:
        raise ValueError(f"Controller file {str(source)!r} cannot be used: {error}") from error
