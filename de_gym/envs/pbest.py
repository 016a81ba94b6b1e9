"""How many of the best individuals may be a run's p-best, as its budget is spent."""

from __future__ import annotations

import numpy as np

from de_gym.machine.compiling import compiled

# The numbers are what the compiled code switches on.
PBEST_SCHEDULES = {"linear": 0}
(_LINEAR,) = PBEST_SCHEDULES.values()
CONSTANT_PBEST = -1


@compiled
def fall_linearly(share_spent: float, population_size: int) -> float:
    """Return the fraction p, falling from 1 to 2/N as the budget is spent."""
    return 1.0 - (1.0 - 2.0 / population_size) * share_spent


@compiled
def num_pbest(schedule: int, constant: float, share_spent: float, population_size: int) -> int:
    """Return the number of p-best candidates, ceil(pN).

    Args:
        schedule: A value of ``PBEST_SCHEDULES``, or ``CONSTANT_PBEST``.
        constant: The fraction p of a constant schedule.
        share_spent: Share of the evaluation budget that is spent.
        population_size: Individuals N.
    """
    fraction = constant
    if schedule == _LINEAR:
        fraction = fall_linearly(share_spent, population_size)
    # A product that is whole but for rounding must not gain a candidate.
    return min(max(int(np.ceil(fraction * population_size - 1e-9)), 1), population_size)
