"""What turns anything that can control a run into an optimiser: names, files, the user's own code, agents."""

from __future__ import annotations

import importlib
import re
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from de_gym.checks import shown
from de_gym.controllers import (
    DEFAULT,
    Controller,
    PolicyController,
    ResidualController,
    ResidualRule,
    available,
    from_policy,
    load,
)
from de_gym.controllers.jso import JSOSettings
from de_gym.envs.adaptive_process import ADAPTIVE_SHELLS, AdaptiveProcess, AdaptiveSettings
from de_gym.envs.parameter_process import ParameterProcess
from de_gym.envs.settings import EnvSettings
from de_gym.optimizers.adaptive import AdaptiveDE, AdaptiveDESettings
from de_gym.optimizers.adaptive_jso import AdaptiveJSO, adjusts_jso
from de_gym.optimizers.base import Optimizer
from de_gym.optimizers.controlled_de import ControlledDE
from de_gym.own_code import import_attribute, is_attribute
from de_gym.registry import unknown_name_message

AnyController = Controller | ResidualRule

_MODEL = re.compile(r"([A-Za-z_]\w*):(.+\.zip)")
_LIBRARIES = "stable_baselines3", "sb3_contrib"


def find_controller(source: object, *, trust: bool = False) -> AnyController:
    """Return the controller that ``source`` means.

    Args:
        source: "default"; the name of a controller that comes with the package; the path of a ``.safetensors`` file;
            "module:attribute", which imports the user's own code; "PPO:model.zip", which loads a model that an
            algorithm of Stable-Baselines3 or sb3-contrib saved, and needs ``trust``; a model that has its environment;
            or a controller itself, such as ``from_policy`` returns. A saved model must have been trained on an
            environment with default settings and no wrappers: the file does not hold them, nor their statistics.
        trust: Whether files may be loaded that can execute code.
    """
    if not isinstance(source, str | Path):
        return _as_controller(source)
    name = str(source)
    if is_model(name):
        return _load_model(name, trust)
    if is_attribute(name):
        return _own_controller(name)
    if name == "default":
        return load(DEFAULT)
    if isinstance(source, Path) or name in available() or name.endswith(".safetensors"):
        return load(source)
    choices = ["default", *available(), "FILE.safetensors", "MODULE:ATTRIBUTE", "ALGORITHM:MODEL.zip"]
    raise ValueError(unknown_name_message("controller", name, choices))


def make_controlled_optimizer(source: object, population_size: int | None = None, *, trust: bool = False) -> Optimizer:
    """Return the optimiser that a controller, or what ``find_controller`` takes for one, runs in.

    Args:
        source: See ``find_controller``.
        population_size: Individuals of the first population, where the controller leaves them open.
        trust: Whether files may be loaded that can execute code.
    """
    controller: Any = find_controller(source, trust=trust)
    own = getattr(controller, "population_size", None)
    if population_size is not None and own not in (None, population_size):
        raise ValueError(
            f"This controller was trained for {own} individuals, got `population_size` {population_size}: leave it "
            f"out, or choose another controller or method."
        )
    if isinstance(controller, ResidualController) or getattr(controller, "is_residual", False):
        if adjusts_jso(controller):
            return AdaptiveJSO(controller, JSOSettings(population_size=population_size or own))
        return AdaptiveDE(AdaptiveDESettings(population_size or own), controller)
    return ControlledDE(controller, population_size)


def is_model(name: str) -> bool:
    """Return whether a name is a saved model, as "PPO:model.zip" (or a lacking algorithm, as "model.zip")."""
    return name.endswith(".zip")


def _as_controller(candidate: object) -> AnyController:
    """Return a controller, or the one that a model with its environment makes."""
    if isinstance(candidate, PolicyController | ResidualController):
        return candidate
    if hasattr(candidate, "predict") and hasattr(candidate, "get_env"):
        return from_policy(candidate)
    if isinstance(candidate, Controller):
        return candidate
    raise TypeError(
        f"A controller must be a name, a path or a controller, got {type(candidate).__name__}: "
        f"`de_gym.controllers.from_policy(policy, env)` makes one of a policy and the environment it was trained on."
    )


def _own_controller(name: str) -> AnyController:
    """Return the controller, or that of the model, that the user's own code calls so."""
    try:
        return _as_controller(import_attribute(name))
    except TypeError as error:
        raise ValueError(f"{name!r} cannot be used: {error}") from error


def _load_model(name: str, trust: bool) -> PolicyController:
    """Load a model that Stable-Baselines3 saved, whose spaces say which environment it was trained on."""
    if not trust:
        raise ValueError(
            f"Loading {name!r} can execute any code that its author put in: say that you trust it, with `trust=True` "
            f"or --trust."
        )
    match = _MODEL.fullmatch(name)
    if match is None:
        raise ValueError(
            f"A saved model needs its algorithm's name in front, as in 'PPO:model.zip', got {shown(name)}."
        )
    algorithm, path = match.groups()
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path!r} is not a file that a model was saved in.")
    model = _find_algorithm(algorithm).load(path, device="cpu")
    return from_policy(model, _settings_of_spaces(model.observation_space, model.action_space))


def _find_algorithm(name: str) -> Any:
    installed = [library for library in _LIBRARIES if find_spec(library) is not None]
    if not installed:
        raise ImportError("Saved models need Stable-Baselines3: pip install 'de-gym[agents]'.")
    modules = [importlib.import_module(library) for library in installed]
    for module in modules:
        if hasattr(getattr(module, name, None), "load"):
            return getattr(module, name)
    choices = [own for module in modules for own in vars(module) if hasattr(getattr(module, own), "load")]
    raise ValueError(unknown_name_message("algorithm", name, choices))


def _settings_of_spaces(observation_space: Any, action_space: Any) -> EnvSettings | AdaptiveSettings:
    """Return default settings that give these spaces; a saved model says nothing else of its environment."""
    from de_gym.envs.run_env import make_spaces  # brings gymnasium, which nothing else here needs

    action_size = int(action_space.shape[0]) if len(action_space.shape or ()) == 1 else 0
    guesses: list[tuple[Any, Any]] = [
        (AdaptiveSettings(shell, population_size=4).resolved(10), AdaptiveSettings(shell)) for shell in ADAPTIVE_SHELLS
    ]
    if action_size % 2 == 0 and action_size >= 8:
        sized = EnvSettings(population_size=action_size // 2)
        guesses.append((sized.resolved(10), sized))
    for resolved, settings in guesses:
        process = AdaptiveProcess(resolved) if isinstance(resolved, AdaptiveSettings) else ParameterProcess(resolved)
        if make_spaces(process) == (observation_space, action_space):
            chosen: EnvSettings | AdaptiveSettings = settings
            return chosen
    raise ValueError(
        f"The spaces {observation_space} and {action_space} of the saved model are those of no environment with "
        f"default settings and no wrappers: write `controller = de_gym.controllers.from_policy(model, env)` in a "
        f"module and name it MODULE:controller."
    )
