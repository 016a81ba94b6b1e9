"""What is shared with ``scipy.optimize`` without loading it, which takes longer than all the rest of a first call."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


class Result(dict[str, Any]):
    """The result of a run: a dictionary whose entries are attributes, as scipy's ``OptimizeResult`` is one.

    >>> result = Result(x=[0.5], fun=2.0)
    >>> result.fun, result["x"], sorted(result)
    (2.0, [0.5], ['fun', 'x'])
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"The result has no {name!r}, only {', '.join(self)}.") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        del self[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        """Show a line for each entry, and of long arrays the beginning and the end."""
        width = max(map(len, self), default=0)
        with np.printoptions(precision=6, threshold=8, edgeitems=2):
            texts = [f"{name:>{width}}: {value}" for name, value in self.items()]
        return "\n".join(text.replace("\n", "\n" + " " * (width + 2)) for text in texts)


def make_result(**fields: Any) -> Result:
    """Return an ``OptimizeResult`` where the program has loaded scipy's, which other code may ask for, else our own."""
    optimize = sys.modules.get("scipy.optimize")
    made: Result = Result(fields) if optimize is None else optimize.OptimizeResult(fields)
    return made


def is_scipys(value: object, name: str) -> bool:
    """Return whether ``value`` is of the class of that name in ``scipy.optimize``: only who has loaded it has one.

    >>> from scipy.optimize import Bounds
    >>> is_scipys(Bounds(0.0, 1.0), "Bounds"), is_scipys([(0.0, 1.0)], "Bounds")
    (True, False)
    """
    optimize = sys.modules.get("scipy.optimize")
    return optimize is not None and isinstance(value, getattr(optimize, name))
