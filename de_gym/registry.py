"""Names in tables: found in any case; an unknown one gets one error with what there is and the closest match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from de_gym.checks import shown

Entry = TypeVar("Entry")


def unknown_name_message(kind: str, name: object, choices: Iterable[object]) -> str:
    """Return the sentence that rejects ``name``, with the closest of ``choices`` where one is close."""
    names = {str(choice).lower(): str(choice) for choice in choices}
    text = name.lower() if isinstance(name, str) else shown(name)
    close = get_close_matches(text, names, n=1) if len(text) < 200 else []
    hint = f" Did you mean {names[close[0]]!r}?" if close else ""
    return f"Unknown {kind} {shown(name)}.{hint} Available: {', '.join(names.values())}."


def known_name(kind: str, name: object, table: Iterable[str], *others: str) -> str:
    """Return the name in ``table`` that is meant, in any case, or raise a ``ValueError`` that lists the choices.

    ``others`` are what may be given in place of a name, in words.

    >>> known_name("reward", "LOG", ["relative", "log"])
    'log'
    """
    names = list(table)
    if isinstance(name, str):
        if name in names:
            return str(name)
        for choice in names:
            if choice.lower() == name.lower():
                return choice
    raise ValueError(unknown_name_message(kind, name, [*names, *others]))


def lookup(kind: str, name: object, table: Mapping[str, Entry]) -> Entry:
    """Return the entry of ``table`` under ``name``, in any case, or raise a ``ValueError`` that lists the choices.

    >>> lookup("reward", "relativ", {"relative": 1, "log": 2})
    Traceback (most recent call last):
    ...
    ValueError: Unknown reward 'relativ'. Did you mean 'relative'? Available: relative, log.
    """
    return table[known_name(kind, name, table)]
