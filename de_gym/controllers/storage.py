"""Controllers on disk: one safetensors file of plain arrays and string metadata; reading it runs no code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

import de_gym
from de_gym.arrays import Float32Array
from de_gym.controllers.recurrent import ControllerInfo, RecurrentController
from de_gym.files import replacing

FORMAT = "de_gym controller"
FORMAT_VERSION = "1"


def save_controller(controller: RecurrentController, path: str | Path, *, half_precision: bool = False) -> Path:
    """Write ``controller`` to ``path`` and return the path.

    The file appears complete or not at all. With ``half_precision`` the arrays are stored as float16, at half
    the size and about three decimal digits.
    """
    dtype = np.float16 if half_precision else np.float32
    tensors = {name: np.ascontiguousarray(array.astype(dtype)) for name, array in controller.tensors.items()}
    if not all(np.isfinite(array).all() for array in tensors.values()):
        raise ValueError(f"A controller with NaN or infinite {np.dtype(dtype).name} weights cannot be saved.")
    info = controller.info
    metadata = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "policy": info.policy,
        "preset": info.preset,
        "env_settings": json.dumps(dict(info.env_settings), sort_keys=True),
        "seed": json.dumps(info.seed),
        "package_version": info.package_version or de_gym.__version__,
        "results": json.dumps(dict(info.results), sort_keys=True),
        "sha256": tensor_checksum(tensors),
    }
    target = Path(path)
    with replacing(target) as file:
        file.write(save(tensors, metadata=metadata))
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
    metadata, stored = _read(source)
    _check_format(source, metadata)
    if tensor_checksum(stored) != metadata.get("sha256"):
        raise ValueError(f"The weights in {str(source)!r} do not match their checksum: the file is damaged.")
    tensors: dict[str, Float32Array] = {name: array.astype(np.float32) for name, array in stored.items()}
    try:
        info = _parsed_info(metadata)
        controller = RecurrentController(tensors, info, deterministic=deterministic)
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


def tensor_checksum(tensors: Mapping[str, NDArray[np.generic]]) -> str:
    """Return the sha256 of the names, types, shapes and bytes of ``tensors``, whatever their order."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        digest.update(f"{name} {array.dtype.name} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _read(source: Path) -> tuple[dict[str, str], dict[str, NDArray[np.generic]]]:
    if not source.is_file():
        raise FileNotFoundError(f"There is no controller file {str(source)!r}.")
    try:
        with safe_open(source, framework="numpy") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{str(source)!r} is truncated or not a safetensors file ({error}).") from error


def _check_format(source: Path, metadata: Mapping[str, str]) -> None:
    if metadata.get("format") != FORMAT:
        raise ValueError(
            f"{str(source)!r} is a safetensors file but not a controller: its 'format' is "
            f"{metadata.get('format')!r}, expected {FORMAT!r}."
        )
    if metadata.get("format_version") != FORMAT_VERSION:
        raise ValueError(
            f"{str(source)!r} has controller format version {metadata.get('format_version')!r}; "
            f"this version of the package reads {FORMAT_VERSION!r}."
        )


def _parsed_info(metadata: Mapping[str, str]) -> ControllerInfo:
    values = {name: json.loads(metadata[name]) for name in ("env_settings", "seed", "results")}
    for name in ("env_settings", "results"):
        if not isinstance(values[name], dict):
            raise ValueError(f"its {name!r} must be a JSON object, got {metadata[name]!r}.")
    return ControllerInfo(
        policy=metadata["policy"],
        preset=metadata["preset"],
        env_settings=values["env_settings"],
        seed=values["seed"],
        package_version=metadata["package_version"],
        results=values["results"],
    )
