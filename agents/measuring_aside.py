"""Measurements that processes share."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from typing import Self

from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.process_executor import BrokenProcessPool

from de_gym.controllers import Controller
from de_gym.evaluation.backends import WorkerDiedError

from .config import TrainConfig
from .measuring import Measurement, join_measurements, measure_controller
from .parts import split_rows
from .task_sets import TaskSet, held_out_sets, training_sets
from .training import env_settings, episode_length, num_cores

# Below so many individuals and generations, starting processes takes longer than measuring.
_WORTH_PROCESSES = 1_000_000


class Measurer:
    """Measures controllers as a configuration says, in as many processes as it has cores; numbers do not change."""

    def __init__(self, config: TrainConfig) -> None:
        """Start the other processes where they are worth it."""
        self._config = config
        functions = sum(len(part.functions) for part in [*training_sets(config), *held_out_sets(config)])
        work = functions * config.measure_runs * episode_length(config) * config.population_size
        self._num_processes = num_cores(config) if work >= _WORTH_PROCESSES else 1
        self._pool: ProcessPoolExecutor | None = None
        if self._num_processes > 1:
            ignore = signal.signal, (signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the training, which ends us
            self._pool = ProcessPoolExecutor(self._num_processes, initializer=ignore[0], initargs=ignore[1])

    def begin(
        self, controller: Controller, sets: Sequence[TaskSet], num_runs: int | None = None
    ) -> Callable[[], Measurement]:
        """Begin to measure a controller on all functions of ``sets``, and return what waits for the result.

        Runs per function are those of the final measurement, unless they are given.

        Without other processes the measurement is made when it is asked for.
        """
        config, waiting = self._config, []
        num_runs = config.measure_runs if num_runs is None else num_runs
        for part in sets:
            labels = part.labels(with_dimension=len(sets) > 1)
            for rows in split_rows(len(part.functions), self._num_processes):
                arguments = controller, env_settings(config, part), part.functions[rows]
                measured = self._call(*arguments, num_runs, config.seed)
                waiting.append((measured, labels[rows]))
        return lambda: join_measurements([replace(measured(), labels=labels) for measured, labels in waiting])

    def _call(self, *arguments: object) -> Callable[[], Measurement]:
        if self._pool is None:
            return lambda: measure_controller(*arguments)  # type: ignore[arg-type]  # checked by whoever calls
        with _death_noticed():
            future = self._pool.submit(measure_controller, *arguments)
        return lambda: _result(future)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """End the other processes, with whatever they are doing."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, kill_workers=True)


def _result(future: Future[Measurement]) -> Measurement:
    with _death_noticed():
        return future.result()


@contextmanager
def _death_noticed() -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool as error:
        raise WorkerDiedError("A process that measures controllers died") from error
