"""What tells that a stated minimum is none."""

from __future__ import annotations

import warnings

from de_gym.machine.compiling import inlined
from de_gym.problems.budgets import ZERO_ERROR


@inlined
def is_below_minimum(value: float, minimum: float) -> bool:
    """Return whether a value lies below a stated minimum by more than rounding can explain; never where it is NaN."""
    return value < minimum - ZERO_ERROR * max(1.0, abs(minimum))


def warn_of_mistaken_optimum(num_mistaken: int, stacklevel: int = 4) -> None:
    """Say that a problem's stated minimum is none, where runs have found so."""
    if num_mistaken == 0:
        return
    warnings.warn(
        f"A value below the stated minimum was found in {num_mistaken} run(s): the `optimum` of the problem is wrong. "
        f"The run goes on as if no minimum were known.",
        RuntimeWarning,
        stacklevel=stacklevel,
    )
