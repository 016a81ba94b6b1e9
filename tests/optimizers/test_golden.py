"""Seeded fingerprints: a change of any method's arithmetic or order of random numbers shows here first.

Few generations, so that the last bit of another processor's mathematics library does not grow into another search.
After a deliberate change run this file as a script to write them anew, and re-run the shipped results.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from de_gym.optimizers import METHODS, run
from de_gym.problems import make_suite

GOLDEN = Path(__file__).parents[1] / "golden" / "baselines.json"
# HSES needs 101 generations to reach its first CMA run; the others are what they are after a few.
NUM_GENERATIONS = {"hses": 110}
# Methods of other packages change with their versions; what they share with ours is tested in test_peers.py.
OWN_METHODS = [name for name, method in METHODS.items() if method.package is None]


def fingerprint(name: str) -> list[float]:
    """Return the errors of two runs after some generations, and at half of them."""
    problem = make_suite("cec2017", 10)[5]
    limit = NUM_GENERATIONS.get(name, 30)
    halfway = run(METHODS[name](), problem, num_runs=2, seed=123, max_generations=limit // 2)
    final = run(METHODS[name](), problem, num_runs=2, seed=123, max_generations=limit)
    return [*halfway.errors.tolist(), *final.errors.tolist()]


def test_every_method_has_a_fingerprint():
    assert list(json.loads(GOLDEN.read_text())) == OWN_METHODS


@pytest.mark.parametrize("name", OWN_METHODS)
def test_fingerprint_is_unchanged(name):
    assert fingerprint(name) == pytest.approx(json.loads(GOLDEN.read_text())[name], rel=1e-9)


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps({name: fingerprint(name) for name in OWN_METHODS}, indent=1) + "\n")
