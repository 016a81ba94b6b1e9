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
from de_gym.machine.lanes import WIDTH, choose, gather, load, pointer_to, spread, square_root, store

if TYPE_CHECKING:
    from de_gym.machine.lanes import Lanes, Pointer

NUM_REGISTERS = 5

# Columns of an instruction.
OPERATION, SOURCE, TARGET, LENGTH, DATA, OTHER = range(6)
NUM_COLUMNS = 6

SHIFT, ROTATE, SCALE, ROUND_STEPS, OSCILLATE, SKEW, SKEW_EXACTLY = range(7)
(
    WEIGHTED_SQUARES,
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
) = range(7, 25)
END_COMPONENT, END = range(25, 27)


@shared
def _transform(
    operation: int, buffer: Pointer[float], source: int, target: int, length: int, data: Pointer[float], at: int
) -> None:
    """Carry out one transformation."""
    if operation == SHIFT:
        transforms.shift(buffer, source, target, length, data, at)
    elif operation == ROTATE:
        transforms.rotate(buffer, source, target, length, data, at)
    elif operation == SCALE:
        transforms.scale(buffer, source, target, length, data, at)
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
    distance = spread(0.0)
    for i in range(length):
        offset = load(buffer, i) - data[at + 1 + i]
        distance = distance + offset * offset
    weight = exponential(-distance / data[at]) / square_root(distance)
    return choose(distance == 0.0, 1e99, weight)


@shared
def _run(instructions: Pointer[int], row: int, data: Pointer[float], buffer: Pointer[float]) -> Lanes:
    """Return the values of the block of points in the first register, by the program that starts at ``row``."""
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
        at = instructions[at_row + DATA]
        other = instructions[at_row + OTHER]
        row += 1
        if operation < WEIGHTED_SQUARES:
            _transform(operation, buffer, source, target, length, data, at)
        elif operation < END_COMPONENT:
            value = value + _landscape(operation, buffer, source, length, data, at, other)
        elif operation == END_COMPONENT:
            weight = _component_weight(buffer, length, data, other)
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
    for j in range(dimension):
        store(buffer, j, gather(coordinates, start + j, dimension))


@compiled
def evaluate_programs(
    points: FloatArray,
    starts: IntArray,
    entries: IntArray,
    instructions: IntArray,
    data: FloatArray,
    values: FloatArray,
) -> None:
    """Write the values (T,) of points (T, D), those of run r by the program that starts at ``entries[r]``.

    Args:
        points: Points of all runs one after another, shape (T, D), contiguous.
        starts: Run r owns the points ``starts[r]`` to ``starts[r + 1]``, possibly none; from 0 to T, shape (R + 1,).
        entries: First instruction of every run's program, shape (R,).
        instructions: All instructions, one per row; their columns are named in this module.
        data: The numbers they refer to.
        values: Where the values are written, shape (T,), contiguous.
    """
    num_runs, dimension = len(entries), points.shape[1]
    coordinates = pointer_to(points)
    results = pointer_to(values)
    registers = np.empty(NUM_REGISTERS * dimension * WIDTH)
    last_block = np.empty((WIDTH, dimension))
    block_values = np.empty(WIDTH)
    run = 0
    while run < num_runs:
        # Neighbouring runs of one program share blocks.
        next_run = run + 1
        while next_run < num_runs and entries[next_run] == entries[run]:
            next_run += 1
        end = starts[next_run]
        for first in range(starts[run], end, WIDTH):
            # Taken anew for every block: an array may be freed after its last mention, whoever holds its address.
            buffer = pointer_to(registers)
            if first + WIDTH <= end:
                _load_points(coordinates, first * dimension, dimension, buffer)
            else:
                # The lanes beyond the last point repeat it, so that every point goes through the same code.
                for lane in range(WIDTH):
                    point = min(first + lane, end - 1)
                    for j in range(dimension):
                        last_block[lane, j] = coordinates[point * dimension + j]
                _load_points(pointer_to(last_block), 0, dimension, buffer)
            block = _run(pointer_to(instructions), entries[run], pointer_to(data), buffer)
            store(pointer_to(block_values), 0, block)
            for lane in range(min(WIDTH, end - first)):
                results[first + lane] = block_values[lane]
        run = next_run
