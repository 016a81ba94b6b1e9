"""How many of the best individuals may be a run's p-best, as its budget is spent."""

from __future__ import annotations

import numpy as np

from de_gym.arrays import IntArray
from de_gym.compiling import compiled


@compiled
def fall_linearly(evaluations: IntArray, max_evaluations: int, population_size: int, counts: IntArray) -> None:
    """Write ceil(pN) candidates per run to ``counts`` (R,), with p falling from 1 to 2/N as the budget is spent."""
    for run in range(len(evaluations)):
        fraction = 1.0 - (1.0 - 2.0 / population_size) * (evaluations[run] / max_evaluations)
        counts[run] = count_candidates(fraction, population_size)


@compiled
def count_candidates(fraction: float, population_size: int) -> int:
    """Return ceil(fraction * population_size), at least one and at most everybody."""
    # A product that is whole but for rounding must not gain a candidate.
    return min(max(int(np.ceil(fraction * population_size - 1e-9)), 1), population_size)


PBEST_SCHEDULES = {"linear": fall_linearly}


def num_pbest(pbest: str | float, evaluations: IntArray, max_evaluations: int, population_size: int) -> IntArray:
    """Return the number of p-best candidates of each run, shape (R,)."""
    counts = np.empty_like(evaluations)
    if isinstance(pbest, str):
        PBEST_SCHEDULES[pbest](evaluations, max_evaluations, population_size, counts)
    else:
        counts[:] = count_candidates(pbest, population_size)
    return counts
