"""make_suite: suites as collections of problems, by official number or by the reference paper's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from weakref import WeakValueDictionary

import numpy as np

from de_gym.checks import LARGEST_SIZE, listed, shown, whole
from de_gym.problems import cec2013, cec2017, random_suite
from de_gym.problems.base import Problem
from de_gym.problems.compiled import ProgramEvaluator
from de_gym.problems.own_suites import REGISTERED, OwnSuite, is_own, own_suite
from de_gym.problems.table import BOUND, SuiteTable
from de_gym.registry import known_name

# The suites with a fixed number of functions.
SUITES = {table.name: table for table in (cec2013.TABLE, cec2017.TABLE)}
RANDOM = "random"

# Problems of endless suites, as long as somebody holds them.
_PASSING: WeakValueDictionary[tuple[str, int, int], Problem] = WeakValueDictionary()


class SuiteProblem(Problem):
    """A function of a suite; one object per function and dimension in a process."""

    def __init__(self, table: SuiteTable, number: int, dimension: int) -> None:
        bounds = np.full(dimension, BOUND)
        name, optimum, optimal_position = table.outline(number, dimension)
        super().__init__(
            name,
            -bounds,
            bounds,
            ProgramEvaluator(partial(table.write_program, number, dimension)),
            suite=table.name,
            number=number,
            optimum=optimum,
            optimal_position=optimal_position,
        )

    def __reduce__(self) -> tuple[Callable[[str, int, int], Problem], tuple[str | None, int | None, int]]:
        return suite_problem, (self.suite, self.number, self.dimension)


def suite_problem(suite: str, number: int, dimension: int) -> Problem:
    """Return the one problem object of a suite, official number and dimension; these are what a pickle stores."""
    table = _find_table(suite)
    if not table.is_endless:
        return _kept_problem(suite, number, dimension)
    key = table.name, number, dimension
    problem = _PASSING.get(key)
    return _PASSING.setdefault(key, SuiteProblem(table, number, dimension)) if problem is None else problem


@cache
def _kept_problem(suite: str, number: int, dimension: int) -> Problem:
    return SuiteProblem(SUITES[suite], number, dimension)


def _find_table(name: str, seed: int | None = None) -> SuiteTable:
    """Return the table of a suite, whose name may carry a seed as in ``"random:7"``."""
    if not isinstance(name, str):
        raise TypeError(f"The name of a suite must be a string, got {shown(name)}.")
    base, colon, written = name.lower().partition(":")
    if base != RANDOM:
        name = known_name("suite", name, [*SUITES, RANDOM, *REGISTERED], "MODULE:ATTRIBUTE")
        if seed is not None:
            raise ValueError(f"Suite {name!r} is fixed and takes no `seed`, got {shown(seed)}.")
        return SUITES[name]
    if colon and not (written.isdecimal() and len(written) < 19):
        raise ValueError(f"The seed in the name of suite {name!r} must be an integer of at least 0.")
    if seed is not None:
        seed = whole("seed", seed, 0)
    if colon and seed is not None and int(written) != seed:
        raise ValueError(f"`seed` must be the one in the name of suite {name!r}, got {shown(seed)}.")
    return random_suite.table(int(written) if colon else int(seed or 0))


class Suite:
    """Some or all functions of a suite in one dimension; iterating yields them in the order of ``numbers``.

    Attributes:
        name: Name of the suite.
        dimension: Number of coordinates D.
        numbers: Official numbers of the functions it holds.
    """

    def __init__(self, table: SuiteTable, dimension: int, numbers: tuple[int, ...]) -> None:
        self.name = table.name
        self.dimension = dimension
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[Problem]:
        return (suite_problem(self.name, number, self.dimension) for number in self.numbers)

    def __getitem__(self, number: int) -> Problem:
        """Return the function with this official number."""
        if not _is_integer(number) or number not in self.numbers:
            raise ValueError(_unknown_number_message(_find_table(self.name), number, self.numbers))
        return suite_problem(self.name, int(number), self.dimension)

    def by_paper_number(self, number: int) -> Problem:
        """Return the function that the reference paper calls F``number``.

        The paper counts the CEC'17 functions without the withdrawn F2, so its F2 to F29 are the official
        F3 to F30. Its CEC'13 numbers are the official ones.
        """
        return self[official_number(self.name, number)]

    def __repr__(self) -> str:
        return f"Suite({self.name!r}, dimension={self.dimension}, numbers={self.numbers})"


def make_suite(
    name: str, dimension: int, functions: Iterable[int] | None = None, *, seed: int | None = None
) -> Suite | OwnSuite:
    """Return a suite, by name.

    Args:
        name: ``"cec2013"`` (28 functions), ``"cec2017"`` (30, in the official numbering) or ``"random"`` (as many as
            you like, see ``random_suite``); what ``register_suite`` named, or ``"module:attribute"``, which imports the
            user's own collection of problems: their numbers are their positions in it, from 0 on.
        dimension: Number of coordinates; CEC'13 has data for 2, 5 and all tens to 100, CEC'17 for 2, 10, 30, 50, 100,
            random problems exist for any number from 2 on.
        functions: Official numbers of the wanted functions. By default all that have data in this dimension, but
            without F2 of CEC'17, which its organisers withdrew; random problems 1 to 60.
        seed: Which random problems; a problem is fixed by seed, number and dimension. Where only a name can be
            given, ``"random:7"`` carries the seed.

    >>> suite = make_suite("cec2017", 10)
    >>> len(suite), suite[30].name, suite.by_paper_number(29).name
    (29, 'cec2017_f30', 'cec2017_f30')
    >>> problem = make_suite("cec2013", 10)[1]
    >>> problem.optimum, float(problem.evaluate(problem.optimal_position))
    (-1400.0, -1400.0)
    >>> make_suite("random", 10, range(1, 61), seed=7)[60] is make_suite("random:7", 10)[60]
    True
    """
    if is_own(name):
        if seed is not None:
            raise ValueError(f"The suite {name!r} of your own takes no `seed`, got {shown(seed)}.")
        return own_suite(name, dimension, functions)
    table = _find_table(name, seed)
    dimension = whole("dimension", dimension, 1, LARGEST_SIZE)
    if dimension not in table.dimensions:
        raise ValueError(
            f"Suite {name!r} has no functions of dimension {dimension}; supported: {_listed(table.dimensions)}."
        )
    if functions is None:
        numbers = tuple(n for n in table.default_numbers if dimension in table.supported_dimensions(n))
    else:
        numbers = tuple(
            _checked_number(table, number, dimension) for number in listed("functions", functions, "function numbers")
        )
    if not numbers:
        raise ValueError("`functions` must name at least one function, got none.")
    if len(set(numbers)) < len(numbers):
        repeated = sorted({number for number in numbers if numbers.count(number) > 1})
        raise ValueError(f"Every function of a suite may be listed once, got {repeated} more than once.")
    return Suite(table, int(dimension), numbers)


def official_number(suite: str, paper_number: int) -> int:
    """Return the official number of the function that the reference paper calls F``paper_number``.

    >>> official_number("cec2017", 1), official_number("cec2017", 2), official_number("cec2017", 29)
    (1, 3, 30)
    """
    numbers = _find_table(suite).default_numbers
    if not (_is_integer(paper_number) and 1 <= paper_number <= len(numbers)):
        raise ValueError(
            f"The paper's numbers of suite {suite!r} run from 1 to {len(numbers)}, got {shown(paper_number)}."
        )
    return numbers[int(paper_number) - 1]


def paper_number(suite: str, official_number: int) -> int:
    """Return the number by which the reference paper calls an official function.

    >>> paper_number("cec2017", 30), paper_number("cec2013", 28)
    (29, 28)
    """
    table = _find_table(suite)
    if official_number not in table.default_numbers:
        raise ValueError(_unknown_number_message(table, official_number, table.default_numbers))
    return table.default_numbers.index(official_number) + 1


def _is_integer(number: object) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def _checked_number(table: SuiteTable, number: int, dimension: int) -> int:
    if not _is_integer(number) or number not in table.numbers:
        raise ValueError(_unknown_number_message(table, number, table.numbers))
    supported = table.supported_dimensions(int(number))
    if dimension not in supported:
        raise ValueError(
            f"F{number} of suite {table.name!r} has no official data for dimension {dimension}; "
            f"supported: {_listed(supported)}."
        )
    return int(number)


def _unknown_number_message(table: SuiteTable, number: object, choices: Sequence[int]) -> str:
    """Return the sentence that rejects a number, with the way to get it if the suite has it elsewhere."""
    if _is_integer(number) and number in table.numbers:
        hint = f"It exists: name it in make_suite(..., functions=[{number}])."
    elif isinstance(number, int | np.integer):
        # A number outside a range is nearest to one of its ends, and nobody could look at all the others.
        candidates = (choices[0], choices[-1]) if isinstance(choices, range) else choices
        hint = f"Did you mean {min(candidates, key=lambda choice: abs(choice - int(number)))}?"
    else:
        hint = "Official numbers are integers."
    return f"No function {shown(number)} in this suite {table.name!r}. {hint} Available: {_listed(choices)}."


def _listed(numbers: Sequence[int]) -> str:
    """Return the numbers for our sentences."""
    return f"{numbers[0]} and more" if isinstance(numbers, range) else ", ".join(map(str, numbers))
