"""Kills at any moment: a checkpointed run comes to the same result, and repeats only what was under way.

Run: python tests/minimizing/test_kills.py 200
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from de_gym import minimize

BOX = [(-5.0, 3.0), (-1.0, 4.0), (-2.0, 2.0)]
POINT_BYTES = 8 * len(BOX)
EVALUATIONS_PER_KILL = 3


def sphere(x):
    return float(np.sum((x - 0.5) ** 2))


class Noted:
    """A function that writes down every point before it is evaluated, which takes a while."""

    __name__ = "sphere"

    def __init__(self, path):
        self.path = path

    def __call__(self, x):
        with open(self.path, "ab", buffering=0) as notes:
            notes.write(x.tobytes())
        time.sleep(2e-4)
        return sphere(x)


def run(path, max_evaluations, fun):
    return minimize(fun, BOX, method="l-srtde", max_evaluations=max_evaluations, seed=1, tol=None, checkpoint=path)


def run_and_be_killed(folder: Path, max_evaluations: int, dice: random.Random) -> bool:
    """Run in a child that is killed after a few more evaluations; return False if it came to its end before."""
    notes = folder / "notes"
    wanted = notes.stat().st_size + dice.randint(0, 2 * EVALUATIONS_PER_KILL - 1) * POINT_BYTES
    child = os.fork()
    if child == 0:
        run(folder / "run.log", max_evaluations, Noted(notes))
        os._exit(0)
    while notes.stat().st_size < wanted and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(5e-5)
    time.sleep(dice.random() * 1e-3)
    try:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    except (ProcessLookupError, ChildProcessError):
        return False
    return os.WIFSIGNALED(status)


def points_in(content: bytes) -> list[bytes]:
    return [content[begin : begin + POINT_BYTES] for begin in range(0, len(content), POINT_BYTES)]


def kill_often(num_kills: int, folder: Path) -> int:
    """Kill a run so many times, check what is left of it, and return how many evaluations were repeated."""
    max_evaluations = 60 + 2 * EVALUATIONS_PER_KILL * num_kills
    plain, notes, dice = folder / "plain", folder / "notes", random.Random(0)
    notes.touch()
    expected = minimize(Noted(plain), BOX, method="l-srtde", max_evaluations=max_evaluations, seed=1, tol=None)
    under_way: Counter[bytes] = Counter()
    for _ in range(num_kills):
        begin = notes.stat().st_size
        assert run_and_be_killed(folder, max_evaluations, dice), "the run ended before all kills"
        under_way.update(points_in(notes.read_bytes()[begin:])[-1:])
    result = run(folder / "run.log", max_evaluations, Noted(notes))
    np.testing.assert_array_equal(result.x, expected.x)
    np.testing.assert_array_equal(result.population, expected.population)
    assert (result.fun, result.nfev, result.nit) == (expected.fun, expected.nfev, expected.nit)
    evaluated, needed = Counter(points_in(notes.read_bytes())), Counter(points_in(plain.read_bytes()))
    repeated = evaluated - needed
    assert needed - evaluated == Counter()
    assert repeated <= under_way, "an evaluation was repeated that had ended before the kill"
    return repeated.total()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("num_kills", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_kills_lose_nothing(num_kills, tmp_path):
    assert kill_often(num_kills, tmp_path) <= num_kills


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        kills = int(sys.argv[1])
        print(f"{kills} kills, the same result, {kill_often(kills, Path(scratch))} evaluations under way were repeated")
