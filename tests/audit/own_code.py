"""Calls of the user's own code, of which what it returns is fuzzed: actions, rewards, observations, values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from targets import BOWL, Target, bowl, exercise
from values import Argument, Verdict, among, is_number

from de_gym import minimize
from de_gym.controllers import from_policy
from de_gym.envs.adaptive_process import AdaptiveSettings
from de_gym.envs.extensions import Observation
from de_gym.optimizers import run
from de_gym.optimizers.adaptive import AdaptiveDE

_SIZE = 8
_BOX = [(-5.0, 5.0)] * 3


def _nearly(*shape: int) -> Callable[[np.random.Generator], Any]:
    """Return a maker of numbers of a shape, most of them of another kind or order than compiled code reads."""

    def make(rng: np.random.Generator) -> Any:
        numbers = rng.random(shape)
        with_nan = np.where(rng.random(shape) < 0.1, np.nan, numbers)
        kinds = (
            numbers, numbers.astype(np.float32), numbers.astype(np.float16), 3.0 * numbers - 1.0, with_nan,
            (9.0 * numbers).astype(np.int64), numbers > 0.5, numbers.tolist(), np.asfortranarray(numbers),
            np.repeat(numbers, 2, axis=-1)[..., ::2], np.repeat(numbers, 2, axis=-1), numbers[..., :-1],
            numbers.astype(">f8"), numbers.astype(object), numbers + 0.0j, np.frombuffer(numbers.tobytes()),
        )  # fmt: skip
        return kinds[int(rng.integers(len(kinds)))]

    return make


def _numbers(*shape: int, with_nan: bool = False) -> Callable[[Any], Verdict]:
    """Return a verdict on numbers of a shape; what numpy does not take for real numbers must be refused."""

    def verdict(value: Any) -> Verdict:
        try:
            array = np.asarray(value)
        except ValueError:
            return False
        if array.dtype.kind not in "biuf" or array.shape != shape:
            return False
        return None if with_nan or not np.isnan(array).any() else False

    return verdict


class _Acting:
    """A controller whose every action is the same, whatever that is."""

    population_size = _SIZE

    def __init__(self, actions: object) -> None:
        self._actions = actions

    def reset(self, rngs: object) -> None:
        pass

    def __call__(self, observations: object) -> Any:
        return self._actions

    def keep(self, runs: object) -> None:
        pass


def control(rng: np.random.Generator, **arguments: Any) -> None:
    """Minimise with a controller that sets F and CR; the same seed must give the same result."""
    runs = [
        minimize(bowl, _BOX, controller=_Acting(arguments["actions"]), max_evaluations=5 * _SIZE, seed=0)
        for _ in range(2)
    ]
    assert runs[0].fun == runs[1].fun, "the same seed gives another result"
    assert np.isfinite(runs[0].x).all(), "the result is not finite"


def adjust(shell: str, rng: np.random.Generator, **arguments: Any) -> None:
    """Minimise with a policy that adjusts an adaptive algorithm."""
    policy = from_policy(lambda observations: arguments["actions"], AdaptiveSettings(shell))
    result = minimize(bowl, _BOX, controller=policy, max_evaluations=100, seed=0)
    assert np.isfinite(result.x).all(), "the result is not finite"


class _Sizing:
    """A residual rule that chooses nothing but the size of the first population."""

    def __init__(self, residuals: object) -> None:
        self._residuals = residuals

    def __call__(self, observations: Any) -> Any:
        return np.zeros((len(observations), 15))

    def size_residuals(self, dimension: int, budgets: object) -> Any:
        return self._residuals


def size(rng: np.random.Generator, **arguments: Any) -> None:
    """Run an adaptive algorithm with a rule of the caller's for its first population."""
    made = AdaptiveDE(controller=_Sizing(arguments["residuals"]))
    run(made, BOWL, num_runs=2, seed=0, max_evaluations=100, max_generations=2)


def reward(rng: np.random.Generator, **arguments: Any) -> None:
    """Run an environment with a reward of the caller's."""
    env = gym.make("DEParamControl-v0", functions=[1], dimension=2, reward=lambda *errors: arguments["returned"])
    exercise(env, rng)


def observe(rng: np.random.Generator, **arguments: Any) -> None:
    """Run an environment with an observation of the caller's."""
    part = Observation(lambda view: arguments["returned"], 2, -9.0, 9.0)
    exercise(gym.make("AdaptiveDEControl-v0", functions=[1], dimension=2, observation=[part]), rng)


def value(is_constraint: bool, rng: np.random.Generator, **arguments: Any) -> None:
    """Minimise with a function or a constraint of the caller's."""
    own = {"type": "ineq", "fun": lambda x: arguments["returned"]}
    fun, constraints = (bowl, own) if is_constraint else (own["fun"], ())
    result = minimize(fun, _BOX, constraints=constraints, max_evaluations=40, seed=0)  # type: ignore[arg-type]
    assert np.isfinite(result.x).all(), "the result is not finite"


def _one_number(returned: Any) -> Verdict:
    """Return a verdict on what stands for one number, NaN included."""
    array = _numbers()(returned), _numbers(1)(returned)
    return (
        None
        if None in array or is_number(returned) or (isinstance(returned, float) and returned != returned)
        else False
    )


def _finite(returned: Any) -> Verdict:
    return None if is_number(returned) else False


_ACTIONS = {"actions": Argument(_nearly(1, 2 * _SIZE), _numbers(1, 2 * _SIZE), ("ction",))}

OWN_TARGETS = [
    Target("own controller", control, _ACTIONS, False, 4.0),
    *(
        Target(
            f"own policy of {shell}",
            partial(adjust, shell),
            {"actions": Argument(_nearly(1, number), _numbers(1, number), ("ction",))},
            False,
            2.0,
        )
        for shell, number in (("l-srtde", 15), ("jso", 7))
    ),
    Target("own first size", size, {"residuals": Argument(_nearly(2), _numbers(2))}, False, 2.0),
    Target(
        "own reward", reward, {"returned": Argument(among(1.0, 2, np.float32(3.0)), _finite, ("reward",))}, False, 2.0
    ),
    Target("own observation", observe, {"returned": Argument(_nearly(2), _numbers(2), ("observation",))}, False, 2.0),
    Target(
        "own function",
        partial(value, False),
        {"returned": Argument(among(1.0, np.nan), _one_number, ("unction",))},
        False,
        2.0,
    ),
    Target(
        "own constraint",
        partial(value, True),
        {"returned": Argument(among(1.0, np.nan), lambda v: None, ("onstraint",))},
        False,
        2.0,
    ),
]
