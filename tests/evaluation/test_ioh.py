from __future__ import annotations

import numpy as np
import pytest

from de_gym.evaluation.ioh import export_ioh
from de_gym.evaluation.protocol import Protocol
from de_gym.evaluation.results import Convergence, MethodResults

iohinspector = pytest.importorskip("iohinspector")

PROTOCOL = Protocol("cec2017", 10, (1, 30), num_runs=2, max_evaluations=400)
GRID = np.array([1, 50, 100, 200, 400])
ERRORS = np.array(
    [
        [[np.inf, 5.0, 5.0, 0.125, 0.125], [np.inf, 7.0, 6.0, 6.0, 6.0]],
        [[np.inf, 9.0, 3.0, 0.0, 0.0], [np.inf, np.inf, 1e-7, 1e-7, 1e-7]],
    ]
)
EVALUATIONS = np.array([[400, 400], [150, 400]])


@pytest.fixture
def results():
    method = MethodResults("jso", ERRORS[..., -1], EVALUATIONS, Convergence(GRID, ERRORS))
    return [method, MethodResults("jade", np.ones((2, 51)))]


@pytest.fixture
def manager(results, tmp_path):
    export_ioh(results, PROTOCOL, tmp_path / "ioh")
    manager = iohinspector.DataManager()
    manager.add_folder(str(tmp_path / "ioh"))
    return manager


def test_iohinspector_sees_every_run_with_our_numbers(manager):
    overview = manager.overview.sort(["function_id", "run_id"])
    assert overview["algorithm_name"].to_list() == ["jSO"] * 4
    assert overview["function_id"].to_list() == [1, 1, 30, 30]
    assert overview["evals"].to_list() == [400, 400, 150, 400]
    assert overview["best_y"].to_list() == [0.125, 6.0, 0.0, 1e-7]
    assert set(overview["suite"]) == {"cec2017"}
    assert set(overview["dimension"]) == {10}


def test_iohinspector_reads_back_the_whole_convergence(manager):
    rows = manager.load(monotonic=False, include_meta_data=True)
    for function, run, expected in [
        (1, 1, [(1, np.inf), (50, 5.0), (200, 0.125), (400, 0.125)]),
        (1, 2, [(1, np.inf), (50, 7.0), (100, 6.0), (400, 6.0)]),
        (30, 1, [(1, np.inf), (50, 9.0), (100, 3.0), (150, 0.0)]),
        (30, 2, [(1, np.inf), (100, 1e-7), (400, 1e-7)]),
    ]:
        found = rows.filter((rows["function_id"] == function) & (rows["run_id"] == run)).sort("evaluations")
        assert list(zip(found["evaluations"], found["raw_y"], strict=True)) == expected


def test_every_run_begins_with_exactly_one_row_of_evaluation_one(results, tmp_path):
    for path in export_ioh(results, PROTOCOL, tmp_path):
        for data in path.parent.rglob("*.dat"):
            blocks = data.read_text().split("evaluations raw_y\n")[1:]
            assert len(blocks) == 2
            for block in blocks:
                counts = [line.split()[0] for line in block.splitlines()]
                assert counts[0] == "1"
                assert counts.count("1") == 1


def test_results_without_a_record_cannot_be_exported(tmp_path):
    with pytest.raises(ValueError, match="nothing to export: no method has a record"):
        export_ioh([MethodResults("jade", np.ones((2, 51)))], PROTOCOL, tmp_path)
