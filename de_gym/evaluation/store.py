"""ResultStore: a folder that keeps finished chunks of a comparison, survives a kill at any moment and notices damage.

Layout::

    settings.json                                       the protocol and the package version
    methods/<method>/settings.json                      the method's settings
    methods/<method>/f<function>_<start>-<stop>.npz     the arrays of its runs start .. stop - 1

A folder appears together with its settings and a chunk under its name is complete, so several processes may share a
store; a checksum over all arrays of a chunk tells damage that came later. Nothing in a store is ever executed: JSON and
plain arrays only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from de_gym import version
from de_gym.checks import shown
from de_gym.evaluation.array_files import Arrays, read_arrays, write_arrays
from de_gym.evaluation.protocol import Protocol
from de_gym.files import create_folder, remove_abandoned

Settings: TypeAlias = Mapping[str, object]

SETTINGS_FILE = "settings.json"
_FORMAT = "de_gym results 2"
_CHUNK_NAME = re.compile(r"f(\d+)_(\d+)-(\d+)\.npz")


@dataclass(frozen=True, order=True)
class ChunkKey:
    """Which runs a chunk holds: ``start`` up to, not including, ``stop`` of one method on one function."""

    function: int
    start: int
    stop: int
    method: str

    @property
    def runs(self) -> range:
        """The runs of the chunk."""
        return range(self.start, self.stop)


class ResultStore:
    """A folder of finished chunks that all belong to one protocol.

    Functions and number of runs need not agree: a store of 11 runs can be extended to 51, for there a run's result
    does not depend on how many there are.
    """

    def __init__(self, folder: str | Path, protocol: Protocol) -> None:
        """Open the store in ``folder``, or start one there if the folder is missing or empty."""
        self.folder = Path(folder)
        self.protocol = protocol
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"A result store must be a folder, got the file {str(self.folder)!r}.")
        identity = {**protocol.limits, "seed": protocol.seed, "package_version": version.__version__}
        content = {"format": _FORMAT, "protocol": identity}
        if not create_folder(self.folder, {SETTINGS_FILE: _json(content)}):
            self._check_settings(identity)
        self.remove_abandoned()

    @property
    def methods(self) -> dict[str, Settings]:
        """Settings of every method that was ever run into this store, by its name."""
        paths = sorted((self.folder / "methods").glob(f"[!.]*/{SETTINGS_FILE}"))
        return {path.parent.name: _read_json(path) for path in paths}

    def register(self, name: str, settings: Settings) -> None:
        """Note a method's settings, or refuse a name that stands for other settings in this store."""
        if not re.fullmatch(r"[A-Za-z0-9][\w.,=+-]*", name):
            raise ValueError(f"A method's name must be usable as a folder name, got {shown(name)}.")
        plain = _json(dict(settings))
        folder = self.folder / "methods" / name
        if create_folder(folder, {SETTINGS_FILE: plain}):
            return
        known = _read_json(folder / SETTINGS_FILE)
        if difference := _first_difference(known, json.loads(plain)):
            raise ValueError(
                f"The store {str(self.folder)!r} holds results of {name!r} with other settings: {difference}. "
                "Use another folder or another name."
            )

    def save(self, key: ChunkKey, arrays: Arrays) -> None:
        """Write the arrays of a finished chunk; whatever happens meanwhile, the file is whole or absent."""
        write_arrays(self.path(key), arrays, repr(key))

    def load(self, key: ChunkKey) -> dict[str, NDArray[np.generic]]:
        """Return the arrays of a chunk, or raise ``DamagedFileError``."""
        return read_arrays(self.path(key), repr(key))

    def discard(self, key: ChunkKey) -> None:
        """Remove a chunk, so that its runs count as missing."""
        self.path(key).unlink(missing_ok=True)

    def chunks(self, method: str | None = None) -> list[ChunkKey]:
        """Return the chunks there are (of one method), in order of function and run."""
        keys = []
        for path in (self.folder / "methods").glob(f"{method or '[!.]*'}/*.npz"):
            if match := _CHUNK_NAME.fullmatch(path.name):
                function, start, stop = map(int, match.groups())
                keys.append(ChunkKey(function, start, stop, path.parent.name))
        return sorted(keys)

    def path(self, key: ChunkKey) -> Path:
        """Return the file of a chunk."""
        return self.folder / "methods" / key.method / f"f{key.function}_{key.start}-{key.stop}.npz"

    def remove_abandoned(self) -> None:
        """Remove what killed processes left half written."""
        remove_abandoned(self.folder.parent, self.folder.name)
        for folder in (self.folder / "methods", *(self.folder / "methods").glob("[!.]*/")):
            remove_abandoned(folder)

    def _check_settings(self, identity: Settings) -> None:
        path = self.folder / SETTINGS_FILE
        if not path.exists():
            raise ValueError(
                f"The folder {str(self.folder)!r} holds files but no results of this package; "
                "name an empty or a new folder."
            )
        stored = _read_json(path)
        if stored.get("format") != _FORMAT or not isinstance(stored.get("protocol"), dict):
            raise ValueError(f"The file {str(path)!r} does not describe results of this package (format {_FORMAT!r}).")
        if difference := _first_difference(stored["protocol"], identity):
            raise ValueError(
                f"The store {str(self.folder)!r} was made under other settings: {difference}. "
                "Results of different settings are not mixed; use another folder."
            )


def _json(content: Settings) -> bytes:
    return (json.dumps(content, indent=2) + "\n").encode()


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"The file {str(path)!r} is not JSON ({error}).") from error
    if not isinstance(content, dict):
        raise ValueError(f"The file {str(path)!r} does not hold settings.")
    return content


def _first_difference(stored: Settings, wanted: Settings) -> str:
    """Return the first setting that differs, in words; empty where none does."""
    for name in sorted({*stored, *wanted}):
        if stored.get(name) != wanted.get(name):
            return f"{name} is {stored.get(name)!r} there and {wanted.get(name)!r} here"
    return ""
