"""How many of the best individuals may be a run's p-best, as its budget is spent."""

from __future__ import annotations

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.compiling import compiled


@compiled
def fall_linearly(progress: FloatArray, population_size: int) -> FloatArray:
    """Return fractions that fall from 1 to 2/N while ``progress`` (R,), the spent share of the budget, rises to 1."""
    return 1.0 - (1.0 - 2.0 / population_size) * progress


PBEST_SCHEDULES = {"linear": fall_linearly}


def num_pbest(pbest: str | float, progress: FloatArray, population_size: int) -> IntArray:
    """Return ceil(pN), the number of candidates of each run, shape (R,)."""
    if isinstance(pbest, str):
        return _count(PBEST_SCHEDULES[pbest](progress, population_size), population_size)
    return _count(np.full_like(progress, pbest), population_size)


@compiled
def _count(fractions: FloatArray, population_size: int) -> IntArray:
    counts = np.empty(fractions.shape, np.int64)
    for run in range(len(fractions)):
        # A product that is whole but for rounding must not gain a candidate.
        count = int(np.ceil(fractions[run] * population_size - 1e-9))
        counts[run] = min(max(count, 1), population_size)
    return counts
