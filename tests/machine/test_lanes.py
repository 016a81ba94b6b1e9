"""Lanes: arithmetic, selection and memory access, eight points at a time."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from de_gym.machine.lanes import (
    ROW_WIDTH,
    WIDTH,
    absolute,
    choose,
    gather,
    load,
    load_from,
    multiply_add,
    pointer_to,
    power_of_two,
    round_down,
    round_nearest,
    split_exponent,
    spread,
    square_root,
    store,
    store_from,
    transpose,
    with_sign_of,
)


@njit
def _compute(left_numbers, right_numbers, matrix, results):
    out = pointer_to(results)
    left = load(pointer_to(left_numbers), 0)
    right = load(pointer_to(right_numbers), 0)
    store(out, 0, left + right)
    store(out, 1, 1.0 - left)
    store(out, 2, left * 3.0)
    store(out, 3, left / right)
    store(out, 4, -left)
    store(out, 5, choose(left < right, left, 7.0))
    store(out, 6, choose(left <= 0.0, 1.0, 0.0) + choose(left > 2.0, 2.0, 0.0) + choose(left == right, 4.0, 0.0))
    store(out, 7, absolute(left))
    store(out, 8, round_down(left))
    store(out, 9, round_nearest(left))
    store(out, 10, with_sign_of(right, left))
    store(out, 11, square_root(absolute(left)))
    store(out, 12, multiply_add(left, left, -(left * left)))
    store(out, 13, gather(pointer_to(matrix), 1, matrix.shape[1]))
    store(out, 14, spread(2.5))
    mantissa, exponent = split_exponent(absolute(right))
    store(out, 15, mantissa)
    store(out, 16, exponent)
    store(out, 17, power_of_two(round_nearest(left)))
    store(out, 18, choose((left < 0.0) | (left > 2.0), 1.0, 0.0))
    row = load_from(pointer_to(matrix), 5)
    store_from(out, 19 * WIDTH + 1, choose((row < 6.0) | (row > 7.0), 0.5, 1.0 - 2.0 * row))
    results[20, 1] = choose(left_numbers[0] < 0.0, 3.0, 4.0)
    results[20, 2] = choose(left_numbers[0] > 0.0, 3.0, 4.0)


@njit
def _address(array):
    return pointer_to(array)[0]


@pytest.fixture(scope="module")
def computed():
    left = np.array([-2.5, -1.0, 0.1, 0.5, 1.5, 2.0, 3.7, 1e3])
    right = np.array([1.0, -1.0, 0.3, 0.5, 1e-300, 2.0, 1.4142135623730951, 1e300])
    matrix = np.arange(WIDTH * 3.0).reshape(WIDTH, 3)
    results = np.full((21, WIDTH), np.nan)
    _compute(left, right, matrix, results)
    return left, right, matrix, results


def test_operators_act_on_every_lane(computed):
    left, right, _, results = computed
    expected = [left + right, 1.0 - left, left * 3.0, left / right, -left]
    np.testing.assert_array_equal(results[:5], expected)


def test_comparisons_choose_lane_by_lane(computed):
    left, right, _, results = computed
    np.testing.assert_array_equal(results[5], np.where(left < right, left, 7.0))
    np.testing.assert_array_equal(results[6], (left <= 0) * 1.0 + (left > 2) * 2.0 + (left == right) * 4.0)


def test_rounding_and_signs_equal_numpy(computed):
    left, right, _, results = computed
    expected = [np.abs(left), np.floor(left), np.rint(left), np.copysign(right, left), np.sqrt(np.abs(left))]
    np.testing.assert_array_equal(results[7:12], expected)


def test_multiply_add_rounds_once(computed):
    left, _, _, results = computed
    exact = [float(int(x * 2**60) ** 2 - int(x * x * 2**120)) / 2**120 for x in left[2:5].tolist()]
    np.testing.assert_array_equal(results[12, 2:5], exact)
    assert results[12, 2] != 0.0


def test_gather_reads_a_column_and_spread_fills_all_lanes(computed):
    _, _, matrix, results = computed
    np.testing.assert_array_equal(results[13], matrix[:, 1])
    np.testing.assert_array_equal(results[14], 2.5)


def test_exponent_split_is_exact_and_centred_on_one(computed):
    _, right, _, results = computed
    mantissa, exponent = results[15], results[16]
    np.testing.assert_array_equal(np.ldexp(mantissa, exponent.astype(int)), np.abs(right))
    assert (mantissa >= 0.5**0.5 * (1 - 1e-15)).all()
    assert (mantissa <= 2**0.5 * (1 + 1e-15)).all()


def test_powers_of_two_are_exact(computed):
    left, _, _, results = computed
    np.testing.assert_array_equal(results[17], 2.0 ** np.rint(left))


def test_masks_unite_lane_by_lane(computed):
    left, _, _, results = computed
    np.testing.assert_array_equal(results[18], (left < 0) | (left > 2))


def test_rows_start_anywhere_and_touch_nothing_else(computed):
    _, _, matrix, results = computed
    stored = results[19, 1 : 1 + ROW_WIDTH]
    row = matrix.ravel()[5 : 5 + ROW_WIDTH]
    np.testing.assert_array_equal(stored, np.where((row < 6.0) | (row > 7.0), 0.5, 1.0 - 2.0 * row))
    assert np.isnan(results[19, 0])
    assert np.isnan(results[19, 1 + ROW_WIDTH])


def test_choice_between_plain_numbers(computed):
    _, _, _, results = computed
    assert results[20, 1:3].tolist() == [3.0, 4.0]


def test_addresses_exist_for_contiguous_arrays_only():
    assert _address(np.array([5.0, 6.0])) == 5.0
    with pytest.raises(TypingError, match="Only contiguous arrays have a plain address"):
        _address(np.arange(4.0)[::2])


@njit
def _transpose(numbers, start, step, rows):
    transpose(pointer_to(numbers), start, step, pointer_to(rows), 1)


@pytest.mark.parametrize(("start", "step"), [(0, WIDTH), (3, 11), (0, 10)])
def test_transposing_puts_points_side_by_side(start, step):
    numbers = np.arange(200.0)
    rows = np.full((WIDTH + 2, WIDTH), -1.0)
    _transpose(numbers, start, step, rows)
    expected = start + np.arange(WIDTH)[:, np.newaxis] + step * np.arange(WIDTH)
    np.testing.assert_array_equal(rows[1:-1], expected)
    assert (rows[[0, -1]] == -1.0).all()


@njit
def _store_from(numbers, start, results):
    store_from(pointer_to(results), start, load(pointer_to(numbers), 0))


def test_whole_lanes_are_stored_from_any_position():
    results = np.zeros(WIDTH + 5)
    _store_from(np.arange(1.0, WIDTH + 1), 3, results)
    assert results.tolist() == [0.0] * 3 + list(range(1, WIDTH + 1)) + [0.0] * 2
