"""What happens before anything is computed: imports, registration, scipy's door, and a word about compiling."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numba.core import event
from scipy.optimize import minimize as scipy_minimize

import de_gym
from de_gym.minimizing import display

ROOT = Path(__file__).parents[1]
BOX = [(-5.0, 3.0), (-1.0, 4.0)]


# Names what is compiled by a first call: our kernels, and what of numba's own is compiled for itself.
FIRST_CALL = """
import de_gym
from numba.core import event
de_gym.minimize
with event.install_recorder("numba:compile") as recorder:
    de_gym.minimize(sum, [(0, 1)] * 3, method="{method}", max_evaluations=300)
print(*[record.data["dispatcher"].py_func.__qualname__ for _, record in recorder.buffer if record.is_start])
"""

# The peak in kB; that of ``getrusage`` is not below the parent's.
PEAK = """
{work}
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def in_new_process(code: str, **variables: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_nothing_is_loaded_that_is_not_needed():
    code = (
        "import sys, de_gym; print([name for name in ('numba', 'scipy', 'matplotlib') if name in sys.modules]);"
        "de_gym.minimize;"
        "print([name for name in ('matplotlib', 'torch', 'joblib', 'de_gym.envs.run_env') if name in sys.modules]);"
        "de_gym.minimize(sum, [(0, 1)] * 3, max_evaluations=300);"
        "print([name for name in ('matplotlib', 'torch', 'scipy.optimize') if name in sys.modules])"
    )
    assert in_new_process(code).split("\n") == ["[]", "[]", "[]"]


def test_result_is_scipys_where_that_is_loaded_and_else_reads_alike():
    code = (
        "import copy, pickle, sys, de_gym\n"
        "def run(): return de_gym.minimize(sum, [(0, 1)] * 3, max_evaluations=300, seed=1)\n"
        "own, copied = run(), pickle.loads(pickle.dumps(copy.deepcopy(run())))\n"
        "assert 'scipy.optimize' not in sys.modules\n"
        "from scipy.optimize import OptimizeResult\n"
        "theirs = run()\n"
        "assert isinstance(theirs, OptimizeResult) and not isinstance(own, OptimizeResult)\n"
        "assert list(own) == list(theirs) == list(copied) and set(theirs) <= set(dir(own))\n"
        "assert own.fun == own['fun'] == copied.fun == theirs.fun and (own.x == theirs.x).all()\n"
        "own.note = 'kept'; assert own['note'] == 'kept' and 'note: kept' in str(own); del own.note\n"
        "try:\n    own.nope\nexcept AttributeError as error:\n    print(error)"
    )
    assert in_new_process(code).startswith("The result has no 'nope', only x, fun, nfev, nit")


@pytest.mark.parametrize("imports", ["gymnasium, de_gym", "de_gym, gymnasium"])
def test_environments_are_registered_in_either_order(imports):
    code = f"import {imports}; print(gymnasium.make('DEParamControl-v0').spec.id, len(gymnasium.registry))"
    assert in_new_process(code).startswith("DEParamControl-v0")


def test_names_of_the_package():
    assert set(de_gym.__all__) <= set(dir(de_gym))
    assert callable(de_gym.minimize)
    with pytest.raises(AttributeError, match="no attribute 'maximize'"):
        _ = de_gym.maximize


@pytest.mark.parametrize(("name", "package"), [("OptunaSampler", "optuna"), ("NevergradOptimizer", "nevergrad")])
def test_missing_extras_are_named(name, package):
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "import de_gym\n"
        f"try:\n    de_gym.{name}\nexcept ImportError as error:\n    print(error)"
    )
    assert f"{name} needs the package" in (message := in_new_process(code))
    assert f"pip install 'de-gym[{package}]'" in message


@pytest.mark.slow
# Two of the learned method's are the local search.
@pytest.mark.parametrize(("method", "most"), [("learned", 9), ("jso", 10), ("cobide", 8), ("hses", 10)])
def test_first_call_compiles_few_kernels_once_each_and_no_messages(method, most, tmp_path):
    names = in_new_process(FIRST_CALL.format(method=method), NUMBA_CACHE_DIR=str(tmp_path)).split()
    # An array that is assigned to a slice compiles how to put its shape in words: two seconds.
    assert not [name for name in names if "shape_context" in name or "unicode" in name]
    kernels = [name for name in names if "<locals>" not in name]
    assert "_count_points" in kernels
    assert len(kernels) == len(set(kernels)) <= most


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_memory_of_a_call_whose_kernels_are_compiled():
    # What numba takes for itself depends on the machine: on some it is nearly all that may be taken.
    numbas = int(in_new_process(PEAK.format(work="import numba")))
    call = PEAK.format(work="import de_gym; de_gym.minimize(sum, [(0, 1)] * 3, max_evaluations=300)")
    in_new_process(call)
    assert int(in_new_process(call)) * 1024 < max(160e6, numbas * 1024 + 48e6)


def bowl(x, centre=0.5):
    return float(np.sum((x - centre) ** 2))


def test_scipy_method_is_minimize():
    method = de_gym.scipy_method("l-srtde", seed=2)
    seen = []
    result = scipy_minimize(
        bowl,
        [1.0, 1.0],
        args=(0.25,),
        bounds=BOX,
        method=method,
        callback=lambda xk: seen.append(xk.copy()),
        options={"max_evaluations": 900},
    )
    direct = de_gym.minimize(bowl, BOX, (0.25,), method="l-srtde", seed=2, x0=[1.0, 1.0], max_evaluations=900)
    assert (result.fun, result.nfev) == (direct.fun, direct.nfev)
    assert seen[-1].shape == (2,)
    assert len(seen) == result.nit


def test_scipy_method_with_constraints_tolerance_and_result_callback():
    results = []

    def look(intermediate_result):
        results.append(intermediate_result.fun)

    result = scipy_minimize(
        bowl,
        [1.0, 1.0],
        bounds=BOX,
        tol=1e-3,
        constraints={"type": "ineq", "fun": lambda x: x[0] - 1.0},
        method=de_gym.scipy_method("jade", seed=0),
        callback=look,
    )
    assert "converged" in result.message
    assert result.fun == pytest.approx(0.25, abs=1e-2)
    assert results[-1] == result.fun


def test_scipy_method_refuses_what_it_cannot_use():
    method = de_gym.scipy_method("jso")
    with pytest.raises(ValueError, match="`bounds` are needed by method 'jso'"):
        scipy_minimize(bowl, [1.0, 1.0], method=method)
    with pytest.raises(ValueError, match="`jac` must be left out"):
        scipy_minimize(bowl, [1.0, 1.0], bounds=BOX, jac=lambda x: x, method=method)
    with pytest.raises(TypeError, match="popsize"):
        scipy_minimize(bowl, [1.0, 1.0], bounds=BOX, options={"popsize": 3}, method=method)


def test_long_compiling_is_announced_once_and_short_is_not(monkeypatch, capsys):
    monkeypatch.setattr(display, "_PATIENCE", 0.05)
    with display.announced_compiling():
        with event.trigger_event("numba:compile"):
            pass
        assert capsys.readouterr().err == ""
        for _ in range(3):
            with event.trigger_event("numba:compile"):
                time.sleep(0.2)
    assert capsys.readouterr().err == "de_gym: compiling kernels for the first use ...\n"
