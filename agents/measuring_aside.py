"""Measurements by other processes, so that what does not learn is measured while the training is going on."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Self

from joblib.externals.loky import ProcessPoolExecutor

from de_gym.controllers import Controller

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

    def begin(self, controller: Controller, sets: Sequence[TaskSet]) -> Callable[[], Measurement]:
        """Begin to measure a controller on all functions of ``sets``, and return what waits for the result.

        Without other processes the measurement is made when it is asked for.
        """
        config, waiting = self._config, []
        for part in sets:
            labels = part.labels(with_dimension=len(sets) > 1)
            for rows in split_rows(len(part.functions), self._num_processes):
                arguments = controller, env_settings(config, part), part.functions[rows]
                measured = self._call(*arguments, config.measure_runs, config.seed)
                waiting.append((measured, labels[rows]))
        return lambda: join_measurements([replace(measured(), labels=labels) for measured, labels in waiting])

    def _call(self, *arguments: object) -> Callable[[], Measurement]:
        if self._pool is None:
            return lambda: measure_controller(*arguments)  # type: ignore[arg-type]  # checked by whoever calls
        future = self._pool.submit(measure_controller, *arguments)
        return lambda: future.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """End the other processes, with whatever they are doing."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, kill_workers=True)
