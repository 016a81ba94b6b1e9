"""ResidualController: a linear map from what a run looks like to how its adaptive rule is adjusted.

An adaptive Differential Evolution has rules of its own; the controller's residuals bend them, and zeros leave them
alone. Its inputs are scale-free features of the run. A controller may fade: the rules of L-SRTDE were made for 10 000
evaluations per coordinate, and there it leaves them as they are; from a fifth of that down, where there is less time
than they expect, it bends them in full.
"""

from __future__ import annotations

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

# The first population's size is adjusted by tanh(strength (a + b log10(n / 10))).
NUM_SIZE_WEIGHTS = 2

# log10(budget / (10^4 n)) from which on a controller that fades bends rules in full.
_FULL_STRENGTH = -0.7

FORMAT = "de_gym residual controller"
FORMAT_VERSION = "1"


@dataclass(frozen=True)
class ResidualController:
    """One or several linear controllers over one set of features and controls.

    Attributes:
        features: Names of a run's features, in the order in which they are observed.
        controls: Names of the controls, in the order in which residuals are taken.
        weights: Of every control and input, shape (P, A, K).
        size_weights: Of the first population's size, shape (P, 2).
        fades: Whether residuals fade out towards the budget that the algorithm's own constants were made for.
        info: Where it comes from: training, seed, cost, results, as JSON values.
    """

    features: tuple[str, ...]
    controls: tuple[str, ...]
    weights: FloatArray
    size_weights: FloatArray
    fades: bool = False
    info: Mapping[str, object] = field(default_factory=dict)

    @property
    def population_size(self) -> None:
        """None: it controls populations of any size."""
        return

    def __post_init__(self) -> None:
        """Reject arrays that do not fit together."""
        expected = (len(self.weights), len(self.controls), len(INPUTS)), (len(self.weights), NUM_SIZE_WEIGHTS)
        shapes = self.weights.shape, self.size_weights.shape
        if shapes != expected:
            raise ValueError(f"The arrays of a residual controller must have the shapes {expected}, got {shapes}.")
        missing = {*INPUTS, "budget"}.difference(self.features, {"constant"})
        if missing:
            raise ValueError(f"A residual controller needs the features {sorted(missing)}, got {self.features}.")

    @classmethod
    def from_vectors(cls, features: Sequence[str], controls: Sequence[str], vectors: FloatArray) -> ResidualController:
        """Return the controllers whose numbers are the rows of ``vectors``, shape (P, ``num_numbers``)."""
        num_weights = len(controls) * len(INPUTS)
        weights = vectors[:, :num_weights].reshape(len(vectors), len(controls), -1)
        sizes = vectors[:, num_weights:]
        return cls(tuple(features), tuple(controls), np.ascontiguousarray(weights), np.ascontiguousarray(sizes))

    def __call__(self, observations: Float32Array, owners: IntArray | None = None) -> FloatArray:
        """Return residuals (R, A) in [-1, 1], given features (R, F).

        Args:
            observations: What the runs look like.
            owners: Which of several controllers adjusts each run, shape (R,); the first adjusts all by default.
        """
        chosen = np.zeros(len(observations), np.int64) if owners is None else owners
        budgets = observations[:, self.features.index("budget")].astype(np.float64)
        return _residuals(observations, chosen, self.weights, self._positions, self._strengths(budgets))

    def size_residuals(self, dimension: int, budgets: IntArray, owners: IntArray | None = None) -> FloatArray:
        """Return the residual of each run's first population size, shape (R,), given budgets (R,)."""
        weights = self.size_weights[np.zeros(len(budgets), np.int64) if owners is None else owners]
        strengths = self._strengths(np.log10(budgets / (1e4 * dimension)))
        return np.tanh(strengths * (weights[:, 0] + weights[:, 1] * math.log10(dimension / 10.0)))

    def _strengths(self, budgets: FloatArray) -> FloatArray:
        """Return how much rules are bent, from 0 to 1, given log10(budget / (10^4 n)) of each run, shape (R,)."""
        return np.clip(budgets / _FULL_STRENGTH, 0.0, 1.0) if self.fades else np.ones(len(budgets))

    @cached_property
    def _positions(self) -> IntArray:
        """Position of every input among the features, -1 for the constant, shape (K,)."""
        return np.array([-1 if name == "constant" else self.features.index(name) for name in INPUTS])


def num_numbers(num_controls: int) -> int:
    """Return how many numbers a controller of so many controls consists of."""
    return num_controls * len(INPUTS) + NUM_SIZE_WEIGHTS


@compiled
def _residuals(
    observations: Float32Array, owners: IntArray, weights: FloatArray, positions: IntArray, strengths: FloatArray
) -> FloatArray:
    """Return tanh of every control's weighted sum of inputs times the run's strength, added up in a fixed order."""
    num_controls, num_inputs = weights.shape[1:]
    residuals = np.empty((len(owners), num_controls))
    for run in range(len(owners)):
        for control in range(num_controls):
            total = weights[owners[run], control, 0]
            for k in range(1, num_inputs):
                total += weights[owners[run], control, k] * observations[run, positions[k]]
            residuals[run, control] = math.tanh(strengths[run] * total)
    return residuals


def save_residual_controller(controller: ResidualController, path: str | Path) -> Path:
    """Write one controller to ``path`` and return the path; equal controllers give equal bytes."""
    metadata = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "features": json.dumps(controller.features),
        "controls": json.dumps(controller.controls),
        "inputs": json.dumps(INPUTS),
        "fades": json.dumps(controller.fades),
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
            bool(json.loads(metadata["fades"])),
            json.loads(metadata["info"]),
        )
    except KeyError as error:
        raise ValueError(f"Controller file {str(source)!r} lacks its entry {error}.") from error
    except ValueError as error:
        raise ValueError(f"Controller file {str(source)!r} cannot be used: {error}") from error
