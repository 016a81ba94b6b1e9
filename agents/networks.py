"""The hidden layers that a policy may have, all with the states and the call of an ``nn.LSTM``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import torch
from torch import Tensor, nn

from .lstm import lstm_weights

NetworkName = Literal["lstm", "gru", "mlp"]
States = tuple[Tensor, Tensor]


class GruLayer(nn.GRU):
    """A GRU that leaves the second of an LSTM's two states alone."""

    def forward(self, inputs: Tensor, states: States | None = None) -> tuple[Tensor, States]:  # type: ignore[override]  # an LSTM's call
        """Return outputs (T, B, H) for inputs (T, B, O), and the states after them."""
        outputs, hidden = super().forward(inputs, None if states is None else states[0])
        return outputs, (hidden, torch.zeros_like(hidden) if states is None else states[1])


class PlainLayer(nn.Module):
    """A fully connected layer of hyperbolic tangents: the last output is the hidden state, and is not read again."""

    num_layers = 1  # as RecurrentPPO asks an LSTM

    def __init__(self, input_size: int, hidden_size: int) -> None:
        """Make a layer from ``input_size`` numbers to ``hidden_size`` units."""
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.linear = nn.Linear(input_size, hidden_size)

    def forward(self, inputs: Tensor, states: States | None = None) -> tuple[Tensor, States]:
        """Return outputs (T, B, H) for inputs (T, B, O), and the states after them."""
        outputs = torch.tanh(self.linear(inputs))
        return outputs, (outputs[-1:], torch.zeros_like(outputs[-1:]) if states is None else states[1])


HiddenLayer = nn.LSTM | GruLayer | PlainLayer
HIDDEN_LAYERS: Mapping[NetworkName, type[HiddenLayer]] = MappingProxyType(
    {"lstm": nn.LSTM, "gru": GruLayer, "mlp": PlainLayer}
)


def layer_arrays(layer: HiddenLayer) -> dict[str, Tensor]:
    """Return the weights of a hidden layer by the names that a controller's file has them under."""
    if isinstance(layer, PlainLayer):
        return {"input_weight": layer.linear.weight, "gate_bias": layer.linear.bias}
    weights = lstm_weights(layer)
    bias = weights.input_bias + weights.hidden_bias
    if isinstance(layer, GruLayer):
        start = 2 * layer.hidden_size  # of the candidate, whose two biases act apart
        bias = torch.cat([bias[:start], weights.input_bias[start:], weights.hidden_bias[start:]])
    return {"input_weight": weights.input_weight, "hidden_weight": weights.hidden_weight, "gate_bias": bias}


@torch.no_grad()
def set_layer_arrays(layer: HiddenLayer, arrays: Mapping[str, Tensor]) -> None:
    """Give a hidden layer the weights that ``layer_arrays`` returned."""
    bias = arrays["gate_bias"]
    if isinstance(layer, PlainLayer):
        layer.linear.weight.copy_(arrays["input_weight"])
        layer.linear.bias.copy_(bias)
        return
    weights = lstm_weights(layer)
    weights.input_weight.copy_(arrays["input_weight"])
    weights.hidden_weight.copy_(arrays["hidden_weight"])
    weights.input_bias.copy_(bias[: len(weights.input_bias)])
    weights.hidden_bias.zero_()  # only the sum of the two acts, but for a GRU's candidate
    if isinstance(layer, GruLayer):
        weights.hidden_bias[2 * layer.hidden_size :].copy_(bias[len(weights.input_bias) :])
