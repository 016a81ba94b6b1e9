"""Checkpoints: a killed run goes on where it was, to the same result bit for bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import NonlinearConstraint

from de_gym import minimize

BOX = [(-5.0, 3.0), (-1.0, 4.0), (-2.0, 2.0)]
QUICK = {"method": "l-srtde", "max_evaluations": 400, "seed": 1}


def sphere(x):
    return float(np.sum((x - 0.5) ** 2))


class Failing:
    """A function that gives up after some calls."""

    __name__ = "sphere"

    def __init__(self, calls=10**9):
        self.left, self.calls = calls, 0

    def __call__(self, x):
        if not self.left:
            raise OSError("gone")
        self.left -= 1
        self.calls += 1
        return sphere(x)


def assert_same(one, other):
    np.testing.assert_array_equal(one.x, other.x)
    np.testing.assert_array_equal(one.population, other.population)
    assert (one.fun, one.nfev, one.nit, one.message) == (other.fun, other.nfev, other.nit, other.message)


@pytest.mark.parametrize("calls", [0, 1, 77, 399])
def test_run_goes_on_where_it_failed(tmp_path, calls):
    path = tmp_path / "run.log"
    with pytest.raises(RuntimeError):
        minimize(Failing(calls), BOX, checkpoint=path, **QUICK)
    rest = Failing()
    result = minimize(rest, BOX, checkpoint=path, **QUICK)
    assert rest.calls == 400 - calls
    assert_same(result, minimize(sphere, BOX, **QUICK))
    nothing = Failing(0)
    assert_same(minimize(nothing, BOX, checkpoint=str(path), **QUICK), result)


WITH_WORKERS = """
import sys, time
from de_gym import minimize

def sphere(x):
    time.sleep(0.01)
    return float(sum((x - 0.5) ** 2))

if __name__ == "__main__":
    box = [(-5.0, 3.0), (-1.0, 4.0), (-2.0, 2.0)]
    minimize(sphere, box, method="l-srtde", max_evaluations=400, seed=1, workers=2, checkpoint=sys.argv[1])
"""


def test_workers_of_a_killed_run_end_and_leave_its_checkpoint_free(tmp_path):
    path, script = tmp_path / "run.log", tmp_path / "script.py"
    script.write_text(WITH_WORKERS)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    killed = subprocess.Popen([sys.executable, script, path], env=environment, stdout=subprocess.PIPE)
    while not path.exists() or path.stat().st_size < 5000:
        time.sleep(0.01)
        assert killed.poll() is None
    killed.kill()
    # The workers have the other ends of this pipe: it is at its end when they are.
    killed.communicate(timeout=60.0)
    rest = Failing()
    assert_same(minimize(rest, BOX, checkpoint=path, **QUICK), minimize(sphere, BOX, **QUICK))
    assert 0 < rest.calls < 400


def test_torn_and_damaged_records_are_evaluated_again(tmp_path):
    path = tmp_path / "run.log"
    whole = minimize(sphere, BOX, checkpoint=path, **QUICK)
    content = path.read_bytes()
    record = 8 * 5 + 4
    for damaged, expected in [
        (content[:-1], 1),
        (content[:-record], 1),
        (content[: -3 * record] + b"\0" * record + content[-2 * record :], 3),
        (content[:10], 400),
    ]:
        path.write_bytes(damaged)
        rest = Failing()
        assert_same(minimize(rest, BOX, checkpoint=path, **QUICK), whole)
        assert rest.calls == expected
        assert path.read_bytes() == content


def test_unseeded_run_keeps_the_seed_that_was_drawn(tmp_path):
    options = {"method": "jade", "max_evaluations": 300, "checkpoint": tmp_path / "run.log"}
    first = minimize(sphere, BOX, **options)
    assert_same(minimize(Failing(0), BOX, **options), first)
    assert minimize(sphere, BOX, method="jade", max_evaluations=300).fun != first.fun


@pytest.mark.parametrize("seed", [np.random.Generator(np.random.MT19937(3)), np.random.SeedSequence(4)])
def test_every_kind_of_seed(tmp_path, seed):
    options = {"method": "jade", "max_evaluations": 300, "checkpoint": tmp_path / "run.log"}
    first = minimize(sphere, BOX, seed=seed, **options)
    assert_same(minimize(Failing(0), BOX, **options), first)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 2}, r"other arguments \(seed\)"),
        ({"max_evaluations": 401}, r"other arguments \(max_evaluations\)"),
        ({"bounds": [(-5.0, 3.0), (-1.0, 4.0), (-2.0, 2.5)]}, r"other arguments \(upper\)"),
        ({"method": "jade"}, r"other arguments \(method\)"),
        ({"args": (2.0,), "fun": lambda x, y: 0.0}, r"other arguments \(fun, args\)"),
        ({"x0": [0.5] * 3}, r"other arguments \(x0\)"),
        ({"polish": True}, r"other arguments \(polish\)"),
    ],
)
def test_file_of_other_arguments_is_refused_and_left_alone(tmp_path, changes, message):
    path = tmp_path / "run.log"
    minimize(sphere, BOX, checkpoint=path, **QUICK)
    content = path.read_bytes()
    with pytest.raises(ValueError, match=message):
        minimize(**({"fun": sphere, "bounds": BOX, "checkpoint": path} | QUICK | changes))
    assert path.read_bytes() == content


def test_foreign_files_are_refused_and_left_alone(tmp_path):
    for content in (b"precious", b"precious\nlines\n", b'{"run": 3}\n'):
        path = tmp_path / "letter.txt"
        path.write_bytes(content)
        with pytest.raises(ValueError, match="use another file"):
            minimize(sphere, BOX, checkpoint=path, **QUICK)
        assert path.read_bytes() == content
    with pytest.raises(ValueError, match="`checkpoint` must be a file that can be written"):
        minimize(sphere, BOX, checkpoint=tmp_path, **QUICK)


def test_rules_that_only_end_a_run_may_change(tmp_path):
    path = tmp_path / "run.log"
    minimize(sphere, BOX, checkpoint=path, maxiter=5, **QUICK)
    assert_same(minimize(sphere, BOX, checkpoint=path, **QUICK), minimize(sphere, BOX, **QUICK))


def test_vectorised_constrained_polished_and_pooled_runs(tmp_path):
    disc = NonlinearConstraint(lambda x: x @ x, -np.inf, 4.0)
    options = {"constraints": disc, "polish": True, "method": "jade", "max_evaluations": 2000, "seed": 3}
    first = minimize(sphere, BOX, checkpoint=tmp_path / "run.log", workers=2, **options)
    assert_same(minimize(Failing(0), BOX, checkpoint=tmp_path / "run.log", **options), first)
    assert_same(minimize(sphere, BOX, **options), first)

    def many(points):
        return np.array([sphere(point) for point in points])

    first = minimize(many, BOX, checkpoint=tmp_path / "many.log", vectorized=True, **QUICK)
    assert_same(minimize(many, BOX, checkpoint=tmp_path / "many.log", vectorized=True, **QUICK), first)


def test_file_in_use_is_refused(tmp_path):
    path = tmp_path / "run.log"

    def recursive(x):
        with pytest.raises(ValueError, match="in use by another run"):
            minimize(recursive, BOX, checkpoint=path, **QUICK)
        return sphere(x)

    minimize(recursive, BOX, checkpoint=path, maxiter=1, **QUICK)


SCRIPT = """
import os, signal, sys
import numpy as np
from de_gym import minimize
calls = 0
def sphere(x):
    global calls
    calls += 1
    if calls == 120:
        os.kill(os.getpid(), signal.SIGKILL)
    return float(np.sum((x - 0.5) ** 2))
minimize(sphere, [(-5.0, 3.0), (-1.0, 4.0), (-2.0, 2.0)], method="l-srtde", max_evaluations=400, seed=1,
         checkpoint=sys.argv[1])
"""


def test_killed_process(tmp_path):
    path = tmp_path / "run.log"
    root = str(Path(__file__).parents[1])
    killed = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)], env={**os.environ, "PYTHONPATH": root}, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    rest = Failing()
    assert_same(minimize(rest, BOX, checkpoint=path, **QUICK), minimize(sphere, BOX, **QUICK))
    assert rest.calls == 400 - 119
