"""JSON files with a checksum of their content, so that damage is noticed and never taken for settings or results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from de_gym.files import replacing

CHECKSUM = "sha256"  # the entry that holds the checksum of everything else


def write_checked_json(path: Path, content: Mapping[str, object], *, indent: int | None = None) -> None:
    """Write ``content`` with its checksum; the file appears complete or not at all."""
    with replacing(path) as file:
        file.write(checked_json(content, indent=indent))


def checked_json(content: Mapping[str, object], *, indent: int | None = None) -> bytes:
    """Return what a file of ``content`` holds."""
    return (json.dumps(dict(content) | {CHECKSUM: _checksum(content)}, indent=indent) + "\n").encode()


def read_checked_json(path: Path) -> dict[str, Any]:
    """Return the content of a file without its checksum, or say in one sentence that it is damaged.

    Files that were written by hand, or by earlier versions, have no checksum.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{str(path)!r} is damaged: it is not JSON ({error}).") from error
    if not isinstance(content, dict):
        raise ValueError(f"{str(path)!r} is damaged: it is not JSON with named entries.")
    expected = content.pop(CHECKSUM, None)
    if expected not in (None, _checksum(content)):
        raise ValueError(f"The content of {str(path)!r} does not match its checksum: the file is damaged.")
    return content


def _checksum(content: Mapping[str, object]) -> str:
    """Return the sha256 of all entries, whatever their order."""
    return hashlib.sha256(json.dumps(dict(content), sort_keys=True).encode()).hexdigest()
