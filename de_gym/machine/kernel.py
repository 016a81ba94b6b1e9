"""The kernel that evaluates many points of many functions: an interpreter of small programs on ``Lanes``.

A function of a suite is a program: a few instructions that shift, rotate and bend a block of WIDTH points and add
up landscapes. Reading an instruction costs nanoseconds and serves a whole block, so one compiled kernel evaluates any
mixture of functions at the speed of code written for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.machine import landscapes, transforms
from de_gym.machine.compiling import compiled, inlined, shared
from de_gym.machine.elementary import exponential
from de_gym.machine.lanes import (
    WIDTH,
    choose,
    gather,
    load,
    multiply_add,
    pointer_to,
    spread,
    square_root,
    stay_apart,
    store,
    store_from,
    transpose,
)

if TYPE_CHECKING:
    from de_gym.machine.lanes import Lanes, Pointer

NUM_REGISTERS = 5

# Columns of an instruction.
OPERATION, SOURCE, TARGET, LENGTH, DATA, OTHER = range(6)
NUM_COLUMNS = 6

SHIFT, ROTATE, SHUFFLE, SCALE, BEND, ROUND_STEPS, OSCILLATE, SKEW, SKEW_EXACTLY = range(9)
(
    WEIGHTED_SQUARES,
    WEIGHTED_ABSOLUTES,
    SHARP_RIDGE,
    PEAKS,
    SUM_OF_POWERS,
    DIFFERENT_POWERS,
    ZAKHAROV,
    ROSENBROCK,
    GRIEWANK_ROSENBROCK,
    EXPANDED_SCHAFFER,
    SCHAFFER,
    ACKLEY,
    WEIERSTRASS,
    GRIEWANK,
    RASTRIGIN,
    SCHWEFEL,
    KATSUURA,
    HAPPYCAT,
    HGBAT,
    LEVY,
    LUNACEK,
) = range(9, 30)
END_COMPONENT, END = range(30, 32)


@shared
def _transform(
    operation: int, buffer: Pointer[float], source: int, target: int, length: int, data: Pointer[float], at: int
) -> None:
    """Carry out one transformation."""
    if operation == SHIFT:
        transforms.shift(buffer, source, target, length, data, at)
    elif operation == ROTATE:
        transforms.rotate(buffer, source, target, length, data, at)
    elif operation == SHUFFLE:
        transforms.shuffle(buffer, source, target, length, data, at)
    elif operation == SCALE:
        transforms.scale(buffer, source, target, length, data, at)
    elif operation == BEND:
        transforms.bend(buffer, source, target, length, data, at)
    elif operation == ROUND_STEPS:
        transforms.round_steps(buffer, source, target, length, data, at)
    elif operation == OSCILLATE:
        transforms.oscillate(buffer, source, target, length, data, at)
    elif operation == SKEW:
        transforms.skew(buffer, source, target, length, data, at)
    else:
        transforms.skew_exactly(buffer, source, target, length, data, at)


@shared
def _landscape(
    operation: int, buffer: Pointer[float], first: int, length: int, data: Pointer[float], at: int, other: int
) -> Lanes:
    """Return the value of one landscape."""
    if operation == WEIGHTED_SQUARES:
        return landscapes.weighted_squares(buffer, first, length, data, at)
    if operation == WEIGHTED_ABSOLUTES:
        return landscapes.weighted_absolutes(buffer, first, length, data, at)
    if operation == SHARP_RIDGE:
        return landscapes.sharp_ridge(buffer, first, length, data, at)
    if operation == PEAKS:
        return landscapes.peaks(buffer, first, length, data, at)
    if operation == SUM_OF_POWERS:
        return landscapes.sum_of_powers(buffer, first, length, data, at)
    if operation == DIFFERENT_POWERS:
        return landscapes.different_powers(buffer, first, length, data, at)
    if operation == ZAKHAROV:
        return landscapes.zakharov(buffer, first, length, data, at)
    if operation == ROSENBROCK:
        return landscapes.rosenbrock(buffer, first, length, data, at)
    if operation == GRIEWANK_ROSENBROCK:
        return landscapes.griewank_rosenbrock(buffer, first, length, data, at)
    if operation == EXPANDED_SCHAFFER:
        return landscapes.expanded_schaffer(buffer, first, length, data, at)
    if operation == SCHAFFER:
        return landscapes.schaffer(buffer, first, length, data, at)
    if operation == ACKLEY:
        return landscapes.ackley(buffer, first, length, data, at)
    if operation == WEIERSTRASS:
        return landscapes.weierstrass(buffer, first, length, data, at)
    if operation == GRIEWANK:
        return landscapes.griewank(buffer, first, length, data, at)
    if operation == RASTRIGIN:
        return landscapes.rastrigin(buffer, first, length, data, at)
    if operation == SCHWEFEL:
        return landscapes.schwefel(buffer, first, length, data, at)
    if operation == KATSUURA:
        return landscapes.katsuura(buffer, first, length, data, at)
    if operation == HAPPYCAT:
        return landscapes.happycat(buffer, first, length, data, at)
    if operation == HGBAT:
        return landscapes.hgbat(buffer, first, length, data, at)
    if operation == LEVY:
        return landscapes.levy(buffer, first, length, data, at)
    return landscapes.lunacek(buffer, first, length, data, at, other)


@shared
def _component_weight(buffer: Pointer[float], length: int, data: Pointer[float], at: int) -> Lanes:
    """Return exp(-d / (2 D sigma**2)) / sqrt(d), d the squared distance of the raw point to the component's shift.

    The denominator is ``data[at]``, the shift follows it. Finite at distance zero, so that the value there is exact.
    """
    stay_apart()
    distance = spread(0.0)
    for i in range(length):
        offset = load(buffer, i) - data[at + 1 + i]
        distance = distance + offset * offset
    weight = exponential(-distance / data[at]) / square_root(distance)
    return choose(distance == 0.0, 1e99, weight)


@shared
def _run(instructions: Pointer[int], row: int, data: Pointer[float], first: int, buffer: Pointer[float]) -> Lanes:
    """Return the values of the block of points in the first register, by one program.

    Its first instruction is in row ``row``, and what its instructions call number 0 is ``data[first]``.
    """
    value = spread(0.0)
    weighted = spread(0.0)
    weights = spread(0.0)
    unweighted = spread(0.0)
    num_components = 0.0
    while True:
        at_row = row * NUM_COLUMNS
        operation = instructions[at_row + OPERATION]
        source = instructions[at_row + SOURCE]
        target = instructions[at_row + TARGET]
        length = instructions[at_row + LENGTH]
        at = first + instructions[at_row + DATA]
        other = instructions[at_row + OTHER]
        row += 1
        if operation < WEIGHTED_SQUARES:
            _transform(operation, buffer, source, target, length, data, at)
        elif operation < END_COMPONENT:
            value = value + _landscape(operation, buffer, source, length, data, at, other)
        elif operation == END_COMPONENT:
            weight = _component_weight(buffer, length, data, first + other)
            component = data[at] * value + data[at + 1]
            weighted = weighted + weight * component
            weights = weights + weight
            unweighted = unweighted + component
            num_components += 1.0
            value = spread(0.0)
        else:
            if num_components > 0.0:
                # Far outside the box every weight underflows; the components then count alike.
                value = choose(weights == 0.0, unweighted / num_components, weighted / weights)
            value = value + data[at]
            return choose(value == value, value, np.inf)


@inlined
def _load_points(coordinates: Pointer[float], start: int, dimension: int, buffer: Pointer[float]) -> None:
    """Put the WIDTH points that begin at ``coordinates[start]`` into the first register."""
    num_whole = dimension - dimension % WIDTH
    for j in range(0, num_whole, WIDTH):
        transpose(coordinates, start + j, dimension, buffer, j)
    for j in range(num_whole, dimension):
        store(buffer, j, gather(coordinates, start + j, dimension))


@inlined
def _copy_points(
    coordinates: Pointer[float], first: int, end: int, dimension: int, target: Pointer[float], position: int
) -> None:
    """Write WIDTH points from ``first`` on to ``target``; those from ``end`` on repeat the last one before it."""
    for lane in range(WIDTH):
        point = min(first + lane, end - 1)
        for j in range(dimension):
            target[position + lane * dimension + j] = coordinates[point * dimension + j]


@compiled
def are_finite(points: FloatArray) -> bool:
    """Return whether all coordinates of points (T, D), contiguous, are finite numbers."""
    return _are_finite(pointer_to(points), points.size, np.empty(WIDTH))


@inlined
def _are_finite(coordinates: Pointer[float], count: int, memory: FloatArray) -> bool:
    """Return whether so many numbers are finite, given memory for WIDTH others."""
    num_blocks, total = count // WIDTH, 0.0
    # Zero times infinity is not a number either. Four sums side by side: an addition waits for the one before it.
    first = second = third = fourth = spread(0.0)
    num_rounds = num_blocks // 4
    for block in range(0, 4 * num_rounds, 4):
        first = multiply_add(load(coordinates, block), 0.0, first)
        second = multiply_add(load(coordinates, block + 1), 0.0, second)
        third = multiply_add(load(coordinates, block + 2), 0.0, third)
        fourth = multiply_add(load(coordinates, block + 3), 0.0, fourth)
    for block in range(4 * num_rounds, num_blocks):
        first = multiply_add(load(coordinates, block), 0.0, first)
    store(pointer_to(memory), 0, (first + second) + (third + fourth))
    for lane in range(WIDTH):
        total += memory[lane]
    for position in range(num_blocks * WIDTH, count):
        total += 0.0 * coordinates[position]
    return total == 0.0


@inlined
def _make_rows(dimension: int) -> FloatArray:
    """Return memory for the registers, for a block of points behind them, and for its values."""
    return np.empty(((NUM_REGISTERS + 1) * dimension + 1) * WIDTH)


@shared
def _evaluate_stretch(
    coordinates: Pointer[float],
    begin: int,
    end: int,
    dimension: int,
    instructions: IntArray,
    row: int,
    data: FloatArray,
    first_number: int,
    results: Pointer[float],
    rows: FloatArray,
) -> None:
    """Write the values of the points from ``begin`` up to ``end`` by one program; see ``_run`` and ``_make_rows``."""
    block_row, value_row = NUM_REGISTERS * dimension, (NUM_REGISTERS + 1) * dimension
    for start in range(begin, end, WIDTH):
        # Taken anew for every block: an array may be freed after its last mention, whoever holds its address.
        buffer = pointer_to(rows)
        # The last block overlaps the one before it, so that every point goes through the same code.
        first = max(begin, min(start, end - WIDTH))
        if first + WIDTH <= end:
            _load_points(coordinates, first * dimension, dimension, buffer)
        else:
            _copy_points(coordinates, first, end, dimension, buffer, block_row * WIDTH)
            _load_points(buffer, block_row * WIDTH, dimension, buffer)
        block = _run(pointer_to(instructions), row, pointer_to(data), first_number, buffer)
        if first + WIDTH <= end:
            store_from(results, first, block)
        else:
            store(buffer, value_row, block)
            for lane in range(end - first):
                results[first + lane] = buffer[value_row * WIDTH + lane]


@compiled
def evaluate_programs(
    points: FloatArray,
    starts: IntArray,
    entries: IntArray,
    instructions: IntArray,
    data: FloatArray,
    values: FloatArray,
) -> None:
    """Write the values (T,) of points (T, D), those of run r by the program at ``entries[r]``.

    Points and values may have more axes in place of T, as in (R, N, D) and (R, N).

    Args:
        points: Points of all runs one after another, shape (T, D), contiguous.
        starts: Run r owns the points ``starts[r]`` to ``starts[r + 1]``, possibly none; from 0 to T, shape (R + 1,).
        entries: Where every run's program has its first instruction and its first number, shape (R, 2).
        instructions: All instructions, one per row; their columns are named in this module.
        data: The numbers they refer to.
        values: Where the values are written, shape (T,), contiguous.
    """
    num_runs, dimension = len(entries), points.shape[points.ndim - 1]
    rows = _make_rows(dimension)
    run = 0
    while run < num_runs:
        # Neighbouring runs of one program share blocks.
        next_run = run + 1
        while next_run < num_runs and entries[next_run, 0] == entries[run, 0]:
            next_run += 1
        stretch, program = (starts[run], starts[next_run], dimension), (instructions, entries[run, 0], data)
        _evaluate_stretch(pointer_to(points), *stretch, *program, entries[run, 1], pointer_to(values), rows)
        run = next_run


@compiled
def evaluate_finite(points: FloatArray, instructions: IntArray, data: FloatArray, values: FloatArray) -> bool:
    """Write the values (T,) of points (T, D) by a single program, unless a coordinate is infinite or not a number.

    One call with few arrays: for few points of a cheap function arriving here costs as much as the work.

    Returns:
        Whether all coordinates are finite.
    """
    count, dimension = points.shape
    rows, coordinates = _make_rows(dimension), pointer_to(points)
    if not _are_finite(coordinates, points.size, rows):
        return False
    _evaluate_stretch(coordinates, 0, count, dimension, instructions, 0, data, 0, pointer_to(values), rows)
    return True
