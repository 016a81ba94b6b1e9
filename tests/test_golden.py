"""Seeded fingerprints of everything above the baselines: environments, controlled optimisers, ``minimize``, training.

A change of arithmetic, of the order of random numbers, or of when an episode ends shows here first, and which of the
recorded quantities changed says where to look. Every case has plain numbers, compared everywhere to a tolerance, and
hashes of all its values, compared bit for bit on the kind of processor that they were written on.
After a deliberate change write them anew with ``PYTHONPATH=. python tests/test_golden.py``.
"""

from __future__ import annotations

import csv
import hashlib
import json
import platform
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import train
from de_gym import Problem, minimize

FOLDER = Path(__file__).parent / "golden"
PLAIN_ARITHMETIC = ("single", "vector")  # no linear algebra of numpy, nothing of torch
MATRIX_PRODUCTS = ("training",)
STATE_KEYS = ("best_error", "best_fitness", "best_position", "evaluations", "generation", "function")
STEP_KEYS = ("success_rate", "mean_scale_factor", "mean_crossover_rate")


def library() -> SimpleNamespace:
    """Return what the cases need beyond the front doors, under names of their own."""
    from de_gym import make_suite
    from de_gym.controllers import ConstantController, RandomController, load
    from de_gym.optimizers import ControlledDE, run

    return SimpleNamespace(
        suite=make_suite,
        run=run,
        controlled=ControlledDE,
        constant=ConstantController,
        random=RandomController,
        shipped=load,
    )


def processor(file: str) -> str:
    """Return what decides the last bits: the mathematics library and, for matrices and torch, the instructions."""
    system = f"{platform.system()} {platform.machine()}"
    if file in PLAIN_ARITHMETIC:
        return system
    instructions = torch.backends.cpu.get_cpu_capability()
    return f"{system} {instructions}, {cpu_model()}" if file in MATRIX_PRODUCTS else f"{system} {instructions}"


def cpu_model() -> str:
    """Return family and model: matrix products of torch differ between models that have the same instructions."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else [f"model: {platform.processor()}"]
    fields = dict([part.strip() for part in line.split(":", 1)] for line in lines if ":" in line)
    return f"family {fields.get('cpu family', 'unknown')}, model {fields.get('model', 'unknown')}"


class Fingerprint:
    """One hash per quantity over all values it takes, with their types and shapes; and a few plain numbers."""

    def __init__(self) -> None:
        self._hashes: dict[str, Any] = {}
        self.numbers: dict[str, float | list[float]] = {}

    def add(self, quantity: str, values: object) -> None:
        array = np.ascontiguousarray(values)
        digest = self._hashes.setdefault(quantity, hashlib.sha256())
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())

    def as_json(self) -> dict[str, Any]:
        return {"numbers": self.numbers, "bits": {name: digest.hexdigest() for name, digest in self._hashes.items()}}


# Problems of the user's own, in arithmetic that is the same on every processor.


def bowl(x):
    return float(((x - 1.5) ** 2 * np.arange(1, len(x) + 1)).sum())


def valley(points):
    return (100.0 * (points[:, 1:] - points[:, :-1] ** 2) ** 2 + (1.0 - points[:, :-1]) ** 2).sum(axis=1)


def partly_undefined(points):
    values = np.abs(points).sum(axis=1)
    return np.where(points[:, 0] > 3.0, np.nan, values)


def own_problems() -> dict[str, Problem]:
    lower, upper = np.linspace(-6.0, -4.0, 4), np.linspace(3.0, 5.0, 4)
    return {
        "known": Problem.from_function(bowl, lower, upper, 0.0),
        "unknown": Problem.from_function(bowl, lower, upper),
        "vectorized-known": Problem.from_function(valley, lower, upper, 0.0, vectorized=True),
        "vectorized-unknown": Problem.from_function(valley, lower, upper, vectorized=True),
        "undefined-known": Problem.from_function(partly_undefined, lower, upper, 0.0, vectorized=True),
    }


# One environment.


def single(*, reset_options: dict[str, Any] | None = None, action_type: type = np.float32, **options: Any):
    """Return the fingerprint of four episodes, seeded or not, with actions that also leave the unit box."""
    env = gym.make("DEParamControl-v0", **options)
    found, rng = Fingerprint(), np.random.default_rng(7)
    returns, endings = [], []
    for seed in (3, None, 8, None):  # which draw four different functions of four
        observation, info = env.reset(seed=seed, options=reset_options)
        found.add("observation", observation)
        add_info(found, info, STATE_KEYS)
        returns.append(0.0)
        while True:
            action = rng.uniform(-0.1, 1.1, env.action_space.shape).astype(action_type)
            observation, reward, terminated, truncated, info = env.step(action)
            found.add("observation", observation)
            found.add("reward", reward)
            found.add("flags", [terminated, truncated])
            add_info(found, info, STATE_KEYS + STEP_KEYS)
            returns[-1] += reward
            if terminated or truncated:
                break
        endings += [int(terminated), int(truncated), info["evaluations"], info["function"], info["best_error"]]
        endings += [info["success_rate"], info["mean_scale_factor"], info["mean_crossover_rate"]]
    found.numbers = {"returns": returns, "endings": endings, "observation": observation[:3].tolist()}
    return found.as_json()


def add_info(found: Fingerprint, info: dict[str, Any], keys: tuple[str, ...]) -> None:
    for key in keys:
        found.add(key, info[key])


def single_cases() -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    small = {"population_size": 8, "functions": [1, 5, 12, 24], "max_generations": None, "max_evaluations": 100}
    for dimension, repair in product((2, 10, 30), ("midpoint", "clip", "reflect", "resample")):
        yield f"{dimension}d-{repair}", partial(single, **small, dimension=dimension, bound_repair=repair)
    for reward, suite in product(("relative", "log", "initial_gap"), ("cec2013", "cec2017")):
        yield f"{reward}-{suite}", partial(single, **small, reward=reward, suite=suite)
    changes: dict[str, dict[str, Any]] = {
        "counts": {"histogram": "counts"},
        "all-history": {"history_window": None},
        "all-history-counts": {"history_window": None, "histogram": "counts"},
        "window-of-2-bins-of-3": {"history_window": 2, "num_bins": 3},
        "pbest-0.1": {"pbest": 0.1, "population_size": 30, "max_evaluations": 400},
        "pbest-linear": {"pbest": "linear", "population_size": 30, "max_evaluations": 400},
        "parts-in-another-order": {"observation": ("mean_past_histogram", "fitness")},
        "smallest-population": {"population_size": 4},
        "truncated": {"max_generations": 6, "max_evaluations": None},
        "truncated-as-the-budget-ends": {"max_generations": 5, "max_evaluations": 48},
        "solved": {"functions": [1], "dimension": 2, "target_error": 50.0, "max_evaluations": 5000},
        "solved-to-1e-8": {"functions": [1], "dimension": 2, "max_evaluations": 20_000, "reward": "log"},
        "actions-in-double-precision": {"action_type": np.float64},
        "chosen-function": {"reset_options": {"function": 12}},
        "chosen-start": {"reset_options": {"initial_population": np.linspace(-90.0, 70.0, 80).reshape(8, 10)}},
    }
    for name, change in changes.items():
        yield name, partial(single, **(small | change))
    yield "defaults", partial(single, dimension=10)
    yield "defaults-30d", partial(single, dimension=30)
    for name, problem in own_problems().items():
        for reward, repair in (("relative", "midpoint"), ("log", "reflect"), ("initial_gap", "resample")):
            own = {"problems": [problem], "population_size": 8, "max_generations": 12}
            yield f"python-{name}-{reward}", partial(single, **own, reward=reward, bound_repair=repair)
    both = {"problems": list(own_problems().values()), "population_size": 8, "max_evaluations": 100, "pbest": 0.25}
    yield "python-all", partial(single, **both)
    solved = {"problems": [own_problems()["known"]], "population_size": 8, "target_error": 5.0, "max_generations": None}
    yield "python-solved", partial(single, **solved)


# The vector environment.


def vector(*, num_steps: int = 20, num_envs: int = 6, **options: Any) -> dict[str, Any]:
    """Return the fingerprint of runs that are restarted as they end."""
    envs = gym.make_vec("DEParamControl-v0", num_envs=num_envs, vectorization_mode="vector_entry_point", **options)
    found, rng = Fingerprint(), np.random.default_rng(8)
    observations, infos = envs.reset(seed=21)
    found.add("observation", observations)
    add_infos(found, infos)
    returns, num_terminated, num_truncated = np.zeros(num_envs), 0, 0
    for step in range(num_steps):
        actions = rng.uniform(-0.1, 1.1, envs.action_space.shape).astype(np.float32)
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        for name, values in (("observation", observations), ("reward", rewards), ("flags", [terminated, truncated])):
            found.add(name, values)
        add_infos(found, infos)
        returns += rewards
        num_terminated, num_truncated = num_terminated + int(terminated.sum()), num_truncated + int(truncated.sum())
        ended = terminated | truncated
        if options["autoreset_mode"] == gym.vector.AutoresetMode.DISABLED and (ended.any() or step == 3):
            ended[2] |= step == 3  # a run may also be restarted before its end, and seeded anew
            observations, infos = envs.reset(seed=5 if step == 3 else None, options={"reset_mask": ended})
            found.add("observation", observations)
            add_infos(found, infos)
    found.numbers = {"returns": returns.tolist(), "ended": [num_terminated, num_truncated]}
    found.numbers["best_error"] = infos["best_error"].tolist()
    found.numbers["evaluations"] = infos["evaluations"].tolist()
    return found.as_json()


def add_infos(found: Fingerprint, infos: dict[str, Any], prefix: str = "") -> None:
    """Add what ``infos`` says of the runs that its masks select; elsewhere it may hold anything."""
    for key in STATE_KEYS + STEP_KEYS:
        if key in infos:
            found.add(prefix + key, infos[f"_{key}"])
            found.add(prefix + key, infos[key][infos[f"_{key}"]])
    if "final_obs" in infos:
        found.add("final_obs", infos["_final_obs"])
        found.add("final_obs", np.stack(list(infos["final_obs"][infos["_final_obs"]])))
        add_infos(found, infos["final_info"], "final_")


def vector_cases() -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    # Some runs of the first function reach the target, at different moments; the others are truncated.
    compiled = {"functions": [1, 5, 12], "population_size": 8, "max_generations": 6, "target_error": 1.5e4}
    python = {
        "problems": [own_problems()[name] for name in ("known", "unknown", "vectorized-known")],
        "population_size": 8,
        "max_generations": 6,
        "target_error": 20.0,
    }
    for mode, assignment, shared in product(gym.vector.AutoresetMode, ("random", "in_turn"), (False, True)):
        name = f"{mode.name.lower()}-{assignment}" + ("-shared-start" if shared else "")
        kind = {"autoreset_mode": mode, "assignment": assignment, "shared_start": shared}
        yield name, partial(vector, **compiled, **kind)
        yield f"python-{name}", partial(vector, **python, **kind)
    next_step = {"autoreset_mode": gym.vector.AutoresetMode.NEXT_STEP}
    for suite, dimension, size in (("cec2013", 10, 28), ("cec2013", 30, 28), ("cec2017", 10, 29)):
        whole = {"suite": suite, "dimension": dimension, "num_envs": size, "num_steps": 8, "assignment": "in_turn"}
        yield f"whole-{suite}-{dimension}d", partial(vector, **whole, **next_step, population_size=10)
    budget = {"functions": [3, 21], "max_generations": None, "max_evaluations": 55, "population_size": 10}
    yield "budget", partial(vector, **budget, **next_step, pbest=0.1, bound_repair="resample", histogram="counts")
    everything = {"history_window": None, "reward": "log", "bound_repair": "reflect"}
    yield "all-history", partial(vector, **compiled, **next_step, **everything)


# Controlled optimisers and ``minimize``.


def controlled(
    make_controller: Callable[[SimpleNamespace], Any],
    dimension: int = 10,
    population_size: int | None = None,
    settings: dict[str, Any] | None = None,
    **limits: Any,
):
    """Return the fingerprint of runs on suite functions and on a Python function."""
    names = library()
    functions = names.suite("cec2013", dimension)
    box = np.full(dimension, 5.0)
    groups = [
        [functions[1], functions[1], functions[5], functions[24]],
        [Problem.from_function(bowl, -box, box + 1.0, 0.0)] * 2,
        [Problem.from_function(valley, -box, box + 1.0, vectorized=True)] * 2,
    ]
    found = Fingerprint()
    for number, problems in enumerate(groups):
        optimizer = names.controlled(make_controller(names), population_size, **(settings or {}))
        result = names.run(optimizer, problems, seed=3, **limits)
        for quantity in ("errors", "evaluations", "best_positions", "convergence"):
            found.add(quantity, getattr(result, quantity))
        found.numbers[f"errors-{number}"] = result.errors.tolist()
        found.numbers[f"evaluations-{number}"] = result.evaluations.tolist()
    return found.as_json()


def controlled_cases() -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    def constant(names: SimpleNamespace) -> Any:
        return names.constant(0.6, 0.8, population_size=12)

    def uniform(names: SimpleNamespace) -> Any:
        return names.random(12)

    limits = {"max_evaluations": 400}
    yield "constant", partial(controlled, constant, **limits)
    yield "random", partial(controlled, uniform, **limits)
    yield "random-chosen-size", partial(controlled, uniform, population_size=12, **limits)
    yield "random-2d", partial(controlled, uniform, dimension=2, **limits)
    # Runs of one batch that end at different moments.
    yield "random-solved", partial(controlled, uniform, dimension=2, max_evaluations=600, target_error=10.0)
    for name, change in {
        "pbest-0.1": {"pbest": 0.1},
        "clip": {"bound_repair": "clip"},
        "reflect": {"bound_repair": "reflect"},
        "resample": {"bound_repair": "resample"},
    }.items():
        yield f"random-{name}", partial(controlled, uniform, settings=change, **limits)
    short = {"max_evaluations": 1000, "max_generations": 12}
    for name in ("long-10d", "paper-128-cells", "paper-50-cells", "quick-10d", "script-10d", "short-10d"):
        yield name, partial(controlled, partial(shipped, name, False), **short)
        yield f"{name}-deterministic", partial(controlled, partial(shipped, name, True), **short)
    for name in ("quick-30d", "short-30d"):
        yield name, partial(controlled, partial(shipped, name, False), 30, **short | {"max_evaluations": 2000})
        yield f"{name}-deterministic", partial(controlled, partial(shipped, name, True), 30, max_evaluations=1000)


def shipped(name: str, deterministic: bool, names: SimpleNamespace) -> Any:
    return names.shipped(name, deterministic=deterministic)


def minimized(fun: Callable[..., Any] = bowl, dimension: int = 3, **options: Any) -> dict[str, Any]:
    result = minimize(fun, [(-5.0, 3.0)] + [(-2.0, 4.0)] * (dimension - 1), seed=0, **options)
    found = Fingerprint()
    for quantity in ("x", "fun", "nfev", "nit", "population", "population_fitness"):
        found.add(quantity, result[quantity])
    for quantity, values in result.history.items():
        found.add(quantity, values)
    found.numbers = {"fun": result.fun, "x": result.x.tolist(), "nfev": result.nfev, "nit": result.nit}
    return found.as_json()


def without_descents(name: str) -> Any:
    controller = library().shipped(name)
    return replace(controller, descent_shares=np.zeros_like(controller.descent_shares))


def minimized_cases() -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    for method in ("de", "jade", "jade-archive", "jso", "cobide", "cobide-pcm", "cde", "cde-pcm"):
        yield method, partial(minimized, method=method, max_evaluations=450)
    yield "hses", partial(minimized, method="hses", max_evaluations=2000)
    yield "learned", partial(minimized, controller="short-10d", max_evaluations=900)
    yield "learned-10d", partial(minimized, valley, 10, controller="short-10d", vectorized=True, max_evaluations=1500)
    yield "learned-30d", partial(minimized, valley, 30, controller="short-30d", vectorized=True, max_evaluations=1500)
    yield (
        "learned-undefined",
        partial(minimized, partly_undefined, controller="short-10d", vectorized=True, max_evaluations=600),
    )
    yield "adaptive", partial(minimized, controller="adaptive", max_evaluations=900)
    yield "adaptive-10d", partial(minimized, valley, 10, controller="adaptive", vectorized=True, max_evaluations=4000)
    yield (
        "adaptive-without-descents",
        partial(minimized, valley, 10, controller=without_descents("adaptive"), vectorized=True, max_evaluations=4000),
    )
    yield "learned-by-name", partial(minimized, controller="script-10d", max_evaluations=600)
    yield "learned-target", partial(minimized, controller="short-10d", target=1.0, max_evaluations=900)
    yield (
        "learned-starts",
        partial(minimized, controller="short-10d", x0=[[1.0, 1.0, 1.0], [2.0, 3.0, 0.0]], max_evaluations=300),
    )


# Training.


def trained(*arguments: str) -> dict[str, Any]:
    """Return the fingerprint of the controller that two updates give, and of their returns."""
    tiny = [
        "--updates", "2", "--functions", "1", "11", "--test-functions", "21", "--episodes-per-function", "2",
        "--population-size", "8", "--max-generations", "4", "--cell-size", "5", "--measure-runs", "0", "--threads", "1",
    ]  # fmt: skip
    found = Fingerprint()
    with tempfile.TemporaryDirectory() as output:
        folder = train.train(train.parse_config([*arguments, *tiny, "--output", output]))
        for name, tensor in sorted(load_file(folder / "controller.safetensors").items()):
            found.add(name, tensor)
            found.numbers[name] = float(tensor.sum(dtype=np.float64))
        with (folder / "progress.csv").open(newline="", encoding="utf-8") as file:
            found.numbers["returns"] = [float(row["return"]) for row in csv.DictReader(file)]
    return found.as_json()


def trained_cases() -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    yield "reinforce", partial(trained, "--num-knots", "3", "--row-blocks", "1")
    yield "recurrent-ppo", partial(trained, "--agent", "recurrent-ppo", "--num-knots", "3")
    yield "script-10d", partial(trained, "--preset", "script-10d")


FILES = {
    "single": single_cases,
    "vector": vector_cases,
    "controlled": controlled_cases,
    "minimize": minimized_cases,
    "training": trained_cases,
}
CASES = {(file, name): case for file, cases in FILES.items() for name, case in cases()}
# Weights are sums over matrix products in single precision; all else is double precision over few generations.
TOLERANCES = {"training": {"rel": 1e-5, "abs": 1e-5}}
every_case = pytest.mark.parametrize(("file", "name"), CASES, ids=["-".join(case) for case in CASES])


@cache
def stored(file: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / f"{file}.json").read_text())
    return content


@cache
def computed(file: str, name: str) -> dict[str, Any]:
    return CASES[file, name]()


@pytest.mark.parametrize("file", FILES)
def test_every_case_has_a_fingerprint(file):
    assert list(stored(file)["cases"]) == [name for name, _ in FILES[file]()]


@every_case
def test_numbers_are_unchanged(file, name):
    expected = stored(file)["cases"][name]["numbers"]
    numbers = computed(file, name)["numbers"]
    assert numbers.keys() == expected.keys()
    for key, value in expected.items():
        assert numbers[key] == pytest.approx(value, **TOLERANCES.get(file, {"rel": 1e-9})), key


@every_case
def test_every_bit_is_unchanged(file, name):
    written_on = stored(file)["processor"]
    if processor(file) != written_on:
        pytest.skip(f"the last bits were written on {written_on}, this is {processor(file)}")
    assert computed(file, name)["bits"] == stored(file)["cases"][name]["bits"]


if __name__ == "__main__":
    for chosen in FILES:
        results = {name: computed(file, name) for file, name in CASES if file == chosen}
        content = {"processor": processor(chosen), "cases": results}
        (FOLDER / f"{chosen}.json").write_text(json.dumps(content, indent=1) + "\n")
