"""What a controller sees of a run of the two-population shell: numbers without units, for any size and budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from de_gym.machine.compiling import shared
from de_gym.machine.scale_free import (
    LARGEST_FEATURE,
    Feature,
    find_spread,
    log_ratio,
    measure_diversity,
    write_feature,
    write_progress,
    write_task,
)
from de_gym.machine.top_and_front import MAIN, MEMORY_SIZE, Run, RunPlaces

if TYPE_CHECKING:
    import numpy as np

    from de_gym.machine.lanes import Pointer

__all__ = ["FEATURES", "LARGEST_FEATURE", "observe_run"]

FEATURES = (
    Feature("spent", "share of the budget spent"),
    Feature("success_rate", "successes per individual in the last generation; 0.5 before the first"),
    Feature("recent_success_rate", "its moving average that keeps 0.9"),
    Feature("lasting_success_rate", "its moving average that keeps 0.98"),
    Feature("diversity", "log10 of front's standard deviation in the box, against the start, over 4"),
    Feature("spread", "log10 of top's median minus best value, against the start, over 4"),
    Feature("stagnation", "log10 of 1 + generations without a new best value of the populations there are"),
    Feature("crossover_memory", "mean of the main memory of crossover rates"),
    Feature("front_to_top", "log10 of front's median minus best value, against top's"),
    Feature("dimension", "log10 of the dimension over 10"),
    Feature("budget", "log10 of the budget over 10^4 times the dimension"),
)


@shared
def observe_run(
    run: Run, places: RunPlaces, low: Pointer[float], high: Pointer[float], features: Pointer[np.float32]
) -> None:
    """Write the features (K,) of a run; the first time, also note what later ones compare with."""
    # The median value of top minus its best, and how far front's individuals lie apart.
    spread = places.top_fitness[run.size // 2] - places.top_fitness[0]
    diversity = measure_diversity(run.size, places.dimension, places.front, places.front_rows, low, high)
    if run.evaluations == run.initial_size:
        run.initial_diversity, run.initial_spread = diversity, spread
    memory = 0.0
    for slot in range(MEMORY_SIZE):
        memory += places.memory[MAIN * MEMORY_SIZE + slot] / MEMORY_SIZE
    write_progress(features, run.evaluations / run.max_evaluations, run, diversity, spread)
    write_feature(features, 7, memory)
    write_feature(features, 8, log_ratio(find_spread(run.size, places.front_fitness, places.ranking), spread))
    write_task(features, 9, places.dimension, run.max_evaluations)
