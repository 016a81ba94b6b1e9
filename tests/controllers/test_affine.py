import numpy as np
import pytest

from de_gym.controllers.affine import affine, packed_bias, packed_weights, padded


def product(inputs, weight, bias):
    tiles, full_bias = packed_weights(weight), packed_bias(bias)
    rows = np.zeros((padded(len(inputs), 4), tiles.shape[1]), dtype=np.float32)
    rows[: len(inputs), : inputs.shape[1]] = inputs
    outputs = np.full((len(rows), len(full_bias)), np.nan, dtype=np.float32)
    affine(rows, tiles, full_bias, outputs)
    return outputs[: len(inputs), : len(bias)]


def test_affine_of_a_hand_computed_case():
    result = product(
        np.array([[1.0, 2.0], [3.0, -1.0]], dtype=np.float32),
        np.array([[1.0, 10.0, 0.5], [2.0, 20.0, 0.25]], dtype=np.float32),
        np.array([0.5, 0.0, -1.0], dtype=np.float32),
    )
    np.testing.assert_array_equal(result, [[5.5, 50.0, 0.0], [1.5, 10.0, 0.25]])


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 7), (4, 256, 128), (9, 257, 129), (6, 700, 300)])
def test_affine_equals_the_product_in_double_precision(shape):
    rows, depth, columns = shape
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((rows, depth)).astype(np.float32)
    weight = rng.standard_normal((depth, columns)).astype(np.float32)
    bias = rng.standard_normal(columns).astype(np.float32)
    exact = inputs.astype(np.float64) @ weight.astype(np.float64) + bias
    np.testing.assert_allclose(product(inputs, weight, bias), exact, atol=1e-6 * depth)


def test_sums_run_over_the_inputs_in_ascending_order():
    rng = np.random.default_rng(1)
    inputs = rng.standard_normal((2, 301)).astype(np.float32)
    weight = rng.standard_normal((301, 3)).astype(np.float32)
    bias = rng.standard_normal(3).astype(np.float32)
    expected = np.tile(bias, (2, 1))
    for k in range(301):
        expected = expected + inputs[:, k : k + 1] * weight[k]
    np.testing.assert_array_equal(product(inputs, weight, bias), expected)
