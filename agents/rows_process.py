"""Generations of some of the runs of a batch, where another process advances the others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from de_gym.arrays import FloatArray
from de_gym.envs.process import Outcome, Process, State, empty_outcome
from de_gym.problems import ProblemBatch


class RowsProcess:
    """A process that advances the runs ``rows`` alone while that is set; the others stand still and do not end."""

    def __init__(self, process: Process) -> None:
        """Advance all runs of ``process`` until told otherwise."""
        self.process = process
        self.rows: slice | None = None
        self._whole: ProblemBatch | None = None
        self._problems: ProblemBatch | None = None

    def __getattr__(self, name: str) -> Any:
        """Return whatever else the process has."""
        return getattr(self.process, name)

    def advance(self, state: State, problems: ProblemBatch, actions: FloatArray) -> Outcome:
        """Turn the state into that of one generation later, as far as ``rows`` go."""
        if self.rows is None:
            return self.process.advance(state, problems, actions)
        if problems is not self._whole:
            self._whole = problems
            self._problems = problems.take(np.arange(*self.rows.indices(len(problems))))
        assert self._problems is not None
        part = type(state)(*(array[self.rows] for array in state))
        return _widen(self.process.advance(part, self._problems, actions[self.rows]), len(problems), self.rows)


def _widen(part: Outcome, num_runs: int, rows: slice) -> Outcome:
    """Return an outcome of all runs that is zero outside of ``rows``."""
    whole = empty_outcome(num_runs, part.best_positions.shape[1], part.observations.shape[1])
    arrays: list[tuple[NDArray[Any], NDArray[Any]]] = [
        (part.figures.T, whole.figures.T),
        (part.counts.T, whole.counts.T),
        (part.flags.T, whole.flags.T),
        (part.best_positions, whole.best_positions),
        (part.observations, whole.observations),
    ]
    for found, array in arrays:
        array[...] = 0
        array[rows] = found
    return whole._replace(num_ended=part.num_ended)


def use_rows(vector_env: Any) -> RowsProcess:
    """Let a vector env advance some of its runs alone, and return what says which."""
    process = vector_env.unwrapped.process
    if not isinstance(process, RowsProcess):
        vector_env.unwrapped.process = process = RowsProcess(process)
    return process
