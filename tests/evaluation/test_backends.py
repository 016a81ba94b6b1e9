from __future__ import annotations

import os
import signal

import pytest

from de_gym.evaluation.backends import WorkerDiedError, run_tasks
from de_gym.evaluation.methods import controller_method, make_methods
from de_gym.evaluation.protocol import Protocol
from de_gym.evaluation.results import load_results
from de_gym.evaluation.runner import run_methods
from de_gym.evaluation.store import ResultStore

PROTOCOL = Protocol("cec2017", 10, (5, 21), num_runs=4, max_evaluations=1000)
BACKENDS = [("local", 2), ("dask", 2), ("ray", 2)]


def _bits(folder, tiny_controller, **options):
    methods = [controller_method("learned", tiny_controller(50)), *make_methods(["random", "jade-archive"], PROTOCOL)]
    store = ResultStore(folder, PROTOCOL)
    run_methods(methods, store, progress=False, **options)
    results = load_results(store, [method.name for method in methods])
    return b"".join(method.errors.tobytes() + method.convergence.errors.tobytes() for method in results)


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "jobs"), BACKENDS)
def test_every_backend_gives_the_bits_of_one_process(backend, jobs, tmp_path, tiny_controller):
    pytest.importorskip({"local": "joblib", "dask": "distributed", "ray": "ray"}[backend])
    alone = _bits(tmp_path / "one", tiny_controller, jobs=1, chunk_size=4)
    assert _bits(tmp_path / backend, tiny_controller, backend=backend, jobs=jobs, chunk_size=1) == alone


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "jobs"), BACKENDS)
def test_a_worker_that_keeps_dying_ends_the_grid_with_a_message(backend, jobs):
    pytest.importorskip({"local": "joblib", "dask": "distributed", "ray": "ray"}[backend])

    def die_of_three(number: int) -> int:  # local, so that workers get it by value
        if number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    finished = []
    with pytest.raises(WorkerDiedError, match=r"worker .*died"):
        finished.extend(run_tasks(die_of_three, list(range(8)), backend, jobs))
    assert 3 not in finished
