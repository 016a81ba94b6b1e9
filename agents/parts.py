"""Rows of a batch in consecutive parts of about equal size, for several cores."""

from __future__ import annotations

from itertools import pairwise

import numpy as np


def split_rows(count: int, num_parts: int) -> list[slice]:
    """Return the parts that hold any of ``count`` rows.

    >>> split_rows(5, 2), split_rows(1, 3)
    ([slice(0, 2, None), slice(2, 5, None)], [slice(0, 1, None)])
    """
    ends = np.linspace(0, count, num_parts + 1).round().astype(int).tolist()
    return [slice(start, stop) for start, stop in pairwise(ends) if start < stop]
