"""Measurements that processes share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from de_gym.controllers import Controller

from .config import TrainConfig
from .measuring import Measurement, join_measurements, measure_controller
from .task_sets import TaskSet
from .training import env_settings
from .workers import Worker, share


def measure_on_sets(
    controller: Controller, config: TrainConfig, sets: Sequence[TaskSet], num_runs: int, workers: Sequence[Worker] = ()
) -> Measurement:
    """Return what a controller reaches on all functions of ``sets``; the number of workers changes no number."""
    measured = []
    for part in sets:
        helpers = [worker for worker in workers if worker.is_ready()][: len(part.functions) - 1]
        step, settings = 1 + len(helpers), env_settings(config, part)
        requests = [(controller, settings, part.functions[first::step], num_runs, config.seed) for first in range(step)]
        returns, errors = np.empty((2, len(part.functions), num_runs))
        for first, found in enumerate(share(helpers, "measure", measure_controller, requests)):
            returns[first::step], errors[first::step] = found.returns, found.errors
        measured.append(Measurement(part.functions, returns, errors, part.labels(with_dimension=len(sets) > 1)))
    return join_measurements(measured)
