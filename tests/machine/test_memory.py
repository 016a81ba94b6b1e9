"""Kernels keep to their own memory: whatever lies around it, and whatever it held before, nothing changes."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import njit

from de_gym import Problem, ProblemBatch, make_suite
from de_gym.envs.state import RUN
from de_gym.evolution.two_population import CONTROLS, draw_initial_points, set_parameters, start
from de_gym.machine.breeding import BOUND_REPAIRS, Workspace, locate_workspace, make_workspace
from de_gym.machine.breeding_places import locate_space, space_size
from de_gym.machine.front_breeding import breed_run, turn_axes_in_time
from de_gym.machine.front_selection import select_run
from de_gym.machine.kernel import _evaluate_stretch, _make_rows
from de_gym.machine.lanes import as_integers, moved, pointer_to
from de_gym.machine.ranked_generations import _breed, _locate, _locate_plan
from de_gym.machine.top_and_front import find_starts, locate_run, locate_state, locate_trials, make_trials

HERE = Path(__file__).parent
EDGES, GUARD = HERE / "edges.py", HERE / "guard_pages.c"
AROUND = 96  # numbers before and behind what a kernel may touch
FILLS = (np.nan, 3.5)
DIMENSIONS = (1, 2, 7, 8, 9, 16, 17, 300, 301)


def surrounded(size: int, fill: float, shift: int = 0):
    """Return so many numbers within a larger array that holds ``fill`` everywhere, and that array.

    The first lies so many numbers behind the beginning of a line of the processor's cache.
    """
    whole = np.full(size + 2 * AROUND, fill)
    first = AROUND - whole.ctypes.data // 8 % 8 + shift
    return whole[first : first + size], whole


def assert_untouched_around(own, whole, fill: float) -> None:
    first = (own.ctypes.data - whole.ctypes.data) // whole.itemsize
    for outside in (whole[:first], whole[first + own.size :]):
        np.testing.assert_array_equal(outside, np.full(len(outside), fill, whole.dtype))


def two_populations(dimension: int, size: int):
    """Return a run with room for one more individual, its problem, and parameters that use every control."""
    problem = Problem.from_function(lambda x: (x**2).sum(axis=-1), -1.0, 2.0, dimension=dimension, vectorized=True)
    batch, key = ProblemBatch([problem]), np.array([5], np.uint64)
    points, starts = draw_initial_points(key, np.array([size]), batch.lower, batch.upper)
    values = batch.evaluate_ragged(points, starts)
    state = start(key, points, starts, values, 100 * size, batch.lower, batch.upper, capacity=size + 1)
    return state, batch, set_parameters(state.runs, np.full((1, len(CONTROLS)), 0.5))


@njit
def size_of_space(count, capacity, dimension):
    return space_size(count, capacity, dimension)


@njit
def breed_within(memory, state, parameters, low, high, trials, count):
    """Make the first trials of a run within the given memory."""
    places, box = locate_state(state), (pointer_to(low), pointer_to(high))
    space, home = locate_space(pointer_to(memory), count, places.dimension), locate_run(0, places)
    turn_axes_in_time(state.runs[0], home, box[0], box[1], space.turning)
    breed_run(state.runs[0], parameters[0], count, home, box[0], box[1], locate_trials(trials), space)


@njit
def select_within(memory, state, parameters, trials, values, count):
    """Let the first trials of a run compete within the given memory."""
    places, room = locate_state(state), pointer_to(memory)
    integers, home = as_integers(moved(room, places.capacity)), locate_run(0, places)
    select_run(state.runs[0], parameters[0], count, home, locate_trials(trials), pointer_to(values), integers, room)


@njit
def breed_ranked_within(workspace, runs, positions, order, actions, num_pbest, lower, upper, repair, starts, trials):
    """Make the trials of some runs within the given memory."""
    places, plan = _locate(positions, order, positions), _locate_plan(actions, num_pbest, lower, upper, repair)
    _breed(0, runs, places, plan, locate_workspace(workspace), starts, pointer_to(trials))


@njit
def evaluate_within(memory, points, instructions, data, values):
    """Evaluate points by a program within the given memory."""
    count, dimension = points.shape
    _evaluate_stretch(pointer_to(points), 0, count, dimension, instructions, 0, data, 0, pointer_to(values), memory)


@njit
def size_of_rows(dimension):
    return len(_make_rows(dimension))


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("size", [4, 9, 37])
def test_breeding_and_selection_keep_to_their_space(dimension, size):
    results = []
    for shift in (0, 1, 7):
        for fill in FILLS:
            state, batch, parameters = two_populations(dimension, size)
            for _ in range(5):
                trials = make_trials(find_starts(state.runs, True), dimension)
                count = len(trials.points)
                space, whole = surrounded(size_of_space(count, size + 1, dimension), fill, shift)
                breed_within(space, state, parameters, batch.lower[0], batch.upper[0], trials, count)
                assert_untouched_around(space, whole, fill)
                space, whole = surrounded(3 * (size + 1), fill, shift)
                values = batch.evaluate_ragged(trials.points, trials.starts)
                select_within(space, state, parameters, trials, values, count)
                assert_untouched_around(space, whole, fill)
            results.append((state.runs.tobytes(), trials.points.tobytes(), state.basis.tobytes()))
    assert state.runs["generation"][0] >= 1
    assert len(set(results)) == 1


@pytest.mark.parametrize("dimension", DIMENSIONS[1:])
@pytest.mark.parametrize("repair", BOUND_REPAIRS.values(), ids=BOUND_REPAIRS)
def test_breeding_by_rank_keeps_to_its_workspace(dimension, repair):
    for size in (4, 5, 12):
        rng, found = np.random.default_rng(1), []
        runs, order = np.zeros(2, RUN), np.tile(np.arange(size), (2, 1))
        runs["size"], runs["key"] = size, [3, 4]
        positions, actions = rng.random((2, size, dimension)), rng.random((2, 2 * size))
        box = np.zeros((2, dimension)), np.ones((2, dimension))
        for fill in (-7, 11):
            parts = []
            for array in make_workspace(size, dimension, repair):
                whole = np.full(array.size + 2 * AROUND, fill, array.dtype if array.dtype != np.uint64 else np.int64)
                parts.append((whole[AROUND:-AROUND], whole, array))
            workspace = Workspace(*(own.view(array.dtype).reshape(array.shape) for own, _, array in parts))
            starts, trials = np.empty(3, np.int64), np.empty((2 * size, dimension))
            state = runs, positions, order
            breed_ranked_within(workspace, *state, actions, np.array([1, 2]), *box, repair, starts, trials)
            for own, whole, _ in parts:
                assert_untouched_around(own, whole, fill)
            found.append(trials.tobytes())
        assert found[0] == found[1]


@pytest.mark.parametrize(("suite", "dimension"), [("random", 2), ("random", 9), ("random", 16), ("cec2017", 10)])
def test_evaluation_keeps_to_its_registers(suite, dimension):
    rng = np.random.default_rng(2)
    for problem in make_suite(suite, dimension):
        for count in (1, 7, 8, 11):
            points = rng.uniform(problem.lower, problem.upper, (count, dimension))
            for fill in FILLS:
                memory, whole = surrounded(size_of_rows(dimension), fill)
                values, all_values = surrounded(count, fill)
                evaluate_within(memory, points, *problem.program, values)
                assert_untouched_around(memory, whole, fill)
                assert_untouched_around(values, all_values, fill)
                np.testing.assert_array_equal(values, problem.evaluate(points))


def results_at_edges(**environment: str) -> dict[str, str]:
    """Return what ``edges.py`` prints with these environment variables."""
    finished = subprocess.run(
        [sys.executable, str(EDGES)], env=os.environ | environment, capture_output=True, text=True, timeout=900
    )
    assert finished.returncode == 0, finished.stderr
    found: dict[str, str] = json.loads(finished.stdout)
    return found


@pytest.fixture(scope="module")
def usual_results():
    return results_at_edges()


@pytest.mark.slow
@pytest.mark.parametrize("byte", [90, 165])
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be asked to overwrite memory")
def test_results_do_not_depend_on_what_memory_held_before(byte, usual_results):
    # Without its caches of small blocks, which it does not overwrite.
    tunables = f"glibc.malloc.tcache_count=0:glibc.malloc.perturb={byte}"
    assert results_at_edges(GLIBC_TUNABLES=tunables) == usual_results
    assert len(usual_results) > 200


@pytest.mark.slow
@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or not shutil.which("cc"), reason="the allocator needs a C compiler and glibc"
)
def test_nothing_is_read_or_written_behind_an_array_or_after_it_was_freed(tmp_path, usual_results):
    library = str(tmp_path / "guard_pages.so")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, str(GUARD), "-lpthread"], check=True)
    assert results_at_edges(LD_PRELOAD=library) == usual_results
    # The allocator would notice: one number behind an array ends the process.
    beyond = (
        "import runpy, numpy as np; from numpy.lib.stride_tricks import as_strided\n"
        f"runpy.run_path({str(EDGES)!r})['watch_memory']()\n"
        "numbers = np.ones(100); print(as_strided(numbers, (101,))[{}])"
    )
    for index, is_own in ((99, True), (100, False)):
        command = [sys.executable, "-c", beyond.format(index)]
        finished = subprocess.run(command, env=os.environ | {"LD_PRELOAD": library}, capture_output=True, cwd=HERE)
        assert (finished.returncode == 0) == is_own
