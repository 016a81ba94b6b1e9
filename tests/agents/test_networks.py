import pytest
import torch

from agents.lstm import LstmTape
from agents.networks import HIDDEN_LAYERS, GruLayer, PlainLayer, layer_arrays, set_layer_arrays
from agents.tapes import RecomputingTape, make_tape


def make_layer(name, seed=0):
    torch.manual_seed(seed)
    return HIDDEN_LAYERS[name](3, 5).double()


def gradients(layer):
    found = [parameter.grad.clone() for parameter in layer.parameters()]
    layer.zero_grad()
    return found


@pytest.mark.parametrize("name", HIDDEN_LAYERS)
def test_steps_equal_the_pass_over_the_whole_sequence(name):
    layer, inputs = make_layer(name), torch.rand(7, 4, 3, dtype=torch.float64)
    tape = make_tape(layer, 4)
    steps = torch.stack([tape.step(row) for row in inputs])
    torch.testing.assert_close(steps, layer(inputs)[0], rtol=0, atol=1e-15)
    torch.testing.assert_close(tape.hidden_states(), steps, rtol=0, atol=0)
    assert isinstance(tape, LstmTape if name == "lstm" else RecomputingTape)


@pytest.mark.parametrize("name", ["gru", "mlp"])
def test_gradients_equal_automatic_ones_with_states_that_are_variable_or_constant(name):
    layer = make_layer(name)
    inputs, weights = torch.rand(6, 2, 3, dtype=torch.float64), torch.randn(6, 2, 5, dtype=torch.float64)
    found = {}
    for through_time in (True, False):
        states, loss = None, 0.0
        for row, weight in zip(inputs, weights, strict=True):
            output, states = layer(row[None], states)
            loss = loss + (output[0] * weight).sum()
            if not through_time:
                states = tuple(state.detach() for state in states)
        loss.backward()
        expected = gradients(layer)
        tape = make_tape(layer, 2)
        for row in inputs:
            tape.step(row)
        tape.backward(weights, through_time=through_time)
        found[through_time] = gradients(layer)
        torch.testing.assert_close(found[through_time], expected, rtol=1e-12, atol=1e-14)
    if name == "gru":
        assert not torch.allclose(found[True][1], found[False][1])


@pytest.mark.parametrize("name", HIDDEN_LAYERS)
def test_arrays_of_a_layer_make_another_act_as_it_does(name):
    layer, other, inputs = make_layer(name), make_layer(name, seed=1), torch.rand(7, 4, 3, dtype=torch.float64)
    assert not torch.allclose(layer(inputs)[0], other(inputs)[0])
    set_layer_arrays(other, layer_arrays(layer))
    torch.testing.assert_close(other(inputs)[0], layer(inputs)[0], rtol=0, atol=1e-14)


@pytest.mark.parametrize("layer", [GruLayer(3, 5), PlainLayer(3, 5)])
def test_states_are_those_of_an_lstm(layer):
    zeros = torch.zeros(1, 4, 5)
    (_, without), (_, given) = layer(torch.rand(2, 4, 3)), layer(torch.rand(2, 4, 3), (zeros, zeros + 7.0))
    assert [state.shape for state in without] == [zeros.shape, zeros.shape]
    assert torch.equal(given[1], zeros + 7.0)
