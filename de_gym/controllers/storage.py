"""Controllers on disk: one safetensors file of plain arrays and string metadata; reading it runs no code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from de_gym.arrays import Float32Array
from de_gym.checks import shown
from de_gym.controllers.recurrent import ControllerInfo, RecurrentController
from de_gym.tensor_files import (
    CHECKSUM,
    TensorFile,
    check_finite,
    check_tensor_file,
    read_tensor_file,
    write_tensor_file,
)
from de_gym.version import __version__

FORMAT = "de_gym controller"
FORMAT_VERSION = "2"
FIRST_VERSION = "1"  # its checksum covers the arrays alone


def save_controller(controller: RecurrentController, path: str | Path, *, half_precision: bool = False) -> Path:
    """Write ``controller`` to ``path`` and return the path; equal controllers give equal bytes.

    The file appears complete or not at all. With ``half_precision`` the arrays are stored as float16, at half
    the size and about three decimal digits.
    """
    dtype = np.float16 if half_precision else np.float32
    tensors = {name: array.astype(dtype) for name, array in controller.tensors.items()}
    info = controller.info
    metadata = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "policy": info.policy,
        "preset": info.preset,
        "env_settings": json.dumps(dict(info.env_settings), sort_keys=True),
        "seed": json.dumps(info.seed),
        "package_version": info.package_version or __version__,
        "results": json.dumps(dict(info.results), sort_keys=True),
    }
    target = Path(path)
    write_tensor_file(target, tensors, metadata)
    return target


def load_controller(
    path: str | Path, *, population_size: int | None = None, deterministic: bool = False
) -> RecurrentController:
    """Return the controller stored at ``path``.

    Args:
        path: A file written by :func:`save_controller`.
        population_size: When given, the number of individuals the controller must have been trained for.
        deterministic: Whether actions are the policy's means instead of samples.
    """
    source = Path(path)
    if not source.is_file():
        raise FileNotFoundError(f"There is no controller file {str(source)!r}.")
    content = read_tensor_file(source)
    metadata = content.metadata
    _check_format(source, metadata)
    if metadata["format_version"] == FIRST_VERSION:
        _check_first_version(source, content)
    else:
        check_tensor_file(source, content)
    tensors: dict[str, Float32Array] = {name: array.astype(np.float32) for name, array in content.tensors.items()}
    try:
        info = _parsed_info(metadata)
        controller = RecurrentController(tensors, info, deterministic=deterministic)
        _check_settings(controller)
    except KeyError as error:
        raise ValueError(f"Controller file {str(source)!r} lacks its entry {error}.") from error
    except ValueError as error:
        raise ValueError(f"Controller file {str(source)!r} cannot be used: {error}") from error
    if population_size not in (None, controller.population_size):
        raise ValueError(
            f"The controller in {str(source)!r} was trained for populations of {controller.population_size} "
            f"individuals, got `population_size` {population_size}."
        )
    return controller


def _check_settings(controller: RecurrentController) -> None:
    """Raise a ``ValueError`` where the settings of the training contradict the arrays."""
    stated = controller.info.env_settings.get("population_size", controller.population_size)
    if stated != controller.population_size:
        raise ValueError(f"its settings say populations of {stated}, its arrays {controller.population_size}.")


def _check_first_version(source: Path, content: TensorFile) -> None:
    """Raise a ``ValueError`` where the arrays of a file of the first version are not what was written."""
    if content.metadata.get(CHECKSUM) != tensor_checksum(content.tensors):
        raise ValueError(f"The weights in {str(source)!r} do not match their checksum: the file is damaged.")
    check_finite(source, content.tensors)


def tensor_checksum(tensors: Mapping[str, NDArray[np.generic]]) -> str:
    """Return the sha256 of the names, types, shapes and bytes of ``tensors``, as files of version 1 hold it."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        digest.update(f"{name} {array.dtype.name} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _check_format(source: Path, metadata: Mapping[str, str]) -> None:
    if metadata.get("format") != FORMAT:
        raise ValueError(
            f"{str(source)!r} is a safetensors file but not a controller: its 'format' is "
            f"{metadata.get('format')!r}, expected {FORMAT!r}."
        )
    if metadata.get("format_version") not in (FIRST_VERSION, FORMAT_VERSION):
        raise ValueError(
            f"{str(source)!r} has controller format version {metadata.get('format_version')!r}; "
            f"this version of the package reads {FIRST_VERSION!r} and {FORMAT_VERSION!r}."
        )


def _parsed_info(metadata: Mapping[str, str]) -> ControllerInfo:
    values = {name: json.loads(metadata[name]) for name in ("env_settings", "seed", "results")}
    for name in ("env_settings", "results"):
        if not isinstance(values[name], dict):
            raise ValueError(f"its {name!r} must be a JSON object, got {shown(metadata[name])}.")
    if not (values["seed"] is None or type(values["seed"]) is int):
        raise ValueError(f"its 'seed' must be an integer or null, got {metadata['seed']!r}.")
    return ControllerInfo(
        policy=metadata["policy"],
        preset=metadata["preset"],
        env_settings=values["env_settings"],
        seed=values["seed"],
        package_version=metadata["package_version"],
        results=values["results"],
    )
