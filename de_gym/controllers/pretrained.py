"""The trained controllers that come with the package, by name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path
from types import MappingProxyType

from de_gym.checks import optional_whole
from de_gym.controllers.recurrent import RecurrentController
from de_gym.controllers.residual import ResidualController, is_residual_controller, load_residual_controller
from de_gym.controllers.storage import load_controller
from de_gym.registry import known_name
from de_gym.tensor_files import read_tensor_file

# sha256 of each file in weights/, by name without suffix; a file that is not listed here is not shipped.
CHECKSUMS: Mapping[str, str] = MappingProxyType(
    {
        "adaptive": "d4d5f1ac109f3e7d7862163ba391fdc62350af57ead1c5da5286aac7e2dceb1f",
        "long-10d": "a290014a8e2f89f9ff313840eb24988bd28c4a03a8d8ed744944634673c4e4f3",
        "paper-128-cells": "6fde9984994dd0c568c8efd640ef5c54b739e4e0627661e5b80c13afdc232b47",
        "paper-50-cells": "9180ee00981167e44c241750833af3a5c08c159008ac568232e242f6f07bc864",
        "quick-10d": "1632e856b8ae880155ce67348ecf25d2601b8df34227f296f407280e3ba6c453",
        "quick-30d": "9cd6c79c54b56fdcd8df7c6481100fd6fe4617e9c73bdf4debf238a631719fc9",
        "script-10d": "a44e50491781bd8ca22dd219b2c2d222f197fd18c9816ed7ef61e123b2e7ebe0",
        "short-10d": "aa2ac5e545cce7fc39c4133e1fed605ae08e4920797c3c9a1917120729e656f5",
        "short-30d": "624bee4e80105ce70faf8b74748029febc89d4626ff67e8a413b4f2f8ae59f9d",
    }
)

DEFAULT = "adaptive"
"""The controller that is taken where none is named: one for all numbers of coordinates and all budgets."""


def available() -> tuple[str, ...]:
    """Return the names of the controllers that come with the package."""
    return tuple(sorted(CHECKSUMS))


def load(
    name_or_path: str | Path, *, population_size: int | None = None, deterministic: bool = False
) -> RecurrentController | ResidualController:
    """Return a controller by its name in :func:`available`, or from a file.

    Args:
        name_or_path: A name, or the path of a ``.safetensors`` file.
        population_size: When given, the number of individuals a recurrent controller must have been trained for.
        deterministic: Whether the actions of a recurrent controller are its policy's means instead of samples.
    """
    optional_whole("population_size", population_size, 1)
    if isinstance(name_or_path, Path) or (isinstance(name_or_path, str) and name_or_path.endswith(".safetensors")):
        return _load_file(Path(name_or_path), population_size, deterministic)
    name_or_path = known_name("controller", name_or_path, CHECKSUMS)
    expected = CHECKSUMS[name_or_path]
    with as_file(files("de_gym.controllers") / "weights" / f"{name_or_path}.safetensors") as path:
        if hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            raise ValueError(f"The packaged controller {name_or_path!r} does not match its checksum: reinstall it.")
        return _load_file(path, population_size, deterministic)


def _load_file(
    path: Path, population_size: int | None, deterministic: bool
) -> RecurrentController | ResidualController:
    if path.is_file() and is_residual_controller(read_tensor_file(path)):
        return load_residual_controller(path)
    return load_controller(path, population_size=population_size, deterministic=deterministic)
