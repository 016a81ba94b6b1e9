"""``compiled``: the one decorator for kernels; lazily compiled, cached on disk, free of the GIL.

A cached kernel contains the code of every kernel it calls, but numba only watches the file in which the
kernel itself stands. After an upgrade in place such a kernel would silently go on running the old callee,
so the cache is stamped with the state of all source files it may have been compiled from: imports point one
way, so these are the files of its own layer and of the layers below.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit, version_info
from numba.core import event

Kernel = TypeVar("Kernel", bound=Callable[..., object])


# The layers that hold kernels, lowest first.
_LAYERS = ("machine", "problems", "evolution", "controllers", "envs", "optimizers")

# Nobody calls a kernel from C.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

# Releases of numba whose inside ``inside_numba`` was tried with. All others give the same results; only first calls
# take longer.
_KNOWN_RELEASES = ((0, 68),)
_KNOWS_INSIDE = version_info.short in _KNOWN_RELEASES


class SeldomCollecting(event.Listener):
    """Lets Python look for garbage seldom while numba compiles, which would take a seventh of the time."""

    _NEW_OBJECTS = 100_000

    def __init__(self) -> None:
        self._depth, self._usual = 0, gc.get_threshold()

    def on_start(self, event: object) -> None:
        """Begin, unless this kernel is compiled inside another."""
        if self._depth == 0:
            self._usual = gc.get_threshold()
            gc.set_threshold(max(self._usual[0], self._NEW_OBJECTS) if self._usual[0] else 0, *self._usual[1:])
        self._depth += 1

    def on_end(self, event: object) -> None:
        """Go back to what was usual."""
        self._depth -= 1
        if self._depth == 0:
            gc.set_threshold(*self._usual)


@cache
def _source_stamp(layer: str) -> tuple[float, int]:
    """Return a (time, size) pair that changes whenever a source file of the layer or of one below does."""
    layers = _LAYERS[: _LAYERS.index(layer) + 1] if layer in _LAYERS else _LAYERS
    root = Path(__file__).parents[1]
    files = [path.stat() for name in layers for path in sorted((root / name).glob("*.py"))]
    return max(file.st_mtime for file in files), sum(file.st_size for file in files)


def compiled(function: Kernel) -> Kernel:
    """Compile ``function`` with numba at its first call, and keep the machine code on disk for later processes.

    No fast-math: every result is the same IEEE arithmetic whatever the batch it was computed in.
    """
    options = dict(_OPTIONS)
    if _KNOWS_INSIDE:
        from de_gym.machine.inside_numba import KernelCompiler

        options["pipeline_class"] = KernelCompiler
    try:
        dispatcher: Any = njit(cache=True, **options)(function)
    except RuntimeError:
        # Neither the package's folder nor the user's cache can be written: every process compiles for itself.
        return cast(Kernel, njit(**options)(function))
    if _KNOWS_INSIDE:
        from de_gym.machine.inside_numba import load_without_compiler

        load_without_compiler(dispatcher)
    _protect_cache(getattr(dispatcher, "_cache", None), function.__module__.split(".")[-2])
    return cast(Kernel, dispatcher)


def _protect_cache(kept: Any, layer: str) -> None:
    """Let what is kept of a kernel depend on the sources of its layer, and let no damage to it end a program.

    NOTE: numba has no public way to say this; without these private attributes the protection is the only loss, hence
    no error when a future numba renames them.
    """
    file = getattr(kept, "_cache_file", None)
    if file is not None and hasattr(file, "_source_stamp") and hasattr(file, "_load_index"):
        file._source_stamp = _source_stamp(layer)
        # The index of an earlier version of the package may name modules that are no longer there.
        file._load_index = _without_failing(file._load_index, dict)
        # A power cut may leave a file empty, whose kernel is then compiled anew; one that does not fit on the disk is
        # compiled by every process for itself.
        kept.load_overload = _without_failing(kept.load_overload, _nothing)
        kept.save_overload = _without_failing(kept.save_overload, _nothing, OSError)


def _nothing() -> None:
    return


def _without_failing(
    function: Callable[..., Any], otherwise: Callable[[], Any], errors: type[Exception] = Exception
) -> Callable[..., Any]:
    """Return a function that returns something else where ``function`` fails."""

    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except errors:
            return otherwise()

    return call


def inlined(function: Kernel) -> Kernel:
    """Mark ``function`` as a building block of kernels: compiled into each of them, at every place that calls it."""
    return _as_part(function, forceinline=True)


def switch(functions: Sequence[Kernel]) -> Callable[..., Any]:
    """Return a building block of kernels whose first argument is the position of the function that gets the others.

    All of them are compiled into the kernel: to call a function handed in as an argument would need a kernel for each.
    """
    first = functions[0]
    if len(functions) == 1:

        def call(number: int, *arguments: Any) -> Any:
            return first(*arguments)

    else:
        others = switch(functions[1:])

        def call(number: int, *arguments: Any) -> Any:
            if number == 0:
                return first(*arguments)
            return others(number - 1, *arguments)

    return inlined(call)


def shared(function: Kernel) -> Kernel:
    """Mark ``function`` as a part that kernels call: compiled into each of them once."""
    return _as_part(function)


def _as_part(function: Kernel, **options: bool) -> Kernel:
    if _KNOWS_INSIDE:
        from de_gym.machine.inside_numba import as_part

        return as_part(function, **options)
    return cast(Kernel, njit(**{**_OPTIONS, **options})(function))
