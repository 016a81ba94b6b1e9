"""Arrays and their metadata in one safetensors file: equal contents give equal bytes, and damage is recognised.

Reading such a file runs no code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from de_gym.files import replacing

CHECKSUM = "sha256"  # the metadata entry that holds the checksum of everything else


class TensorFile(NamedTuple):
    """What such a file holds."""

    tensors: dict[str, NDArray[Any]]
    metadata: dict[str, str]


def content_checksum(tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> str:
    """Return the sha256 of all metadata but the checksum itself, and of names, types, shapes and bytes of all arrays.

    The order of the entries does not matter.
    """
    described = {key: value for key, value in metadata.items() if key != CHECKSUM}
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name]
        # The description says how many bytes follow, so that none can move from one array to the next.
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def write_tensor_file(path: Path, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> None:
    """Write arrays and metadata with their checksum to ``path``, which is replaced whole or not at all."""
    for name, array in tensors.items():
        if not np.isfinite(array).all():
            raise ValueError(f"Array {name!r} has NaN or infinite {array.dtype.name} numbers and cannot be saved.")
    complete = dict(metadata) | {CHECKSUM: content_checksum(tensors, metadata)}
    content = _canonical(save({name: np.asarray(array, order="C") for name, array in tensors.items()}, complete))
    with replacing(path) as file:
        file.write(content)


def read_tensor_file(path: Path) -> TensorFile:
    """Return what is stored at ``path``; whether it is unchanged is what ``check_tensor_file`` finds out."""
    try:
        with safe_open(path, framework="numpy") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a dictionary
            return TensorFile(tensors, file.metadata() or {})
    except (SafetensorError, TypeError, AttributeError, ValueError) as error:
        # Beside its own error, safetensors lets pass those of types that numpy does not know.
        raise ValueError(f"{str(path)!r} is truncated or not a safetensors file ({error}).") from error


def check_tensor_file(path: Path, content: TensorFile) -> None:
    """Raise a ``ValueError`` where the content read from ``path`` is not what was written, or not finite."""
    if content.metadata.get(CHECKSUM) != content_checksum(*content):
        raise ValueError(f"The content of {str(path)!r} does not match its checksum: the file is damaged.")
    check_finite(path, content.tensors)


def check_finite(path: Path, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Raise a ``ValueError`` where an array read from ``path`` has NaN or infinity."""
    for name, array in tensors.items():
        if not np.isfinite(array).all():
            raise ValueError(f"The array {name!r} in {str(path)!r} has NaN or infinity.")


def _canonical(content: bytes) -> bytes:
    """Return a safetensors file with the entries of its header sorted; safetensors writes metadata in random order."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8:start]), sort_keys=True, ensure_ascii=False).encode()
    header += b" " * (-len(header) % 8)  # the arrays begin at a multiple of eight bytes
    return len(header).to_bytes(8, "little") + header + content[start:]
