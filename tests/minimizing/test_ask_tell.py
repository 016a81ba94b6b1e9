"""Ask and tell: any order, any number, failures, files, and workers that are never idle."""

from __future__ import annotations

import heapq
import json
import threading
import time
import zipfile

import numpy as np
import pytest
from scipy.optimize import rosen

from de_gym import Optimizer, minimize
from de_gym.controllers import RandomController
from de_gym.optimizers import PAPER_METHODS

BOX = [(-5.0, 3.0), (-1.0, 4.0), (-2.0, 2.0)]
METHODS = [*PAPER_METHODS, "l-srtde", "learned"]
TAKERS = [method for method in METHODS if method != "hses"]


def sphere(x):
    return float(np.sum((x - 0.5) ** 2))


def values_of(points):
    return [sphere(point) for point in points]


def run_to_the_end(optimizer, rng=None):
    """Finish a run, a generation at a time, or as an unordered crowd would where there is a generator."""
    pending = list(optimizer.outstanding)
    while not optimizer.has_ended or pending:
        points = optimizer.ask() if rng is None else optimizer.ask(int(rng.integers(1, 9)))
        pending += list(points)
        count = len(pending) if rng is None or not len(points) else int(rng.integers(len(pending) + 1))
        for _ in range(count):
            place = 0 if rng is None else int(rng.integers(len(pending)))
            point = pending.pop(place)
            optimizer.tell(point, None if rng is not None and rng.random() < 0.05 else sphere(point))
    return optimizer.result


def assert_same(one, other):
    np.testing.assert_array_equal(one.x, other.x)
    np.testing.assert_array_equal(one.population, other.population)
    assert (one.fun, one.nfev, one.nit) == (other.fun, other.nfev, other.nit)


@pytest.mark.parametrize("method", [*METHODS, "cma", "minion-lshade"])
def test_whole_generations_are_minimize(method):
    starts = [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]] if method not in ("hses", "cma", "minion-lshade") else None
    options = {"method": method, "max_evaluations": 700, "seed": 5, "x0": starts}
    optimizer = Optimizer(BOX, **options)
    while not optimizer.has_ended:
        points = optimizer.ask()
        order = np.random.default_rng(0).permutation(len(points))
        optimizer.tell(points[order], np.array(values_of(points[order])))
    assert_same(optimizer.result, minimize(sphere, BOX, tol=None, **options))
    assert len(optimizer.ask()) == len(optimizer.ask(3)) == 0
    optimizer.close()


@pytest.mark.parametrize("method", TAKERS)
def test_any_order_any_number_and_failures(method):
    optimizer = Optimizer(BOX, method=method, max_evaluations=3000, seed=1)
    result = run_to_the_end(optimizer, np.random.default_rng(2))
    assert result.nfev == 3000
    assert result.fun < 0.02
    assert result.fun == sphere(result.x)
    assert result.success
    assert len(optimizer.outstanding) == 0


def test_waiting_methods_hand_out_nothing_while_values_are_missing():
    optimizer = Optimizer(BOX, method="hses", max_evaluations=1000, seed=1, x0=[0.5] * 3)
    first = optimizer.ask()
    np.testing.assert_array_equal(first, [[0.5] * 3])
    points = optimizer.ask()
    assert len(points) == 200
    assert optimizer.ask(4).shape == optimizer.ask().shape == (0, 3)
    optimizer.tell(points, values_of(points))
    assert len(optimizer.ask(4)) == 4


@pytest.mark.parametrize("method", ["l-srtde", "jso", "hses", "learned"])
@pytest.mark.parametrize("moment", [0, 1, 30, 173])
def test_saved_at_any_moment_and_continued_bit_for_bit(tmp_path, method, moment):
    options = {"method": method, "max_evaluations": 900, "seed": 3, "integrality": [False, True, False]}
    one, rng = Optimizer(BOX, x0=[0.0, 1.0, 0.0], **options), np.random.default_rng(moment)
    pending = []
    for _ in range(moment):
        pending += list(one.ask(int(rng.integers(1, 5))))
        while pending and rng.random() < 0.7:
            point = pending.pop(int(rng.integers(len(pending))))
            one.tell(point, [np.nan if rng.random() < 0.1 else sphere(point)], [max(point[0], 0.0)])
        if rng.random() < 0.1:
            own = np.array([rng.uniform(-5, 3), 2.0, 0.5])
            one.tell(own, sphere(own))
    one.save(tmp_path / "run.npz")
    other = Optimizer.load(tmp_path / "run.npz")
    np.testing.assert_array_equal(one.outstanding, other.outstanding)
    np.testing.assert_array_equal(sorted(map(tuple, one.outstanding)), sorted(map(tuple, pending)))
    assert_same(one.result, other.result)
    assert_same(run_to_the_end(one, np.random.default_rng(7)), run_to_the_end(other, np.random.default_rng(7)))


def test_file_keeps_a_drawn_seed_and_is_no_pickle(tmp_path):
    one = Optimizer(BOX, method="jade", max_evaluations=300)
    one.ask(5)
    one.save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz", allow_pickle=False) as stored:
        assert all(stored[name].dtype.kind in "iuf" for name in stored.files)
    assert_same(run_to_the_end(one), run_to_the_end(Optimizer.load(tmp_path / "run.npz")))


def test_a_file_in_which_the_bracket_of_a_shape_is_gone_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    Optimizer(BOX, method="jade", max_evaluations=300, seed=0).save(path)
    with zipfile.ZipFile(path) as whole:
        contents = {name: whole.read(name) for name in whole.namelist()}
    with zipfile.ZipFile(path, "w") as damaged:
        for name, content in contents.items():
            damaged.writestr(name, content.replace(b"), }", b" , }"))
    with pytest.raises(ValueError, match=r"no file that `Optimizer.save` wrote, or is damaged"):
        Optimizer.load(path)


def test_files_that_are_none_of_ours(tmp_path):
    path = tmp_path / "run.npz"
    optimizer = Optimizer(BOX, method="jade", max_evaluations=300, seed=0)
    optimizer.tell(optimizer.ask(20), np.arange(20.0))
    optimizer.save(path)
    content = path.read_bytes()
    np.savez(tmp_path / "other.npz", header=np.zeros(3))
    garbled = bytearray(content)
    start = content.index(b"header.npy") + len(b"header.npy") + 20
    garbled[start : start + 40] = bytes(40)  # what zlib cannot read
    for damaged in (b"", b"precious", content[: len(content) // 2], (tmp_path / "other.npz").read_bytes(), garbled):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"no file that `Optimizer.save` wrote, or is damaged"):
            Optimizer.load(path)
    own = Optimizer(BOX, controller=RandomController(10), max_evaluations=300)
    with pytest.raises(ValueError, match="`controller` must be a name or a path"):
        own.save(path)


def test_files_made_by_hand_are_one_sentence(tmp_path):
    path = tmp_path / "run.npz"
    optimizer = Optimizer(BOX, method="jade", max_evaluations=300, seed=0)
    optimizer.tell(optimizer.ask(20), np.arange(20.0))
    optimizer.tell([0.1, 0.2, 0.3], 1.0)
    optimizer.save(path)
    with np.load(path) as stored:
        good = dict(stored)
    header = json.loads(good["header"].tobytes())

    def with_header(**changes):
        changed = {key: value for key, value in (header | changes).items() if value is not None}
        return {"header": np.frombuffer(json.dumps(changed).encode(), np.uint8)}

    bad = [with_header(lower=None), with_header(random_state=3), with_header(x1=[0.0])]
    bad += [{"tickets": good["tickets"] + 900}, {"events": np.array([20, -90])}, {"unasked": np.empty((0, 3))}]
    for changes in bad:
        np.savez(path, **(good | changes))
        with pytest.raises(ValueError, match=r"holds no run that `Optimizer.save` could have written"):
            Optimizer.load(path)


def test_points_of_others_help():
    rng = np.random.default_rng(0)
    known = 0.5 + 1e-3 * rng.standard_normal((40, 3))
    optimizer = Optimizer(BOX, method="jade", max_evaluations=240, seed=0)
    optimizer.tell(known, values_of(known))
    result = run_to_the_end(optimizer)
    assert result.nfev == 240
    assert result.fun < min(values_of(known))
    assert run_to_the_end(Optimizer(BOX, method="jade", max_evaluations=200, seed=0)).fun > 100.0 * result.fun


def test_infeasible_points_are_the_worse_the_farther():
    optimizer = Optimizer([(-5, 5)] * 2, method="l-srtde", max_evaluations=3000, seed=0)
    while not optimizer.has_ended:
        points = optimizer.ask()
        optimizer.tell(points, points.sum(axis=1), np.maximum((points**2).sum(axis=1) - 4.0, 0.0))
    result = optimizer.result
    assert result.maxcv == 0.0
    assert result.fun == pytest.approx(-2.0 * np.sqrt(2.0), abs=1e-4)
    assert result.success


def test_nothing_feasible_is_no_success():
    optimizer = Optimizer(BOX, method="jade", max_evaluations=90, seed=0)
    while not optimizer.has_ended:
        points = optimizer.ask()
        optimizer.tell(points, [None] * len(points))
    assert not optimizer.result.success
    assert "No feasible point of finite value" in optimizer.result.message


def test_small_problems_and_budgets():
    fixed = Optimizer([(1, 1), (2, 2)])
    np.testing.assert_array_equal(fixed.ask(), [[1.0, 2.0]])
    assert fixed.has_ended
    fixed.tell([1.0, 2.0], 3.0)
    assert fixed.result.fun == 3.0
    for budget in (1, 3, 7):
        assert run_to_the_end(Optimizer(BOX, max_evaluations=budget, seed=0)).nfev == budget
    only_starts = Optimizer(BOX, method="cma", max_evaluations=2, x0=np.zeros((5, 3)))
    assert len(only_starts.ask()) == 2
    assert only_starts.has_ended


def test_more_workers_than_points_of_a_generation():
    optimizer = Optimizer(BOX, method="jade", max_evaluations=2000, population_size=10, seed=0)
    pending = list(optimizer.ask(35))
    assert len(pending) == 35
    while pending:
        point = pending.pop(0)
        optimizer.tell(point, sphere(point))
        pending += list(optimizer.ask(1))
    assert optimizer.result.nfev == 2000
    assert optimizer.result.fun < 1e-3


def simulate(durations, max_evaluations):
    """Return the utilisation of workers on a simulated clock, and the result."""
    optimizer = Optimizer(BOX, max_evaluations=max_evaluations, seed=0)
    events = [(0.0, worker, None) for worker in range(len(durations))]
    busy = now = 0.0
    while events:
        now, worker, done = heapq.heappop(events)
        if done is not None:
            optimizer.tell(done, sphere(done))
        for point in optimizer.ask(1):
            busy += durations[worker]
            heapq.heappush(events, (now + durations[worker], worker, point))
    return busy / (now * len(durations)), optimizer.result


def test_workers_of_different_speed_are_never_idle():
    utilisation, result = simulate([1.0, 2.0, 5.0, 10.0], 1500)
    assert result.nfev == 1500
    assert utilisation > 0.99
    assert result.fun < 1e-3


def test_four_threads_of_speeds_one_to_ten_are_busy():
    optimizer, busy = Optimizer(BOX, method="l-srtde", max_evaluations=170, seed=0), []

    def work(seconds):
        mine = 0.0
        while len(points := optimizer.ask(1)):
            began = time.perf_counter()
            time.sleep(seconds)
            value = sphere(points[0])
            mine += time.perf_counter() - began
            optimizer.tell(points, [value])
        busy.append(mine)

    threads = [threading.Thread(target=work, args=(seconds,)) for seconds in (0.01, 0.02, 0.05, 0.1)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall = time.perf_counter() - began
    assert optimizer.result.nfev == 170
    assert sum(busy) / (4 * wall) > 0.9


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda o: o.ask(0), ValueError, "`k` must be at least 1, got 0"),
        (lambda o: o.ask(1.5), TypeError, "`k` must be a whole number"),
        (lambda o: o.tell([0.0], 1.0), ValueError, r"`points` must have 3 coordinates, got shape \(1,\)"),
        (lambda o: o.tell("point", 1.0), ValueError, "`points` must be points of numbers"),
        (lambda o: o.tell([9.0, 0, 0], 1.0), ValueError, "inside the bounds"),
        (lambda o: o.tell([0.0, 0, 0], [1.0, 2.0]), ValueError, "`values` must be one per point, got 2 for 1"),
        (lambda o: o.tell([0.0, 0, 0], ["low"]), TypeError, "`values` must be numbers, or None"),
        (lambda o: o.tell([0.0, 0, 0], 1.0, -1.0), ValueError, "`violations` must be one number of at least 0"),
    ],
)
def test_bad_calls_are_named_and_change_nothing(call, error, message):
    optimizer = Optimizer(BOX, method="jade", max_evaluations=300, seed=0)
    with pytest.raises(error, match=message):
        call(optimizer)
    assert_same(run_to_the_end(optimizer), run_to_the_end(Optimizer(BOX, method="jade", max_evaluations=300, seed=0)))


# Points beyond those of the search cost evaluations, so that eight at a time do not get as far; ended, it gets to 3.
@pytest.mark.parametrize(("num_points", "most"), [(None, 1e-4), (2, 1e-4), (8, 0.5)])
def test_further_points_do_not_end_a_local_search(num_points, most):
    found = []
    for seed in range(3):
        optimizer = Optimizer([(-5, 5)] * 10, max_evaluations=5000, seed=seed)
        while not optimizer.has_ended:
            points = optimizer.ask(num_points)
            optimizer.tell(points, [rosen(point) for point in points])
        found.append(optimizer.result.fun)
    assert np.median(found) < most
