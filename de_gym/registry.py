"""The one error for an unknown name: what was asked for, what there is, and the closest match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

Entry = TypeVar("Entry")


def unknown_name_message(kind: str, name: object, choices: Iterable[object]) -> str:
    """Return the sentence that rejects ``name``, with the closest of ``choices`` where one is close."""
    names = [str(choice) for choice in choices]
    close = get_close_matches(str(name), names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"Unknown {kind} {name!r}.{hint} Available: {', '.join(names)}."


def lookup(kind: str, name: str, table: Mapping[str, Entry]) -> Entry:
    """Return ``table[name]``, or raise a ``ValueError`` that lists the choices.

    >>> lookup("reward", "relativ", {"relative": 1, "log": 2})
    Traceback (most recent call last):
    ...
    ValueError: Unknown reward 'relativ'. Did you mean 'relative'? Available: relative, log.
    """
    if name not in table:
        raise ValueError(unknown_name_message(kind, name, table))
    return table[name]
