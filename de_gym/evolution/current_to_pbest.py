"""The shell of JADE and jSO: DE/current-to-pbest/1/bin with an optional archive, repaired by the midpoint rule."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.evolution.populations import PlanRecords, Population, RunRecords, Trials
from de_gym.evolution.shell import CROSSOVER_RATES, NEXT_SIZE, SCALE_FACTORS, Control, Parameters, Shell
from de_gym.machine.breeding import NUM_ROWS, trials_of_rows
from de_gym.machine.compiling import compiled, inlined
from de_gym.machine.draws import GenerationDraws
from de_gym.machine.picks import pick_distinct, pick_index


@dataclass(frozen=True)
class CurrentToPbest(Shell):
    """Donors x + W (x_pbest - x) + F (x_r1 - x_r2), where r2 may also be a member of the archive."""

    controls = (
        SCALE_FACTORS,
        CROSSOVER_RATES,
        Control("pbest_weights", "individual", "W, the factor of the difference to p-best"),
        Control("num_pbest", "run", "how many leading individuals count as p-best"),
        Control("other_pbest", "run", "whether an individual is never its own p-best"),
        NEXT_SIZE,
    )

    @cached_property
    def smallest_size(self) -> int:
        """The parent, r1 and r2."""
        return 3

    def num_uniforms(self, dimension: int) -> tuple[int, int]:
        """Return the numbers per individual: p-best, r1, r2, forced coordinate, crossover, archive; none per run."""
        return 5 + dimension, 0

    def breed(
        self, state: Population, parameters: Parameters, draws: GenerationDraws, lower: FloatArray, upper: FloatArray
    ) -> Trials:
        """Return one trial of every individual of the runs that ``draws.starts`` gives points to."""
        points = np.empty((draws.starts[-1], lower.shape[1]))
        first_uniform, (factors, rates, weights, _, plans) = draws.layout.controller_uniforms, parameters
        population = state.runs, state.positions, state.order
        numbers = draws.uniforms, first_uniform, draws.starts
        breed_to_pbest(*population, weights, factors, rates, plans, *numbers, lower, upper, points)
        return Trials(points, draws.starts)


@compiled
def breed_to_pbest(
    runs: RunRecords,
    positions: FloatArray,
    order: IntArray,
    pbest_weights: FloatArray,
    scale_factors: FloatArray,
    crossover_rates: FloatArray,
    plans: PlanRecords,
    uniforms: FloatArray,
    first_uniform: int,
    starts: IntArray,
    lower: FloatArray,
    upper: FloatArray,
    points: FloatArray,
) -> None:
    """Write the trials (T, D) of R runs; a run of N trials uses its uniforms from N ``first_uniform`` on."""
    capacity, dimension = order.shape[1], lower.shape[1]
    rows = np.empty(NUM_ROWS * capacity, np.int64)
    for run in range(runs.shape[0]):
        size, plan = starts[run + 1] - starts[run], plans[run]
        if size == 0:
            continue
        drawn = uniforms[run, first_uniform * size : (first_uniform + 4 + dimension) * size]
        pool_size = size + runs[run]["archive_size"]
        picked = pick_distinct(drawn[size : 3 * size].reshape(2, size), pool_size)
        num_pbest = min(max(plan["num_pbest"], 1), size)
        _pick_pbest(drawn, order[run, :size], num_pbest, plan["other_pbest"], rows[size : 2 * size])
        for i in range(size):
            rows[i], rows[2 * size + i] = i, picked[0, i]
            minus = picked[1, i]
            rows[3 * size + i] = minus if minus < size else minus - size + capacity
        trials_of_rows(
            positions[run],
            rows,
            pbest_weights[run],
            scale_factors[run],
            crossover_rates[run],
            drawn[3 * size :],
            lower[run],
            upper[run],
            points[starts[run] : starts[run + 1]],
        )


@inlined
def _pick_pbest(uniforms: FloatArray, order: IntArray, count: int, other: bool, picked: IntArray) -> None:
    """Write for each individual a row among the first ``count`` of ``order``, with ``other`` not its own."""
    size = order.shape[0]
    if not other:
        for i in range(size):
            picked[i] = order[pick_index(uniforms[i], count)]
        return
    for i in range(size):
        picked[i] = size
    for rank in range(count):
        picked[order[rank]] = rank
    for i in range(size):
        own = picked[i]
        rank = pick_index(uniforms[i], count - 1 if own < count else count)
        picked[i] = order[rank + (rank >= own)]
