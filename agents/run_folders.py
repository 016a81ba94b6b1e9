"""The folder of a training: made with its checks, found again with its configuration."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from de_gym.files import replacing

from .config import TrainConfig, config_from_json

CONFIG_FILE = "config.json"
_CHECKSUM = "sha256"  # the entry that holds the checksum of everything else


def make_run_folder(config: TrainConfig) -> Path:
    """Make and return a new folder for the run, after checking that its files will fit; write the configuration.

    Raises:
        OSError: When the folder cannot be written or its disk is nearly full.
    """
    parent = Path(config.output)
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=parent):
            pass
    except OSError as error:
        raise OSError(f"The output folder {str(parent)!r} cannot be written: {error.strerror or error}.") from error
    needed, free = _bytes_needed(config), shutil.disk_usage(parent).free
    if free < needed:
        raise OSError(
            f"The disk of {str(parent)!r} has {free / 1e6:.0f} MB free, but the run may need {needed / 1e6:.0f} MB."
        )
    name = f"{config.preset}-{config.agent}-seed{config.seed}"
    number = 1
    while True:
        folder = parent / f"{name}-{number}"
        try:
            folder.mkdir()
            break
        except FileExistsError:
            number += 1
    try:
        save_run_config(config, folder)
    except BaseException:
        folder.rmdir()
        raise
    return folder


def save_run_config(config: TrainConfig, folder: Path) -> None:
    """Write the configuration of the run in ``folder``."""
    content = asdict(config)
    with replacing(folder / CONFIG_FILE) as file:
        file.write((json.dumps(content | {_CHECKSUM: _checksum(content)}, indent=2) + "\n").encode())


def load_run_config(folder: Path) -> TrainConfig:
    """Return the configuration of the run in ``folder``."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        raise FileNotFoundError(f"{str(folder)!r} is not the folder of a run: it has no {CONFIG_FILE}.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{str(path)!r} is damaged: it is not JSON ({error}).") from error
    # Folders of earlier versions have no checksum.
    if isinstance(content, dict) and content.get(_CHECKSUM, written := _checksum(content)) != written:
        raise ValueError(f"The content of {str(path)!r} does not match its checksum: the file is damaged.")
    try:
        return config_from_json(json.dumps(_without_checksum(content)))
    except ValueError as error:
        raise ValueError(f"{str(path)!r} is not the configuration of a run: {error}") from error


def _checksum(content: Mapping[str, object]) -> str:
    """Return the sha256 of all settings, whatever their order."""
    return hashlib.sha256(json.dumps(_without_checksum(content), sort_keys=True).encode()).hexdigest()


def _without_checksum(content: object) -> object:
    return {k: v for k, v in content.items() if k != _CHECKSUM} if isinstance(content, Mapping) else content


def _bytes_needed(config: TrainConfig) -> int:
    """Return a generous estimate: two checkpoints during a replacement, the controller, logs and pictures."""
    observation_size = config.population_size + 2 * config.num_bins
    parameters = 4 * config.cell_size * (observation_size + config.cell_size + 2)
    parameters += 4 * config.population_size * (config.cell_size + 1)
    checkpoint = 3 * 4 * parameters * (2 if config.agent == "recurrent-ppo" else 1)
    return 2 * checkpoint + 4 * parameters + 50_000_000
