"""The table of mutants follows the code: each breaks a line that is there, once, and names a test that is there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def names_of_tests(path):
    """Return the names of the test functions of a file, those in classes with the name of their class."""
    body = ast.parse(path.read_text()).body
    classes = [node for node in body if isinstance(node, ast.ClassDef)]
    inner = {f"{node.name}::{part.name}" for node in classes for part in node.body if isinstance(part, ast.FunctionDef)}
    return inner | {node.name for node in body if isinstance(node, ast.FunctionDef)}


def test_every_mutant_breaks_a_line_and_names_a_test(monkeypatch):
    monkeypatch.syspath_prepend(TESTS)
    from mutants import MUTANTS, ROOT, broken

    assert len(set(MUTANTS)) == len(MUTANTS) >= 20
    for mutant in MUTANTS:
        ast.parse(broken(mutant, ROOT))
        file, name = mutant.tests.split("[")[0].split("::", 1)
        assert name in names_of_tests(TESTS / file), mutant


def test_a_line_that_moved_is_named(monkeypatch):
    monkeypatch.syspath_prepend(TESTS)
    from mutants import MUTANTS, ROOT, broken

    with pytest.raises(ValueError, match="must have 'no such line' once, got it 0 times"):
        broken(MUTANTS[0]._replace(old="no such line"), ROOT)
