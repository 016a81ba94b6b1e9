"""jSO: its shell, its parameter control, its constants.

Reference: Brest, Maucec and Boskovic, Single Objective Real-Parameter Optimization: Algorithm jSO (CEC 2017).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from de_gym.checks import LARGEST_SIZE, optional_whole
from de_gym.controllers.success_history import SuccessHistory, SuccessHistorySettings
from de_gym.evolution.current_to_pbest import CurrentToPbest


@dataclass(frozen=True)
class JSOSettings(SuccessHistorySettings):
    """Constants of jSO; the defaults are the distributed program's, ``lde_paper`` gives the LDE paper's.

    Attributes:
        population_size: Initial N; None for round(25 ln(n) sqrt(n)).
        max_archive_size: Capacity of the archive where it is smaller than N; None for N.
    """

    population_size: int | None = None
    max_archive_size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        optional_whole("population_size", self.population_size, 4, LARGEST_SIZE)
        optional_whole("max_archive_size", self.max_archive_size, 0, LARGEST_SIZE)

    @classmethod
    def lde_paper(cls) -> JSOSettings:
        """Return the variant in the LDE paper's table, which its jSO columns fit: mean F 0.5, archive of 20."""
        return cls(initial_scale_factor=0.5, max_archive_size=20)


def make_jso(settings: JSOSettings, dimension: int) -> tuple[CurrentToPbest, SuccessHistory]:
    """Return current-to-pbest with a memory of successes and a population that shrinks linearly."""
    # The formula is zero at n = 1, where we take the size of n = 2.
    coordinates = max(dimension, 2)
    size = settings.population_size or int(25.0 * math.log(coordinates) * math.sqrt(coordinates) + 0.5)
    if settings.min_population_size > size:
        raise ValueError(
            f"`min_population_size` must be at most the {size} individuals of the start, "
            f"got {settings.min_population_size}."
        )
    limit = size if settings.max_archive_size is None else settings.max_archive_size
    return CurrentToPbest(size, archive_fraction=1.0, max_archive_size=limit), SuccessHistory(settings)
