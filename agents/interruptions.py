"""A training that ends before its time: what is said, and how it goes on."""

from __future__ import annotations

import errno
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from de_gym.files import remove_abandoned

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


class TrainingStopped(Exception):
    """A training that can go on; the message says why it ended and by which command it goes on.

    Attributes:
        exit_code: What the process should return.
    """

    def __init__(self, reason: str, folder: Path, exit_code: int) -> None:
        """Say that the training in ``folder`` ended for ``reason``, a sentence without its point."""
        command = f"python train.py --resume {shlex.quote(str(folder))}"
        super().__init__(f"{reason}; the training goes on from its last checkpoint with: {command}")
        self.exit_code = exit_code


class _Terminated(KeyboardInterrupt):
    """SIGTERM, which ends the program in the same way as Ctrl-C."""


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Let SIGTERM, by which batch systems end a process, unwind the program as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def resumable(folder: Path) -> Iterator[None]:
    """Turn what may end the training in ``folder`` from outside into one ``TrainingStopped``."""
    remove_abandoned(folder, after=0.0)  # of a process that was killed while it wrote
    try:
        yield
    except KeyboardInterrupt as stop:
        name, number = ("SIGTERM", 15) if isinstance(stop, _Terminated) else ("Ctrl-C", 2)
        raise TrainingStopped(f"Stopped by {name}", folder, 128 + number) from None
    except OSError as error:
        if error.errno not in _DISK_FULL:
            raise
        raise TrainingStopped(f"The disk of {str(folder)!r} is full: free some space", folder, 1) from error
