"""WorkerPool: processes that share the evaluations of a generation, and that may die without loss."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import parent_process
from threading import Thread
from typing import Any

from de_gym.arrays import FloatArray
from de_gym.problems.user_functions import CallFailed

_DEATHS_ALONE = 2  # of processes by one point, after which it gets no further one
_installed: Callable[[FloatArray], Any]


class WorkerPool:
    """A function in several processes.

    A process that dies, by a crash or for lack of memory, takes all others with it; the first point that has no value
    yet is then evaluated alone by new processes, which blames it for no other's deaths, and the rest after it.
    """

    def __init__(self, fun: Callable[[FloatArray], Any], num_workers: int | None) -> None:
        """Store the function and the number of processes; None for one per core."""
        try:
            self._payload = pickle.dumps(fun)
        except Exception as error:
            raise TypeError(
                "`fun` and `args` must be picklable to be sent to `workers`: use functions at the top level of a "
                f"module, or `workers=1`; pickle says {error!r}."
            ) from error
        self._num_workers = num_workers or os.cpu_count()
        self._executor: ProcessPoolExecutor | None = None

    def map(self, _: Callable[[FloatArray], Any], points: Sequence[FloatArray]) -> Iterator[Any]:
        """Yield the results of the stored function, in order and as soon as they are known."""
        num_done, num_deaths = 0, 0  # those since the last value, the first of them perhaps by another point
        while num_done < len(points):
            end = num_done + 1 if num_deaths else len(points)
            try:
                for result in self._get_executor().map(_call, points[num_done:end]):
                    num_done, num_deaths = num_done + 1, 0
                    yield result
            except BrokenProcessPool as error:
                self.close()
                num_deaths += 1
                if num_deaths > 1 + _DEATHS_ALONE:
                    raise CallFailed(
                        "A worker process died twice while it evaluated the same point: look for a crash or a lack "
                        "of memory in `fun`, and for a script without `if __name__ == '__main__':`."
                    ) from error

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        if self._executor is None:
            return
        executor, self._executor = self._executor, None
        # NOTE: before Python 3.14 there is no public way to end processes that are busy with a long evaluation.
        processes = list((getattr(executor, "_processes", None) or {}).values())
        executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()
        for process in processes:
            process.join()

    def _get_executor(self) -> ProcessPoolExecutor:
        if self._executor is None:
            self._executor = ProcessPoolExecutor(self._num_workers, initializer=_install, initargs=(self._payload,))
        return self._executor


def _install(payload: bytes) -> None:
    """Prepare a worker: keep the function, and leave Ctrl-C to the process that asks."""
    global _installed
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    _installed = pickle.loads(payload)


def _end_with_parent() -> None:
    """End this process when the one that asks is killed: it would wait for ever, and keep a checkpoint locked."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _call(point: FloatArray) -> Any:
    try:
        return _installed(point)
    except Exception as error:
        if not _can_be_sent(error):
            raise RuntimeError(repr(error)) from error
        raise


def _can_be_sent(error: Exception) -> bool:
    """Return whether another process can read an exception; one that it cannot read would look like a death."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return False
    return True
