"""``compiled``: the one decorator for kernels; lazily compiled, cached on disk, free of the GIL.

A cached kernel contains the code of every kernel it calls, but numba only watches the file in which the
kernel itself stands. After an upgrade in place such a kernel would silently go on running the old callee,
so the cache is stamped with the state of all source files of the package instead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

Kernel = TypeVar("Kernel", bound=Callable[..., object])


@cache
def _package_stamp() -> tuple[float, int]:
    """Return a (time, size) pair that changes whenever any source file of the package does."""
    files = [path.stat() for path in sorted(Path(__file__).parent.rglob("*.py"))]
    return max(file.st_mtime for file in files), sum(file.st_size for file in files)


def compiled(function: Kernel) -> Kernel:
    """Compile ``function`` with numba at its first call, and keep the machine code on disk for later processes.

    No fast-math: every result is the same IEEE arithmetic whatever the batch it was computed in.
    """
    dispatcher: Any = njit(cache=True, nogil=True, error_model="numpy")(function)
    # NOTE: numba has no public way to say what a cache entry depends on; without this private attribute the
    # only loss is the protection described above, hence no error when a future numba renames it.
    cache_file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if cache_file is not None and hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = _package_stamp()
    return cast(Kernel, dispatcher)


def inlined(function: Kernel) -> Kernel:
    """Mark ``function`` as a building block of kernels: compiled into each of them, never called from Python."""
    return cast(Kernel, njit(nogil=True, error_model="numpy", forceinline=True)(function))


def shared(function: Kernel) -> Kernel:
    """Mark ``function`` as a part that kernels call: compiled once with the first of them, cached inside it."""
    return cast(Kernel, njit(nogil=True, error_model="numpy")(function))
