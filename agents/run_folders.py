"""The folder of a training: made with its checks, found again with its configuration."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path

from de_gym.files import create_folder, remove_abandoned

from .checked_json import checked_json, read_checked_json, write_checked_json
from .config import TrainConfig, config_from_json

CONFIG_FILE = "config.json"


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
        needed, free = _bytes_needed(config), shutil.disk_usage(parent).free
        if free >= needed:
            return _new_folder(parent, config)
    except OSError as error:
        raise OSError(f"The output folder {str(parent)!r} cannot be written: {error.strerror or error}.") from error
    raise OSError(
        f"The disk of {str(parent)!r} has {free / 1e6:.0f} MB free, but the run may need {needed / 1e6:.0f} MB."
    )


def _new_folder(parent: Path, config: TrainConfig) -> Path:
    """Make and return the first folder of the run's name that is not there yet."""
    name = f"{config.preset}-{config.agent}-seed{config.seed}"
    remove_abandoned(parent, f"{name}-*")
    number, files = 1, {CONFIG_FILE: checked_json(asdict(config), indent=2)}
    # With its configuration from the start: a folder without one could not be resumed after a kill.
    while not create_folder(parent / f"{name}-{number}", files):
        number += 1
    return parent / f"{name}-{number}"


def save_run_config(config: TrainConfig, folder: Path) -> None:
    """Write the configuration of the run in ``folder``."""
    write_checked_json(folder / CONFIG_FILE, asdict(config), indent=2)


def load_run_config(folder: Path) -> TrainConfig:
    """Return the configuration of the run in ``folder``."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        raise FileNotFoundError(f"{str(folder)!r} is not the folder of a run: it has no {CONFIG_FILE}.")
    content = read_checked_json(path)
    try:
        return config_from_json(json.dumps(content))
    except ValueError as error:
        raise ValueError(f"{str(path)!r} is not the configuration of a run: {error}") from error


def _bytes_needed(config: TrainConfig) -> int:
    """Return a generous estimate: two checkpoints during a replacement, the controller, logs and pictures."""
    observation_size = config.population_size + 2 * config.num_bins
    parameters = 4 * config.cell_size * (observation_size + config.cell_size + 2)
    parameters += 4 * config.population_size * (config.cell_size + 1)
    checkpoint = 3 * 4 * parameters * (2 if config.agent == "recurrent-ppo" else 1)
    return 2 * checkpoint + 4 * parameters + 50_000_000
