import pytest
import torch
from torch import nn

from agents.lstm import LstmTape, lstm_weights


@pytest.fixture
def lstm():
    torch.manual_seed(0)
    return nn.LSTM(3, 5).double()


def gradients(lstm):
    return [weight.grad for weight in lstm_weights(lstm)]


def test_steps_equal_the_fused_sequence_pass(lstm):
    inputs = torch.rand(7, 4, 3, dtype=torch.float64)
    tape = LstmTape(lstm, 4)
    steps = torch.stack([tape.step(row) for row in inputs])
    torch.testing.assert_close(steps, lstm(inputs)[0], rtol=0, atol=1e-15)
    torch.testing.assert_close(tape.hidden_states(), steps, rtol=0, atol=0)


def test_full_gradient_equals_automatic_differentiation(lstm):
    inputs = torch.rand(7, 4, 3, dtype=torch.float64)
    weights = torch.randn(7, 4, 5, dtype=torch.float64)
    (lstm(inputs)[0] * weights).sum().backward()
    expected = [grad.clone() for grad in gradients(lstm)]
    lstm.zero_grad()
    tape = LstmTape(lstm, 4)
    for row in inputs:
        tape.step(row)
    tape.backward(weights, through_time=True)
    torch.testing.assert_close(gradients(lstm), expected, rtol=1e-12, atol=1e-14)


def test_gradient_with_stored_states_equals_automatic_differentiation_of_detached_steps(lstm):
    inputs = torch.rand(6, 2, 3, dtype=torch.float64)
    weights = torch.randn(6, 2, 5, dtype=torch.float64)
    hidden = cell = torch.zeros(1, 2, 5, dtype=torch.float64)
    loss = torch.zeros((), dtype=torch.float64)
    for row, weight in zip(inputs, weights, strict=True):
        output, (hidden, cell) = lstm(row[None], (hidden.detach(), cell.detach()))
        loss = loss + (output[0] * weight).sum()
    loss.backward()
    expected = [grad.clone() for grad in gradients(lstm)]
    lstm.zero_grad()
    tape = LstmTape(lstm, 2)
    for row in inputs:
        tape.step(row)
    tape.backward(weights, through_time=False)
    torch.testing.assert_close(gradients(lstm), expected, rtol=1e-12, atol=1e-14)


def test_gradients_are_added_to_those_already_there(lstm):
    inputs, weights = torch.rand(2, 1, 3, dtype=torch.float64), torch.ones(2, 1, 5, dtype=torch.float64)
    for _ in range(2):
        tape = LstmTape(lstm, 1)
        for row in inputs:
            tape.step(row)
        tape.backward(weights, through_time=True)
    twice = [grad.clone() for grad in gradients(lstm)]
    lstm.zero_grad()
    tape = LstmTape(lstm, 1)
    for row in inputs:
        tape.step(row)
    tape.backward(weights, through_time=True)
    torch.testing.assert_close(twice, [2 * grad for grad in gradients(lstm)])


def test_other_kinds_of_lstm_are_rejected():
    with pytest.raises(ValueError, match="needs a plain one-layer LSTM with biases"):
        LstmTape(nn.LSTM(3, 5, num_layers=2), 1)
