"""ResultStore: a folder that keeps finished chunks of a comparison, survives a kill at any moment and notices damage.

Layout::

    settings.json                                  the protocol, the package version and every method's settings
    chunks/<method>/f<function>_<start>-<stop>.npz the arrays of runs start .. stop - 1

A chunk is written under another name and then moved, so a file of the right name is complete; a checksum over all of
its arrays tells damage that came later. Nothing in a store is ever executed: JSON and plain arrays only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

import de_gym
from de_gym.evaluation.array_files import Arrays, read_arrays, write_arrays
from de_gym.evaluation.protocol import Protocol
from de_gym.files import replacing

Settings: TypeAlias = Mapping[str, object]

_FORMAT = "de_gym results 1"
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
        self._settings_file = self.folder / "settings.json"
        if self._settings_file.exists():
            self._check_settings()
        elif self.folder.exists() and any(self.folder.iterdir()):
            raise ValueError(
                f"The folder {str(self.folder)!r} holds files but no results of this package; "
                "name an empty or a new folder."
            )
        else:
            self._write_settings({})

    @classmethod
    def open(cls, folder: str | Path) -> ResultStore:
        """Return the store that is already in ``folder``, under the protocol that covers all of its chunks."""
        folder = Path(folder)
        stored = _section(_read_settings(folder / "settings.json"), "protocol")
        covered = _chunks(folder)
        if not covered:
            raise ValueError(f"The store {str(folder)!r} has no finished runs yet.")
        generations = stored["max_generations"]
        protocol = Protocol(
            suite=str(stored["suite"]),
            dimension=int(str(stored["dimension"])),
            functions=tuple(sorted({key.function for key in covered})),
            num_runs=max(key.stop for key in covered),
            max_evaluations=int(str(stored["max_evaluations"])),
            max_generations=None if generations is None else int(str(generations)),
            target_error=float(str(stored["target_error"])),
            seed=int(str(stored["seed"])),
        )
        return cls(folder, protocol)

    @property
    def methods(self) -> dict[str, Settings]:
        """Settings of every method that was ever run into this store, by its name."""
        entries = _section(_read_settings(self._settings_file), "methods")
        return {name: entry for name, entry in entries.items() if isinstance(entry, dict)}

    def register(self, name: str, settings: Settings) -> None:
        """Note a method's settings, or refuse a name that stands for other settings in this store."""
        if not re.fullmatch(r"[A-Za-z0-9][\w.,=+-]*", name):
            raise ValueError(f"A method's name must be usable as a folder name, got {name!r}.")
        plain = json.loads(json.dumps(dict(settings)))
        known = self.methods
        if name in known and known[name] != plain:
            raise ValueError(
                f"The store {str(self.folder)!r} holds results of {name!r} with other settings: "
                f"{_first_difference(known[name], plain)}. Use another folder or another name."
            )
        if name not in known:
            self._write_settings({**known, name: plain})

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
        return [key for key in _chunks(self.folder) if method in (None, key.method)]

    def path(self, key: ChunkKey) -> Path:
        """Return the file of a chunk."""
        return self.folder / "chunks" / key.method / f"f{key.function}_{key.start}-{key.stop}.npz"

    def _check_settings(self) -> None:
        stored = _section(_read_settings(self._settings_file), "protocol")
        if difference := _first_difference(stored, self._identity()):
            raise ValueError(
                f"The store {str(self.folder)!r} was made under other settings: {difference}. "
                "Results of different settings are not mixed; use another folder."
            )

    def _identity(self) -> dict[str, object]:
        """Return what must agree between all chunks of a store."""
        return {**self.protocol.limits, "seed": self.protocol.seed, "package_version": de_gym.__version__}

    def _write_settings(self, methods: Mapping[str, Settings]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {"format": _FORMAT, "protocol": self._identity(), "methods": dict(methods)}
        with replacing(self._settings_file) as file:
            file.write((json.dumps(content, indent=2) + "\n").encode())


def _chunks(folder: Path) -> list[ChunkKey]:
    keys = []
    for path in (folder / "chunks").glob("*/*.npz"):
        if match := _CHUNK_NAME.fullmatch(path.name):
            function, start, stop = map(int, match.groups())
            keys.append(ChunkKey(function, start, stop, path.parent.name))
    return sorted(keys)


def _read_settings(path: Path) -> dict[str, object]:
    """Return the content of a store's settings file, or say why the folder is none."""
    if not path.exists():
        raise ValueError(f"There are no results in {str(path.parent)!r}: it has no settings.json.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"The file {str(path)!r} is not JSON ({error}).") from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ValueError(f"The file {str(path)!r} does not describe results of this package (format {_FORMAT!r}).")
    return content


def _section(settings: dict[str, object], name: str) -> dict[str, object]:
    section = settings.get(name)
    if not isinstance(section, dict):
        raise ValueError(f"The settings of the result store lack the section {name!r}.")
    return section


def _first_difference(stored: Settings, wanted: Settings) -> str:
    """Return the first setting that differs, in words; empty where none does."""
    for name in sorted({*stored, *wanted}):
        if stored.get(name) != wanted.get(name):
            return f"{name} is {stored.get(name)!r} there and {wanted.get(name)!r} here"
    return ""
