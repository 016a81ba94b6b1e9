"""The kernel that evaluates many points of many functions: an interpreter of small programs on ``Lanes``.

A function of a suite is a program: a few instructions that shift, rotate and bend a block of WIDTH points and add
up landscapes. Reading an instruction costs nanoseconds and serves a whole block, so one compiled kernel evaluates any
mixture of functions at the speed of code written for each.
"""

from __future__ import annotations

import numpy as np

from de_gym.compiling import compiled, shared
from de_gym.problems import functions, transforms
from de_gym.problems.elementary import exponential
from de_gym.problems.lanes import WIDTH, choose, load, spread, square_root, store

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
def _transform(operation, buffer, source, target, length, data, at):
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
def _landscape(operation, buffer, first, length, data, at, other):
    """Return the value of one landscape."""
    if operation == WEIGHTED_SQUARES:
        return functions.weighted_squares(buffer, first, length, data, at)
    if operation == SUM_OF_POWERS:
        return functions.sum_of_powers(buffer, first, length, data, at)
    if operation == DIFFERENT_POWERS:
        return functions.different_powers(buffer, first, length, data, at)
    if operation == ZAKHAROV:
        return functions.zakharov(buffer, first, length, data, at)
    if operation == ROSENBROCK:
        return functions.rosenbrock(buffer, first, length, data, at)
    if operation == GRIEWANK_ROSENBROCK:
        return functions.griewank_rosenbrock(buffer, first, length, data, at)
    if operation == EXPANDED_SCHAFFER:
        return functions.expanded_schaffer(buffer, first, length, data, at)
    if operation == SCHAFFER:
        return functions.schaffer(buffer, first, length, data, at)
    if operation == ACKLEY:
        return functions.ackley(buffer, first, length, data, at)
    if operation == WEIERSTRASS:
        return functions.weierstrass(buffer, first, length, data, at)
    if operation == GRIEWANK:
        return functions.griewank(buffer, first, length, data, at)
    if operation == RASTRIGIN:
        return functions.rastrigin(buffer, first, length, data, at)
    if operation == SCHWEFEL:
        return functions.schwefel(buffer, first, length, data, at)
    if operation == KATSUURA:
        return functions.katsuura(buffer, first, length, data, at)
    if operation == HAPPYCAT:
        return functions.happycat(buffer, first, length, data, at)
    if operation == HGBAT:
        return functions.hgbat(buffer, first, length, data, at)
    if operation == LEVY:
        return functions.levy(buffer, first, length, data, at)
    return functions.lunacek(buffer, first, length, data, at, other)


@shared
def _component_weight(buffer, length, data, at):
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
def _run(instructions, row, data, buffer):
    """Return the values of the block of points in the first register, by the program that starts at ``row``."""
    value = spread(0.0)
    weighted = spread(0.0)
    weights = spread(0.0)
    unweighted = spread(0.0)
    num_components = 0.0
    while True:
        operation = instructions[row, OPERATION]
        source = instructions[row, SOURCE]
        target = instructions[row, TARGET]
        length = instructions[row, LENGTH]
        at = instructions[row, DATA]
        other = instructions[row, OTHER]
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


@compiled
def evaluate_programs(points, slots, starts, instructions, data):
    """Return the values (R, N) of points (R, N, D), those of run r by program ``slots[r]``.

    Args:
        points: Points of every run, shape (R, N, D), contiguous.
        slots: Program of every run, shape (R,).
        starts: First instruction of every program.
        instructions: All instructions, one per row; their columns are named in this module.
        data: The numbers they refer to.
    """
    num_runs, num_points, dimension = points.shape
    flat = points.reshape(num_runs * num_points, dimension)
    values = np.empty(num_runs * num_points)
    scratch_row = NUM_REGISTERS * dimension
    buffer = np.empty((scratch_row + 1) * WIDTH)
    run = 0
    while run < num_runs:
        # Neighbouring runs of one program share blocks.
        last_run = run + 1
        while last_run < num_runs and slots[last_run] == slots[run]:
            last_run += 1
        end = last_run * num_points
        for first in range(run * num_points, end, WIDTH):
            for lane in range(WIDTH):
                point = min(first + lane, end - 1)
                for j in range(dimension):
                    buffer[j * WIDTH + lane] = flat[point, j]
            store(buffer, scratch_row, _run(instructions, starts[slots[run]], data, buffer))
            for lane in range(min(WIDTH, end - first)):
                values[first + lane] = buffer[scratch_row * WIDTH + lane]
        run = last_run
    return values.reshape(num_runs, num_points)
