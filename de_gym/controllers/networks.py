"""The hidden layers that a controller may have: LSTM, GRU, or one layer without memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from de_gym.arrays import Float32Array
from de_gym.machine.compiling import compiled

Tensors = Mapping[str, Float32Array]


@dataclass(frozen=True)
class Network:
    """A hidden layer: one affine map of hidden state and observation, then what its gates do to the state.

    Attributes:
        shapes: Returns names and shapes of its arrays for an observation length O and H cells.
        weights: Returns the weights of the gates on the hidden state (H, gates) and on the observation (O, gates).
        activate: ``activate(gates, inputs, cells)`` replaces hidden states, which stand first in the rows of
            ``inputs``, and cell states, (rows, H).
    """

    shapes: Callable[[int, int], dict[str, tuple[int, ...]]]
    weights: Callable[[Tensors], tuple[Float32Array, Float32Array]]
    activate: Callable[[Float32Array, Float32Array, Float32Array], None]


def _lstm_shapes(observation_size: int, cell_size: int) -> dict[str, tuple[int, ...]]:
    return {
        "input_weight": (4 * cell_size, observation_size),
        "hidden_weight": (4 * cell_size, cell_size),
        "gate_bias": (4 * cell_size,),
    }


def _lstm_weights(tensors: Tensors) -> tuple[Float32Array, Float32Array]:
    return tensors["hidden_weight"].T, tensors["input_weight"].T


@compiled
def activate_lstm(gates: Float32Array, inputs: Float32Array, cells: Float32Array) -> None:
    """Advance an LSTM by one step; gates in the order input, forget, candidate, output."""
    size = cells.shape[1]
    one, two = np.float32(1.0), np.float32(2.0)
    for row in range(len(cells)):
        for unit in range(size):
            input_gate = one / (one + math.exp(-gates[row, unit]))
            forget_gate = one / (one + math.exp(-gates[row, size + unit]))
            # tanh(x) = 2 sigmoid(2x) - 1 costs a third of the library's tanh, and is as exact next to a sigmoid.
            candidate = two / (one + math.exp(-two * gates[row, 2 * size + unit])) - one
            output_gate = one / (one + math.exp(-gates[row, 3 * size + unit]))
            cell = forget_gate * cells[row, unit] + input_gate * candidate
            cells[row, unit] = cell
            inputs[row, unit] = output_gate * (two / (one + math.exp(-two * cell)) - one)


def _gru_shapes(observation_size: int, cell_size: int) -> dict[str, tuple[int, ...]]:
    return {
        "input_weight": (3 * cell_size, observation_size),
        "hidden_weight": (3 * cell_size, cell_size),
        "gate_bias": (4 * cell_size,),  # of the candidate two: only what comes from the state is multiplied
    }


def _gru_weights(tensors: Tensors) -> tuple[Float32Array, Float32Array]:
    hidden, observed = tensors["hidden_weight"], tensors["input_weight"]
    size = hidden.shape[1]
    remembered = np.concatenate([hidden[: 2 * size], np.zeros_like(hidden[:size]), hidden[2 * size :]])
    return remembered.T, np.concatenate([observed, np.zeros_like(observed[:size])]).T


@compiled
def activate_gru(gates: Float32Array, inputs: Float32Array, cells: Float32Array) -> None:
    """Advance a GRU by one step; gates in the order reset, update, candidate from input, candidate from state."""
    size = cells.shape[1]
    one, two = np.float32(1.0), np.float32(2.0)
    for row in range(len(cells)):
        for unit in range(size):
            reset = one / (one + math.exp(-gates[row, unit]))
            update = one / (one + math.exp(-gates[row, size + unit]))
            proposed = gates[row, 2 * size + unit] + reset * gates[row, 3 * size + unit]
            candidate = two / (one + math.exp(-two * proposed)) - one
            inputs[row, unit] = (one - update) * candidate + update * inputs[row, unit]


def _mlp_shapes(observation_size: int, cell_size: int) -> dict[str, tuple[int, ...]]:
    return {"input_weight": (cell_size, observation_size), "gate_bias": (cell_size,)}


def _mlp_weights(tensors: Tensors) -> tuple[Float32Array, Float32Array]:
    observed = tensors["input_weight"].T
    return np.zeros((observed.shape[1], observed.shape[1]), dtype=np.float32), observed


@compiled
def activate_mlp(gates: Float32Array, inputs: Float32Array, cells: Float32Array) -> None:
    """Replace the hidden state by the hyperbolic tangent of each unit."""
    one, two = np.float32(1.0), np.float32(2.0)
    for row in range(len(cells)):
        for unit in range(cells.shape[1]):
            inputs[row, unit] = two / (one + math.exp(-two * gates[row, unit])) - one


NETWORKS: Mapping[str, Network] = MappingProxyType(
    {
        "lstm": Network(_lstm_shapes, _lstm_weights, activate_lstm),
        "gru": Network(_gru_shapes, _gru_weights, activate_gru),
        "mlp": Network(_mlp_shapes, _mlp_weights, activate_mlp),
    }
)
