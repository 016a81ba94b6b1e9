"""The user's own objects by name: "module:attribute", imported on the user's word."""

from __future__ import annotations

import importlib
import re
import sys
from importlib.util import find_spec
from pathlib import Path

from de_gym.registry import unknown_name_message

_ATTRIBUTE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def is_attribute(name: str) -> bool:
    """Return whether a name is one of the user's own objects, as "module:attribute".

    >>> is_attribute("my.problems:BRIDGES"), is_attribute("random:7"), is_attribute("PPO:model.zip")
    (True, False, False)
    """
    return _ATTRIBUTE.fullmatch(name) is not None


def import_attribute(name: str) -> object:
    """Import the user's own code, from the current folder too, and return what it calls the attribute."""
    module_name, attribute = name.split(":")
    # Workers import it as well, and look where this process does.
    if str(Path.cwd()) not in sys.path and "" not in sys.path:
        sys.path.append(str(Path.cwd()))
    if find_spec(module_name.split(".")[0]) is None:
        raise ValueError(f"There is no module {module_name!r} to import {attribute!r} from.")
    module = importlib.import_module(module_name)
    if not hasattr(module, attribute):
        names = [own for own in vars(module) if not own.startswith("_")]
        raise ValueError(unknown_name_message(f"attribute of {module_name}", attribute, names))
    found: object = getattr(module, attribute)
    return found
