"""The one way to write a file, or to make a folder, that must never be half there."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
"""What an ``OSError`` has as ``errno`` where there is no space left."""

_ABANDONED_AFTER = 60.0
"""Seconds after which a temporary file that nobody writes to is one of a killed process; writing takes moments."""


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Give a file, open for writing, that takes the place of ``path`` once it is completely on disk.

    Until then, and where an error or an interruption ends the writing, ``path`` stays as it was.
    """
    # Not a file of the ``tempfile`` module, which nobody else may read whatever the user's file mode says.
    temporary = _temporary(path)
    try:
        with _flushed(temporary) as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def updating(path: Path) -> Iterator[None]:
    """Let one process at a time read a file and replace it, where the system can see to that (not under Windows).

    Others that ask for a file of the same folder wait; the end of a process, however it comes, lets the next one in.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if sys.platform == "win32":
        yield
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def create_folder(path: Path, files: Mapping[str, bytes]) -> bool:
    """Make a folder that holds ``files`` from the moment it is there, and return whether it was missing or empty.

    Of several processes that make the same folder, exactly one does.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(path)
    try:
        temporary.mkdir()
        for name, content in files.items():
            with _flushed(temporary / name) as file:
                file.write(content)
        with suppress(OSError):
            path.rmdir()  # an empty folder, onto which not every system can move another
        temporary.rename(path)
    except OSError:
        if path.is_dir() and any(path.iterdir()):
            return False
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return True


def remove_abandoned(folder: Path, name: str = "*", after: float = _ABANDONED_AFTER) -> None:
    """Remove what killed processes left half written of the files or folders called ``name`` in ``folder``.

    What is younger than ``after`` seconds may still be being written by a process that shares the folder.
    """
    for path in folder.glob(f".{name}.*.part"):
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime < after:
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")


@contextmanager
def _flushed(path: Path) -> Iterator[BinaryIO]:
    """Give a new file that is on disk, not only in memory, at the end."""
    with path.open("xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
