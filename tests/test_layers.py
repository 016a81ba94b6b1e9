"""Imports point one way, and the package never needs torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Whatever stands in a row may import from the rows above it; files at the top of the package count by their own name.
ORDER = (
    ("arrays", "version"),
    ("checks", "files"),
    ("registry",),
    ("tensor_files", "own_code"),
    ("machine",),
    ("problems",),
    ("evolution",),
    ("controllers",),
    ("envs",),
    ("optimizers",),
    ("minimizing",),
    ("evaluation",),
)
LAYERS = {name: {below for row in ORDER[:level] for below in row} for level, row in enumerate(ORDER) for name in row}
FORBIDDEN = {"torch", "stable_baselines3", "sb3_contrib", "agents"}


def imported_modules(path: Path) -> list[str]:
    """Return what a file imports: modules, or the names taken from the root package."""
    modules = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "de_gym":
            modules += [f"de_gym.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.append(node.module)
    return modules


@pytest.mark.parametrize("path", sorted((ROOT / "de_gym").rglob("*.py")), ids=lambda path: path.name)
def test_layer_imports_only_what_stands_below_it(path):
    parts = path.relative_to(ROOT / "de_gym").with_suffix("").parts
    if parts == ("__init__",):
        return
    layer = parts[0]
    for module in imported_modules(path):
        names = module.split(".")
        assert names[0] not in FORBIDDEN, f"{path} imports {module}"
        if names[0] != "de_gym":
            continue
        # The root package imports everything: whoever imports it closes a circle.
        assert len(names) > 1, f"{path} imports the root package"
        assert names[1] == layer or names[1] in LAYERS[layer], f"{path} imports {module}"


def test_addresses_stay_in_the_machine_room():
    outside = [path for path in (ROOT / "de_gym").rglob("*.py") if path.parent.name != "machine"]
    holders = {"de_gym.machine.lanes", "de_gym.machine.words"}
    assert not [path for path in outside if holders & set(imported_modules(path))]
    assert not [path for path in outside if "locate_run" in path.read_text()]


def made_in_kernel(function):
    """Return the names that a function binds to arrays that it makes itself."""
    made = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            target, values = node.targets[0], node.value
            is_pair = isinstance(target, ast.Tuple) and isinstance(values, ast.Tuple)
            for name, value in zip(target.elts, values.elts, strict=True) if is_pair else [(target, values)]:
                is_call = isinstance(name, ast.Name) and isinstance(value, ast.Call)
                if is_call and ast.unparse(value.func).startswith(("np.", "_make", "make")):
                    made.add(name.id)
    return made


def addressed(function):
    """Return the names of which a function takes the address, and for each whether that is part of a loop."""
    loops = [inner for node in ast.walk(function) if isinstance(node, ast.For | ast.While) for inner in ast.walk(node)]
    found = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pointer_to" and isinstance(node.args[0], ast.Name):
            found[node.args[0].id] = found.get(node.args[0].id, True) and node in loops
    return found


def test_arrays_that_kernels_make_live_as_long_as_their_addresses_are_used():
    forgotten, num_held = [], 0
    for path in sorted((ROOT / "de_gym" / "machine").glob("*.py")):
        functions = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
        for function in functions:
            held = {
                name.id
                for node in function.body
                if isinstance(node, ast.Return) or ast.unparse(node).startswith("hold(")
                for name in ast.walk(node)
                if isinstance(name, ast.Name)
            }
            inside_loops = addressed(function)
            needed = {name for name in made_in_kernel(function) & set(inside_loops) if not inside_loops[name]}
            forgotten += [f"{path.name}: {function.name}: {name}" for name in sorted(needed - held)]
            num_held += len(needed & held)
    assert not forgotten
    assert num_held >= 10


def test_package_imports_and_controls_without_torch():
    code = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name in ('torch', 'stable_baselines3', 'sb3_contrib'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "import de_gym, de_gym.controllers, de_gym.evaluation, de_gym.envs\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
