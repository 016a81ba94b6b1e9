"""What a controller sees of a run of the two-population shell: numbers without units, for any size and budget."""

from __future__ import annotations

from de_gym.arrays import Float32Array, FloatArray
from de_gym.machine.compiling import compiled, shared
from de_gym.machine.scale_free import (
    LARGEST_FEATURE,
    Feature,
    find_diversity,
    find_spread,
    log_ratio,
    write_feature,
    write_progress,
    write_task,
)
from de_gym.machine.top_and_front import MAIN, MEMORY_SIZE, TwoPopulations, locate_run

__all__ = ["FEATURES", "LARGEST_FEATURE", "observe_run", "observe_runs"]

FEATURES = (
    Feature("spent", "share of the budget spent"),
    Feature("success_rate", "successes per individual in the last generation; 0.5 before the first"),
    Feature("recent_success_rate", "its moving average that keeps 0.9"),
    Feature("lasting_success_rate", "its moving average that keeps 0.98"),
    Feature("diversity", "log10 of front's standard deviation in the box, against the start, over 4"),
    Feature("spread", "log10 of top's median minus best value, against the start, over 4"),
    Feature("stagnation", "log10 of 1 + generations without a new best value"),
    Feature("crossover_memory", "mean of the main memory of crossover rates"),
    Feature("front_to_top", "log10 of front's median minus best value, against top's"),
    Feature("dimension", "log10 of the dimension over 10"),
    Feature("budget", "log10 of the budget over 10^4 times the dimension"),
)


@shared
def observe_run(
    index: int, state: TwoPopulations, lower: FloatArray, upper: FloatArray, features: Float32Array
) -> None:
    """Write the features (R, K) of run ``index``; the first time, also note what later ones compare with."""
    run, places, dimension = state.runs[index], locate_run(index, state), lower.shape[1]
    # The median value of top minus its best, and how far front's individuals lie apart.
    spread = places.top_fitness[run.size // 2] - places.top_fitness[0]
    diversity = find_diversity(run.size, places.front, places.front_rows, lower[index], upper[index])
    if run.evaluations == run.initial_size:
        run.initial_diversity, run.initial_spread = diversity, spread
    memory = 0.0
    for slot in range(MEMORY_SIZE):
        memory += places.memory[MAIN * MEMORY_SIZE + slot] / MEMORY_SIZE
    write_progress(features, index, run.evaluations / run.max_evaluations, run, diversity, spread)
    write_feature(features, index, 7, memory)
    write_feature(features, index, 8, log_ratio(find_spread(run.size, places.front_fitness, places.ranking), spread))
    write_task(features, index, 9, dimension, run.max_evaluations)


@compiled
def observe_runs(state: TwoPopulations, lower: FloatArray, upper: FloatArray, features: Float32Array) -> None:
    """Write the features (R, K) of all runs, given bounds (R, D)."""
    for index in range(len(state.runs)):
        observe_run(index, state, lower, upper, features)
