"""Protocol: which functions, how many runs and how long a run lasts; and the seed of every run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from de_gym.arrays import IntArray
from de_gym.checks import LARGEST_SIZE, optional_whole, real, store_plain, whole
from de_gym.problems import Problem, register_suite
from de_gym.problems.own_suites import is_own, own_dimensions, own_suite, own_suite_identity

SEED_RULE = "SeedSequence(seed, spawn_key=(crc32(table), function, run))"
"""How the seed of a run follows from the root seed; ``table`` is the protocol's name, such as "cec2017-10d"."""


@dataclass(frozen=True)
class Protocol:
    """The rules under which every method of a comparison runs.

    Attributes:
        suite: Name of the benchmark suite, as ``make_suite`` knows it; ``of_problems`` makes one of a list.
        dimension: Number of coordinates n.
        functions: Official numbers of the functions.
        num_runs: Independent runs per method and function.
        max_evaluations: Budget of a run; None stands for 10^4 n.
        max_generations: Generations after which a run is cut; None for no such limit.
        target_error: A run ends below this error, which then counts as 0.
        seed: Root of all random numbers.
    """

    suite: str
    dimension: int
    functions: tuple[int, ...]
    num_runs: int = 51
    max_evaluations: int | None = None
    max_generations: int | None = None
    target_error: float = 1e-8
    seed: int = 0

    def __post_init__(self) -> None:
        store_plain(self)
        if len(set(self.functions)) < len(self.functions):
            raise ValueError(f"`functions` must be distinct function numbers, got {self.functions}.")
        whole("dimension", self.dimension, 1, LARGEST_SIZE)
        whole("num_runs", self.num_runs, 1)
        optional_whole("max_evaluations", self.max_evaluations, 1)
        optional_whole("max_generations", self.max_generations, 1)
        real("target_error", self.target_error, 0.0)
        whole("seed", self.seed, 0)

    @property
    def budget(self) -> int:
        """Evaluations a run may use."""
        return 10_000 * self.dimension if self.max_evaluations is None else self.max_evaluations

    @classmethod
    def of_problems(cls, problems: Iterable[Problem], name: str = "own", **limits: Any) -> Protocol:
        """Return the rules for the user's own problems, all of one dimension, and make a suite of them.

        Args:
            problems: What to compare methods on; their positions are the numbers of the functions.
            name: What the suite is called from now on.
            limits: Attributes other than ``suite``, ``dimension`` and ``functions``.
        """
        suite = register_suite(name, problems)
        dimensions = own_dimensions(suite)
        if len(dimensions) > 1:
            raise ValueError(f"The problems of a protocol must all have one dimension, got {dimensions}.")
        return cls(suite, dimensions[0], own_suite(suite, dimensions[0]).numbers, **limits)

    @property
    def limits(self) -> dict[str, object]:
        """What runs must have in common to be compared: the suite, and how long each of them lasts."""
        return {
            "suite": self.suite,
            **(own_suite_identity(self.suite) if is_own(self.suite) else {}),
            "dimension": self.dimension,
            "max_evaluations": self.budget,
            "max_generations": self.max_generations,
            "target_error": self.target_error,
        }

    @property
    def grid(self) -> IntArray:
        """Evaluation counts at which convergence is recorded: evenly spaced, and on a log scale from 1 on."""
        early = np.rint(np.geomspace(1, self.budget, 61)).astype(np.int64)
        return np.union1d(early, np.rint(np.linspace(0, self.budget, 51)[1:]).astype(np.int64))

    @property
    def table(self) -> str:
        """Name of the results under these rules, as in ``cec2017-10d``; the paper's tables have such names."""
        name = f"{self.suite}-{self.dimension}d"
        if self.max_evaluations is not None and self.max_evaluations != 10_000 * self.dimension:
            name += f"-{self.max_evaluations}e"
        return name if self.max_generations is None else f"{name}-{self.max_generations}g"

    def run_seeds(self, function: int, runs: Iterable[int]) -> list[np.random.SeedSequence]:
        """Return the seed sequence of every run in ``runs``, by ``SEED_RULE``.

        A result depends on nothing but that key: not on how many runs, functions or methods there are, on which process
        computes it, or on a method's name. Runs of different methods are paired: where they draw as many points, they
        begin with the same ones.
        """
        place = crc32(self.table.encode())
        return [np.random.SeedSequence(self.seed, spawn_key=(place, function, run)) for run in runs]

    def with_runs(self, num_runs: int) -> Protocol:
        """Return the same rules with another number of runs."""
        return dataclasses.replace(self, num_runs=num_runs)


_CEC2013_TEST = tuple(range(21, 29))
_CEC2017 = (1, *range(3, 31))

PROTOCOLS = {
    "paper-cec13-10d": Protocol("cec2013", 10, _CEC2013_TEST),
    "paper-cec13-10d-T": Protocol("cec2013", 10, _CEC2013_TEST, max_generations=50),
    "paper-cec13-30d": Protocol("cec2013", 30, _CEC2013_TEST),
    "paper-cec17-10d": Protocol("cec2017", 10, _CEC2017),
    "paper-cec17-30d": Protocol("cec2017", 30, _CEC2017),
    "small-cec17-10d": Protocol("cec2017", 10, _CEC2017, max_evaluations=2_500),
    "small-cec17-30d": Protocol("cec2017", 30, _CEC2017, max_evaluations=7_500),
    "small-cec17-50d": Protocol("cec2017", 50, _CEC2017, max_evaluations=12_500),
    "ladder-cec17-10d": Protocol("cec2017", 10, _CEC2017),
    "ladder-cec17-30d": Protocol("cec2017", 30, _CEC2017),
    "ladder-cec17-50d": Protocol("cec2017", 50, _CEC2017),
}
"""The paper's tables, where ``T`` ends every run after the 50 generations of a training episode; CEC'17 with 250
evaluations per coordinate, for functions that are expensive; and the rules of the CEC'17 competition, to compare with
everything there is. Protocols of the same rules share seeds and stored results."""
