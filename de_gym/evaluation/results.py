"""Results: the errors of several methods under one protocol, from a store or as shipped with the package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from de_gym.arrays import FloatArray, IntArray
from de_gym.evaluation.array_files import DamagedFileError
from de_gym.evaluation.curves import Curves, add_curves, make_curves, read_curves
from de_gym.evaluation.methods import ALGORITHMS
from de_gym.evaluation.paper import LABELS
from de_gym.evaluation.protocol import SEED_RULE, Protocol
from de_gym.evaluation.result_files import RESULTS, StoredRuns, add_runs, read_runs
from de_gym.evaluation.statistics import Summary, round_significant, summarize
from de_gym.evaluation.store import ResultStore
from de_gym.version import __version__

RUN_HERE, SHIPPED = "run now", "stored"
"""Where a method's results come from."""


@dataclass(frozen=True, eq=False)
class Convergence:
    """Best error so far along all runs: ``errors`` (P, R, G) at the evaluation counts ``grid`` (G,)."""

    grid: IntArray
    errors: FloatArray


@dataclass(frozen=True, eq=False)
class MethodResults:
    """All runs of one method on the P functions of a protocol.

    Attributes:
        name: Its name in the store.
        errors: Final errors, shape (P, R).
        evaluations: Evaluations each run used, shape (P, R), or None where that was not kept.
        convergence: The errors along the runs, or None where they were not kept.
        origin: Where the numbers come from, for the report.
        settings: The method's settings.
        making: Root seed, the rule by which a run's seed follows from it, and the version of the package.
        kept_curves: Curves of some runs, where the errors along all of them were not kept.
    """

    name: str
    errors: FloatArray
    evaluations: IntArray | None = None
    convergence: Convergence | None = None
    origin: str = RUN_HERE
    settings: Mapping[str, object] = field(default_factory=dict)
    making: Mapping[str, object] = field(default_factory=dict)
    kept_curves: Curves | None = None

    @property
    def label(self) -> str:
        """The name that tables print: the paper's where it has one."""
        return method_label(self.name)

    @property
    def paper_name(self) -> str | None:
        """What the paper's tables call its counterpart: itself, or what its settings say (LDE for a learned one)."""
        counterpart = self.settings.get("paper_counterpart", "jso" if self.name == "jso-lde-paper" else self.name)
        return counterpart if counterpart in LABELS else None

    @property
    def num_runs(self) -> int:
        """Runs per function."""
        return int(self.errors.shape[1])

    def part(self, rows: Sequence[int], num_runs: int) -> MethodResults:
        """Return the first runs on some of the functions."""
        chosen = np.ix_(rows, range(num_runs))
        curves = self.convergence
        kept = self.kept_curves
        return replace(
            self,
            errors=self.errors[chosen],
            evaluations=None if self.evaluations is None else self.evaluations[chosen],
            convergence=None if curves is None else Convergence(curves.grid, curves.errors[chosen]),
            kept_curves=None if kept is None else kept.part(rows),
        )

    def rounded(self, digits: int) -> MethodResults:
        """Return the results with errors of so many significant digits."""
        return replace(self, errors=round_significant(self.errors, digits))

    @cached_property
    def curves(self) -> Curves | None:
        """How the runs converge, or None where nothing of it was kept."""
        if self.convergence is None:
            return self.kept_curves
        return make_curves(self.convergence.grid, self.convergence.errors)

    @cached_property
    def summary(self) -> Summary:
        """Mean, deviation, median, best and worst per function."""
        return summarize(self.errors)


@dataclass(frozen=True)
class Results:
    """What a report is made of: the methods in the order of its columns.

    Attributes:
        protocol: The common rules.
        methods: At least one method; names are distinct, and all have equally many runs: more of them alone make more
            differences significant. See ``equal_runs``.
        reference: The method that all others are compared with by rank-sum tests.
    """

    protocol: Protocol
    methods: tuple[MethodResults, ...]
    reference: str

    def __post_init__(self) -> None:
        names = [method.name for method in self.methods]
        if len(set(names)) < len(names):
            raise ValueError(f"Methods need distinct names, got {', '.join(names)}.")
        if self.reference not in names:
            raise ValueError(f"The reference must be one of the methods {', '.join(names)}, got {self.reference!r}.")
        if len({method.num_runs for method in self.methods}) > 1:
            counts = ", ".join(f"{method.num_runs} of {method.name}" for method in self.methods)
            raise ValueError(f"Methods need equally many runs to be compared, got {counts}.")
        for method in self.methods:
            if len(method.errors) != len(self.protocol.functions):
                raise ValueError(
                    f"Method {method.name!r} has errors of {len(method.errors)} functions, "
                    f"the protocol has {len(self.protocol.functions)}."
                )

    @property
    def reference_results(self) -> MethodResults:
        """The results of the reference."""
        return self[self.reference]

    @property
    def compared(self) -> list[MethodResults]:
        """Every method but the reference."""
        return [method for method in self.methods if method.name != self.reference]

    def __getitem__(self, name: str) -> MethodResults:
        return next(method for method in self.methods if method.name == name)


def equal_runs(methods: Sequence[MethodResults], at_most: int) -> tuple[MethodResults, ...]:
    """Return the methods with as many runs as the one with the fewest has, the first of each."""
    num_runs = min(at_most, *(method.num_runs for method in methods))
    return tuple(method.part(range(len(method.errors)), num_runs) for method in methods)


def method_label(name: str) -> str:
    """Return what tables print for a method: the paper's name where it has one, or the algorithm's own.

    >>> method_label("jade"), method_label("cma"), method_label("mine")
    ('JADE w/o archive', 'CMA-ES (cma)', 'mine')
    """
    labels = {**{key: method.title for key, method in ALGORITHMS.items()}, **LABELS}
    return {**labels, "jso-lde-paper": "jSO (paper's table)"}.get(name, name)


def load_results(store: ResultStore, names: Sequence[str] | None = None) -> list[MethodResults]:
    """Return the results of the named methods (all by default) from a store that has every run of its protocol."""
    settings = store.methods
    return [_load_method(store, name, settings.get(name, {})) for name in (settings if names is None else names)]


def shipped_results(protocol: Protocol, folders: Sequence[Path] = (RESULTS,)) -> list[MethodResults]:
    """Return the stored results under a protocol: the compared algorithms, then the others by name.

    Methods that lack one of the protocol's functions are left out.
    """
    stored = {name: runs for folder in folders for name, runs in read_runs(protocol, folder).items()}
    curves = {name: kept for folder in folders for name, kept in read_curves(protocol, folder).items()}
    names = [*(name for name in ALGORITHMS if name in stored), *sorted(stored.keys() - ALGORITHMS.keys())]
    found = []
    for name in names:
        runs = stored[name]
        if set(protocol.functions) <= set(runs.functions):
            rows = [runs.functions.index(function) for function in protocol.functions]
            errors, evaluations = runs.errors[rows], runs.evaluations[rows]
            kept, settings = curves.get(name, (None, {}))
            # Curves made with other settings would be those of another method.
            same = all(settings.get(key, value) == value for key, value in runs.settings.items())
            shown = kept if same else None
            found.append(MethodResults(name, errors, evaluations, None, SHIPPED, runs.settings, runs.making, shown))
    return found


def add_to_result_file(methods: Sequence[MethodResults], protocol: Protocol, folder: str | Path) -> Path:
    """Put errors and curves of methods into their protocol's files in ``folder``, and return the path of the errors."""
    runs = {
        method.name: StoredRuns(protocol.functions, method.errors, method.evaluations, method.settings, method.making)
        for method in methods
        if method.evaluations is not None
    }
    path = add_runs(protocol, runs, Path(folder))
    add_curves_of(methods, protocol, folder)
    return path


def add_curves_of(methods: Sequence[MethodResults], protocol: Protocol, folder: str | Path) -> Path | None:
    """Put the curves of methods into the file of their protocol in ``folder``, and return its path if there are any."""
    curves = {method.name: (method.curves, method.settings) for method in methods if method.curves is not None}
    return add_curves(protocol, curves, Path(folder))


def _load_method(store: ResultStore, name: str, settings: Mapping[str, object]) -> MethodResults:
    per_function = [_load_function(store, name, function) for function in store.protocol.functions]
    grid = per_function[0]["grid"]
    if any(not np.array_equal(arrays["grid"], grid) for arrays in per_function):
        raise ValueError(f"The chunks of {name!r} in {str(store.folder)!r} record convergence on different grids.")
    stacked = {
        key: np.stack([arrays[key] for arrays in per_function]) for key in ("errors", "evaluations", "convergence")
    }
    return MethodResults(
        name,
        errors=stacked["errors"].astype(np.float64),
        evaluations=stacked["evaluations"].astype(np.int64),
        convergence=Convergence(grid.astype(np.int64), stacked["convergence"].astype(np.float64)),
        settings=settings,
        making={"seed": store.protocol.seed, "seed_rule": SEED_RULE, "package_version": __version__},
    )


def _load_function(store: ResultStore, name: str, function: int) -> dict[str, NDArray[np.generic]]:
    """Return a method's arrays on one function, all runs in order."""
    num_runs = store.protocol.num_runs
    by_run: dict[int, tuple[dict[str, NDArray[np.generic]], int]] = {}
    for key in store.chunks(name):
        if key.function != function or key.start >= num_runs:
            continue
        try:
            arrays = store.load(key)
        except DamagedFileError as error:
            raise ValueError(f"A chunk is damaged, run the evaluation again to replace it: {error}") from error
        by_run.update({run: (arrays, run - key.start) for run in key.runs})
    missing = [run for run in range(num_runs) if run not in by_run]
    if missing:
        raise ValueError(
            f"The store {str(store.folder)!r} lacks {len(missing)} of {num_runs} runs of {name!r} "
            f"on function {function}; run the evaluation again to complete it."
        )
    order = [by_run[run] for run in range(num_runs)]
    rows = ("errors", "evaluations", "best_positions", "convergence")
    stacked = {row: np.stack([arrays[row][position] for arrays, position in order]) for row in rows}
    return {**stacked, "grid": order[0][0]["grid"]}
