"""What an environment steps: a process of R runs, and the outcome of one of its generations."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from de_gym.arrays import BoolArray, Float32Array, FloatArray, IntArray
from de_gym.envs.judging import NUM_FIGURES
from de_gym.machine.streams import KeyArray
from de_gym.problems import ProblemBatch

# A state is a named tuple of arrays whose first axis are the runs.
State = Any


class Outcome(NamedTuple):
    """What a generation of R runs gave, in arrays of its own.

    Attributes:
        figures: Rewards, then what the process's ``step_figures`` name, then error and value of the best individual,
            a row each, shape (F, R).
        counts: Evaluations and generations so far, shape (2, R).
        flags: Whether terminated, whether truncated, shape (2, R).
        best_positions: Shape (R, D).
        observations: Shape (R, O).
        num_ended: Number of runs that were terminated or truncated.
    """

    figures: FloatArray
    counts: IntArray
    flags: BoolArray
    best_positions: FloatArray
    observations: Float32Array
    num_ended: int


def empty_outcome(num_runs: int, dimension: int, observation_size: int) -> Outcome:
    """Return an outcome whose arrays are to be written."""
    return Outcome(
        figures=np.empty((NUM_FIGURES, num_runs)),
        counts=np.empty((2, num_runs), np.int64),
        flags=np.zeros((2, num_runs), np.bool_),
        best_positions=np.empty((num_runs, dimension)),
        observations=np.empty((num_runs, observation_size), np.float32),
        num_ended=0,
    )


class Process(Protocol):
    """The decision process of R runs of one dimension: everything about an environment but its interface.

    Attributes:
        settings: What it was made from; ``max_generations`` is the limit of an episode, or None.
        population_size: Individuals N of the initial population.
        action_low: Smallest number of an action; the largest is 1.
        action_size: Numbers of an action, A.
        observation_low: Smallest value of every entry of an observation, shape (O,).
        observation_high: Largest value of every entry, shape (O,).
        step_figures: What ``info`` says of a generation.
    """

    settings: Any
    population_size: int
    action_low: float
    action_size: int
    observation_low: Float32Array
    observation_high: Float32Array
    step_figures: tuple[str, ...]

    def start(self, problems: ProblemBatch, positions: FloatArray, keys: KeyArray) -> State:
        """Return the state of R runs that begin with these positions (R, N, D)."""
        ...

    def describe(self, state: State, problems: ProblemBatch) -> Outcome:
        """Return the outcome of having done nothing: a description of the state, and zeros."""
        ...

    def advance(self, state: State, problems: ProblemBatch, actions: FloatArray) -> Outcome:
        """Turn the state into that of one generation later, by checked actions (R, A)."""
        ...

    def parameters(self, state: State, actions: FloatArray) -> dict[str, FloatArray]:
        """Return what the actions set in the first run, by name, for pictures."""
        ...

    def populations(self, state: State) -> dict[str, FloatArray]:
        """Return the first run's populations, best first, by name, each of shape (N, D), for pictures."""
        ...
