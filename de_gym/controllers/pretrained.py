"""The trained controllers that come with the package, by name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path
from types import MappingProxyType

from de_gym.controllers.recurrent import RecurrentController
from de_gym.controllers.storage import load_controller
from de_gym.registry import lookup

# sha256 of each file in weights/, by name without suffix; a file that is not listed here is not shipped.
CHECKSUMS: Mapping[str, str] = MappingProxyType(
    {
        "quick-10d": "8148d454c39e847bcbf46fe0cedf3f1ad3982c11accaddd16710f4e5f4b8c084",
        "quick-30d": "0118a17a2ba6af4f767c1074470bb02264a878247ee75e8847252c8f7af30a05",
    }
)


def available() -> tuple[str, ...]:
    """Return the names of the controllers that come with the package."""
    return tuple(sorted(CHECKSUMS))


def load(
    name_or_path: str | Path, *, population_size: int | None = None, deterministic: bool = False
) -> RecurrentController:
    """Return a controller by its name in :func:`available`, or from a file.

    Args:
        name_or_path: A name, or the path of a ``.safetensors`` file.
        population_size: When given, the number of individuals the controller must have been trained for.
        deterministic: Whether actions are the policy's means instead of samples.
    """
    if isinstance(name_or_path, Path) or name_or_path.endswith(".safetensors"):
        return load_controller(name_or_path, population_size=population_size, deterministic=deterministic)
    expected = lookup("controller", name_or_path, CHECKSUMS)
    with as_file(files("de_gym.controllers") / "weights" / f"{name_or_path}.safetensors") as path:
        if hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            raise ValueError(f"The packaged controller {name_or_path!r} does not match its checksum: reinstall it.")
        return load_controller(path, population_size=population_size, deterministic=deterministic)


def default_controller(dimension: int) -> RecurrentController:
    """Return the shipped controller that was trained nearest to ``dimension``; the smaller one of two equally near."""
    if not CHECKSUMS:
        raise ValueError("No controller comes with this version of the package: pass the path of one.")
    shipped = [load(name) for name in available()]
    return min(
        shipped,
        key=lambda controller: (abs(_trained_dimension(controller) - dimension), _trained_dimension(controller)),
    )


def _trained_dimension(controller: RecurrentController) -> int:
    return int(str(controller.info.env_settings["dimension"]))
