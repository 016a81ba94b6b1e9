"""What a rollout remembers of a policy's hidden layer, so that the update can differentiate it."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from .lstm import LstmTape
from .networks import HiddenLayer, States


class Tape(Protocol):
    """One pass of a hidden layer from a state of zeros, step by step, ready for back-propagation."""

    def step(self, inputs: Tensor) -> Tensor:
        """Advance by one step on inputs (B, O) and return the hidden state (B, H)."""

    def hidden_states(self) -> Tensor:
        """Return all hidden states, shape (T, B, H)."""

    def backward(self, hidden_grads: Tensor, *, through_time: bool) -> None:
        """Add the gradient of the loss to the ``grad`` of the layer's weights."""


class RecomputingTape:
    """The tape of any hidden layer: what it did is computed a second time, by automatic differentiation."""

    def __init__(self, layer: HiddenLayer, num_runs: int) -> None:
        """Begin a new sequence for ``num_runs`` runs."""
        self._layer = layer
        zeros = next(layer.parameters()).detach().new_zeros((1, num_runs, layer.hidden_size))
        self._inputs: list[Tensor] = []  # (1, B, O)
        self._states: list[States] = [(zeros, zeros)]  # one longer

    @torch.no_grad()
    def step(self, inputs: Tensor) -> Tensor:
        """Advance by one step on inputs (B, O) and return the hidden state (B, H)."""
        states: States = self._layer(inputs[None], self._states[-1])[1]
        self._inputs.append(inputs[None])
        self._states.append(states)
        return states[0][0]

    def hidden_states(self) -> Tensor:
        """Return all hidden states h_1 .. h_T, shape (T, B, H)."""
        return torch.cat([hidden for hidden, _ in self._states[1:]])

    def backward(self, hidden_grads: Tensor, *, through_time: bool) -> None:
        """Add the gradient of the loss to the ``grad`` of the layer's weights.

        Args:
            hidden_grads: Derivatives of the loss with respect to ``hidden_states()``, shape (T, B, H).
            through_time: Whether the gradient also flows from each step into the states of the step before it;
                otherwise every stored state is a constant.
        """
        if through_time:
            outputs, _ = self._layer(torch.cat(self._inputs), self._states[0])
        else:  # every step a sequence of its own
            before = [torch.cat(kind, dim=1) for kind in zip(*self._states[:-1], strict=True)]
            outputs, _ = self._layer(torch.cat(self._inputs, dim=1), (before[0], before[1]))
        outputs.backward(hidden_grads.reshape(outputs.shape))


def make_tape(layer: HiddenLayer, num_runs: int) -> Tape:
    """Return the fastest tape there is for a hidden layer."""
    return LstmTape(layer, num_runs) if isinstance(layer, nn.LSTM) else RecomputingTape(layer, num_runs)
