"""Imports point one way, and the package never needs torch."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = "de_gym"
# What each layer may import from de_gym besides itself; files at the top of the package count by their own name.
BASE = {"arrays", "checks", "registry", "files", "machine"}
LAYERS = {
    "arrays": set(),
    "checks": set(),
    "registry": set(),
    "files": set(),
    "machine": {"arrays"},
    "problems": BASE,
    "evolution": BASE | {"problems"},
    "controllers": BASE | {"problems", "evolution"},
    "envs": BASE | {"problems", "evolution", "controllers"},
    "optimizers": BASE | {"problems", "evolution", "controllers"},
    "baselines": BASE | {"problems", "optimizers"},
    "minimize": BASE | {"problems", "envs", "controllers", "optimizers"},
    "evaluation": BASE | {"problems", "envs", "controllers", "optimizers", "baselines"},
}
# Files that still stand in the wrong room, with what they import against the order; to become empty.
MISPLACED = {"controllers/controlled.py": {"envs", "optimizers"}}
# Files that still import what imports them: those above, and what needs the root package's version; to become empty.
CYCLIC = {*MISPLACED, "controllers/storage.py"}
FORBIDDEN = {"torch", "stable_baselines3", "sb3_contrib", "agents"}
FILES = {path.relative_to(ROOT / PACKAGE).as_posix(): path for path in sorted((ROOT / PACKAGE).rglob("*.py"))}
every_file = pytest.mark.parametrize("name", FILES)


def module_of(name: str) -> str:
    """Return the module of a file, for example ``de_gym.envs`` of ``envs/__init__.py``."""
    return ".".join([PACKAGE, *Path(name).with_suffix("").parts]).removesuffix(".__init__")


MODULES = {module_of(name): name for name in FILES}


@cache
def imported_modules(name: str) -> set[str]:
    """Return the modules that a file imports, or imports names from; those for type checkers alone do not count."""
    modules = set()
    nodes: list[ast.AST] = [ast.parse(FILES[name].read_text())]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            named = {f"{node.module}.{alias.name}" for alias in node.names}
            modules |= {module if module in MODULES else node.module for module in named}
        nodes += ast.iter_child_nodes(node)
    return modules


@every_file
def test_layer_imports_only_what_stands_below_it(name):
    layer = Path(name).with_suffix("").parts[0]
    for module in imported_modules(name):
        names = module.split(".")
        assert names[0] not in FORBIDDEN, f"{name} imports {module}"
        if layer != "__init__" and names[0] == PACKAGE and len(names) > 1:
            allowed = LAYERS[layer] | {layer} | MISPLACED.get(name, set())
            assert names[1] in allowed, f"{name} imports {module}"


def test_modules_can_be_put_in_an_order():
    graph: dict[str, set[str]] = {}
    for module, name in MODULES.items():
        imported = imported_modules(name)
        # Whoever imports a module also imports the package it stands in, unless it stands there itself. The root
        # package, which everybody stands in, counts only where it is named.
        packages = {other.rpartition(".")[0] for other in imported} - {PACKAGE}
        graph[module] = ((imported | packages) & MODULES.keys()) - {module, module.rpartition(".")[0]}
        graph[module] |= {PACKAGE} & imported
    for name in CYCLIC:
        against_order = {
            other
            for other in graph[module_of(name)]
            if other == PACKAGE or other.split(".")[1] in MISPLACED.get(name, ())
        }
        assert against_order, f"{name} is in order: strike it off"
        graph[module_of(name)] -= against_order
    graphlib.TopologicalSorter(graph).prepare()  # raises a CycleError that shows the cycle


def test_package_imports_and_controls_without_torch():
    code = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name in ('torch', 'stable_baselines3', 'sb3_contrib'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "import de_gym, de_gym.controllers, de_gym.evaluation, de_gym.envs, de_gym.optimizers\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
