"""The decorator of kernels where nothing can be kept on disk."""

from __future__ import annotations

from numba import njit

from de_gym.machine import compiling


def test_a_kernel_is_compiled_without_a_cache_where_none_can_be_written(monkeypatch):
    asked = []

    def without_locator(**options):
        asked.append("cache" in options)
        if "cache" in options:
            raise RuntimeError("cannot cache function: no locator available")  # what numba says
        return njit(**options)

    monkeypatch.setattr(compiling, "njit", without_locator)
    assert compiling.compiled(lambda x: 2.0 * x)(3.0) == 6.0
    assert asked == [True, False]
