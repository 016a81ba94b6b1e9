"""RunState: the memory of R runs, one array per quantity, shared by Python and compiled code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from de_gym.arrays import BoolArray, FloatArray, IntArray
from de_gym.evolution import KeyArray
from de_gym.machine.compiling import compiled


class RunState(NamedTuple):
    """Everything that R runs remember from one generation to the next; their future follows from it and the actions.

    A generation overwrites the arrays: writing it to fresh memory would cost as much as computing it. Whoever hands
    an array on hands on a copy.

    Attributes:
        positions: Shape (R, N, D). Individuals stay in their rows, whatever their rank.
        order: Row of the individual of each rank, best first, shape (R, N).
        fitness: Objective values by rank, ascending, shape (R, N).
        evaluations: Points evaluated so far, shape (R,).
        generation: Generations since the initial population, shape (R,).
        num_successes: Trials of the last generation that replaced their parent, shape (R,).
        history: Histograms of the generations before the current one, as ``empty_history`` says.
        histogram: Histogram of the current generation, shape (R, b).
        best_error: Error of the best individual, never negative, shape (R,).
        initial_error: The best error of the initial population, shape (R,).
        reference: Value that counts as error 0, shape (R,).
        has_optimum: Whether ``reference`` is a known minimum or bound, shape (R,).
        keys: What each run's random numbers follow from, shape (R,).
    """

    positions: FloatArray
    order: IntArray
    fitness: FloatArray
    evaluations: IntArray
    generation: IntArray
    num_successes: IntArray
    history: FloatArray
    histogram: FloatArray
    best_error: FloatArray
    initial_error: FloatArray
    reference: FloatArray
    has_optimum: BoolArray
    keys: KeyArray


def ranked_positions(state: RunState) -> FloatArray:
    """Return the positions (R, N, D) best first, a copy."""
    return np.take_along_axis(state.positions, state.order[:, :, None], axis=1)


def take_runs(state: RunState, runs: IntArray) -> RunState:
    """Return a copy of the given runs only."""
    taken: list[Any] = [array[runs] for array in state]
    return RunState(*taken)


def put_runs(state: RunState, runs: IntArray, replacement: RunState) -> None:
    """Replace the given runs of the state and leave all others untouched."""
    for array, part in zip(state, replacement, strict=True):
        array[runs] = part


@compiled
def slice_runs(state: RunState, first: int, end: int) -> RunState:
    """Return the runs from ``first`` up to ``end``, which share their memory with the state."""
    return RunState(
        state.positions[first:end],
        state.order[first:end],
        state.fitness[first:end],
        state.evaluations[first:end],
        state.generation[first:end],
        state.num_successes[first:end],
        state.history[first:end],
        state.histogram[first:end],
        state.best_error[first:end],
        state.initial_error[first:end],
        state.reference[first:end],
        state.has_optimum[first:end],
        state.keys[first:end],
    )
