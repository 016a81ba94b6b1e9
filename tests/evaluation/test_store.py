from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from de_gym.evaluation.array_files import DamagedFileError
from de_gym.evaluation.protocol import Protocol
from de_gym.evaluation.store import ChunkKey, ResultStore

PROTOCOL = Protocol("cec2017", 10, (1, 3), num_runs=4, max_evaluations=500)
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="local functions go to a forked process only")
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
    assert [path.name for path in store.path(KEY).parent.iterdir()] == []


def test_a_store_is_reopened_with_the_same_settings_and_any_number_of_runs(store):
    store.save(KEY, ARRAYS)
    again = ResultStore(store.folder, Protocol("cec2017", 10, (3, 5), num_runs=51, max_evaluations=500))
    assert again.chunks() == [KEY]


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
    monkeypatch.setattr("de_gym.version.__version__", "99.0")
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
    (tmp_path / "settings.json").write_text("{}")
    with pytest.raises(ValueError, match="does not describe results of this package"):
        ResultStore(tmp_path, PROTOCOL)
    (tmp_path / "settings.json").write_text("{")
    with pytest.raises(ValueError, match="is not JSON"):
        ResultStore(tmp_path, PROTOCOL)
    (tmp_path / "settings.json").write_text("[]")
    with pytest.raises(ValueError, match="does not hold settings"):
        ResultStore(tmp_path, PROTOCOL)


def _in_processes(*functions):
    """Call functions in processes of their own, all at the same time, and return their exit codes."""
    context = multiprocessing.get_context("fork")
    start = context.Barrier(len(functions))

    def call(function):
        start.wait()
        function()

    processes = [context.Process(target=call, args=(function,)) for function in functions]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return [process.exitcode for process in processes]


@needs_fork
def test_processes_that_share_a_store_lose_none_of_each_other_s_methods(tmp_path):
    def register(number):
        store = ResultStore(tmp_path / "shared", PROTOCOL)
        for count in range(20):
            store.register(f"method-{number}-{count}", {"number": number})

    assert _in_processes(*(partial(register, number) for number in range(4))) == [0] * 4
    methods = ResultStore(tmp_path / "shared", PROTOCOL).methods
    assert {name: settings["number"] for name, settings in methods.items()} == {
        f"method-{number}-{count}": number for number in range(4) for count in range(20)
    }


@needs_fork
def test_of_two_processes_only_one_can_give_a_name_its_meaning(tmp_path, capfd):
    def register(number):
        for count in range(20):
            try:
                ResultStore(tmp_path / "shared", PROTOCOL).register(f"method-{count}", {"number": number})
            except ValueError as error:
                assert "with other settings" in str(error)  # noqa: PT017
            else:
                (tmp_path / f"won-{count}-{number}").touch()

    assert _in_processes(partial(register, 0), partial(register, 1)) == [0, 0]
    winners = [path.name for path in tmp_path.glob("won-*")]
    assert len(winners) == 20
    methods = ResultStore(tmp_path / "shared", PROTOCOL).methods
    assert all(f"won-{count}-{methods[f'method-{count}']['number']}" in winners for count in range(20))


@needs_fork
def test_of_two_processes_only_one_can_choose_the_protocol_of_a_store(tmp_path):
    def start(seed):
        for count in range(20):
            try:
                ResultStore(tmp_path / f"store-{count}", replace(PROTOCOL, seed=seed))
            except ValueError as error:
                assert "made under other settings" in str(error)  # noqa: PT017
            else:
                (tmp_path / f"won-{count}-{seed}").touch()

    assert _in_processes(partial(start, 0), partial(start, 1)) == [0, 0]
    assert len(list(tmp_path.glob("won-*"))) == 20


def test_leftovers_of_killed_writers_are_removed_and_never_taken_for_results(store):
    store.register("jso", {})
    store.save(KEY, ARRAYS)
    methods = store.folder / "methods"
    unfinished = [
        methods / ".jade.0.part",
        methods / "jso" / ".f1_0-2.npz.1.part",
        store.folder.parent / ".results.2.part",
    ]
    for path in unfinished:
        path.mkdir()
        (path / "settings.json").write_text("{}")
    again = ResultStore(store.folder, PROTOCOL)
    assert (list(again.methods), again.chunks()) == (["jso"], [KEY])
    assert all(path.exists() for path in unfinished)  # another process may be at it
    for path in unfinished:
        os.utime(path, (0, 0))
    ResultStore(store.folder, PROTOCOL)
    assert not any(path.exists() for path in unfinished)


@needs_fork
def test_whenever_it_is_killed_a_store_can_be_used_again(tmp_path):
    """Kill a process at its first, second, third ... operation on files, until it lives to its end."""

    def use(folder):
        store = ResultStore(folder, PROTOCOL)
        store.register("jso", {"memory_size": 5})
        store.save(KEY, ARRAYS)

    def use_until(count, folder):
        operations = iter(range(count))

        def hook(event, _):
            if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir") and next(operations, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        use(folder)

    killed = 0
    while _in_processes(partial(use_until, killed, tmp_path / str(killed))) == [-signal.SIGKILL]:
        use(tmp_path / str(killed))
        assert ResultStore(tmp_path / str(killed), PROTOCOL).chunks() == [KEY]
        killed += 1
    assert killed > 8
