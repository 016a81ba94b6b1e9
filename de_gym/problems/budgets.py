"""How long a run is, and from where on it counts as solved, in the CEC competitions."""

from __future__ import annotations

EVALUATIONS_PER_DIMENSION = 10_000
# Errors below this are reported as zero; differences below it mean nothing.
ZERO_ERROR = 1e-8


def default_max_evaluations(dimension: int) -> int:
    """Return the budget of the CEC competitions, 10 000 evaluations per coordinate."""
    return EVALUATIONS_PER_DIMENSION * dimension


class BudgetTooSmall(ValueError):
    """A budget does not pay for a method's first population."""
