"""Calls of the user's own code, of which what it returns is fuzzed: actions, rewards, observations, values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from targets import BOWL, Target, bowl, exercise
from values import Argument, Verdict, among, either, is_number, is_whole

from de_gym import ProblemBatch, make_suite, minimize, register_suite
from de_gym.controllers import RandomController, from_policy
from de_gym.envs.adaptive_process import AdaptiveSettings
from de_gym.envs.extensions import Observation
from de_gym.optimizers import AdaptiveDE, ControlledDE, run

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


def policy(rng: np.random.Generator, **arguments: Any) -> None:
    """Make a controller of a policy and its environment, and run it."""
    made = from_policy(arguments["policy"], arguments["env"])
    minimize(bowl, _BOX, controller=made, max_evaluations=80, seed=0)


def registered(rng: np.random.Generator, **arguments: Any) -> None:
    """Register a suite and make it."""
    name = register_suite(arguments["name"], arguments["problems"])
    assert len(make_suite(name, 3)), "a suite has no problem"


def observation(rng: np.random.Generator, **arguments: Any) -> None:
    """Make a part of the observation of a function that returns as many numbers as are asked for."""
    given = dict(arguments)
    function = given.pop("function")
    if function is None:
        function = lambda view: np.zeros(int(given.get("size", 1)))  # noqa: E731  # the other may be anything
    exercise(gym.make("DEParamControl-v0", dimension=2, observation=[Observation(function, **given)]), rng)


def batch(rng: np.random.Generator, **arguments: Any) -> None:
    """Make a batch of problems and evaluate points of each."""
    made = ProblemBatch(arguments["problems"])
    values = made.evaluate(np.zeros((len(made), 2, 3)) if arguments["points"] is None else arguments["points"])
    assert not np.isnan(values).any(), "a value is NaN"  # of points that are none it is infinite


def controlled(rng: np.random.Generator, **arguments: Any) -> None:
    """Run an algorithm with a controller that is given to it directly."""
    controller = arguments["controller"]
    is_usual = isinstance(controller, RandomController)
    made = ControlledDE(controller) if is_usual or rng.random() < 0.5 else AdaptiveDE(controller=controller)
    problem = BOWL if arguments["problem"] is None else arguments["problem"]
    run(made, problem, num_runs=1, seed=0, max_evaluations=200, max_generations=2)


def _one_number(returned: Any) -> Verdict:
    """Return a verdict on what stands for one number, NaN included."""
    try:
        array = np.asarray(returned)
    except ValueError:
        return False
    return None if array.dtype.kind in "biuf" and array.size == 1 else False


def _finite(returned: Any) -> Verdict:
    return None if is_number(returned) else False


def _callable(value: Any) -> Verdict:
    return None if callable(value) else False


def _ours(value: Any) -> Verdict:
    """Return a verdict on objects of the package, one or several."""
    parts = value if isinstance(value, list | tuple) else [value]
    return None if parts and all(type(part).__module__.startswith("de_gym") for part in parts) else False


def _points(value: Any) -> Verdict:
    shaped = value is None or (np.shape(value)[-1:] == (3,) and len(np.shape(value)) > 1)
    return None if shaped else False


def _residuals(number: int) -> dict[str, Argument]:
    return {"actions": Argument(_nearly(1, number), _numbers(1, number), ("ction",))}


_ACTIONS = {"actions": Argument(_nearly(1, 2 * _SIZE), _numbers(1, 2 * _SIZE), ("ction",))}
_RETURNED = {"returned": Argument(among(1.0, np.nan), _one_number, ("unction",))}
_CONSTRAINT = {"returned": Argument(among(1.0, np.nan), either, ("onstraint",))}
_POLICY = {
    "policy": Argument(among(lambda seen: np.zeros((len(seen), 7))), _callable, ("olicy", "module")),
    "env": Argument(among(AdaptiveSettings("jso")), _ours, ("env",)),
}
_SUITE = {
    "name": Argument(among("own", "Bowls"), lambda v: None if isinstance(v, str) else False, ("suite",)),
    "problems": Argument(among([BOWL], (BOWL, BOWL)), _ours, ("roblem",)),
}
_OBSERVATION = {
    "function": Argument(among(None), lambda v: None if v is None or callable(v) else False, ("bservation",)),
    "size": Argument(among(1, 3), lambda v: False if is_whole(1, 10**4)(v) is False else None),
    "low": Argument(among(-1.0), either, ("high",)),
    "high": Argument(among(1.0), either, ("low",)),
}
_BATCH = {
    "problems": Argument(among([BOWL] * 2), _ours, ("roblem", "oints")),
    "points": Argument(_nearly(2, 4, 3), _points, ("oints",)),
}
_CONTROLLED = {
    "controller": Argument(
        among(RandomController(8)), lambda v: None if v is None else _callable(v), ("ontroller", "ction")
    ),
    "problem": Argument(among(None, BOWL), lambda v: None if v is None else _ours(v), ("roblem",)),
}

OWN_TARGETS = [
    Target("own controller", control, _ACTIONS, False, 4.0),
    Target("own policy of l-srtde", partial(adjust, "l-srtde"), _residuals(15), False, 2.0),
    Target("own policy of jso", partial(adjust, "jso"), _residuals(7), False, 2.0),
    Target("own first size", size, {"residuals": Argument(_nearly(2), _numbers(2))}, False, 2.0),
    Target("own reward", reward, {"returned": Argument(among(1.0, 2, np.float32(3.0)), _finite, ("reward",))}, False),
    Target("own observation", observe, {"returned": Argument(_nearly(2), _numbers(2), ("observation",))}, False, 2.0),
    Target("own function", partial(value, False), _RETURNED, False, 2.0),
    Target("own constraint", partial(value, True), _CONSTRAINT, False, 2.0),
    Target("from_policy", policy, _POLICY, False, 2.0),
    Target("register_suite", registered, _SUITE, False, 2.0),
    Target("Observation", observation, _OBSERVATION, weight=2.0),
    Target("ProblemBatch", batch, _BATCH, False, 2.0),
    Target("controlled", controlled, _CONTROLLED, weight=2.0),
]
