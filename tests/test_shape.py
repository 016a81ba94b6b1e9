"""No function grows too long to be read at once, nor takes more arguments than one can keep in order."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_LINES, MOST_ARGUMENTS = 40, 8
KERNELS = {"compiled", "inlined", "shared"}
# A table of landscapes in code; and the doors that users come in by.
LONGER = {"machine/kernel.py:_landscape"}
WIDER = {
    "evolution/first_generation.py:start",
    "evolution_strategy.py:__init__",
    "minimizing/front_door.py:minimize",
    "minimizing/scipy_method.py:run",
    "optimizers/running.py:run",
    "policies.py:__init__",
    "reinforce.py:__init__",
}


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield every function of the package and of the agents, with its name."""
    for folder in ("de_gym", "agents"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef):
                    yield f"{path.relative_to(ROOT / folder)}:{node.name}", node


def num_lines(node: ast.FunctionDef) -> int:
    """Return the lines of a body without its docstring."""
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def num_arguments(node: ast.FunctionDef) -> int:
    """Return the number of arguments beside the object itself."""
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def test_no_body_is_too_long():
    assert {name for name, node in functions() if num_lines(node) > MOST_LINES} <= LONGER


def test_no_argument_list_is_too_long():
    wide = {
        name
        for name, node in functions()
        if num_arguments(node) > MOST_ARGUMENTS and not KERNELS & {ast.unparse(mark) for mark in node.decorator_list}
    }
    assert wide <= WIDER
