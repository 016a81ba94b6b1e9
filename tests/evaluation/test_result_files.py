from __future__ import annotations

import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from de_gym.evaluation.protocol import Protocol
from de_gym.evaluation.result_files import StoredRuns, add_runs, read_runs, result_file

PROTOCOL = Protocol("cec2017", 10, (1, 3), num_runs=2)
MAKING = {"seed": 5, "seed_rule": "by hand", "package_version": "0.1.0"}


def _runs(level=1.0, functions=(1, 3), num_runs=2):
    errors = level * np.arange(1.0, 1.0 + len(functions) * num_runs).reshape(len(functions), num_runs)
    return StoredRuns(functions, errors, np.full(errors.shape, 9), {"kind": "baseline", "pair": [1, 2]}, MAKING)


def test_runs_come_back_bit_for_bit_with_how_they_were_made(tmp_path):
    path = add_runs(PROTOCOL, {"jso": _runs(1e-300), "mine=0.5,0.9": _runs(7.0, (1,), 3)}, tmp_path)
    read = read_runs(PROTOCOL, tmp_path)
    assert list(read) == ["jso", "mine=0.5,0.9"]
    assert read["jso"].errors.tobytes() == _runs(1e-300).errors.tobytes()
    assert (read["jso"].settings, read["jso"].making) == ({"kind": "baseline", "pair": [1, 2]}, MAKING)
    assert (read["mine=0.5,0.9"].functions, read["mine=0.5,0.9"].errors.shape) == ((1,), (1, 3))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_the_same_results_make_the_same_file(tmp_path):
    first, second = (add_runs(PROTOCOL, {"jso": _runs()}, tmp_path / name) for name in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_every_limit_of_a_run_is_in_the_name_of_the_file():
    names = {
        result_file(replace(PROTOCOL, **limits)).name
        for limits in ({}, {"max_evaluations": 2500}, {"max_generations": 50}, {"dimension": 30}, {"suite": "cec2013"})
    }
    assert len(names) == 5
    assert result_file(replace(PROTOCOL, max_evaluations=2500)).name == "cec2017-10d-2500e.npz"


def test_methods_are_added_beside_others_and_replaced_by_as_many_runs_only(tmp_path):
    add_runs(PROTOCOL, {"jso": _runs(), "de": _runs()}, tmp_path)
    add_runs(PROTOCOL, {"jso": _runs(3.0, num_runs=4), "jade": _runs()}, tmp_path)
    read = read_runs(PROTOCOL, tmp_path)
    assert {name: runs.errors.shape for name, runs in read.items()} == {"jso": (2, 4), "de": (2, 2), "jade": (2, 2)}
    for fewer in (_runs(), _runs(functions=(1,), num_runs=9)):
        with pytest.raises(ValueError, match="holds more of 'jso': 4 runs of 2 functions; they are not replaced"):
            add_runs(PROTOCOL, {"jso": fewer}, tmp_path)
    assert read_runs(PROTOCOL, tmp_path)["jso"].errors.shape == (2, 4)


def test_other_limits_under_one_name_are_neither_read_nor_mixed(tmp_path):
    add_runs(PROTOCOL, {"jso": _runs()}, tmp_path)
    lenient = replace(PROTOCOL, target_error=1.0)
    assert result_file(lenient, tmp_path) == result_file(PROTOCOL, tmp_path)
    assert read_runs(lenient, tmp_path) == {}
    with pytest.raises(ValueError, match="holds results under other limits"):
        add_runs(lenient, {"de": _runs()}, tmp_path)


def test_damage_is_noticed_wherever_it_is(tmp_path):
    path = add_runs(PROTOCOL, {"jso": _runs()}, tmp_path)
    content = path.read_bytes()
    for place in range(0, len(content), 11):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        try:
            read = read_runs(PROTOCOL, tmp_path)
        except ValueError as error:
            assert "damaged" in str(error)  # noqa: PT017  # zip headers repeat themselves: some damage is harmless
        else:
            assert read["jso"].errors.tobytes() == _runs().errors.tobytes()
    path.write_bytes(content)
    path.rename(result_file(replace(PROTOCOL, dimension=30), tmp_path))
    with pytest.raises(ValueError, match="does not match its checksum"):
        read_runs(replace(PROTOCOL, dimension=30), tmp_path)


def test_a_file_holds_plain_arrays_and_a_description_that_people_can_read(tmp_path):
    path = add_runs(PROTOCOL, {"jso": _runs()}, tmp_path)
    assert set(zipfile.ZipFile(path).namelist()) == {
        "jso/errors.npy",
        "jso/evaluations.npy",
        "metadata.npy",
        "checksum.npy",
    }
    description = json.loads(str(np.load(path, allow_pickle=False)["metadata"]))
    assert description["methods"]["jso"]["num_runs"] == 2
    assert description["limits"]["max_evaluations"] == 100_000
