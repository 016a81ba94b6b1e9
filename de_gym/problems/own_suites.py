"""Suites of the user's own problems: registered under a name, or imported as "module:attribute"."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from de_gym.checks import listed, shown, whole
from de_gym.own_code import import_attribute, is_attribute
from de_gym.problems.base import Problem
from de_gym.registry import unknown_name_message

# What ``register_suite`` made, by name.
REGISTERED: dict[str, tuple[Problem, ...]] = {}
_NAME = re.compile(r"[A-Za-z_][\w-]{0,79}")
_TAKEN = "cec2013", "cec2017", "random"


class OwnSuite:
    """Some or all problems of one dimension in a collection of the user's; iterating yields them in order.

    Attributes:
        name: Name of the suite.
        dimension: Number of coordinates D.
        numbers: Positions of its problems in the user's collection, from 0 on.
    """

    def __init__(self, name: str, dimension: int, problems: dict[int, Problem]) -> None:
        self.name = name
        self.dimension = dimension
        self.numbers = tuple(problems)
        self._problems = problems

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._problems.values())

    def __getitem__(self, number: int) -> Problem:
        """Return the problem at this position of the user's collection."""
        if not isinstance(number, int | np.integer) or number not in self._problems:
            raise ValueError(unknown_name_message(f"position in suite {self.name}", number, self.numbers))
        return self._problems[number]

    def __repr__(self) -> str:
        return f"OwnSuite({self.name!r}, dimension={self.dimension}, numbers={self.numbers})"


def register_suite(name: str, problems: Iterable[Problem]) -> str:
    """Make a suite of problems, which ``make_suite``, environments and protocols then know by ``name``; return it.

    >>> bowls = [Problem.from_function(lambda x: sum(x**2), -5, 5, 0.0, dimension=n, name="bowl") for n in (2, 3)]
    >>> register_suite("bowls", bowls)
    'bowls'
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.lower() in _TAKEN:
        raise ValueError(
            f"`name` must be a word of at most 80 letters other than {', '.join(_TAKEN)}, got {shown(name)}."
        )
    name = _registered_name(name) or str(name)
    REGISTERED[name] = _checked_problems(name, problems)
    return name


def own_suite(name: str, dimension: int, functions: Iterable[int] | None = None) -> OwnSuite:
    """Return the problems of one dimension in the user's collection of this name.

    Args:
        name: A registered name, or "module:attribute".
        dimension: Number of coordinates; problems of other dimensions are left out.
        functions: Positions of the wanted problems in the collection; all of that dimension by default.
    """
    name, dimension = _registered_name(name) or name, whole("dimension", dimension, 1)
    fitting = {
        position: problem for position, problem in enumerate(find_problems(name)) if problem.dimension == dimension
    }
    wanted = list(fitting) if functions is None else listed("functions", functions, "positions")
    for position in wanted:
        if type(position) is bool or not isinstance(position, int | np.integer) or position not in fitting:
            kind = f"position in suite {name!r} of a problem with {dimension} coordinates"
            raise ValueError(unknown_name_message(kind, position, fitting))
    if not wanted:
        raise ValueError(
            f"Suite {shown(name)} has no problems of dimension {dimension}; it has: {_listed(own_dimensions(name))}."
        )
    if len(set(wanted)) < len(wanted):
        raise ValueError(f"Every problem of a suite may be listed once, got {wanted}.")
    return OwnSuite(name, dimension, {int(position): fitting[position] for position in wanted})


def is_own(name: object) -> bool:
    """Return whether a suite's name is one of the user's own."""
    if not isinstance(name, str):
        return False
    return _registered_name(name) is not None or (is_attribute(name) and name.partition(":")[0] not in _TAKEN)


def own_dimensions(name: str) -> tuple[int, ...]:
    """Return the dimensions of the problems in the user's collection, ascending."""
    return tuple(sorted({problem.dimension for problem in find_problems(name)}))


def find_problems(name: str) -> tuple[Problem, ...]:
    """Return the user's collection of this name."""
    registered = _registered_name(name)
    return _imported_problems(name) if registered is None else REGISTERED[registered]


def own_suite_identity(name: str) -> dict[str, object]:
    """Return what tells a collection from another of the same name: its problems, and the file that it comes from."""
    problems = [
        [problem.name, problem.lower.tolist(), problem.upper.tolist(), problem.optimum]
        for problem in find_problems(name)
    ]
    module = sys.modules.get(name.partition(":")[0]) if is_attribute(name) else None
    file = getattr(module, "__file__", None)
    checksum = None if file is None else hashlib.sha256(Path(file).read_bytes()).hexdigest()
    return {"problems": problems, "source_sha256": checksum}


def _registered_name(name: str) -> str | None:
    """Return the registered name that is meant, in any case."""
    return next((known for known in REGISTERED if known.lower() == name.lower()), None)


@cache
def _imported_problems(name: str) -> tuple[Problem, ...]:
    """Import the user's collection; once, because problems are compared by identity."""
    return _checked_problems(name, import_attribute(name))


def _checked_problems(name: str, collection: Any) -> tuple[Problem, ...]:
    """Return the problems of a collection, or say in one sentence why it is none."""
    try:
        problems = tuple(collection)
    except TypeError:
        raise ValueError(
            f"Suite {shown(name)} must be a list of Problem objects or a suite, got {type(collection).__name__}."
        ) from None
    if not problems:
        raise ValueError(f"Suite {shown(name)} must hold at least one problem, got none.")
    for problem in problems:
        if not isinstance(problem, Problem):
            raise ValueError(
                f"Suite {shown(name)} must hold Problem objects, got {type(problem).__name__}; "
                f"Problem.from_function turns a callable into one."
            )
    return problems


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
