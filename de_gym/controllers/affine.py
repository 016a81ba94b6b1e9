"""x W + b in a fixed order of summation, so that a row's result does not depend on the other rows.

Matrix products of BLAS libraries choose their kernel, and with it the rounding, by the shape of the batch.
Here every output is summed over the inputs in ascending order by plain multiplications and additions;
the speed comes from vectorising over outputs, four rows at a time, on weights packed into tiles.
"""

from __future__ import annotations

import numpy as np

from de_gym.arrays import Float32Array
from de_gym.machine.compiling import compiled

TILE = 128  # outputs computed together: four rows of them stay in the first-level cache
ROWS = 4  # rows computed together, so that a weight is loaded once for all of them
DEPTH = 4  # inputs added in one pass over a tile
BLOCK = 256  # inputs whose weights (TILE of each) stay in the second-level cache while all rows pass


def padded(size: int, multiple: int) -> int:
    """Return the smallest multiple of ``multiple`` that holds ``size``.

    >>> padded(51, 4)
    52
    """
    return -(-size // multiple) * multiple


def packed_weights(weight: Float32Array) -> Float32Array:
    """Return a matrix (inputs, outputs) as tiles (outputs / TILE, inputs, TILE), zeros where it does not divide."""
    num_inputs, num_outputs = weight.shape
    full = np.zeros((padded(num_inputs, DEPTH), padded(num_outputs, TILE)), dtype=np.float32)
    full[:num_inputs, :num_outputs] = weight
    return np.ascontiguousarray(full.reshape(len(full), -1, TILE).transpose(1, 0, 2))


def packed_bias(bias: Float32Array) -> Float32Array:
    """Return a bias (outputs,) with zeros up to a whole number of tiles."""
    return np.pad(bias.astype(np.float32), (0, padded(len(bias), TILE) - len(bias)))


@compiled
def affine(inputs: Float32Array, tiles: Float32Array, bias: Float32Array, outputs: Float32Array) -> None:
    """Write ``inputs[:, :K] W + bias`` into ``outputs``.

    Args:
        inputs: Rows, a multiple of ROWS, each with at least K numbers.
        tiles: The packed weights W, shape (tiles, K, TILE).
        bias: The packed bias, shape (tiles * TILE,).
        outputs: Receives the result, shape (rows, tiles * TILE).
    """
    num_inputs = tiles.shape[1]
    sums = np.empty((ROWS, TILE), dtype=np.float32)
    for tile_number in range(tiles.shape[0]):
        tile = tiles[tile_number]
        columns = slice(tile_number * TILE, (tile_number + 1) * TILE)
        for start in range(0, num_inputs, BLOCK):
            for row in range(0, len(inputs), ROWS):
                if start == 0:
                    sums[:] = bias[columns]
                else:
                    sums[:] = outputs[row : row + ROWS, columns]
                _add_products(inputs[row : row + ROWS], tile, start, min(start + BLOCK, num_inputs), sums)
                outputs[row : row + ROWS, columns] = sums


@compiled
def _add_products(inputs: Float32Array, tile: Float32Array, start: int, stop: int, sums: Float32Array) -> None:
    """Add inputs[:, k] tile[k] to ``sums`` for k from ``start`` to ``stop``, in this order, DEPTH at a time."""
    for k in range(start, stop, DEPTH):
        # Scalars, not array elements: only then does the compiler keep them in registers and vectorise the loop.
        a0, a1, a2, a3 = inputs[0, k], inputs[0, k + 1], inputs[0, k + 2], inputs[0, k + 3]
        b0, b1, b2, b3 = inputs[1, k], inputs[1, k + 1], inputs[1, k + 2], inputs[1, k + 3]
        c0, c1, c2, c3 = inputs[2, k], inputs[2, k + 1], inputs[2, k + 2], inputs[2, k + 3]
        d0, d1, d2, d3 = inputs[3, k], inputs[3, k + 1], inputs[3, k + 2], inputs[3, k + 3]
        for j in range(TILE):
            w0, w1, w2, w3 = tile[k, j], tile[k + 1, j], tile[k + 2, j], tile[k + 3, j]
            sums[0, j] = sums[0, j] + a0 * w0 + a1 * w1 + a2 * w2 + a3 * w3
            sums[1, j] = sums[1, j] + b0 * w0 + b1 * w1 + b2 * w2 + b3 * w3
            sums[2, j] = sums[2, j] + c0 * w0 + c1 * w1 + c2 * w2 + c3 * w3
            sums[3, j] = sums[3, j] + d0 * w0 + d1 * w1 + d2 * w2 + d3 * w3
