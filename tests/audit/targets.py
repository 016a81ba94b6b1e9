"""The calls that are fuzzed: what each takes, and what is done with what it returns."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import gymnasium as gym
import numpy as np
from values import Argument, Verdict, among, either, is_name, is_number, is_real, is_whole, never

from de_gym import Optimizer, Problem, make_suite, minimize
from de_gym.controllers import ConstantController, RandomController, available, load
from de_gym.evaluation import PROTOCOLS, Protocol, make_methods
from de_gym.evolution.residuals import CONTROLS
from de_gym.optimizers import METHODS, make_optimizer, run


@dataclass(frozen=True)
class Target:
    """A call.

    Attributes:
        name: What reports call it.
        call: Takes the generator of the case and the arguments, and returns what it made.
        arguments: What it takes.
        constructs: Whether it makes an environment, an optimiser or a method.
        weight: How often it is drawn.
    """

    name: str
    call: Callable[..., object]
    arguments: Mapping[str, Argument]
    constructs: bool = True
    weight: float = 1.0


def bowl(x: Any) -> float:
    """Return the sum of squares."""
    return float(np.sum(np.square(x)))


BOWL = Problem.from_function(bowl, -5.0, 5.0, 0.0, dimension=3, name="bowl")


def _functions(value: Any) -> Verdict:
    if value is None:
        return True
    try:
        numbers = list(value)
    except TypeError:
        return False
    whole = [isinstance(n, int | np.integer) and not isinstance(n, bool) and 1 <= n <= 28 for n in numbers]
    return bool(numbers) and all(whole) and len({int(n) for n in numbers}) == len(numbers)


def _observation(names: tuple[str, ...], optional: bool = False) -> Callable[[Any], Verdict]:
    def verdict(value: Any) -> Verdict:
        if value is None:
            return optional
        if callable(value) or isinstance(value, str):
            return None
        try:
            parts = list(value)
        except TypeError:
            return False
        return (
            None if parts and all(callable(p) or (isinstance(p, str) and p.lower() in names) for p in parts) else False
        )

    return verdict


def _open(low: int, high: int, optional: bool = False) -> Callable[[Any], Verdict]:
    """Return a verdict on whole numbers of which other arguments say whether they are too few."""
    verdict = is_whole(low, high, optional)
    return lambda value: False if verdict(value) is False else None


TASK = {
    "suite": Argument(among("cec2013", "cec2017", "random", "random:3"), either),
    "functions": Argument(among([1], (3, 4), np.array([1, 5])), _functions, ("function",)),
    "dimension": Argument(among(2, 10), _open(2, 100)),
}
RUNS = {
    "population_size": Argument(among(8, 12, 20), is_whole(4, 150, optional=True), ("population",)),
    "max_evaluations": Argument(among(400, 1000), _open(8, 2**62, True)),
    "max_generations": Argument(among(3, 50, None), is_whole(1, 2**62, optional=True)),
    "target_error": Argument(among(1e-8, 0.0), is_real(0.0, math.inf)),
    "reward": Argument(among("relative", "log", "initial_gap"), is_name(("relative", "log", "initial_gap"), True)),
    "render_mode": Argument(among(None, "rgb_array"), is_name(("rgb_array", "human"), optional=True), ("render",)),
}
REPAIRS = ("midpoint", "clip", "reflect", "resample")
PARTS = ("fitness", "histogram", "mean_past_histogram")
PARAMETER_ENV = {
    **TASK,
    **RUNS,
    "num_bins": Argument(among(1, 5), is_whole(1, 10**4)),
    "history_window": Argument(among(None, 1, 5), is_whole(1, 10**4, optional=True)),
    "shell": Argument(among("pbest", "l-shade"), is_name(("pbest", "l-shade"))),
    "action": Argument(among("by_rank", "knots", "mean_and_spread"), is_name(("by_rank", "knots", "mean_and_spread"))),
    "pbest": Argument(
        among("linear", 0.1, 1.0), lambda v: v.lower() == "linear" if isinstance(v, str) else is_real(5e-324, 1.0)(v)
    ),
    "bound_repair": Argument(
        among("midpoint", "clip"), is_name(("midpoint", "clip", "reflect", "resample")), ("repair",)
    ),
    "histogram": Argument(among("fractions", "counts"), is_name(("fractions", "counts"))),
    "observation": Argument(among(PARTS, ["fitness"]), _observation(PARTS)),
    "popsize": Argument(among(None), never, ("argument",)),
}
FEATURES = ("spent", "success_rate", "diversity", "stagnation")
ADAPTIVE_ENV = {
    **TASK,
    **RUNS,
    "shell": Argument(among("l-srtde", "jso"), is_name(("l-srtde", "jso"))),
    "observation": Argument(among(FEATURES), _observation(FEATURES, optional=True)),
    "rewards": Argument(among(None), never, ("argument",)),
}


def _autoreset(value: Any) -> Verdict:
    names = ("next_step", "same_step", "disabled", "nextstep", "samestep")
    return isinstance(value, gym.vector.AutoresetMode) or is_name(names)(value)


VECTOR = {
    "num_envs": Argument(among(1, 4), is_whole(1, 10**3)),
    "autoreset_mode": Argument(among(*gym.vector.AutoresetMode), _autoreset, ("autoreset mode",)),
    "assignment": Argument(among("random"), is_name(("random", "in_turn"))),
    "shared_start": Argument(among(True, False), lambda v: True if isinstance(v, bool) else None),
    "render_mode": Argument(among(None), is_name((), optional=True), ("render",)),
}


def exercise(env: Any, rng: np.random.Generator) -> None:
    """Run a few generations; what comes out must be numbers."""
    observation, _ = env.reset(seed=int(rng.integers(2**31)))
    for _ in range(2):
        observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        assert np.isfinite(observation).all(), "an observation is not finite"
        assert np.isfinite(reward).all(), "a reward is not finite"
        if np.any(terminated) or np.any(truncated):
            break


def make_env(name: str, rng: np.random.Generator, **arguments: Any) -> None:
    """Make and run an environment."""
    env = gym.make(name, **arguments)
    if arguments.get("render_mode") != "human":
        exercise(env, rng)
    env.close()


def make_vector_env(name: str, rng: np.random.Generator, **arguments: Any) -> None:
    """Make and run a vector environment."""
    envs = gym.make_vec(name, **arguments)
    exercise(envs, rng)
    envs.close()


@cache
def _ready(name: str, is_vector: bool) -> Any:
    settings: dict[str, Any] = {"functions": [1, 5], "dimension": 2, "population_size": 8, "max_evaluations": 2000}
    env = gym.make_vec(name, num_envs=3, **settings) if is_vector else gym.make(name, **settings)
    env.reset(seed=0)
    return env


def _action(shape: tuple[int, ...], low: float) -> Callable[[Any], Verdict]:
    def verdict(value: Any) -> Verdict:
        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            return False
        return None if array.shape == shape and not np.isnan(array).any() else False

    return verdict


def step(name: str, is_vector: bool, rng: np.random.Generator, **arguments: Any) -> None:
    """Take a step of an environment that is running."""
    env = _ready(name, is_vector)
    try:
        _, reward, terminated, truncated, _ = env.step(arguments["actions"])
    except gym.error.ResetNeeded:
        env.reset(seed=int(rng.integers(2**31)))
        _, reward, terminated, truncated, _ = env.step(arguments["actions"])
    assert np.isfinite(reward).all(), "a reward is not finite"
    if not is_vector and (terminated or truncated):
        env.reset()


def reset(name: str, is_vector: bool, rng: np.random.Generator, **arguments: Any) -> None:
    """Reset an environment that is running, and leave it running."""
    env = _ready(name, is_vector)
    options = arguments["options"]
    if options is None:
        options = {key: arguments[key] for key in ("function", "initial_population") if arguments[key] is not None}
    try:
        env.reset(seed=arguments["seed"], options=options)
    except gym.error.Error as error:
        raise ValueError(f"`seed`: {error}.") from error  # how Gymnasium refuses seeds


def _steps_and_resets() -> list[Target]:
    targets = []
    for name, size, low in (("DEParamControl-v0", 16, 0.0), ("AdaptiveDEControl-v0", len(CONTROLS), -1.0)):
        for is_vector in (False, True):
            shape = (3, size) if is_vector else (size,)
            action = Argument(partial(lambda s, rng: rng.random(s), shape), _action(shape, low), ("Action",))
            label = f"{name}{' vector' if is_vector else ''}"
            targets.append(Target(f"{label} step", partial(step, name, is_vector), {"actions": action}, False, 12.0))
            arguments = {
                "seed": Argument(among(None, 0, 7), lambda v: None if v is None or is_seed(v) else either(v)),
                "function": Argument(among(None, 1, 5), either),
                "initial_population": Argument(among(None, np.zeros((8, 2))), either),
                "options": Argument(among(None), lambda v: bool(v is None or v == {}), ("option",)),
            }
            targets.append(Target(f"{label} reset", partial(reset, name, is_vector), arguments, False, 3.0))
    return targets


def is_seed(value: Any) -> bool:
    """Return whether a value is a seed for certain."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= value <= 2**62


def suite(rng: np.random.Generator, **arguments: Any) -> None:
    """Make a suite and evaluate a point of each of its first functions."""
    made = make_suite(arguments["name"], arguments["dimension"], arguments["functions"], seed=arguments["seed"])
    for number in made.numbers[:2]:
        assert np.isfinite(made[number].evaluate(np.zeros(made.dimension))), "a value is not finite"


SUITE = {
    "name": Argument(TASK["suite"].usual, either, ("suite",)),
    "dimension": TASK["dimension"],
    "functions": TASK["functions"],
    "seed": Argument(among(None), either),
}


def evaluate(rng: np.random.Generator, **arguments: Any) -> None:
    """Evaluate points of a compiled and of a Python function."""
    for problem in (make_suite("cec2017", 10, [5])[5], BOWL):
        points = np.zeros((2, problem.dimension)) if arguments["points"] is None else arguments["points"]
        assert np.isfinite(problem.evaluate(points)).all(), "a value is not finite"


def _points(value: Any) -> Verdict:
    return True if value is None else _action((), 0.0)(value) and False


def from_function(rng: np.random.Generator, **arguments: Any) -> None:
    """Make a problem and evaluate a point."""
    problem = Problem.from_function(arguments.pop("fun"), arguments.pop("lower"), arguments.pop("upper"), **arguments)
    problem.evaluate(0.5 * (problem.lower + problem.upper))


def _is_bound(value: Any) -> Verdict:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return None if array.ndim <= 1 and np.isfinite(array).all() else False


PROBLEM = {
    "fun": Argument(among(bowl), lambda v: None if callable(v) else False, ("unction", "dimension")),
    "lower": Argument(among(-5.0, [-5.0, -4.0, -3.0]), _is_bound, ("bound", "Bound", "dimension", "coordinate")),
    "upper": Argument(among(5.0), _is_bound, ("bound", "Bound", "dimension", "coordinate")),
    "optimum": Argument(among(None, 0.0), is_real(-math.inf, math.inf, optional=True), ("dimension",)),
    "dimension": Argument(among(3), _open(1, 10**5, True), ("coordinate",)),
    "vectorized": Argument(among(False), either, ("unction", "dimension")),
    "name": Argument(among(None, "bowl"), either, ("dimension",)),
}


def optimizer(rng: np.random.Generator, **arguments: Any) -> None:
    """Make an optimiser by name and run it for two generations."""
    made = make_optimizer(arguments["name"], population_size=arguments["population_size"])
    run(made, BOWL, num_runs=1, seed=0, max_evaluations=2000, max_generations=1)


OWN = tuple(name for name, method in METHODS.items() if method.package is None)
OPTIMIZER = {
    "name": Argument(
        among("de", "jade", "jSO", "L-SRTDE", "cobide"), is_name([*METHODS, "lsrtde", "l-shade"]), ("method",)
    ),
    "population_size": Argument(among(None, 8, 30), _open(4, 10**4, True)),
}


def settings(rng: np.random.Generator, **arguments: Any) -> None:
    """Make an optimiser whose settings have one other value, and run it."""
    method = METHODS[OWN[int(rng.integers(len(OWN)))]]
    usual = method.default_settings()
    fields = dataclasses.fields(usual)
    field = fields[int(rng.integers(len(fields)))].name
    value = getattr(usual, field) if arguments["setting"] is None else arguments["setting"]
    try:
        made = method(dataclasses.replace(usual, **{field: value}))
        result = run(made, BOWL, num_runs=1, seed=0, max_evaluations=900, max_generations=2)
    except (TypeError, ValueError) as error:
        singular = field.removesuffix("ies").removesuffix("s")
        said = "`setting`: " if singular in str(error) else f"no {field} in: "
        raise ValueError(f"{said}{error}") from error
    assert np.isfinite(result.errors).all(), f"{field} = {value!r} gives an error that is not finite"


def _is_far(limit: Any) -> bool:
    return limit is None or is_whole(100_000, 2**62)(limit) is not False


def running(rng: np.random.Generator, **arguments: Any) -> None:
    """Run an optimiser."""
    if all(_is_far(arguments.get(name)) for name in ("max_evaluations", "max_generations")):
        arguments["max_generations"] = 2  # nothing else may end it
    run(make_optimizer("jade"), BOWL, **arguments)


RUNNING = {
    "num_runs": Argument(among(1, 2), is_whole(1, 50, optional=True)),
    "seed": Argument(among(0, 5), lambda v: True if is_seed(v) else None),
    "max_evaluations": Argument(among(200, 400), _open(30, 2000, True), ("budget",)),
    "max_generations": Argument(among(2), _open(0, 2**60, True)),
    "target_error": Argument(among(None, 1e-8), is_real(0.0, math.inf, optional=True)),
}


def tell(rng: np.random.Generator, **arguments: Any) -> None:
    """Tell an optimiser the values of its points."""
    made = make_optimizer("de", population_size=6)
    lower = np.full((1, 2), -5.0) if arguments["lower"] is None else arguments["lower"]
    made.start(lower, np.full((1, 2), 5.0), [np.random.default_rng(0)], arguments["max_evaluations"])
    made.ask()
    made.tell(np.zeros(6) if arguments["values"] is None else arguments["values"])
    if not made.has_ended.all():
        made.ask()


TELL = {
    "lower": Argument(among(None), lambda v: None if v is None else _action((1, 2), 0.0)(v), ("ounds", "bound")),
    "max_evaluations": Argument(among(100), _open(6, 2**62)),
    "values": Argument(among(None), lambda v: None if v is None else _action((6,), 0.0)(v)),
}


def minimizing(rng: np.random.Generator, **arguments: Any) -> None:
    """Minimise a function of two coordinates."""
    result = minimize(**arguments)
    assert result.nfev >= 1, "nothing was evaluated"
    assert result.x.shape == (2,), "the result has another shape"
    assert np.isfinite(result.x).all(), "the result is not finite"


def _bounds(value: Any) -> Verdict:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return None if array.ndim == 2 and array.shape[1] == 2 and np.isfinite(array).all() else False


MINIMIZE = {
    "fun": Argument(among(bowl), lambda v: None if callable(v) else False, ("unction",)),
    "bounds": Argument(among([(-5, 5)] * 2, np.array([[-1.0, 2.0], [0.0, 1.0]])), _bounds, ("bound", "Bound", "x0")),
    "args": Argument(among(()), lambda v: None if isinstance(v, tuple | list) else either(v)),
    "method": Argument(among("learned", "jso", "DE"), is_name(["learned", *METHODS, "l-shade"]), ("method",)),
    "controller": Argument(among("default"), either),
    "max_evaluations": Argument(among(60, 120), lambda v: True if is_whole(1, 3000, True)(v) else None),
    "maxiter": Argument(among(None, 3), is_whole(0, 2**62, optional=True)),
    "max_time": Argument(among(None, 5.0), is_real(0.0, math.inf, optional=True)),
    "population_size": Argument(among(None), either, ("population", "controller")),
    "seed": Argument(among(0, 3), lambda v: True if v is None or is_seed(v) else None),
    "target": Argument(among(None, 0.1), lambda v: is_real(-math.inf, math.inf, True)(v) or either(v)),
    "tol": Argument(among(None, 1e-12), is_real(0.0, math.inf, optional=True)),
    "atol": Argument(among(None, 0.0), is_real(0.0, math.inf, optional=True)),
    "vectorized": Argument(among(False), either, ("unction",)),
    "workers": Argument(among(1), lambda v: True if type(v) is int and v == 1 else None),
    "x0": Argument(among(None, [0.5, 0.5]), either),
    "integrality": Argument(among(None, False), either),
    "constraints": Argument(among(()), lambda v: True if v == () else either(v), ("constraint", "Constraint")),
    "polish": Argument(among(False), either),
    "callback": Argument(among(None), lambda v: True if v is None else (None if callable(v) else False)),
    "disp": Argument(among(False), either),
}


def minimize_call(rng: np.random.Generator, **arguments: Any) -> None:
    """Minimise in this process."""
    if is_number(workers := arguments.get("workers", 1)) and not -2.0 < float(workers) < 2.0:
        arguments["workers"] = -5  # a pool of processes per case would take hours
    if is_number(budget := arguments.get("max_evaluations", 1)) and float(budget) > 1e5:
        arguments["maxiter"] = arguments.get("maxiter") or 3  # nothing else may end it
    minimizing(rng, **arguments)


def asking(rng: np.random.Generator, **arguments: Any) -> None:
    """Make a run that is asked and told, and take it through a generation."""
    told = {name: arguments.pop(name) for name in ("values", "violations") if name in arguments}
    made = Optimizer(**arguments)
    points = made.ask(3)
    values = [bowl(point) for point in points] if told.get("values") is None else told["values"]
    made.tell(points, values, told.get("violations"))
    made.ask()
    assert made.result.x.shape == (2,), "the result has another shape"


def _told(low: float) -> Callable[[Any], Verdict]:
    """Return a verdict on three numbers of at least ``low``."""
    shaped = _action((3,), 0.0)
    return lambda v: None if v is None or (shaped(v) is None and bool((np.asarray(v) >= low).all())) else False


ASKED = {
    **{name: MINIMIZE[name] for name in ("bounds", "method", "controller", "population_size", "seed", "x0")},
    "integrality": Argument(among(None, False), either),
    "max_evaluations": Argument(among(60, 120), lambda v: True if is_whole(3, 3000, True)(v) else None),
    "values": Argument(among(None), lambda v: None if v is None else either(v)),
    "violations": Argument(among(None), _told(0.0)),
}


def methods(rng: np.random.Generator, **arguments: Any) -> None:
    """Make methods of a comparison."""
    make_methods(arguments["names"], PROTOCOLS["paper-cec17-10d"], population_size=arguments["population_size"])


METHOD_NAMES = ["random", "constant", "constant=0.5,0.5", *OWN, *available()]


def _names(value: Any) -> Verdict:
    if isinstance(value, str):
        return None
    try:
        return all(isinstance(name, str) and (name.lower() in METHOD_NAMES or None) for name in value)
    except TypeError:
        return False


COMPARED = {
    "names": Argument(lambda rng: [METHOD_NAMES[int(rng.integers(len(OWN)))]], _names, ("method", "name")),
    "population_size": Argument(among(None, 50), _open(1, 10**6, True)),
}


def protocol(rng: np.random.Generator, **arguments: Any) -> None:
    """Make the rules of a comparison."""
    made = Protocol(**arguments)
    assert np.isfinite(made.budget), "the budget is not finite"
    make_suite(made.suite, made.dimension, made.functions)  # which says whether it has them
    made.run_seeds(made.functions[0], range(2))


PROTOCOL = {
    "suite": Argument(among("cec2017", "random"), either),
    "dimension": Argument(among(10), _open(1, 2**62)),
    "functions": Argument(among((1, 3)), lambda v: None if v is not None and _functions(v) else False, ("function",)),
    "num_runs": Argument(among(51, 3), is_whole(1, 2**62)),
    "max_evaluations": Argument(among(None, 2500), is_whole(1, 2**62, optional=True)),
    "max_generations": Argument(among(None, 50), is_whole(1, 2**62, optional=True)),
    "target_error": Argument(among(1e-8), is_real(0.0, math.inf)),
    "seed": Argument(among(0), is_whole(0, 2**62)),
}


def fixed(rng: np.random.Generator, **arguments: Any) -> None:
    """Make the controllers that learn nothing."""
    ConstantController(**arguments)
    RandomController(arguments["population_size"])


FIXED = {
    "scale_factor": Argument(among(0.5), is_real(0.0, 1.0)),
    "crossover_rate": Argument(among(0.9), is_real(0.0, 1.0)),
    "population_size": Argument(among(10), is_whole(1, 10**6)),
}


def loading(rng: np.random.Generator, **arguments: Any) -> None:
    """Load a controller that comes with the package."""
    load(arguments["name_or_path"], population_size=arguments["population_size"])


LOADING = {
    "name_or_path": Argument(among("long-10d", "adaptive"), is_name(available()), ("controller",)),
    "population_size": Argument(among(None, 50), _open(1, 2**62, True)),
}

TARGETS = [
    Target("make DEParamControl", partial(make_env, "DEParamControl-v0"), PARAMETER_ENV, weight=5.0),
    Target("make AdaptiveDEControl", partial(make_env, "AdaptiveDEControl-v0"), ADAPTIVE_ENV, weight=3.0),
    Target("make_vec DEParamControl", partial(make_vector_env, "DEParamControl-v0"), PARAMETER_ENV | VECTOR),
    Target("make_vec AdaptiveDEControl", partial(make_vector_env, "AdaptiveDEControl-v0"), ADAPTIVE_ENV | VECTOR),
    *_steps_and_resets(),
    Target("make_suite", suite, SUITE, False, 6.0),
    Target("evaluate", evaluate, {"points": Argument(among(None), _points, ("Points",))}, False, 6.0),
    Target("from_function", from_function, PROBLEM, False, 6.0),
    Target("make_optimizer", optimizer, OPTIMIZER, weight=4.0),
    Target("settings", settings, {"setting": Argument(among(None), either)}, weight=4.0),
    Target("run", running, RUNNING, False, 2.0),
    Target("ask and tell", tell, TELL, weight=3.0),
    Target("minimize", minimize_call, MINIMIZE, False, 12.0),
    Target("Optimizer", asking, ASKED, weight=6.0),
    Target("make_methods", methods, COMPARED, weight=2.0),
    Target("Protocol", protocol, PROTOCOL, False, 4.0),
    Target("fixed controllers", fixed, FIXED, False, 3.0),
    Target("load", loading, LOADING, False, 2.0),
]
