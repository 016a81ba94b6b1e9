"""Vector mathematics against mpmath, over the arguments that occur."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from numba import njit

from de_gym.machine import elementary
from de_gym.machine.lanes import load, pointer_to, store

NUM_POINTS = 1600


@njit
def _compute(which, arguments, exponents, results):
    for row in range(len(arguments) // 8):
        x = load(pointer_to(arguments), row)
        if which == 0:
            value = elementary.sine(x)
        elif which == 1:
            value = elementary.squared_sine(x)
        elif which == 2:
            value = elementary.one_minus_cosine(x)
        elif which == 3:
            value = elementary.squared_sine_half_turns(x)
        elif which == 4:
            value = elementary.exponential(x)
        elif which == 5:
            value = elementary.logarithm(x)
        else:
            value = elementary.power(x, load(pointer_to(exponents), row))
        store(pointer_to(results), row, value)


NAMES = ("sine", "squared_sine", "one_minus_cosine", "squared_sine_half_turns", "exponential", "logarithm", "power")


def compute(name: str, arguments: np.ndarray, exponents: np.ndarray | None = None) -> np.ndarray:
    results = np.empty_like(arguments)
    _compute(NAMES.index(name), arguments, arguments if exponents is None else exponents, results)
    return results


def exact(function, *arguments: np.ndarray) -> list[mpmath.mpf]:
    with mpmath.workprec(400):
        return [function(*map(mpmath.mpf, row)) for row in zip(*(a.tolist() for a in arguments), strict=True)]


def errors_in_ulp(values: np.ndarray, truth: list[mpmath.mpf]) -> np.ndarray:
    with mpmath.workprec(400):
        return np.array(
            [
                float(abs(mpmath.mpf(v) - t)) / np.spacing(abs(float(t)))
                for v, t in zip(values.tolist(), truth, strict=True)
            ]
        )


def absolute_errors(values: np.ndarray, truth: list[mpmath.mpf]) -> np.ndarray:
    with mpmath.workprec(400):
        return np.array([float(abs(mpmath.mpf(v) - t)) for v, t in zip(values.tolist(), truth, strict=True)])


@pytest.mark.parametrize("largest", [3.0, 30.0, 1e3, 1e6, 1e12])
def test_sine_has_an_absolute_error_of_two_ulp_of_one(rng, largest):
    x = rng.uniform(-largest, largest, NUM_POINTS)
    assert absolute_errors(compute("sine", x), exact(mpmath.sin, x)).max() < 4.5e-16


def test_sine_is_correctly_rounded_where_schwefels_minimum_needs_it():
    x = np.full(8, np.sqrt(420.9687462275036))
    assert (compute("sine", x) == 0.9952826451539075).all()


@pytest.mark.parametrize("largest", [1e-3, 1.0, 1e3, 1e10, 1e19, 1e29])
def test_squared_sine_and_cosine_keep_huge_angles(rng, largest):
    x = rng.uniform(-largest, largest, NUM_POINTS)
    squares = exact(lambda t: mpmath.sin(t) ** 2, x)
    assert absolute_errors(compute("squared_sine", x), squares).max() < 5e-16
    assert absolute_errors(compute("one_minus_cosine", x), exact(lambda t: 1 - mpmath.cos(t), x)).max() < 1e-15


def test_squared_sine_keeps_relative_precision_near_zero(rng):
    x = 10.0 ** rng.uniform(-150, 0, NUM_POINTS)
    assert errors_in_ulp(compute("squared_sine", x), exact(lambda t: mpmath.sin(t) ** 2, x)).max() < 4.0


def test_half_turns_have_no_reduction_error(rng):
    x = rng.uniform(-1e9, 1e9, NUM_POINTS)
    truth = exact(lambda t: mpmath.sinpi(t) ** 2, x)
    assert absolute_errors(compute("squared_sine_half_turns", x), truth).max() < 5e-16
    assert (compute("squared_sine_half_turns", np.arange(-4.0, 4.0)) == 0.0).all()


def test_exponential_is_within_an_ulp(rng):
    x = rng.uniform(-700.0, 700.0, NUM_POINTS)
    assert errors_in_ulp(compute("exponential", x), exact(mpmath.exp, x)).max() < 1.0


def test_exponential_of_zero_and_one_is_exact_as_ackley_needs():
    assert compute("exponential", np.array([0.0, 1.0] * 4))[:2].tolist() == [1.0, np.e]


def test_exponential_fades_through_subnormals_to_zero_and_overflows_to_infinity():
    x = np.array([-708.5, -720.0, -740.0, -744.0, -746.0, -1e6, 709.0, 710.0])
    values = compute("exponential", x)
    np.testing.assert_allclose(values[:4], np.exp(x[:4]), rtol=1e-12, atol=5e-324)
    assert values[4:6].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(values[6], np.exp(709.0), rtol=1e-15)
    assert values[7] == np.inf


def test_logarithm_is_within_an_ulp(rng):
    x = np.concatenate([10.0 ** rng.uniform(-300, 300, NUM_POINTS // 2), rng.uniform(0.5, 2.0, NUM_POINTS // 2)])
    assert errors_in_ulp(compute("logarithm", x), exact(mpmath.log, x)).max() < 1.0
    assert compute("logarithm", np.ones(8))[0] == 0.0


@pytest.mark.parametrize(("base_exponents", "largest_exponent"), [((-3.0, 3.0), 20.0), ((-20.0, 20.0), 0.7)])
def test_power_is_within_an_ulp_over_the_arguments_of_skewing_and_roots(rng, base_exponents, largest_exponent):
    base = 10.0 ** rng.uniform(*base_exponents, NUM_POINTS)
    exponent = rng.uniform(0.0, largest_exponent, NUM_POINTS)
    assert errors_in_ulp(compute("power", base, exponent), exact(mpmath.power, base, exponent)).max() < 1.0


def test_power_of_one_is_one():
    assert (compute("power", np.ones(8), np.linspace(0.1, 20.0, 8)) == 1.0).all()
