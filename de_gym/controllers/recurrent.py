"""RecurrentController: the forward pass of a trained policy, without torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from de_gym.arrays import Float32Array, FloatArray, IntArray
from de_gym.controllers.affine import DEPTH, ROWS, affine, packed_bias, packed_weights, padded
from de_gym.controllers.networks import NETWORKS
from de_gym.machine.compiling import compiled
from de_gym.registry import lookup


@dataclass(frozen=True)
class PolicyKind:
    """Which hidden layer a policy has, and how its outputs become a Gaussian: its mean and standard deviation."""

    sigmoid_mean: bool
    state_dependent_std: bool
    network: str = "lstm"

    @property
    def name(self) -> str:
        """The name that files have it under; an LSTM goes without saying, for those written before others were."""
        mean, std = "sigmoid" if self.sigmoid_mean else "linear", "state" if self.state_dependent_std else "constant"
        return f"{mean}-{std}" if self.network == "lstm" else f"{self.network}-{mean}-{std}"


POLICY_KINDS: Mapping[str, PolicyKind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            PolicyKind(sigmoid_mean, state_dependent_std, network)
            for network in NETWORKS
            for sigmoid_mean in (True, False)
            for state_dependent_std in (False, True)
        )
    }
)


@dataclass(frozen=True)
class ControllerInfo:
    """Where a controller comes from and what it expects.

    Attributes:
        policy: A name from ``POLICY_KINDS``.
        preset: Name of the training configuration.
        env_settings: Arguments of the environment it was trained on, as JSON values.
        seed: Root seed of the training.
        package_version: Version of the package that wrote it.
        results: What was measured with it, as JSON values.
    """

    policy: str
    preset: str = ""
    env_settings: Mapping[str, object] = field(default_factory=dict)
    seed: int | None = None
    package_version: str = ""
    results: Mapping[str, object] = field(default_factory=dict)


def tensor_shapes(
    policy: str, observation_size: int, cell_size: int, action_size: int, head_size: int | None = None
) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every array that a policy of the given kind and sizes consists of.

    The head gives the means of the 2N numbers of an action. With a ``head_size`` it gives fewer, those of F and CR at
    some ranks, and a matrix "interpolation" makes 2N of them.
    """
    means = action_size if head_size is None else head_size
    kind = lookup("policy kind", policy, POLICY_KINDS)
    shapes = NETWORKS[kind.network].shapes(observation_size, cell_size)
    shapes |= {"mean_weight": (means, cell_size), "mean_bias": (means,)}
    if head_size is not None:
        shapes["interpolation"] = (action_size, head_size)
    if kind.state_dependent_std:
        return shapes | {"std_weight": (action_size, cell_size), "std_bias": (action_size,)}
    return shapes | {"std": (action_size,)}


class RecurrentController:
    """A hidden layer and two fully connected ones: Gaussian means, and constant or state-dependent deviations.

    The policy kind says which of ``NETWORKS`` is the hidden layer, one of them without memory, and whether means are
    passed through a sigmoid. Where the policy has means at some ranks only, the others are interpolated; noise is
    added at every rank. Actions are clipped to [0, 1].

    Attributes:
        population_size: The number of individuals N it was trained for.
        observation_size: The length of its observations.
        cell_size: The number of cells H of the hidden layer.
        deterministic: Whether actions are the means themselves.
        info: Where it comes from and which environment settings it expects.
        tensors: Its arrays, as named by ``tensor_shapes``.
    """

    population_size: int | None

    def __init__(
        self, tensors: Mapping[str, Float32Array], info: ControllerInfo, *, deterministic: bool = False
    ) -> None:
        self.info = info
        self.deterministic = deterministic
        self.tensors = {name: np.asarray(tensor, dtype=np.float32) for name, tensor in tensors.items()}
        self._head_size, self.cell_size, self.observation_size = _checked_sizes(info.policy, self.tensors)
        interpolation = self.tensors.get("interpolation")
        self._interpolation = None if interpolation is None else interpolation.astype(np.float64)
        self._action_size = self._head_size if interpolation is None else len(interpolation)
        self.population_size = self._action_size // 2
        self._kind = POLICY_KINDS[info.policy]
        self._network = NETWORKS[self._kind.network]
        # The hidden state stands first in a row of inputs, so that the same rows serve the output layers.
        self._observation_start = padded(self.cell_size, DEPTH)
        self._gates = self._packed_gates()
        self._outputs = self._packed_outputs()
        self._num_runs = 0
        self._rngs: list[np.random.Generator] = []
        self._allocate(0)

    def reset(self, rngs: Sequence[np.random.Generator]) -> None:
        """Begin ``len(rngs)`` new runs with a hidden state of zeros; run r draws from ``rngs[r]`` only."""
        self._rngs = list(rngs)
        self._allocate(len(rngs))

    def __call__(self, observations: Float32Array) -> FloatArray:
        """Advance the hidden states by one generation and return actions (R, 2N) in [0, 1]."""
        expected = (self._num_runs, self.observation_size)
        if observations.shape != expected:
            raise ValueError(
                f"Observations of a controller of {self.population_size} individuals and {self._num_runs} runs "
                f"must have shape {expected}, got {observations.shape}."
            )
        start = self._observation_start
        self._inputs[: self._num_runs, start : start + self.observation_size] = observations
        affine(self._inputs, *self._gates, self._gate_values)
        self._network.activate(self._gate_values, self._inputs, self._cells)
        affine(self._inputs, *self._outputs, self._output_values)
        values = self._output_values[: self._num_runs, : self._head_size].astype(np.float64)
        actions = _sigmoid(values) if self._kind.sigmoid_mean else values
        if self._interpolation is not None:
            actions = _interpolated(actions, self._interpolation)
        if not self.deterministic:
            noise = np.stack([rng.standard_normal(self._action_size) for rng in self._rngs])
            actions += self._standard_deviations() * noise
        return np.clip(actions, 0.0, 1.0)

    def keep(self, runs: IntArray) -> None:
        """Go on with only the given runs, in the given order."""
        inputs, cells = self._inputs[runs], self._cells[runs]
        self._rngs = [self._rngs[run] for run in runs]
        self._allocate(len(runs))
        self._inputs[: len(runs)] = inputs
        self._cells[: len(runs)] = cells

    def _allocate(self, num_runs: int) -> None:
        """Make zero states for ``num_runs`` runs; rows are added up to what the kernel takes at a time."""
        rows = padded(num_runs, ROWS)
        self._num_runs = num_runs
        self._inputs = np.zeros((rows, self._gates[0].shape[1]), dtype=np.float32)
        self._cells = np.zeros((rows, self.cell_size), dtype=np.float32)
        self._gate_values = np.empty((rows, len(self._gates[1])), dtype=np.float32)
        self._output_values = np.empty((rows, len(self._outputs[1])), dtype=np.float32)

    def _packed_gates(self) -> tuple[Float32Array, Float32Array]:
        remembered, observed = self._network.weights(self.tensors)
        weight = np.zeros((self._observation_start + self.observation_size, observed.shape[1]), dtype=np.float32)
        weight[: self.cell_size] = remembered
        weight[self._observation_start :] = observed
        return packed_weights(weight), packed_bias(self.tensors["gate_bias"])

    def _packed_outputs(self) -> tuple[Float32Array, Float32Array]:
        names = ("mean", "std") if self._kind.state_dependent_std else ("mean",)
        weight = np.concatenate([self.tensors[f"{name}_weight"] for name in names]).T
        bias = np.concatenate([self.tensors[f"{name}_bias"] for name in names])
        return packed_weights(weight), packed_bias(bias)

    def _standard_deviations(self) -> FloatArray:
        """Return the deviations of the actions being computed, shape (R, 2N) or (2N,)."""
        if not self._kind.state_dependent_std:
            return self.tensors["std"].astype(np.float64)
        values = self._output_values[: self._num_runs, self._head_size : self._head_size + self._action_size]
        return _sigmoid(values.astype(np.float64))


@compiled
def _sigmoid(values: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(-x)) of each number; exp may overflow to infinity, which gives the right 0."""
    result = np.empty_like(values)
    for row in range(values.shape[0]):
        for column in range(values.shape[1]):
            result[row, column] = 1.0 / (1.0 + math.exp(-values[row, column]))
    return result


@compiled
def _interpolated(numbers: FloatArray, interpolation: FloatArray) -> FloatArray:
    """Return ``numbers @ interpolation.T``, each sum in a fixed order whatever the number of rows."""
    actions = np.zeros((numbers.shape[0], interpolation.shape[0]))
    for row in range(numbers.shape[0]):
        for rank in range(interpolation.shape[0]):
            for knot in range(interpolation.shape[1]):
                actions[row, rank] += interpolation[rank, knot] * numbers[row, knot]
    return actions


def _checked_sizes(policy: str, tensors: Mapping[str, Float32Array]) -> tuple[int, int, int]:
    """Return (head size, cells, observation length) after checking that all arrays fit together."""
    sizes = [tensors[name].shape for name in ("mean_weight", "input_weight") if name in tensors]
    if len(sizes) < 2 or any(len(shape) != 2 for shape in sizes):
        raise ValueError("A recurrent policy needs the matrices 'mean_weight' and 'input_weight', got neither or one.")
    (head_size, cell_size), (_, observation_size) = sizes
    action_size = head_size
    expected = tensor_shapes(policy, observation_size, cell_size, action_size)
    if "interpolation" in tensors:
        action_size = len(tensors["interpolation"])
        expected = tensor_shapes(policy, observation_size, cell_size, action_size, head_size)
    actual = {name: tensor.shape for name, tensor in tensors.items()}
    if actual != expected or action_size % 2 or not min(action_size, head_size, cell_size, observation_size):
        wrong = sorted(name for name in expected | actual if actual.get(name) != expected.get(name))
        details = ", ".join(f"{name}: {actual.get(name)} instead of {expected.get(name)}" for name in wrong)
        raise ValueError(f"The arrays of a {policy!r} policy do not fit together: {details or 'an odd or zero size'}.")
    return head_size, cell_size, observation_size
