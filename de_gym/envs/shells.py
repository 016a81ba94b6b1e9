"""What an environment's populations are like: which of the best lead, what is archived, how the size develops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from de_gym.arrays import FloatArray, RunArray
from de_gym.machine.compiling import compiled


@dataclass(frozen=True)
class Shell:
    """One kind of population that breeds by DE/current-to-pbest/1/bin.

    Attributes:
        archive_share: Capacity of the archive of beaten parents in multiples of the population; 0 for none.
        final_size: Individuals left when the budget is spent, on a straight line from the start; None for all.
    """

    archive_share: float = 0.0
    final_size: int | None = None


SHELLS: Mapping[str, Shell] = MappingProxyType(
    {"pbest": Shell(), "l-shade": Shell(archive_share=1.0, final_size=4)},
)

# How many of the best may be p-best; the numbers are what the compiled code switches on.
PBEST_SCHEDULES: Mapping[str, int] = MappingProxyType({"linear": 0})
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


@compiled
def shrink(runs: RunArray, fitness: FloatArray, final_size: int, max_evaluations: int) -> None:
    """Let the worst individuals of R runs go, as the linear plan demands, and as many of the archive.

    They are the last by rank, so nothing moves.
    """
    capacity = fitness.shape[1]
    if final_size >= capacity:
        return
    for run in range(len(runs)):
        share_spent = runs[run].evaluations / max_evaluations
        planned = int(capacity + (final_size - capacity) * share_spent + 0.5)
        size = max(min(planned, runs[run].size), final_size)
        fitness[run, size:] = np.inf
        runs[run].size = size
        runs[run].archive_size = min(runs[run].archive_size, size)
