"""The decorator of kernels where nothing can be kept on disk."""

from __future__ import annotations

import errno

import pytest
from numba import config, njit

from de_gym.envs.rewards import reward_log
from de_gym.machine import compiling


@pytest.fixture
def make_kernel(tmp_path, monkeypatch):
    """Return what makes the same kernel again and again, kept in a folder of its own."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    return lambda: compiling.compiled(reward_log.py_func)


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


def test_a_kernel_that_does_not_fit_on_the_disk_is_compiled_all_the_same(make_kernel, monkeypatch):
    def fail(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    kernel = make_kernel()
    monkeypatch.setattr(kernel._cache._cache_file, "_save_data", fail)
    assert kernel(100.0, 1.0, 100.0) == 2.0


@pytest.mark.parametrize("content", [b"", b"\0" * 4096])
def test_a_kernel_whose_file_is_damaged_is_compiled_anew(make_kernel, tmp_path, content):
    make_kernel()(100.0, 1.0, 100.0)
    for path in (*tmp_path.rglob("*.nbc"), *tmp_path.rglob("*.nbi")):
        path.write_bytes(content)
        assert make_kernel()(100.0, 1.0, 100.0) == 2.0
    kernel = make_kernel()
    assert kernel(100.0, 1.0, 100.0) == 2.0
    assert sum(kernel.stats.cache_hits.values()) == 1  # what was compiled anew is kept
