"""The command line of ``train.py``: options stand with their owners, as in ``--env.reward``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import tyro

from .config import TrainConfig
from .options import (
    OWNERS,
    EnvOptions,
    LearningOptions,
    MeasurementOptions,
    PolicyOptions,
    PpoOptions,
    ReinforceOptions,
    RunOptions,
)

_SHORT_FORM = "The name of its owner may be left out before an option: --reward is --env.reward."


@dataclass(frozen=True)
class _CommandLine(RunOptions):
    """All options; the owners are those of ``OWNERS``."""

    env: EnvOptions = field(default_factory=EnvOptions)
    policy: PolicyOptions = field(default_factory=PolicyOptions)
    learning: LearningOptions = field(default_factory=LearningOptions)
    reinforce: ReinforceOptions = field(default_factory=ReinforceOptions)
    ppo: PpoOptions = field(default_factory=PpoOptions)
    measurement: MeasurementOptions = field(default_factory=MeasurementOptions)


def parse_training(arguments: Sequence[str], default: TrainConfig, description: str | None) -> TrainConfig:
    """Return the configuration that a command line asks for, given what it does not mention."""
    owned = {name: options(**_values(options, default)) for name, options in OWNERS.items()}
    start = _CommandLine(**_values(RunOptions, default), **owned)
    text = f"{description or ''}\n{_SHORT_FORM}"
    given = with_owners(arguments)
    parsed = tyro.cli(_CommandLine, default=start, args=given, description=text)
    _refuse_options_of_another(parsed.agent, given)
    values = {name: getattr(parsed, name) for name in _values(RunOptions, default)}
    for name in OWNERS:
        values |= asdict(getattr(parsed, name))
    return TrainConfig(**values)


def _refuse_options_of_another(agent: str, given: Sequence[str]) -> None:
    """Raise a ``ValueError`` for an option that the chosen agent would not look at."""
    other = "ppo" if agent == "reinforce" else "reinforce"
    for argument in given:
        owner, dot, option = argument.partition("=")[0].removeprefix("--").partition(".")
        if argument.startswith("--") and dot and owner == other:
            raise ValueError(f"`{option.replace('-', '_')}` is an option of {other}, got it with `agent` {agent!r}.")


def with_owners(arguments: Sequence[str]) -> list[str]:
    """Return a command line in which every option stands with its owner.

    >>> with_owners(["--seed", "3", "--cell_size=8", "--env.reward", "log"])
    ['--seed', '3', '--policy.cell_size=8', '--env.reward', 'log']
    """
    owners = {entry.name: name for name, options in OWNERS.items() for entry in fields(options)}
    found = []
    for argument in arguments:
        option = argument.partition("=")[0]
        owner = owners.get(option.removeprefix("--").replace("-", "_")) if option.startswith("--") else None
        found.append(argument if owner is None else f"--{owner}.{argument.removeprefix('--')}")
    return found


def _values(options: type[Any], config: TrainConfig) -> dict[str, Any]:
    """Return what a configuration says about the settings of one owner."""
    return {entry.name: getattr(config, entry.name) for entry in fields(options)}
