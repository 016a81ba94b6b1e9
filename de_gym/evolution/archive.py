"""Archives of beaten parents: the rows of a population's ``positions`` from its capacity on."""

from __future__ import annotations

from de_gym.arrays import FloatArray
from de_gym.machine.compiling import inlined

# What happens when the archive is full; the numbers are what the compiled code switches on.
ARCHIVE_RULES = {"overwrite": 0, "random-leaving": 1}
OVERWRITE, RANDOM_LEAVING = ARCHIVE_RULES.values()


@inlined
def copy_row(source: FloatArray, source_row: int, target: FloatArray, target_row: int) -> None:
    """Copy one row; a loop, because the assignment of slices costs more than a short row."""
    for j in range(source.shape[1]):
        target[target_row, j] = source[source_row, j]


@inlined
def retire(positions: FloatArray, row: int, first: int, count: int, limit: int, rule: int, uniforms: FloatArray) -> int:
    """Copy the individual in ``row`` to the archive that begins at row ``first``; return the number of its members.

    A full archive overwrites a member at random, or grows for the time being until ``leave_at_random``.
    """
    if limit == 0:
        return 0
    slot = count if rule == RANDOM_LEAVING or count < limit else int(uniforms[row] * limit)
    copy_row(positions, row, positions, first + slot)
    return count + 1 if rule == RANDOM_LEAVING else min(count + 1, limit)


@inlined
def archive_limit(size: int, fraction: float, max_size: int) -> int:
    """Return how many members the archive of a population may have."""
    return min(int(fraction * size), max_size)


@inlined
def leave_at_random(positions: FloatArray, first: int, count: int, limit: int, uniforms: FloatArray) -> int:
    """Have members leave, old and new alike, until ``limit`` of ``count`` remain; return how many there are."""
    while count > limit:
        leaving = int(uniforms[count - limit - 1] * count)
        count -= 1
        copy_row(positions, first + count, positions, first + leaving)
    return count
