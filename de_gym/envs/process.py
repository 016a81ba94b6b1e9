"""What an environment steps: a process of R runs, the outcome of one of its generations, and how that is judged."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from de_gym.arrays import BoolArray, Float32Array, FloatArray, IntArray, RunArray
from de_gym.envs.rewards import reward
from de_gym.machine.compiling import compiled, inlined
from de_gym.machine.streams import KeyArray
from de_gym.problems import ProblemBatch
from de_gym.problems.minima import is_below_minimum, warn_of_mistaken_optimum

# Rows of the figures of an ``Outcome``: four of a generation, two of the state it led to; then of its counts and flags.
REWARD, SUCCESS_RATE, MEAN_SCALE_FACTOR, MEAN_CROSSOVER_RATE, BEST_ERROR, BEST_FITNESS = range(6)
NUM_FIGURES = 6
EVALUATIONS, GENERATION = range(2)
TERMINATED, TRUNCATED = range(2)

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


def note_reference(runs: RunArray, fitness: FloatArray, optimum: FloatArray) -> None:
    """Note in runs that begin what counts as error 0, given sorted fitness (R, N) and minima (R,) or NaN."""
    runs["reference"], runs["has_optimum"] = find_reference(fitness, optimum)
    warn_of_mistaken_optimum(int(np.isfinite(optimum).sum() - runs["has_optimum"].sum()))


@compiled
def find_reference(fitness: FloatArray, optimum: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return the value that counts as error 0 in each run, and whether that is a known minimum, both of shape (R,)."""
    reference, is_known = np.empty_like(optimum), np.zeros(len(optimum), np.bool_)
    for run in range(len(optimum)):
        best = worst = fitness[run, 0]
        for value in fitness[run]:
            if np.isfinite(value):
                worst = value
        if np.isfinite(optimum[run]) and not is_below_minimum(best, optimum[run]):
            reference[run], is_known[run] = optimum[run], True
        elif not np.isfinite(best):
            reference[run] = 0.0
        else:
            # Any positive gap will do where the population is flat; huge values must not overflow.
            gap = worst - best if worst > best else 1.0
            reference[run] = max(best - gap, -np.finfo(np.float64).max)
    return reference, is_known


@compiled
def judge_runs(
    runs: RunArray,
    best_fitness: FloatArray,
    error_before: FloatArray,
    codes: RunArray,
    figures: FloatArray,
    flags: BoolArray,
) -> tuple[int, int]:
    """Write reward and success rate of the last generation, and which runs it terminated and truncated.

    A run has terminated when it is solved, or when its budget does not pay for another generation. It is truncated
    when it reaches the generation limit without having terminated.

    Returns:
        The number of runs that ended, and of those that found a value below what had been called the minimum.
    """
    num_ended, num_mistaken, settings = 0, 0, codes[0]
    for number in range(len(runs)):
        run = runs[number]
        is_mistaken = run.has_optimum and is_below_minimum(best_fitness[number], run.reference)
        if is_mistaken:
            _forget_optimum(run, best_fitness[number])
            figures[BEST_ERROR, number] = run.best_error
        gained = reward(settings.reward, error_before[number], run.best_error, run.initial_error)
        figures[REWARD, number] = 0.0 if is_mistaken else gained
        figures[SUCCESS_RATE, number] = run.num_successes / run.num_trials
        is_solved = run.has_optimum and run.best_error < settings.target_error
        has_terminated = is_solved or run.evaluations + run.size > settings.max_evaluations
        has_ended = has_terminated or run.generation >= settings.max_generations
        flags[TERMINATED, number], flags[TRUNCATED, number] = has_terminated, has_ended and not has_terminated
        num_ended += has_ended
        num_mistaken += is_mistaken
    return num_ended, num_mistaken


@inlined
def _forget_optimum(run: Any, best: float) -> None:
    """Go on as without a known minimum: errors count from as far below the best value as the first error was.

    Or from as far as it lies below the stated minimum, where that is further.
    """
    run.has_optimum = False
    gap = run.reference - best
    if np.isfinite(run.initial_error):
        gap = max(gap, run.initial_error)
    run.reference = max(best - gap, -np.finfo(np.float64).max)
    run.best_error = max(best - run.reference, 0.0)
