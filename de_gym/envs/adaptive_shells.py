"""What ``AdaptiveDEControl-v0`` can adjust: adaptive algorithms whose own rules act, and how each is stepped."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from de_gym.arrays import Float32Array, FloatArray, IntArray
from de_gym.envs.run_views import RunViews
from de_gym.machine.streams import KeyArray
from de_gym.problems import ProblemBatch

# A named tuple of arrays whose first axis are the runs: records of ``RUN``, lower and upper bounds, and what the
# algorithm itself remembers.
AdaptiveState = Any


class Generation(NamedTuple):
    """What is to be said of a generation of R runs.

    Attributes:
        features: All features of the runs after it, shape (R, K).
        mean_scale_factors: Mean F, shape (R,).
        mean_crossover_rates: Mean CR, shape (R,).
    """

    features: Float32Array
    mean_scale_factors: FloatArray
    mean_crossover_rates: FloatArray


class Following(NamedTuple):
    """What judging has to know of R runs, each of shape (R,).

    Attributes:
        generation: Generations since the initial population.
        evaluations: Points evaluated so far.
        num_trials: Trials of the last generation.
        num_successes: Those that took somebody's place.
        next_size: Evaluations without which there is no further generation.
        best_fitness: The best value so far.
    """

    generation: IntArray
    evaluations: IntArray
    num_trials: IntArray
    num_successes: IntArray
    next_size: IntArray
    best_fitness: FloatArray


class AdaptiveShell(Protocol):
    """An adaptive algorithm; residuals of zero leave it bit for bit what it is.

    Attributes:
        controls: Name of every entry of an action.
        features: Name of every feature.
    """

    controls: tuple[str, ...]
    features: tuple[str, ...]

    def initial_size(self, dimension: int, max_evaluations: int) -> int:
        """Return how many individuals the algorithm itself begins with."""
        ...

    def smallest_budget(self, population_size: int) -> int:
        """Return the evaluations that pay for the initial population and a first generation."""
        ...

    def start(
        self, problems: ProblemBatch, positions: FloatArray, values: FloatArray, keys: KeyArray, max_evaluations: int
    ) -> AdaptiveState:
        """Return R runs that begin with these positions (R, N, D) and their values (R, N)."""
        ...

    def advance(self, state: AdaptiveState, problems: ProblemBatch, residuals: FloatArray) -> Generation:
        """Turn R runs into what they are a generation later, by checked residuals (R, A)."""
        ...

    def observe(self, state: AdaptiveState) -> Float32Array:
        """Return all features, shape (R, K)."""
        ...

    def follow(self, state: AdaptiveState) -> Following:
        """Return what judging has to know."""
        ...

    def best_positions(self, state: AdaptiveState) -> FloatArray:
        """Return each run's best point, shape (R, D)."""
        ...

    def populations(self, state: AdaptiveState) -> dict[str, FloatArray]:
        """Return the first run's populations, best first, by name, for pictures."""
        ...

    def views(self, state: AdaptiveState) -> RunViews:
        """Return what functions of the user see."""
        ...
