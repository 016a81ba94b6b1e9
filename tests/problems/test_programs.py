"""Landscapes, transformations and compositions as programs, against formulas written out in plain Python."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from de_gym.arrays import FloatArray
from de_gym.machine import kernel
from de_gym.problems.compiled import as_kernel_array
from de_gym.problems.programs import LANDSCAPES, Program, join_programs


def run(program: Program, points: FloatArray) -> FloatArray:
    """Return the values of points (P, D)."""
    values, starts, entries = np.empty(len(points)), np.array([0, len(points)]), np.zeros((1, 2), np.int64)
    kernel.evaluate_programs(
        as_kernel_array(points)[np.newaxis], starts, entries, *program.arrays(), values[np.newaxis]
    )
    return values


def landscape(name: str, points: FloatArray, **options: float) -> FloatArray:
    program = Program(points.shape[1])
    program.landscape(name, 0, **options)
    program.end(0.0)
    return run(program, points)


def transformed(points: FloatArray, write) -> FloatArray:
    """Return what ``write(program)`` leaves in register 1, one coordinate at a time."""
    dimension = points.shape[1]
    coordinates = []
    for i in range(dimension):
        program = Program(dimension)
        write(program)
        # A sum of first powers of v + 1000 shows the coordinate itself, sign included.
        program.scale(1, 2, np.eye(dimension)[i])
        program.landscape("sum of powers", 2, start=i, length=1, offset=1000.0)
        program.end(-1000.0)
        coordinates.append(run(program, points))
    return np.stack(coordinates, axis=1)


def schwefel(points: FloatArray) -> list[float]:
    """The definition, piece by piece."""
    values = []
    for point in points.tolist():
        total = 418.9828872724338 * len(point)
        for v in point:
            z = v + 420.9687462275036
            folded = 500.0 - math.fmod(abs(z), 500.0)
            if z > 500.0:
                total += -folded * math.sin(math.sqrt(folded)) + ((z - 500.0) / 100.0) ** 2 / len(point)
            elif z < -500.0:
                total += folded * math.sin(math.sqrt(folded)) + ((z + 500.0) / 100.0) ** 2 / len(point)
            else:
                total += -z * math.sin(math.sqrt(abs(z)))
        values.append(total)
    return values


MINIMA = {
    "rosenbrock": 1.0,
    "griewank-rosenbrock": 1.0,
    "happycat": -1.0,
    "hgbat": -1.0,
    "levy": 1.0,
}


@pytest.mark.parametrize("name", LANDSCAPES)
def test_every_landscape_is_zero_at_its_minimum_and_positive_around_it(name, rng):
    centre = MINIMA.get(name, 0.0)
    assert abs(landscape(name, np.full((1, 6), centre))[0]) < 1e-12
    assert (landscape(name, centre + rng.uniform(0.05, 0.3, (20, 6))) > 0.0).all()


def test_schwefel_follows_its_pieces_across_every_fold(rng):
    points = rng.uniform(-2500.0, 2500.0, (200, 4))
    np.testing.assert_allclose(landscape("schwefel", points), schwefel(points), rtol=1e-12, atol=1e-10)


def test_schwefel_takes_the_official_side_of_each_fold():
    edges = [500.0 * k for k in range(-40, 41) if k != 0]
    around = [np.nextafter(edge, edge + side) for edge in edges for side in (-1, 0, 1)]
    points = np.array(around)[:, np.newaxis] - 420.9687462275036
    np.testing.assert_allclose(landscape("schwefel", points), schwefel(points), rtol=1e-12, atol=1e-9)


def test_katsuura_equals_its_sum(rng):
    points = rng.uniform(-5.0, 5.0, (20, 3))
    expected = []
    for point in points.tolist():
        product = 1.0
        for i, v in enumerate(point):
            roughness = sum(abs(2.0**j * v - math.floor(2.0**j * v + 0.5)) / 2.0**j for j in range(1, 33))
            product *= (1.0 + (i + 1) * roughness) ** (10.0 / 3**1.2)
        expected.append(10.0 / 9.0 * (product - 1.0))
    np.testing.assert_allclose(landscape("katsuura", points), expected, rtol=1e-13)


@pytest.mark.parametrize("near", [0.0, 0.5, 1.0 / 3.0, 0.25, -0.5, 12.5])
def test_weierstrass_keeps_its_precision_where_tripling_the_angle_is_unstable(near, rng):
    points = near + np.concatenate([[0.0], 10.0 ** rng.uniform(-12, -1, 31)])[:, np.newaxis]
    with mpmath.workprec(300):
        truth = [
            float(sum(mpmath.mpf(0.5) ** j * (1 - mpmath.cospi(2 * 3**j * mpmath.mpf(v))) for j in range(21)))
            for v in points[:, 0].tolist()
        ]
    # The official code's own rounding of 2 pi 3**20 v is worth about 2e-12 at v = 1/2 and more beyond.
    np.testing.assert_allclose(landscape("weierstrass", points), truth, rtol=0.0, atol=1e-11)


def test_absolutes_are_weighted_by_their_coefficients(rng):
    points, weights = rng.uniform(-3.0, 3.0, (20, 5)), rng.uniform(0.1, 9.0, 5)
    np.testing.assert_allclose(
        landscape("absolutes", points, coefficients=weights, rate=2.0, offset=1.0),
        (weights * np.abs(2.0 * points + 1.0)).sum(axis=1),
        rtol=1e-14,
    )


def test_sharp_ridge_rises_linearly_beside_its_first_axis(rng):
    points = rng.uniform(-3.0, 3.0, (20, 5))
    expected = points[:, 0] ** 2 + 30.0 * np.sqrt((points[:, 1:] ** 2).sum(axis=1))
    np.testing.assert_allclose(landscape("sharp ridge", points, coefficients=[30.0]), expected, rtol=1e-14)
    assert landscape("sharp ridge", np.array([[3.0]])).tolist() == [9.0]


def test_peaks_are_the_highest_of_their_bells(rng):
    heights, centres, narrowness = rng.uniform(0.1, 1.0, 7), rng.normal(size=(7, 3)), rng.uniform(0.1, 5.0, (7, 3))
    rows = np.column_stack([np.log(heights), centres, narrowness])
    points = rng.normal(size=(40, 3)) * 2.0
    offsets = points[:, np.newaxis] - centres
    bells = heights * np.exp(-(narrowness * offsets**2).sum(axis=2) / (2 * 3))
    assert len(set(bells.argmax(axis=1))) > 3
    values = landscape("peaks", points, coefficients=np.append(7.0, rows))
    np.testing.assert_allclose(values, 100.0 * (1.0 - bells.max(axis=1)), rtol=1e-13, atol=1e-12)


def test_bends_follow_the_coordinate_before(rng):
    points, amplitudes, rates = rng.normal(size=(20, 4)) * 50.0, rng.normal(size=4) * 9.0, rng.uniform(0.01, 0.3, 4)
    expected = points.copy()
    expected[:, 1:] += amplitudes[1:] * np.sin(rates[1:] * points[:, :-1])
    pairs = np.column_stack([amplitudes, rates]).ravel()
    bent = transformed(points, lambda program: program.transform(kernel.BEND, 0, 1, pairs))
    np.testing.assert_allclose(bent, expected, rtol=0.0, atol=1e-11)

    def bend_in_place(program: Program) -> None:
        program.shift(1, np.zeros(4))
        program.transform(kernel.BEND, 1, 1, pairs)

    np.testing.assert_array_equal(transformed(points, bend_in_place), bent)


def test_shuffling_reorders_coordinates(rng):
    points, order = rng.normal(size=(9, 5)), np.array([3.0, 0.0, 4.0, 1.0, 2.0])
    values = transformed(points, lambda program: program.transform(kernel.SHUFFLE, 0, 1, order))
    np.testing.assert_allclose(values, points[:, [3, 0, 4, 1, 2]], rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("name", sorted(LANDSCAPES.keys() - {"rosenbrock", "schaffer", "lunacek"}))
def test_landscapes_of_one_coordinate_are_numbers(name):
    centre = MINIMA.get(name, 0.0)
    values = landscape(name, np.array([[centre], [centre + 0.3]]))
    assert abs(values[0]) < 1e-12
    assert 0.0 < values[1] < np.inf


def test_different_powers_divide_exponents_as_integers(rng):
    points = rng.uniform(-3.0, 3.0, (10, 50))
    exponents = np.array([2 + (4 * i) // 49 for i in range(50)])
    expected = np.sqrt((np.abs(points) ** exponents).sum(axis=1))
    np.testing.assert_allclose(landscape("different powers", points), expected, rtol=1e-14)


def test_oscillation_changes_the_first_and_last_coordinate_only(rng):
    points = np.concatenate([rng.uniform(-100.0, 100.0, (30, 4)), [[0.0] * 4, [1.0] * 4, [-1.0] * 4]])
    expected = points.copy()
    for row in expected:
        for i in (0, 3):
            if row[i] != 0.0:
                size = math.log(abs(row[i]))
                first, second = (10.0, 7.9) if row[i] > 0.0 else (5.5, 3.1)
                wave = 0.049 * (math.sin(first * size) + math.sin(second * size))
                row[i] = math.copysign(math.exp(size + wave), row[i])
    values = transformed(points, lambda program: program.transform(kernel.OSCILLATE, 0, 1))
    np.testing.assert_allclose(values, expected, rtol=1e-13, atol=1e-11)


@pytest.mark.parametrize("operation", [kernel.SKEW, kernel.SKEW_EXACTLY])
def test_skewing_leaves_the_old_content_where_a_coordinate_is_not_positive(operation, rng):
    points = np.concatenate([rng.uniform(-10.0, 10.0, (30, 4)), [[0.0] * 4]])
    strengths = np.array([0.0, 0.2, 0.4, 0.6])

    def write(program: Program) -> None:
        program.shift(1, np.full(4, 7.0))
        program.transform(operation, 0, 1, np.append(strengths, 0.5))

    positive = np.abs(points)
    expected = np.where(points > 0.0, positive ** (1.0 + strengths * np.sqrt(positive)), points - 7.0)
    np.testing.assert_allclose(transformed(points, write), expected, rtol=1e-13, atol=1e-11)


def test_steps_round_to_halves_beyond_one_half():
    points = np.array([[0.5, -0.5, 0.51, -0.51], [0.74, 0.76, -0.74, -0.76], [1.25, -1.25, 3.0, 0.2]])
    expected = [[0.5, -0.5, 0.5, -0.5], [0.5, 1.0, -0.5, -1.0], [1.5, -1.0, 3.0, 0.2]]
    values = transformed(points, lambda program: program.transform(kernel.ROUND_STEPS, 0, 1))
    np.testing.assert_allclose(values, expected, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("dimension", [1, 2, 4, 5, 7, 10])
def test_rotation_is_a_matrix_product_for_any_number_of_rows(dimension, rng):
    rotation = rng.normal(size=(dimension, dimension))
    points = rng.normal(size=(9, dimension))
    values = transformed(points, lambda program: program.rotate(0, 1, rotation))
    np.testing.assert_allclose(values, points @ rotation.T, rtol=0.0, atol=1e-12)


def composition(dimension: int) -> Program:
    """Return two spheres around 0 and 10, the second raised by 100."""
    program = Program(dimension)
    for shift, bias, spread in ((0.0, 0.0, 1.0), (10.0, 100.0, 2.0)):
        program.shift(1, np.full(dimension, shift))
        program.landscape("sphere", 1)
        program.end_component(3.0, bias, spread, np.full(dimension, shift))
    program.end(7.0)
    return program


def test_composition_weights_its_components_by_distance(rng):
    points = rng.uniform(-5.0, 15.0, (20, 2))
    expected = []
    for point in points:
        distances = [(point**2).sum(), ((point - 10.0) ** 2).sum()]
        weights = [math.exp(-d / (2 * 2 * s**2)) / math.sqrt(d) for d, s in zip(distances, (1.0, 2.0), strict=True)]
        values = [3.0 * distances[0], 3.0 * distances[1] + 100.0]
        expected.append(np.dot(weights, values) / sum(weights) + 7.0)
    np.testing.assert_allclose(run(composition(2), points), expected, rtol=1e-13)


def test_composition_is_exact_at_the_centre_of_a_component():
    assert run(composition(3), np.array([[0.0] * 3, [10.0] * 3])).tolist() == [7.0, 107.0]


def test_composition_averages_its_components_where_all_weights_vanish():
    far = np.full((1, 2), 1e4)
    expected = (3.0 * 2e8 + 3.0 * 2 * 9990.0**2 + 100.0) / 2 + 7.0
    np.testing.assert_allclose(run(composition(2), far), expected, rtol=1e-14)


def test_a_value_that_is_not_a_number_counts_as_infinite():
    program = Program(2)
    program.landscape("rosenbrock", 0)
    program.end(0.0)
    assert run(program, np.array([[np.nan, 0.0], [1e200, 1e200], [1.0, 1.0]])).tolist() == [np.inf, np.inf, 0.0]


@pytest.mark.parametrize("num_points", [0, 1, 7, 8, 9, 50])
def test_any_number_of_points_fills_blocks_the_same_way(num_points, rng):
    points = rng.uniform(-100.0, 100.0, (num_points, 5))
    alone = [landscape("rastrigin", point[np.newaxis])[0] for point in points]
    assert landscape("rastrigin", points).tolist() == alone


def test_joined_programs_keep_their_own_numbers(rng):
    sphere = Program(4)
    sphere.landscape("sphere", 0)
    sphere.end(3.0)
    programs = [composition(4), sphere, composition(4)]
    entries, *arrays = join_programs([program.arrays() for program in programs])
    points = rng.uniform(-5.0, 15.0, (18, 4))
    values = np.empty(18)
    kernel.evaluate_programs(points, np.array([0, 6, 12, 18]), entries, *arrays, values)
    expected = [run(program, points[6 * p : 6 * p + 6]) for p, program in enumerate(programs)]
    np.testing.assert_array_equal(values, np.concatenate(expected))
    np.testing.assert_allclose(values[6:12], (points[6:12] ** 2).sum(axis=1) + 3.0, rtol=1e-14)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [(1, 1), (1, 10), (3, 5), (8, 8)])
def test_one_coordinate_that_is_not_finite_is_found_wherever_it_stands(shape, bad, rng):
    points = rng.normal(size=shape) * 1e300
    assert kernel.are_finite(points)
    for position in range(points.size):
        spoilt = points.copy()
        spoilt.flat[position] = bad
        assert not kernel.are_finite(spoilt)
