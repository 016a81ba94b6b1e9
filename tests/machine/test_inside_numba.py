"""Parts of kernels: compiled inside them, once, and plain Python elsewhere."""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.core import event
from numba.core.dispatcher import Dispatcher

from de_gym.machine import compiling
from de_gym.machine.compiling import inlined, shared

CONSTANT = 3


@inlined
def tripled(number):
    return CONSTANT * number


@shared
def counted_up(numbers, step):
    for index in range(len(numbers)):
        numbers[index] += tripled(step)


def test_python_runs_a_part_as_it_is_written():
    assert tripled("ab") == "ababab"
    assert not tripled.overloads


def test_constants_need_no_version_of_their_own_and_only_the_kernel_is_compiled_for_itself():
    @njit
    def kernel(numbers):
        counted_up(numbers, 1)
        counted_up(numbers, 2)
        counted_up(numbers, len(numbers))
        return tripled(5)

    numbers = np.zeros(4)
    with event.install_recorder("numba:compile") as recorder:
        assert kernel(numbers) == 15
    np.testing.assert_array_equal(numbers, np.full(4, 3.0 * (1 + 2 + 4)))
    assert len(tripled.overloads) == len(counted_up.overloads) == 1
    compiled = [record.data["dispatcher"].py_func.__name__ for _, record in recorder.buffer if record.is_start]
    assert compiled == ["kernel"]


def test_releases_whose_inside_is_not_known_get_the_same_from_numba_as_it_is(monkeypatch):
    monkeypatch.setattr(compiling, "_KNOWS_INSIDE", False)
    part = compiling.inlined(lambda number: CONSTANT * number)
    another = compiling.shared(lambda number: part(number) + 1)
    kernel = compiling.compiled(lambda number: another(number))
    assert kernel(5) == 16
    assert isinstance(part, Dispatcher)
    assert kernel.nopython_signatures
