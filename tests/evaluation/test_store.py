from __future__ import annotations

import json

import numpy as np
import pytest

import de_gym
from de_gym.evaluation.array_files import DamagedFileError
from de_gym.evaluation.protocol import Protocol
from de_gym.evaluation.store import ChunkKey, ResultStore

PROTOCOL = Protocol("cec2017", 10, (1, 3), num_runs=4, max_evaluations=500)
KEY = ChunkKey(function=3, start=0, stop=2, method="jso")
ARRAYS = {"errors": np.array([0.5, 1e-300]), "evaluations": np.array([7, 8])}


@pytest.fixture
def store(tmp_path):
    return ResultStore(tmp_path / "results", PROTOCOL)


def test_a_chunk_comes_back_bit_for_bit(store):
    store.save(KEY, ARRAYS)
    loaded = store.load(KEY)
    assert loaded.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert loaded[name].tobytes() == array.tobytes()
        assert loaded[name].dtype == array.dtype
    assert store.chunks() == [KEY]
    assert store.chunks("jade") == []


def test_a_truncated_chunk_is_noticed(store):
    store.save(KEY, ARRAYS)
    path = store.path(KEY)
    content = path.read_bytes()
    for length in (0, 10, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(DamagedFileError, match=r"f3_0-2\.npz"):
            store.load(KEY)


def test_any_flipped_bit_is_noticed(store):
    store.save(KEY, ARRAYS)
    path = store.path(KEY)
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        try:
            loaded = store.load(KEY)
        except DamagedFileError:
            continue
        # Zip headers repeat themselves: damage to a copy that nobody reads leaves the numbers as they were.
        assert all(loaded[name].tobytes() == array.tobytes() for name, array in ARRAYS.items())


def test_a_chunk_under_another_name_is_not_taken_for_its_own(store):
    store.save(KEY, ARRAYS)
    other = ChunkKey(function=1, start=0, stop=2, method="jso")
    store.path(KEY).rename(store.path(other))
    with pytest.raises(DamagedFileError, match="does not match its checksum"):
        store.load(other)


def test_objects_in_a_chunk_are_never_unpickled(store):
    store.save(KEY, ARRAYS)
    np.savez(store.path(KEY), errors=np.array([{"code": "runs"}], dtype=object), allow_pickle=True)
    with pytest.raises(DamagedFileError, match="cannot be read"):
        store.load(KEY)


def test_half_written_files_are_not_chunks(store, monkeypatch):
    def fail(file, **_):
        file.write(b"half a chunk")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(KeyboardInterrupt):
        store.save(KEY, ARRAYS)
    assert store.chunks() == []
    assert list(store.path(KEY).parent.iterdir()) == []


def test_a_store_is_reopened_with_the_same_settings_and_any_number_of_runs(store):
    store.save(KEY, ARRAYS)
    again = ResultStore(store.folder, Protocol("cec2017", 10, (3, 5), num_runs=51, max_evaluations=500))
    assert again.chunks() == [KEY]
    opened = ResultStore.open(store.folder)
    assert (opened.protocol.functions, opened.protocol.num_runs, opened.protocol.budget) == ((3,), 2, 500)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 5}, "seed is 0 there and 5 here"),
        ({"dimension": 30}, "dimension is 10 there and 30 here"),
        ({"max_generations": 50}, "max_generations is None there and 50 here"),
        ({"max_evaluations": 600}, "max_evaluations is 500 there and 600 here"),
    ],
)
def test_mixed_settings_are_refused(store, changes, message):
    other = Protocol(**{"suite": "cec2017", "dimension": 10, "functions": (1,), "max_evaluations": 500, **changes})
    with pytest.raises(ValueError, match=f"made under other settings: {message}.*use another folder"):
        ResultStore(store.folder, other)


def test_results_of_another_version_are_not_mixed_in(store, monkeypatch):
    monkeypatch.setattr(de_gym, "__version__", "99.0")
    with pytest.raises(ValueError, match=r"package_version is .* there and '99.0' here"):
        ResultStore(store.folder, PROTOCOL)


def test_one_name_cannot_stand_for_two_settings(store):
    store.register("jso", {"kind": "baseline", "memory_size": 5, "pair": (1, 2)})
    store.register("jso", {"kind": "baseline", "memory_size": 5, "pair": (1, 2)})
    with pytest.raises(ValueError, match="'jso' with other settings: memory_size is 5 there and 6 here"):
        store.register("jso", {"kind": "baseline", "memory_size": 6, "pair": (1, 2)})
    assert store.methods["jso"]["memory_size"] == 5


def test_names_that_would_leave_the_folder_are_refused(store):
    for name in ("../jso", "a/b", "", ".hidden"):
        with pytest.raises(ValueError, match="usable as a folder name"):
            store.register(name, {})


def test_foreign_and_missing_folders_are_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="holds files but no results of this package"):
        ResultStore(tmp_path, PROTOCOL)
    with pytest.raises(ValueError, match="must be a folder, got the file"):
        ResultStore(tmp_path / "notes.txt", PROTOCOL)
    with pytest.raises(ValueError, match=r"no results in .*: it has no settings\.json"):
        ResultStore.open(tmp_path / "nowhere")
    (tmp_path / "settings.json").write_text("{}")
    with pytest.raises(ValueError, match="does not describe results of this package"):
        ResultStore(tmp_path, PROTOCOL)
    (tmp_path / "settings.json").write_text("{")
    with pytest.raises(ValueError, match="is not JSON"):
        ResultStore(tmp_path, PROTOCOL)
    (tmp_path / "settings.json").write_text(json.dumps({"format": "de_gym results 1"}))
    with pytest.raises(ValueError, match="lack the section 'protocol'"):
        ResultStore(tmp_path, PROTOCOL)


def test_an_empty_store_cannot_be_reported(store):
    with pytest.raises(ValueError, match="has no finished runs yet"):
        ResultStore.open(store.folder)
