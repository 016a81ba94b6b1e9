"""Choices among individuals, from uniforms: leading ones, and several that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.machine.compiling import compiled, inlined
from de_gym.machine.lanes import hold, pointer_to

if TYPE_CHECKING:
    from de_gym.machine.lanes import Pointer


@inlined
def pick_index(uniform: float, count: int) -> int:
    """Return floor(u * count), uniform in 0..count-1."""
    # By way of 32 bits, because the conversion to 64 has no vector form.
    return int(np.int32(uniform * count))


@compiled
def pick_distinct(uniforms: FloatArray, last_size: int) -> IntArray:
    """Return K indices per individual that differ from it and from each other.

    Args:
        uniforms: Shape (K, N), one number per index.
        last_size: Number of rows the last index may point to: N, or N plus the archive's rows.

    Returns:
        Indices, shape (K, N): the first K - 1 below N, the last below ``last_size``.
    """
    picked, taken = np.empty(uniforms.shape, np.int64), np.empty(uniforms.shape, np.int64)
    num_picks, size = uniforms.shape
    pick_distinct_into(pointer_to(uniforms), 0, num_picks, size, last_size, pointer_to(picked), 0, pointer_to(taken))
    hold(taken)
    return picked


@inlined
def pick_distinct_into(
    uniforms: Pointer[float],
    first_uniform: int,
    num_picks: int,
    size: int,
    last_size: int,
    picked: Pointer[int],
    first_picked: int,
    columns: Pointer[int],
) -> None:
    """Write what ``pick_distinct`` returns to ``picked`` from ``first_picked`` on; ``columns`` is memory to work in.

    Every loop runs over all individuals without branches, so that it compiles to vector instructions.
    """
    # Column i lists what individual i may not pick again, ascending: itself, then its picks so far.
    for i in range(size):
        columns[i] = i
    for pick in range(num_picks):
        choices, first = last_size if pick == num_picks - 1 else size, pick * size
        drawn, here = first_uniform + first, first_picked + first
        for i in range(size):
            picked[here + i] = pick_index(uniforms[drawn + i], choices - pick - 1)
        # Step over the rows taken so far, in ascending order: uniform over the others without redrawing.
        for row in range(0, first + size, size):
            for i in range(size):
                picked[here + i] += picked[here + i] >= columns[row + i]
        if pick < num_picks - 1:
            for i in range(size):
                columns[first + size + i] = picked[here + i]
            for row in range(first, -1, -size):
                for i in range(size):
                    one, other = columns[row + i], columns[row + size + i]
                    columns[row + i] = min(one, other)
                    columns[row + size + i] = max(one, other)
