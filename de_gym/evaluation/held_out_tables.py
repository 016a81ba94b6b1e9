"""How often the default ends better than other methods, on problems held out for that question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from de_gym.controllers import DEFAULT
from de_gym.evaluation.held_out import Case, HeldOutErrors
from de_gym.evaluation.results import method_label
from de_gym.evaluation.statistics import bootstrap_interval, superiority
from de_gym.evaluation.table import Cell, Table, interval_text, table
from de_gym.optimizers import METHODS


def pooled_table(content: HeldOutErrors, reference: str = DEFAULT) -> Table:
    """Return one row per method that the reference is compared with, over all numbers of coordinates together."""
    budgets = _budgets(content, reference)
    rows = [
        [Cell(method_label(name)), *(_cell(content, reference, name, cases) for cases in budgets.values())]
        for name in _others(content, reference)
    ]
    return table(["against", *(f"{budget:,} n" for budget in budgets)], rows)


def content_sentence(content: HeldOutErrors, reference: str = DEFAULT) -> str:
    """Return in words what the pooled table is made of."""
    cells = content.errors.get(reference, {})
    counts = " or ".join(map(str, sorted({len(errors) for errors in cells.values()})))
    dimensions = ", ".join(map(str, sorted({case.dimension for case in cells})))
    return f"{counts} problems for each n of {dimensions}; a cell holds the n for which both methods were run."


def table_by_dimension(
    content: HeldOutErrors, reference: str = DEFAULT, label: Callable[[str], str] = method_label
) -> Table:
    """Return one row per number of coordinates and method."""
    budgets = _budgets(content, reference)
    rows = []
    for dimension in sorted({case.dimension for case in content.errors.get(reference, {})}):
        for name in _others(content, reference):
            columns = [[case for case in cases if case.dimension == dimension] for cases in budgets.values()]
            cells = [_cell(content, reference, name, cases) for cases in columns]
            if any(cell.text for cell in cells):
                rows.append([Cell(str(dimension)), Cell(label(name)), *cells])
    header = ["n", "against", *(f"{budget:,} n" for budget in budgets)]
    return table(header, rows, "rl" + "r" * len(budgets))


def won_shares(content: HeldOutErrors, reference: str, other: str, cases: Iterable[Case]) -> list[float]:
    """Return per problem of these cases the share of pairs of runs that the reference wins, a tie as half."""
    shares: list[float] = []
    for case in cases:
        if case in content.errors[other]:
            ours, theirs = content.errors[reference][case], content.errors[other][case]
            common = min(len(ours), len(theirs))
            shares += superiority(theirs[:common], ours[:common]).tolist()
    return shares


def _cell(content: HeldOutErrors, reference: str, other: str, cases: Sequence[Case]) -> Cell:
    """Return the mean share with its interval, emphasised where the interval lies above one half: a tie is no win."""
    shares = won_shares(content, reference, other, cases)
    if not shares:
        return Cell("")
    mean, (low, high) = float(np.mean(shares)), bootstrap_interval(shares)
    return Cell(f"{mean:.2f}", mean, strong=low > 0.5, note=interval_text(low, high))


def _budgets(content: HeldOutErrors, reference: str) -> dict[int, list[Case]]:
    """Return the cases of the reference by evaluations per coordinate."""
    cases = sorted(content.errors.get(reference, {}))
    budgets = sorted({case.per_coordinate for case in cases})
    return {budget: [case for case in cases if case.per_coordinate == budget] for budget in budgets}


def _others(content: HeldOutErrors, reference: str) -> list[str]:
    """Return the other methods, in the order of the registry."""
    known = [name for name in METHODS if name in content.errors]
    return [name for name in [*known, *sorted(content.errors.keys() - METHODS.keys())] if name != reference]
