"""LstmTape: an LSTM stepped without autograd, and the gradient of its weights from what the steps left behind.

A training rollout already computes every gate. Recording them costs memory but no time, and saves the second
forward pass that automatic differentiation of a recomputed sequence would need: a third of the arithmetic.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn


class LstmWeights(NamedTuple):
    """The four parameters of a one-layer LSTM; the gates stand in the order input, forget, candidate, output."""

    input_weight: nn.Parameter  # (4H, O)
    hidden_weight: nn.Parameter  # (4H, H)
    input_bias: nn.Parameter  # (4H,)
    hidden_bias: nn.Parameter  # (4H,)


def lstm_weights(lstm: nn.RNNBase) -> LstmWeights:
    """Return the parameters of ``lstm`` under readable names; those of a GRU have three gates."""
    return LstmWeights(*(lstm.get_parameter(f"{name}_l0") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")))


class LstmTape:
    """One pass of a single-layer ``nn.LSTM`` from a state of zeros, step by step, ready for back-propagation.

    Steps equal those of ``nn.LSTM`` and the gradients equal its automatic ones; both are tested.
    """

    def __init__(self, lstm: nn.LSTM, num_runs: int) -> None:
        """Begin a new sequence for ``num_runs`` runs.

        Args:
            lstm: One layer, one direction, not batch-first; its weights are read at every step.
            num_runs: The number of sequences B that advance in lockstep.
        """
        if lstm.num_layers != 1 or lstm.bidirectional or lstm.batch_first or lstm.proj_size or not lstm.bias:
            raise ValueError(f"LstmTape needs a plain one-layer LSTM with biases, got {lstm}.")
        self._weights = lstm_weights(lstm)
        zeros = self._weights.hidden_weight.detach().new_zeros((num_runs, lstm.hidden_size))
        self._inputs: list[Tensor] = []  # x_t, (B, O)
        self._gates: list[Tensor] = []  # i, f, g, o after their activations, (B, 4H)
        self._hidden: list[Tensor] = [zeros]  # h_{t-1}, (B, H); one longer than the others
        self._cells: list[Tensor] = [zeros]  # c_{t-1}, (B, H); one longer than the others

    @torch.no_grad()
    def step(self, inputs: Tensor) -> Tensor:
        """Advance by one step on inputs (B, O) and return the hidden state (B, H)."""
        weights = self._weights
        gates = torch.addmm(weights.input_bias + weights.hidden_bias, inputs, weights.input_weight.t())
        gates.addmm_(self._hidden[-1], weights.hidden_weight.t())
        input_gate, forget_gate, candidate, output_gate = gates.chunk(4, dim=1)
        for gate in (input_gate, forget_gate, output_gate):
            gate.sigmoid_()
        candidate.tanh_()
        cell = torch.addcmul(forget_gate * self._cells[-1], input_gate, candidate)
        hidden = output_gate * torch.tanh(cell)
        self._inputs.append(inputs)
        self._gates.append(gates)
        self._cells.append(cell)
        self._hidden.append(hidden)
        return hidden

    def hidden_states(self) -> Tensor:
        """Return all hidden states h_1 .. h_T, shape (T, B, H)."""
        return torch.stack(self._hidden[1:])

    @torch.no_grad()
    def backward(self, hidden_grads: Tensor, *, through_time: bool) -> None:
        """Add the gradient of the loss to the ``grad`` of the LSTM's weights, and erase the tape.

        Args:
            hidden_grads: Derivatives of the loss with respect to ``hidden_states()``, shape (T, B, H).
            through_time: Whether the gradient also flows from each step into the states of the step before it;
                otherwise every stored state is a constant.
        """
        inputs, states = self._inputs, self._hidden[:-1]
        gate_grads = self._pop_gate_grads(hidden_grads, through_time)  # of the last step first
        input_weight, hidden_weight, *_ = self._weights
        input_grad = _sum_products(gate_grads, inputs, input_weight)
        hidden_grad = _sum_products(gate_grads, states, hidden_weight)
        bias_grad = torch.zeros_like(self._weights.input_bias)
        for gate_grad in gate_grads:
            bias_grad.add_(gate_grad.sum(dim=0))
        for weight, grad in zip(self._weights, (input_grad, hidden_grad, bias_grad, bias_grad.clone()), strict=True):
            weight.grad = grad if weight.grad is None else weight.grad.add_(grad)
        self._inputs, self._hidden, self._cells = [], self._hidden[:1], self._cells[:1]

    def _pop_gate_grads(self, hidden_grads: Tensor, through_time: bool) -> list[Tensor]:
        """Return the gradient with respect to the gates (B, 4H) of every step, the last one first, in their place."""
        hidden_weight = self._weights.hidden_weight
        found: list[Tensor] = []
        hidden_from_next = cell_from_next = None
        while self._gates:
            hidden_grad = hidden_grads[len(self._gates) - 1]
            if hidden_from_next is not None:
                hidden_grad = hidden_grad + hidden_from_next
            gate_grads, cell_from_here = self._pop_step(hidden_grad, cell_from_next)
            found.append(gate_grads)
            if through_time and self._gates:
                hidden_from_next, cell_from_next = gate_grads @ hidden_weight, cell_from_here
        return found

    def _pop_step(self, hidden_grad: Tensor, cell_from_next: Tensor | None) -> tuple[Tensor, Tensor]:
        """Take the last step off the tape.

        Returns:
            The gradient with respect to its four gates before activation (B, 4H), and with respect to c_{t-1}.
        """
        gates = self._gates.pop()
        input_gate, forget_gate, candidate, output_gate = gates.chunk(4, dim=1)
        squashed_cell = torch.tanh(self._cells.pop())
        self._hidden.pop()
        cell_grad = hidden_grad * output_gate * (1.0 - squashed_cell.square())
        if cell_from_next is not None:
            cell_grad += cell_from_next
        cell_from_here = cell_grad * forget_gate
        gate_grads = torch.cat(
            [
                cell_grad * candidate * (input_gate * (1.0 - input_gate)),
                cell_grad * self._cells[-1] * (forget_gate * (1.0 - forget_gate)),
                cell_grad * input_gate * (1.0 - candidate.square()),
                hidden_grad * squashed_cell * (output_gate * (1.0 - output_gate)),
            ],
            dim=1,
        )
        return gate_grads, cell_from_here


@torch.no_grad()
def _sum_products(gate_grads: list[Tensor], inputs: list[Tensor], weight: Tensor) -> Tensor:
    """Return the gradient of a weight: the sum over steps, from the last to the first, of gate gradients x inputs."""
    total = torch.zeros_like(weight)
    for gate_grad, step_inputs in zip(gate_grads, reversed(inputs), strict=True):
        total.addmm_(gate_grad.t(), step_inputs)
    return total
