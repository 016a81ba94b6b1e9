"""A training that ends before its time: what is said, and how it goes on."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from de_gym.evaluation.backends import WorkerDiedError
from de_gym.files import DISK_FULL, remove_abandoned


class TrainingStopped(Exception):
    """A training that can go on; the message says why it ended and by which command it goes on.

    Attributes:
        exit_code: What the process should return.
    """

    def __init__(self, reason: str, command: str, exit_code: int) -> None:
        """Say that a training that ``command`` resumes ended for ``reason``, a sentence without its point."""
        super().__init__(f"{reason}; the training goes on from its last checkpoint with: {command}")
        self.exit_code = exit_code


class _Stop(KeyboardInterrupt):
    """A signal that asks the program to end."""

    def __init__(self, number: int) -> None:
        super().__init__(f"Stopped by {'SIGTERM' if number == signal.SIGTERM else 'Ctrl-C'}")
        self.number = number


_asked: list[int] = []
"""The signals so far that asked the program to end."""


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """Let SIGTERM, by which batch systems end a process, unwind the program as Ctrl-C does; remember both."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        _asked.append(number)
        raise _Stop(number)

    numbers = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a shell lets what it starts aside ignore Ctrl-C
        numbers.append(signal.SIGINT)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _asked.clear()


def stop_if_asked() -> None:
    """End the program where a signal asked for it and nobody noticed.

    What a signal handler raises is lost where Python cannot pass it on: in a finalizer, or in a callback of C code.
    """
    if _asked:
        raise _Stop(_asked[0])


def exit_code(stop: KeyboardInterrupt) -> int:
    """Return what a process that a signal stopped should return."""
    return 128 + (stop.number if isinstance(stop, _Stop) else signal.SIGINT)


@contextmanager
def resumable(folder: Path, command: str) -> Iterator[None]:
    """Turn what may end the training in ``folder`` from outside into one ``TrainingStopped`` that names ``command``."""
    remove_abandoned(folder, after=0.0)  # of a process that was killed while it wrote
    try:
        yield
    except KeyboardInterrupt as stop:
        raise TrainingStopped(str(stop) or "Stopped by Ctrl-C", command, exit_code(stop)) from None
    except WorkerDiedError as error:
        raise TrainingStopped(str(error), command, 1) from error
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        raise TrainingStopped(f"The disk of {str(folder)!r} is full: free some space", command, 1) from error
