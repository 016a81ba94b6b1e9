"""What can be compared: algorithms and controllers, by name, as methods that a runner can send to its workers."""

from __future__ import annotations

import dataclasses
import hashlib
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from de_gym.checks import listed, shown, whole
from de_gym.controllers import (
    ConstantController,
    PolicyController,
    RandomController,
    RandomResiduals,
    RecurrentController,
    ResidualController,
    available,
    load,
)
from de_gym.controllers.residual import residual_tensors
from de_gym.controllers.storage import tensor_checksum
from de_gym.envs.settings import default_population_size
from de_gym.evaluation.parameters import ParameterTrace
from de_gym.evaluation.protocol import Protocol
from de_gym.optimizers import (
    METHODS,
    AdaptiveDE,
    ControlledDE,
    Optimizer,
    find_controller,
    is_model,
    make_controlled_optimizer,
    process_settings,
    run,
)
from de_gym.optimizers.adaptive import CONTROL_NAMES
from de_gym.optimizers.records import RunResult
from de_gym.optimizers.running import ParameterRecorder
from de_gym.own_code import is_attribute
from de_gym.problems import Problem
from de_gym.registry import unknown_name_message

ALGORITHMS = METHODS
"""Every algorithm of the registry, those of other packages included where they are installed."""

_CONSTANT = re.compile(r"constant(?:=([0-9]*\.?[0-9]+),([0-9]*\.?[0-9]+))?")
_DEFAULT_CONSTANTS = ("0.5", "0.9")
_MEAN = ":mean"
_RANDOM_RESIDUALS = "random-residuals"


@dataclass(frozen=True)
class OptimizerMethod:
    """An optimiser under comparison.

    Attributes:
        name: Its name in stores and reports.
        optimizer: What runs.
        settings: Everything its results depend on besides protocol and seeds, as JSON values.
    """

    name: str
    optimizer: Optimizer
    settings: Mapping[str, object]

    def run(self, problem: Problem, seeds: Sequence[np.random.SeedSequence], protocol: Protocol) -> RunResult:
        """Return the record of one run per seed."""
        return run(
            self.optimizer,
            problem,
            seeds=seeds,
            max_evaluations=protocol.budget,
            max_generations=protocol.max_generations,
            target_error=protocol.target_error,
            grid=protocol.grid,
        )

    def trace(self, problem: Problem, seed: np.random.SeedSequence, protocol: Protocol) -> ParameterTrace | None:
        """Return what was controlled along one run, or None for an algorithm that has neither F nor CR."""
        recorder = ParameterRecorder()
        run(
            deepcopy(self.optimizer),
            problem,
            seeds=[seed],
            max_evaluations=protocol.budget,
            max_generations=protocol.max_generations,
            target_error=protocol.target_error,
            observers=[recorder],
        )
        generations = recorder.generations
        if not generations:
            return None
        return ParameterTrace(
            self.name,
            fitness=[generation.parent_fitness[0] for generation in generations],
            scale_factors=[generation.scale_factors[0] for generation in generations],
            crossover_rates=[generation.crossover_rates[0] for generation in generations],
            residuals={
                name: np.array([generation.residuals[name][0] for generation in generations])
                for name in generations[0].residuals
            },
        )


def make_methods(
    names: Sequence[str], protocol: Protocol, *, population_size: int | None = None, trust: bool = False
) -> list[OptimizerMethod]:
    """Return the methods of the given names.

    Args:
        names: Baselines; ``"random"``, ``"constant"`` (F = 0.5, CR = 0.9) or ``"constant=F,CR"``; random residuals in
            L-SRTDE, ``"random-residuals"``; controllers that come with the package; paths of ``.safetensors`` files.
            Trained controllers sample their actions, as in the paper; a name that ends in ``":mean"`` acts by the
            means. ``"module:attribute"`` imports the user's own controller or model, and ``"PPO:model.zip"`` loads a
            saved one.
        protocol: The rules of the comparison.
        population_size: Individuals N of all controllers, the paper's for the dimension by default. A controller
            that was trained for another number is refused. Users' own have theirs.
        trust: Whether files may be loaded that can execute code, as saved models can.

    Warns where a controller was trained in another number of dimensions.
    """
    size = (
        default_population_size(protocol.dimension)
        if population_size is None
        else whole("population_size", population_size, 1)
    )
    methods = []
    for name in listed("names", names, "names of methods"):
        if not isinstance(name, str):
            raise TypeError(f"`names` must be strings, got {shown(name)}.")
        own = _is_users_own(name)
        methods.append(users_method(name, population_size, trust) if own else _make_method(name, size))
    for method in methods:
        trained = method.settings.get("trained_dimension")
        if trained not in (None, protocol.dimension):
            warnings.warn(
                f"Controller {method.name!r} was trained in {trained} dimensions and is run in {protocol.dimension}.",
                stacklevel=2,
            )
    return methods


def every_method(protocol: Protocol) -> list[str]:
    """Return the names of all that the package can run under a protocol without further choices."""
    size = default_population_size(protocol.dimension)
    controllers = [name for name in available() if load(name).population_size in (None, size)]
    own = [name for name, method in ALGORITHMS.items() if method.package is None]
    return [*own, "random", "constant", *controllers]


def _make_method(name: str, size: int) -> OptimizerMethod:
    if name.lower() in ALGORITHMS:
        return algorithm_method(name.lower())
    name = next((known for known in available() if known == name.lower()), name)
    if name.lower() == "random":
        name = "random"
        return controller_method(name, RandomController(size))
    if name == _RANDOM_RESIDUALS:
        optimizer = AdaptiveDE(controller=RandomResiduals(len(CONTROL_NAMES)))
        return OptimizerMethod(name, optimizer, {"kind": "controller", "controller": "RandomResiduals"})
    if match := _CONSTANT.fullmatch(name):
        factor, rate = (float(given or usual) for given, usual in zip(match.groups(), _DEFAULT_CONSTANTS, strict=True))
        constants = {"scale_factor": factor, "crossover_rate": rate}
        return controller_method(name, ConstantController(factor, rate, population_size=size), constants)
    source, deterministic = name.removesuffix(_MEAN), name.endswith(_MEAN)
    if source in available() or source.endswith(".safetensors"):
        controller = load(source, population_size=size, deterministic=deterministic)
        if isinstance(controller, ResidualController):
            return residual_method(_short_name(source), controller)
        return controller_method(_short_name(source) + "-mean" * deterministic, controller)
    choices = [*ALGORITHMS, "random", _RANDOM_RESIDUALS, "constant", "constant=F,CR", *available()]
    kinds_of_files = ["FILE.safetensors", "MODULE:ATTRIBUTE", "ALGORITHM:MODEL.zip"]
    raise ValueError(unknown_name_message("method", name, [*choices, *kinds_of_files]))


def algorithm_method(name: str) -> OptimizerMethod:
    """Return one of ``ALGORITHMS`` as a method."""
    optimizer = ALGORITHMS[name]()
    constants = dataclasses.asdict(optimizer.settings)  # type: ignore[call-overload]  # all are dataclasses
    return OptimizerMethod(name, optimizer, {"kind": "baseline", "algorithm": optimizer.name, "settings": constants})


def controller_method(name: str, source: object, details: Mapping[str, object] | None = None) -> OptimizerMethod:
    """Return a controller as a method: in the decision process it was trained in, or else the paper's.

    Args:
        name: Its name in stores and reports.
        source: A controller, such as ``from_policy`` returns, or a model that has its environment.
        details: What distinguishes it from others of its class, as JSON values; known for trained controllers.
    """
    controller: Any = find_controller(source)
    if isinstance(controller, ResidualController):
        return residual_method(name, controller)
    if isinstance(controller, PolicyController):
        return _policy_method(name, controller, None, details or {})
    if controller.population_size is None:
        raise ValueError(f"Controller {name!r} must have a population size to be compared, got None.")
    settings: dict[str, object] = {
        "kind": "controller",
        "controller": type(controller).__name__,
        "population_size": controller.population_size,
        **(details or {}),
    }
    if isinstance(controller, RecurrentController):
        settings |= {**process_settings(controller), **_origin(controller)}
    return OptimizerMethod(name, ControlledDE(controller), settings)


def residual_method(name: str, controller: ResidualController) -> OptimizerMethod:
    """Return a residual controller as a method, in the algorithm whose rules it adjusts."""
    settings = {
        "kind": "controller",
        "controller": "ResidualController",
        "training": dict(controller.info),
        "weights_sha256": tensor_checksum(residual_tensors(controller)),
    }
    return OptimizerMethod(name, AdaptiveDE(controller=controller), settings)


def _is_users_own(name: str) -> bool:
    """Return whether a name is one of the user's own objects or models, which shipped controllers' are not."""
    return is_model(name) or (is_attribute(name) and name.removesuffix(_MEAN) not in available())


def users_method(source: str, population_size: int | None = None, trust: bool = False) -> OptimizerMethod:
    """Return the user's own controller or model as a method, as ``make_controlled_optimizer`` understands its name.

    Stored results are taken for those of the same method while the numbers of its policy and the file that it comes
    from are the same.
    """
    controller = find_controller(source, trust=trust)
    details = {"source": source, "source_sha256": _source_checksum(source)}
    return _policy_method(_users_name(source), controller, population_size, details)


def _users_name(source: str) -> str:
    """Return what tables call a user's own method.

    >>> _users_name("mine:controller"), _users_name("PPO:models/first.zip")
    ('mine.controller', 'first')
    """
    # With its module, because everybody calls the attribute the same; and in the signs that a folder's name may have.
    return Path(source.partition(":")[2]).stem if is_model(source) else source.replace(":", ".")


def _policy_method(
    name: str, controller: Any, population_size: int | None, details: Mapping[str, object]
) -> OptimizerMethod:
    """Return a user's own controller as a method, in the algorithm that it was trained in."""
    optimizer = make_controlled_optimizer(controller, population_size)
    settings = {
        "kind": "controller",
        "controller": type(controller).__name__,
        "population_size": population_size or getattr(controller, "population_size", None),
        "algorithm": optimizer.name,
        "policy_sha256": _policy_checksum(getattr(controller, "policy", controller)),
        **details,
    }
    return OptimizerMethod(name, optimizer, settings)


def _source_checksum(source: str) -> str | None:
    """Return the checksum of the file that a user's own method comes from."""
    first, _, second = source.partition(":")
    file = second if is_model(source) else getattr(sys.modules[first], "__file__", None)
    return None if file is None else hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _policy_checksum(policy: Any) -> str | None:
    """Return the checksum of a network's numbers, None for what has none."""
    if not hasattr(policy, "state_dict"):
        return None
    arrays = {name: np.ascontiguousarray(tensor.detach().cpu().numpy()) for name, tensor in policy.state_dict().items()}
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()


def _origin(controller: RecurrentController) -> dict[str, object]:
    """Return what distinguishes a trained controller from others."""
    return {
        "paper_counterpart": "lde",
        "preset": controller.info.preset,
        "training_seed": controller.info.seed,
        "trained_dimension": controller.info.env_settings.get("dimension"),
        "cell_size": controller.cell_size,
        "deterministic": controller.deterministic,
        "weights_sha256": tensor_checksum(controller.tensors),
    }


def _short_name(name: str) -> str:
    """Return a controller's name for tables; training calls all files the same and their folders differently."""
    if not name.endswith(".safetensors"):
        return name
    path = Path(name).absolute()
    return path.parent.name if path.stem == "controller" else path.stem
