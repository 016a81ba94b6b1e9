"""How many files one generation leads through: a reader should be able to follow it.

Run ``python tests/test_walks.py`` for the lists.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import CodeType, FunctionType

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from de_gym import minimize
from de_gym.controllers import DEFAULT, load
from de_gym.envs import AdaptiveDEControlEnv, DEParamControlEnv

PACKAGE = Path(__file__).parents[1] / "de_gym"
# Rooms that a walk does not enter: the compiled machinery, and what lies behind the evaluation of points.
NOT_ENTERED = ("machine", "problems")


def file_of(code: CodeType) -> str | None:
    """Return the name of the file of the package that code stands in, None for files that do not count."""
    path = Path(code.co_filename)
    if PACKAGE not in path.parents:
        return None
    name = path.relative_to(PACKAGE)
    return None if name.parts[0] in NOT_ENTERED else str(name)


def trace(work: Callable[[], object]) -> list[CodeType]:
    """Return the code that ``work`` calls, call by call."""
    walk: list[CodeType] = []

    def note(frame, event, argument):
        if event == "call":
            walk.append(frame.f_code)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return walk


def kernels_below(kernel: Dispatcher, seen: set[Dispatcher]) -> Iterator[Dispatcher]:
    """Yield the compiled functions that a compiled function mentions, and those that they mention."""
    if kernel in seen:
        return
    seen.add(kernel)
    yield kernel
    function: FunctionType = kernel.py_func
    mentioned = [function.__globals__.get(name) for name in function.__code__.co_names]
    mentioned += [cell.cell_contents for cell in function.__closure__ or ()]
    for entry in mentioned:
        if isinstance(entry, Dispatcher):
            yield from kernels_below(entry, seen)


def files_of_step(env) -> list[str]:
    """Return the files that one step of an environment leads through, those of compiled functions included."""
    env.reset(seed=0)
    action = np.zeros(env.action_space.shape, np.float32)
    env.step(action)
    codes = set(trace(lambda: env.step(action)))
    called = {(code.co_filename, code.co_name) for code in codes}
    files, seen = {file_of(code) for code in codes}, set()
    for name, module in list(sys.modules.items()):
        for entry in vars(module).values() if name.startswith("de_gym") else ():
            if isinstance(entry, Dispatcher):
                code = entry.py_func.__code__
                if (code.co_filename, code.co_name) in called:
                    files |= {file_of(kernel.py_func.__code__) for kernel in kernels_below(entry, seen)}
    return sorted(name for name in files if name is not None)


def jumps_of_minimize(**options) -> tuple[float, list[str]]:
    """Return how many jumps from file to file the calls of a generation of ``minimize`` make, and the files of all."""
    calls = [0]

    def bowl(points):
        calls[0] += 1
        return (points**2).sum(axis=1)

    def run(budget: int) -> None:
        minimize(bowl, [(-5, 5)] * 4, max_evaluations=budget, seed=0, vectorized=True, **options)

    def count(budget: int) -> tuple[int, int, set[str]]:
        calls[0] = 0
        names = [file_of(code) for code in trace(lambda: run(budget))]
        entered = [name for name in names if name is not None]
        jumps = sum(one != other for one, other in itertools.pairwise(entered))
        return jumps, calls[0], set(entered)

    run(400)  # so that nothing is compiled under tracing
    (few, short, _), (many, long, files) = count(400), count(1200)
    return (many - few) / (long - short), sorted(files)


ENVS = {
    "DEParamControl": (lambda: DEParamControlEnv(functions=[1]), 8),
    "AdaptiveDEControl, l-srtde": (lambda: AdaptiveDEControlEnv(functions=[1]), 8),
    "AdaptiveDEControl, jso": (lambda: AdaptiveDEControlEnv(functions=[1], shell="jso"), 15),
}
DEFAULT_CONTROLLER = load(DEFAULT)
WITHOUT_DESCENTS = replace(DEFAULT_CONTROLLER, descent_shares=0.0 * DEFAULT_CONTROLLER.descent_shares)
# An exchange with the local search, one call of six in these runs, leads through one more file.
METHODS = {
    "default": ({}, 6.8),
    "default, populations alone": ({"controller": WITHOUT_DESCENTS}, 6.4),
    "jso": ({"method": "jso"}, 8.0),
}


@pytest.mark.parametrize(("make", "most"), ENVS.values(), ids=ENVS)
def test_a_step_leads_through_no_more_files_than_it_did(make, most):
    assert len(files_of_step(make())) <= most


@pytest.mark.parametrize(("options", "most"), METHODS.values(), ids=METHODS)
def test_a_generation_of_minimize_jumps_no_more_than_it_did(options, most):
    assert jumps_of_minimize(**options)[0] <= most


def main() -> None:
    for name, (make, _) in ENVS.items():
        files = files_of_step(make())
        print(f"{name}: {len(files)} files: {', '.join(files)}", flush=True)
    for name, (options, _) in METHODS.items():
        jumps, files = jumps_of_minimize(**options)
        print(
            f"minimize, {name}: {jumps:.1f} jumps a generation; files of the whole call: {', '.join(files)}", flush=True
        )


if __name__ == "__main__":
    main()
