"""TrainConfig: every setting of a training, flat; the presets; and a configuration read from its file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from .options import (
    EnvOptions,
    LearningOptions,
    MeasurementOptions,
    PolicyOptions,
    PpoOptions,
    PresetName,
    ReinforceOptions,
    RunOptions,
)


# Bases are read from the last to the first: what a training is comes first in its file.
@dataclass(frozen=True)
class TrainConfig(
    MeasurementOptions, PpoOptions, ReinforceOptions, LearningOptions, PolicyOptions, EnvOptions, RunOptions
):
    """Settings of ``train.py``, flat; the defaults are the preset "quick"."""


QUICK = TrainConfig()
SHORT = replace(
    QUICK,
    preset="short",
    updates=150,
    episodes_per_function=20,
    max_generations=50,
    reward="relative",
    # A short run has no time for the many useless steps of a wide distribution.
    initial_std=0.2,
    gamma=0.9,
)
LONG = replace(
    QUICK,
    preset="long",
    updates=120,
    episodes_per_function=4,
    max_generations=None,
    max_evaluations=None,
    gamma=0.998,
)
_PAPER = replace(
    QUICK,
    updates=150,
    episodes_per_function=20,
    max_generations=50,
    max_evaluations=None,
    reward="relative",
    num_knots=None,
    gamma=1.0,
    row_blocks=1,  # as the controllers that they were made for
)
PAPER_10D = replace(
    _PAPER,
    preset="paper-10d",
    cell_size=2000,
    # NOTE: departures from the paper. Its step size of 0.005 makes results worse from cells of a few hundred on, and
    # without a baseline nothing is learned.
    learning_rate=0.0003,
    threads=None,
    checkpoint_every=5,
)
PAPER_30D = replace(PAPER_10D, preset="paper-30d", dimension=30, population_size=100, cell_size=3000)
SCRIPT_10D = replace(
    _PAPER,
    preset="script-10d",
    cell_size=50,
    mean="linear",
    std="state",
    gamma=0.99,
    max_grad_norm=None,
    baseline="none",
    back_propagation="stored",
    log_prob_of="clipped",
    history_window=None,
    histogram="counts",
)
PRESETS: Mapping[PresetName, TrainConfig] = MappingProxyType(
    {config.preset: config for config in (QUICK, SHORT, LONG, PAPER_10D, PAPER_30D, SCRIPT_10D)}
)


def config_from_json(text: str) -> TrainConfig:
    """Return the configuration that a JSON object of all fields of ``TrainConfig`` describes.

    Raises:
        ValueError: Where a field is missing, unknown or of another type.
    """
    values = json.loads(text)
    if not isinstance(values, dict):
        raise ValueError(f"it must be a JSON object, got {type(values).__name__}.")
    values = {"row_blocks": 1, **values}  # earlier versions did not divide their updates
    names = {field.name for field in fields(TrainConfig)}
    if values.keys() != names:
        differing = ", ".join(map(repr, sorted(names ^ values.keys())))
        raise ValueError(f"it was written by another version of train.py, which differs in {differing}.")
    for name, hint in get_type_hints(TrainConfig).items():
        if not _has_type(values[name], hint):
            raise ValueError(f"`{name}` must be {_described(hint)}, got {values[name]!r}.")
    tuples: dict[str, Any] = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
    return TrainConfig(**(values | tuples))


def _has_type(value: Any, hint: Any) -> bool:
    """Return whether a JSON value fits a field's type; tuples are lists there."""
    if get_origin(hint) is Literal:
        return type(value) is str and value in get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return any(_has_type(value, choice) for choice in get_args(hint))
    if get_origin(hint) is tuple:
        return type(value) is list and all(_has_type(item, get_args(hint)[0]) for item in value)
    if hint is float:
        return type(value) in (int, float)
    return type(value) is hint


def _described(hint: Any) -> str:
    """Return a field's type in words."""
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(map(_described, get_args(hint)))
    if get_origin(hint) is tuple:
        return f"a list of {_described(get_args(hint)[0])}"
    return "null" if hint is type(None) else str(hint.__name__)
