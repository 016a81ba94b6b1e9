"""Worker: another process that answers requests, one after the other, for as long as this one lives."""

from __future__ import annotations

import os
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.util import Finalize
from threading import Thread
from typing import Any, TypeAlias

from joblib.externals.loky.backend.process import LokyProcess  # needs no guarded main module, and forks no threads

from de_gym.evaluation.backends import WorkerDiedError

Functions: TypeAlias = Mapping[str, Callable[..., Any]]


class Worker:
    """A process that calls functions of its own with whatever it is sent.

    It may take seconds to start, in which there is no need to wait for it: ask ``is_ready``.
    """

    def __init__(self, make_functions: Callable[[], Functions]) -> None:
        """Start the process, which makes its functions first; ``make_functions`` must be found by name there."""
        self._connection, theirs = Pipe()
        lifeline, self._lifeline = Pipe(duplex=False)
        self._process = LokyProcess(target=_serve, args=(theirs, lifeline, make_functions), daemon=True)
        with _signals_held():
            self._process.start()
        theirs.close()
        lifeline.close()
        Finalize(self, self._lifeline.close, exitpriority=0)  # a program that ends waits for its processes
        self._is_starting, self._is_able = True, False

    @property
    def pid(self) -> int:
        """Number of the process."""
        assert self._process.pid is not None
        return int(self._process.pid)

    def is_ready(self, timeout: float = 0.0) -> bool:
        """Return whether requests can be sent; where the functions cannot be made, say so once, and never be ready."""
        if self._is_starting and self._connection.poll(timeout):
            self._is_starting, mistake = False, self.receive()
            self._is_able = mistake is None
            if not self._is_able:
                warnings.warn(
                    f"Another process cannot share the work ({mistake}); this one does it alone.", stacklevel=2
                )
        return self._is_able

    def send(self, *request: Any) -> None:
        """Send the name of a function, and its arguments."""
        with self._death_noticed():
            self._connection.send(request)

    def receive(self) -> Any:
        """Return the answer to the oldest request, or raise what was raised there."""
        with self._death_noticed():
            answer = self._connection.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._lifeline.close()
        if self._process.is_alive() and hasattr(signal, "SIGKILL"):
            os.kill(self.pid, signal.SIGKILL)  # one that is still starting looks at its lifeline seconds later
        self._process.join()
        self._connection.close()

    @contextmanager
    def _death_noticed(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, ConnectionError) as error:
            self._process.join(10.0)
            raise WorkerDiedError(f"A worker process died (exit code {self._process.exitcode})") from error


def share(
    workers: Sequence[Worker], name: str, function: Callable[..., Any], requests: Sequence[tuple[Any, ...]]
) -> list[Any]:
    """Return what a function returns for the first request here, and its namesake in workers for the others."""
    for worker, request in zip(workers, requests[1:], strict=True):
        worker.send(name, *request)
    return [function(*requests[0]), *(worker.receive() for worker in workers)]


def _serve(connection: Connection, lifeline: Connection, make_functions: Callable[[], Functions]) -> None:
    """Answer requests until the process that sends them ends."""
    Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    try:
        functions = make_functions()
    except Exception as error:
        connection.send(str(error) or type(error).__name__)
        return
    with suppress(EOFError, ConnectionError):
        connection.send(None)
        while True:
            connection.send(_answer(functions, *connection.recv()))


def _answer(functions: Functions, name: str, *arguments: Any) -> Any:
    """Return what a function returns, or what it raises with the place where it did."""
    try:
        return functions[name](*arguments)
    except Exception as error:
        error.add_note(f"In a worker process:\n{traceback.format_exc()}")
        return error


def _end_with(lifeline: Connection) -> None:
    """End this process, even in the middle of a request, as soon as the other end of ``lifeline`` is closed."""
    with suppress(EOFError, OSError):
        lifeline.recv()
    os._exit(1)


@contextmanager
def _signals_held() -> Iterator[None]:
    """Let processes that are started here ignore Ctrl-C and SIGTERM: those are for the training, which ends them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
