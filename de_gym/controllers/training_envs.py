"""What stands between a policy and its environment: the chain of wrappers, read from outside to inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Transform = Callable[[Array], Array]

# Wrappers, of Gymnasium and of Stable-Baselines3, that change neither observations nor actions.
_TRANSPARENT = frozenset(
    {
        "Autoreset",
        "ClipReward",
        "DictInfoToList",
        "GymnasiumVecEnv",
        "HumanRendering",
        "Monitor",
        "NormalizeReward",
        "OrderEnforcing",
        "PassiveEnvChecker",
        "RecordEpisodeStatistics",
        "RecordVideo",
        "RenderCollection",
        "TimeLimit",
        "TransformReward",
        "VecCheckNan",
        "VecMonitor",
        "VecVideoRecorder",
        "VectorizeTransformReward",
        "WholeEpisodeVecEnv",
    }
)
_TRANSFORMED_ACTIONS = frozenset({"ClipAction", "RescaleAction", "TransformAction", "VectorizeTransformAction"})
_TRANSFORMED_OBSERVATIONS = frozenset(
    {"DtypeObservation", "RescaleObservation", "TransformObservation", "VectorizeTransformObservation"}
)
_NORMALIZED = frozenset({"NormalizeObservation", "VecNormalize"})


@dataclass
class TrainingEnv:
    """An environment as a policy met it.

    Attributes:
        settings: The settings of the decision process that actions depend on.
        population_size: Individuals N, or None where any will do.
        is_residual: Whether actions adjust an adaptive algorithm.
        action_size: Numbers of an action.
        observation_space: Of the outermost wrapper; None where only settings are known.
        action_space: Of the outermost wrapper; None where only settings are known.
        observation_transforms: From the environment's observations (R, O) to the policy's, in this order.
        action_transforms: From the policy's actions (R, A) to the environment's, in this order.
    """

    settings: Mapping[str, Any]
    population_size: int | None
    is_residual: bool
    action_size: int
    observation_space: Any = None
    action_space: Any = None
    observation_transforms: list[Transform] = field(default_factory=list)
    action_transforms: list[Transform] = field(default_factory=list)


def find_training_env(env: Any) -> TrainingEnv:
    """Return what a policy met in ``env``: an environment, wrapped or not, or its settings."""
    if hasattr(type(env), "training_env"):
        found: TrainingEnv = env.training_env(None)
        return found
    wrappers: list[Any] = []
    inner = env
    while "process" not in _attributes(inner):
        wrappers.append(inner)
        inner = _inside(inner)
    found = inner.process.settings.training_env(inner.task.dimension)
    found.observation_space = _space(env, "observation_space")
    found.action_space = _space(env, "action_space")
    for wrapper in wrappers:
        observe, act = _transforms(wrapper)
        found.observation_transforms[:0] = [] if observe is None else [observe]
        found.action_transforms += [] if act is None else [act]
    return found


def _attributes(env: object) -> dict[str, Any]:
    """Return a wrapper's own attributes: some pretend to have those of what they wrap."""
    return getattr(env, "__dict__", {})


def _space(env: Any, name: str) -> Any:
    """Return the space of one run; vector environments of Gymnasium call it single."""
    return getattr(env, f"single_{name}", None) or getattr(env, name, None)


def _inside(env: Any) -> Any:
    """Return what a wrapper is wrapped around, or refuse what is none of ours."""
    attributes = _attributes(env)
    for name in ("env", "venv", "vector_env"):
        if name in attributes:
            return attributes[name]
    if attributes.get("envs"):
        return _first_of(attributes["envs"])
    raise TypeError(
        f"`env` must be an environment of this package in this process, wrapped or not, or its settings, "
        f"got {type(env).__name__}."
    )


def _first_of(envs: Sequence[Any]) -> Any:
    """Return the first of several environments, unless each has statistics of its own."""
    inner = envs[0]
    while len(envs) > 1 and "env" in _attributes(inner):
        if type(inner).__name__ in _NORMALIZED:
            raise ValueError(
                f"Each of the {len(envs)} environments has statistics of its own in {type(inner).__name__}: give the "
                f"one whose are to be used."
            )
        inner = inner.env
    return envs[0]


def _transforms(wrapper: Any) -> tuple[Transform | None, Transform | None]:
    """Return what a wrapper does to observations and to actions, or refuse what cannot be done outside of it."""
    # A wrapper that is derived from one we know may do anything besides.
    name = type(wrapper).__name__
    is_known = type(wrapper).__module__.split(".")[0] in ("gymnasium", "stable_baselines3", "agents")
    if is_known and (name in _TRANSPARENT or "envs" in _attributes(wrapper)):
        return None, None
    if is_known and name in _TRANSFORMED_ACTIONS:
        return None, _function_of(wrapper)
    if is_known and name in _TRANSFORMED_OBSERVATIONS:
        return _function_of(wrapper), None
    if is_known and name in _NORMALIZED:
        return _normalizing(wrapper), None
    raise ValueError(
        f"What the wrapper {name} does cannot be done outside an environment: train without it, or give a callable "
        f"that does it and the environment inside."
    )


def _function_of(wrapper: Any) -> Transform:
    """Return what a wrapper applies to the observations or actions of R runs."""
    single = _attributes(wrapper).get("wrapper", wrapper)
    is_batched = single is wrapper and hasattr(wrapper, "num_envs")
    function: Transform = single.func
    return function if is_batched else _RowByRow(function)


@dataclass(frozen=True)
class _RowByRow:
    """A function of one observation or action, applied to those of R runs."""

    function: Callable[[Any], Any]

    def __call__(self, rows: Array) -> Array:
        return np.stack([np.asarray(self.function(row)) for row in rows])


@dataclass(frozen=True)
class _Normalize:
    """Observations shifted and scaled by statistics as they were at the end of training."""

    mean: Array
    deviation: Array
    clip: float

    def __call__(self, rows: Array) -> Array:
        return np.clip((rows - self.mean) / self.deviation, -self.clip, self.clip).astype(np.float32)


def _normalizing(wrapper: Any) -> Transform | None:
    if not getattr(wrapper, "norm_obs", True):
        return None
    statistics = wrapper.obs_rms
    deviation = np.sqrt(statistics.var + wrapper.epsilon)
    return _Normalize(np.array(statistics.mean), np.array(deviation), float(getattr(wrapper, "clip_obs", np.inf)))
