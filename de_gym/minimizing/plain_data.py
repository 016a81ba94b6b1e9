"""What a file can hold of a run without pickle: values as JSON gives them back, and random states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

_BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


def plain(value: Any) -> Any:
    """Return ``value`` as JSON gives it back."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value


def state_of(rng: np.random.Generator) -> Any:
    """Return the state of a generator in JSON's terms."""
    return plain(rng.bit_generator.state)


def generator_of(state: Any) -> np.random.Generator:
    """Return a generator in a stored state."""
    if state["bit_generator"] not in _BIT_GENERATORS:
        raise ValueError(f"The file's random numbers are of an unknown kind, {state['bit_generator']!r}.")
    generator = np.random.Generator(getattr(np.random, state["bit_generator"])())
    generator.bit_generator.state = _with_arrays(state)
    return generator


def _with_arrays(state: Any) -> Any:
    """Return the state of a bit generator with arrays in place of lists."""
    if isinstance(state, Mapping):
        return {key: _with_arrays(entry) for key, entry in state.items()}
    return np.array(state, np.uint64) if isinstance(state, list) else state
