"""The one way to write a file that must never be half there."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Give a file, open for writing, that takes the place of ``path`` once it is completely on disk.

    Until then, and where an error or an interruption ends the writing, ``path`` stays as it was.
    """
    # Not a file of the ``tempfile`` module, which nobody else may read whatever the user's file mode says.
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def remove_parts(folder: Path) -> None:
    """Remove what ``replacing`` left in ``folder`` where its process was killed while it wrote."""
    for path in folder.glob(".*.part"):
        if re.fullmatch(r"\..+\.[0-9a-f]{32}\.part", path.name):
            path.unlink(missing_ok=True)
