"""Generations of a batch of runs on several cores: compiled code does not hold Python's lock, so threads suffice."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from de_gym.arrays import FloatArray
from de_gym.envs.process import Outcome, Process, State
from de_gym.envs.rewards import REWARDS
from de_gym.problems import ProblemBatch

from .parts import split_rows


class ThreadedProcess:
    """A process whose runs are advanced in parts, side by side; a run is the same in any batch, so bits are too."""

    def __init__(self, process: Process, num_threads: int) -> None:
        """Advance the runs of ``process`` in so many parts."""
        self.process = process
        self.num_threads = num_threads
        self._pool = ThreadPoolExecutor(num_threads - 1, thread_name_prefix="runs")
        self._whole: ProblemBatch | None = None
        self._parts: list[tuple[slice, ProblemBatch]] = []

    def __getattr__(self, name: str) -> Any:
        """Return whatever else the process has."""
        return getattr(self.process, name)

    def advance(self, state: State, problems: ProblemBatch, actions: FloatArray) -> Outcome:
        """Turn the state into that of one generation later, as the process does."""
        if problems.programs is None or len(problems) < 2 * self.num_threads:
            return self.process.advance(state, problems, actions)  # Python functions would wait for each other
        if problems is not self._whole:
            self._whole, self._parts = problems, _split(problems, self.num_threads)
        first, *others = [
            (type(state)(*(array[rows] for array in state)), batch, actions[rows]) for rows, batch in self._parts
        ]
        waiting = [self._pool.submit(self.process.advance, *part) for part in others]
        return _join([self.process.advance(*first), *(future.result() for future in waiting)])


def use_threads(vector_env: Any, num_threads: int) -> None:
    """Let a vector env advance its runs on several cores, where compiled code does all of it."""
    process, settings = vector_env.unwrapped.process, vector_env.unwrapped.process.settings
    is_compiled = settings.reward in REWARDS and all(isinstance(part, str) for part in settings.observation)
    if num_threads > 1 and is_compiled:
        vector_env.unwrapped.process = ThreadedProcess(process, num_threads)


def _split(problems: ProblemBatch, num_parts: int) -> list[tuple[slice, ProblemBatch]]:
    """Return rows and problems of each part."""
    rows = split_rows(len(problems), num_parts)
    return [(part, problems.take(np.arange(part.start, part.stop))) for part in rows]


def _join(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the outcomes of consecutive runs as one."""
    return Outcome(
        figures=np.concatenate([outcome.figures for outcome in outcomes], axis=1),
        counts=np.concatenate([outcome.counts for outcome in outcomes], axis=1),
        flags=np.concatenate([outcome.flags for outcome in outcomes], axis=1),
        best_positions=np.concatenate([outcome.best_positions for outcome in outcomes]),
        observations=np.concatenate([outcome.observations for outcome in outcomes]),
        num_ended=sum(outcome.num_ended for outcome in outcomes),
    )
