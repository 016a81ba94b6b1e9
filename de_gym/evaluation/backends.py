"""Where chunks are computed: this process, local processes, a Dask cluster or a Ray cluster.

Every backend is a generator of finished chunks in whatever order they finish. Nothing about a result depends on
which one is used: a chunk carries its seeds, and a worker computes with one thread.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Generator, Sequence
from types import ModuleType
from typing import Any, TypeVar

from joblib import Parallel, cpu_count, delayed, parallel_config
from joblib.externals.loky.process_executor import BrokenProcessPool

from de_gym.registry import lookup

Task = TypeVar("Task")
Result = TypeVar("Result")


class WorkerDiedError(RuntimeError):
    """A worker process ended without giving its result back."""


def run_tasks(
    function: Callable[[Task], Result], tasks: Sequence[Task], backend: str = "local", jobs: int = -1
) -> Generator[Result, None, None]:
    """Return a generator of ``function(task)`` of every task, each as soon as it is done.

    Args:
        function: A module-level function.
        tasks: What to compute.
        backend: A key of ``BACKENDS``.
        jobs: Number of workers; -1 for one per core (or all that the cluster has).
    """
    run = lookup("backend", backend, BACKENDS)
    if jobs == 0 or jobs < -1:
        raise ValueError(f"`jobs` must be positive, or -1 for all cores, got {jobs}.")
    return run(function, tasks, jobs)


def _run_local(function: Callable[[Task], Result], tasks: Sequence[Task], jobs: int) -> Generator[Result, None, None]:
    workers = min(cpu_count() if jobs == -1 else jobs, len(tasks))
    if workers <= 1:
        yield from map(function, tasks)
        return
    try:
        # Workers live on from one grid to the next; those of another path would not find the user's own modules.
        start = {"initializer": _take_path, "initargs": (tuple(sys.path),)}
        with parallel_config(backend="loky", inner_max_num_threads=1, **start):
            pool = Parallel(n_jobs=workers, batch_size=1, return_as="generator_unordered")
            yield from pool(delayed(function)(task) for task in tasks)
    except BrokenProcessPool as error:
        raise WorkerDiedError(f"A worker process died ({_first_line(error)})") from error


def _take_path(path: tuple[str, ...]) -> None:
    """Let a worker find modules where the process that started it does."""
    sys.path[:] = path


def _run_dask(function: Callable[[Task], Result], tasks: Sequence[Task], jobs: int) -> Generator[Result, None, None]:
    """Compute on the scheduler named by DASK_SCHEDULER_ADDRESS, or on a local cluster of processes.

    NOTE: not through joblib's Dask backend, which waits for ever once a worker has died for good.
    """
    distributed = _import_extra("distributed", "dask")
    cluster = None
    if address := os.environ.get("DASK_SCHEDULER_ADDRESS"):
        if jobs != -1:
            raise ValueError(
                f"`jobs` must be -1 on the cluster of DASK_SCHEDULER_ADDRESS, whose size is its own, got {jobs}."
            )
        client = distributed.Client(address, set_as_default=False)
    else:
        workers = cpu_count() if jobs == -1 else jobs
        cluster = distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
        client = distributed.Client(cluster, set_as_default=False)
    try:
        futures = client.map(function, tasks, pure=False)
        for future in distributed.as_completed(futures, loop=client.loop):
            yield future.result()
            future.release()
    except distributed.KilledWorker as error:
        raise WorkerDiedError(f"A Dask worker died ({_first_line(error)})") from error
    finally:
        client.close()
        if cluster is not None:
            cluster.close()


def _run_ray(function: Callable[[Task], Result], tasks: Sequence[Task], jobs: int) -> Generator[Result, None, None]:
    """Compute on the cluster named by RAY_ADDRESS ("auto" on one of its nodes), or on a local one.

    NOTE: not through Ray's joblib backend, which cannot stream results and so would lose all chunks of a
    killed grid.
    """
    ray = _import_extra("ray", "ray")
    started = not ray.is_initialized()
    if started:
        address = os.environ.get("RAY_ADDRESS", "local")
        local = {"include_dashboard": False, "num_cpus": None if jobs == -1 else jobs} if address == "local" else {}
        ray.init(address=address, log_to_driver=False, logging_level="error", **local)
    try:
        remote = ray.remote(function)
        capacity = int(ray.cluster_resources().get("CPU", 1)) if jobs == -1 else jobs
        waiting: list[Task] = list(reversed(tasks))
        running: list[Any] = []
        while waiting or running:
            # Twice as many as there are workers: none idles while a result travels, and few are lost by a kill.
            while waiting and len(running) < 2 * capacity:
                running.append(remote.remote(waiting.pop()))
            done, running = ray.wait(running, num_returns=1)
            for reference in done:
                yield ray.get(reference)
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.OutOfMemoryError) as error:
        raise WorkerDiedError(f"A Ray worker died ({_first_line(error)})") from error
    finally:
        if started:
            ray.shutdown()


BACKENDS: dict[str, Callable[..., Generator[Any, None, None]]] = {
    "local": _run_local,
    "dask": _run_dask,
    "ray": _run_ray,
}


def _import_extra(module: str, extra: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"Backend {extra!r} needs the package {module!r}: pip install 'de-gym[{extra}]'.") from error


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")
