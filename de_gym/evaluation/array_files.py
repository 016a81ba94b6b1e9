"""Files of arrays that are whole or absent and notice later damage; reading one never executes anything."""

from __future__ import annotations

import hashlib
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from de_gym.checks import shown
from de_gym.files import replacing

Arrays: TypeAlias = Mapping[str, NDArray[np.generic]]

# Everything that numpy, zipfile and zlib raise for bytes that are not what they should be; numpy reads headers by the
# tokenizer of Python.
_READ_ERRORS = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    RuntimeError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,
)


class DamagedFileError(Exception):
    """A file whose content is not what was written."""


def write_arrays(path: Path, arrays: Arrays, label: str, *, compress: bool = False) -> None:
    """Write named arrays; whatever happens meanwhile, the file is whole or as it was before.

    Args:
        path: The file.
        arrays: Plain arrays, no objects.
        label: What the arrays are; reading asks for the same, so that no file passes for another.
        compress: Whether to take time to save space.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    save = np.savez_compressed if compress else np.savez
    with replacing(path) as file:
        # numpy's stub takes the arrays for its flag `allow_pickle`
        save(file, **{**arrays, "checksum": np.array(_checksum(arrays, label))})  # type: ignore[arg-type]


def read_arrays(path: Path, label: str) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of a file, or raise ``DamagedFileError``."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except _READ_ERRORS as error:
        raise DamagedFileError(f"{str(path)!r} cannot be read: {shown(str(error))}.") from error
    written = arrays.pop("checksum", None)
    if written is None or str(written) != _checksum(arrays, label):
        raise DamagedFileError(f"{str(path)!r} does not match its checksum.")
    return arrays


def _checksum(arrays: Arrays, label: str) -> str:
    """Return the SHA-256 of the label, and of all arrays with their names, types and shapes."""
    digest = hashlib.sha256(label.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
