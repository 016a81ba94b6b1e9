from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from de_gym.evaluation.backends import WorkerDiedError, run_tasks
from de_gym.evaluation.protocol import Protocol
from de_gym.evaluation.results import load_results
from de_gym.evaluation.runner import _reached_is_zero, missing_chunks, run_methods
from de_gym.evaluation.store import ResultStore

PROTOCOL = Protocol("cec2017", 10, (1, 5), num_runs=5, max_evaluations=60)


def random_search(name="search", fail=""):
    """Return a method that draws uniform points; ``fail`` decides what happens instead on function 5.

    Its class is local, so that workers get it by value: they cannot import test modules.
    """

    @dataclass
    class RandomSearch:
        name: str
        fail: str

        @property
        def settings(self):
            return {"kind": "test"}

        def run(self, problem, seeds, protocol):
            if self.fail and problem.number == 5:
                return self._misbehave()
            uniforms = np.stack([np.random.default_rng(seed).random((protocol.budget, 10)) for seed in seeds])
            points = problem.lower + uniforms * (problem.upper - problem.lower)
            best = np.minimum.accumulate(problem.evaluate(points) - problem.optimum, axis=1)
            return SimpleNamespace(
                errors=best[:, -1],
                evaluations=np.full(len(seeds), protocol.budget),
                best_positions=points[:, 0],
                convergence=best[:, protocol.grid - 1],
                grid=protocol.grid,
            )

        def _misbehave(self):
            if self.fail == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.fail == "interrupt":
                raise KeyboardInterrupt
            raise ZeroDivisionError("division by zero")

    return RandomSearch(name, fail)


def _run(folder, *methods, protocol=PROTOCOL, **options):
    store = ResultStore(folder, protocol)
    run_methods(methods or [random_search()], store, progress=False, **options)
    return load_results(store)


def _same(first, second):
    return (
        first.errors.tobytes() == second.errors.tobytes()
        and first.convergence.errors.tobytes() == second.convergence.errors.tobytes()
    )


def test_results_do_not_depend_on_chunks_or_processes(tmp_path):
    (alone,) = _run(tmp_path / "one", jobs=1, chunk_size=5)
    (cut,) = _run(tmp_path / "cut", jobs=1, chunk_size=2)
    (parallel,) = _run(tmp_path / "two", jobs=2, chunk_size=1)
    assert alone.errors.shape == (2, 5)
    assert _same(alone, cut)
    assert _same(alone, parallel)


def test_more_runs_extend_a_store_without_repeating_the_first(tmp_path):
    (few,) = _run(tmp_path / "grown", jobs=1, protocol=PROTOCOL.with_runs(2))
    (more,) = _run(tmp_path / "grown", jobs=1)
    (fresh,) = _run(tmp_path / "fresh", jobs=1)
    assert few.errors.shape == (2, 2)
    assert _same(more, fresh)
    stored = ResultStore(tmp_path / "grown", PROTOCOL).chunks()
    assert [(key.function, key.start, key.stop) for key in stored] == [(1, 0, 2), (1, 2, 5), (5, 0, 2), (5, 2, 5)]


def test_fewer_runs_are_read_from_a_larger_store(tmp_path):
    (many,) = _run(tmp_path, jobs=1)
    (few,) = _run(tmp_path, jobs=1, protocol=PROTOCOL.with_runs(3))
    np.testing.assert_array_equal(few.errors, many.errors[:, :3])


def test_a_damaged_chunk_is_reported_and_computed_again(tmp_path):
    (before,) = _run(tmp_path, jobs=1, chunk_size=2)
    store = ResultStore(tmp_path, PROTOCOL)
    path = store.path(store.chunks()[1])
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"A chunk is damaged, run the evaluation again.*f1_2-4\.npz"):
        load_results(store)
    with pytest.warns(UserWarning, match=r"Damaged chunk, computed again: .*f1_2-4\.npz"):
        (after,) = _run(tmp_path, jobs=1, chunk_size=2)
    assert _same(before, after)


def test_only_missing_runs_are_planned_in_chunks_of_the_wanted_size(tmp_path):
    store = ResultStore(tmp_path, PROTOCOL.with_runs(7))
    assert [(key.start, key.stop) for key in missing_chunks(store, "search", 1, 3)] == [(0, 3), (3, 6), (6, 7)]
    run_methods([random_search()], store, jobs=1, chunk_size=3, progress=False)
    store.discard(store.chunks()[1])
    assert [(key.start, key.stop) for key in missing_chunks(store, "search", 1, 5)] == [(3, 6)]
    with pytest.raises(ValueError, match="lacks 3 of 7 runs of 'search' on function 1"):
        load_results(store)


def test_an_error_below_the_target_counts_as_zero(tmp_path):
    lenient = Protocol("cec2017", 10, (1,), num_runs=2, max_evaluations=60, target_error=1e12)
    (method,) = _run(tmp_path, jobs=1, protocol=lenient)
    assert (method.errors == 0).all()
    assert (method.convergence.errors[..., -1] == 0).all()


def test_an_error_below_a_mistaken_minimum_stays_negative():
    np.testing.assert_array_equal(_reached_is_zero(np.array([1.0, 1e-9, -1e-12, -0.5]), 1e-8), [1.0, 0.0, 0.0, -0.5])


def test_an_error_in_a_method_says_where_it_happened_and_keeps_the_rest(tmp_path):
    with pytest.raises(ZeroDivisionError) as caught:
        _run(tmp_path, random_search(fail="raise"), jobs=1)
    assert caught.value.__notes__ == ["This happened in 'search' on function 5, runs 0 to 5."]
    assert [key.function for key in ResultStore(tmp_path, PROTOCOL).chunks()] == [1]


def test_ctrl_c_says_what_is_kept(tmp_path):
    with pytest.raises(KeyboardInterrupt, match=r"5 of 10 runs were finished and are kept in .*only the rest"):
        _run(tmp_path, random_search(fail="interrupt"), jobs=1)
    (resumed,) = _run(tmp_path, jobs=1)
    (fresh,) = _run(tmp_path / "fresh", jobs=1)
    assert _same(resumed, fresh)


def test_a_full_disk_is_named_and_finished_runs_are_kept(tmp_path, monkeypatch):
    saved = np.savez

    def fill_up(file, **arrays):
        if arrays["errors"].sum() > 0 and "f5_" in file.name:
            file.write(b"half a chunk")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        saved(file, **arrays)

    monkeypatch.setattr(np, "savez", fill_up)
    message = r"^No space left on device\. 5 of 10 runs were finished and are kept in .*; the same command computes"
    with pytest.raises(OSError, match=message):
        _run(tmp_path, jobs=1)
    assert not list(tmp_path.rglob("*.part"))
    monkeypatch.undo()
    (resumed,) = _run(tmp_path, jobs=1)
    (fresh,) = _run(tmp_path / "fresh", jobs=1)
    assert _same(resumed, fresh)


@pytest.mark.slow
def test_a_dead_worker_is_named_and_finished_runs_are_kept(tmp_path):
    with pytest.raises(WorkerDiedError, match=r"A worker process died .* of 10 runs were finished and are kept in"):
        _run(tmp_path, random_search(fail="die"), jobs=2, chunk_size=1)
    (resumed,) = _run(tmp_path, jobs=2, chunk_size=1)
    (fresh,) = _run(tmp_path / "fresh", jobs=1)
    assert _same(resumed, fresh)


def test_bad_arguments_are_refused(tmp_path):
    store = ResultStore(tmp_path, PROTOCOL)
    with pytest.raises(ValueError, match=r"Unknown backend 'rya'. Did you mean 'ray'\?"):
        run_methods([random_search()], store, backend="rya", progress=False)
    with pytest.raises(ValueError, match="`jobs` must be positive, or -1 for all cores, got 0"):
        run_methods([random_search()], store, jobs=0, progress=False)
    with pytest.raises(ValueError, match="`chunk_size` must be at least 1, got 0"):
        run_methods([random_search()], store, chunk_size=0, progress=False)
    with pytest.raises(ValueError, match="distinct names, got search, search"):
        run_methods([random_search(), random_search()], store, progress=False)


@pytest.mark.parametrize(("backend", "module"), [("dask", "distributed"), ("ray", "ray")])
def test_a_missing_extra_is_named(backend, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"Backend '{backend}' needs .* pip install 'de-gym\[{backend}\]'"):
        list(run_tasks(str, [1], backend))


SCRIPT = """
import sys
from test_runner import LONG, ResultStore, random_search, run_methods
run_methods([random_search()], ResultStore(sys.argv[1], LONG), jobs=2, chunk_size=4, progress=False)
"""
LONG = PROTOCOL.with_runs(1200)


def _num_chunks(folder):
    return sum(1 for _ in (folder / "methods").glob("[!.]*/f*.npz"))


@pytest.mark.slow
def test_a_grid_killed_at_five_random_moments_resumes_to_the_same_bits(tmp_path):
    rng = np.random.default_rng()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    folder = tmp_path / "killed"
    for _ in range(5):
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(folder)], env=environment, start_new_session=True)
        before, wanted = _num_chunks(folder), rng.integers(1, 60)
        while _num_chunks(folder) < before + wanted:
            assert process.poll() is None, "the grid ended before it could be killed"
            time.sleep(0.002)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    store = ResultStore(folder, LONG)
    finished = store.chunks()
    path = store.path(finished[0])
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.warns(UserWarning, match="Damaged chunk"):
        (resumed,) = _run(folder, protocol=LONG, jobs=2, chunk_size=50)
    assert set(finished) <= set(store.chunks())
    (fresh,) = _run(tmp_path / "fresh", protocol=LONG, jobs=1, chunk_size=500)
    assert _same(resumed, fresh)
