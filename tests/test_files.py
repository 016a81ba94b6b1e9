"""Files that must never be half there."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from de_gym.files import create_folder, remove_abandoned, replacing, updating


def test_a_file_appears_whole_and_with_the_user_s_mode(tmp_path):
    path = tmp_path / "result"
    before = os.umask(0o027)
    try:
        with replacing(path) as file:
            file.write(b"half")
            assert not path.exists()
            file.write(b" and half")
    finally:
        os.umask(before)
    assert path.read_bytes() == b"half and half"
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_was_there_stays_where_writing_fails(tmp_path, error):
    path = tmp_path / "result"
    path.write_bytes(b"old")

    def write_half() -> None:
        with replacing(path) as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        write_half()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["result"]


def test_parts_of_a_killed_process_are_removed_and_nothing_else(tmp_path):
    keep = ["file.part", f"file.{'0' * 32}.part"]
    for name in (*keep, f".result.{'0f' * 16}.part"):
        (tmp_path / name).write_text("")
    remove_abandoned(tmp_path, after=0.0)
    assert sorted(os.listdir(tmp_path)) == sorted(keep)


def test_a_folder_appears_with_its_files_and_is_made_once(tmp_path):
    path = tmp_path / "new" / "folder"
    assert create_folder(path, {"one": b"1", "two": b"2"})
    assert not create_folder(path, {"one": b"other"})
    assert sorted((file.name, file.read_bytes()) for file in path.iterdir()) == [("one", b"1"), ("two", b"2")]
    assert os.listdir(path.parent) == ["folder"]


def test_an_empty_folder_is_filled_and_a_file_is_in_the_way(tmp_path):
    (tmp_path / "empty").mkdir()
    assert create_folder(tmp_path / "empty", {"one": b"1"})
    (tmp_path / "file").write_bytes(b"mine")
    with pytest.raises(OSError, match="file"):
        create_folder(tmp_path / "file", {"one": b"1"})
    assert (tmp_path / "file").read_bytes() == b"mine"
    assert sorted(os.listdir(tmp_path)) == ["empty", "file"]


def test_what_killed_writers_left_is_removed_but_not_what_is_being_written(tmp_path):
    (tmp_path / ".result.0.part").write_bytes(b"half")
    (tmp_path / ".folder.1.part").mkdir()
    (tmp_path / ".folder.1.part" / "file").write_bytes(b"half")
    (tmp_path / ".other.2.part").write_bytes(b"half")
    remove_abandoned(tmp_path)
    assert len(os.listdir(tmp_path)) == 3  # just written: somebody may still be at it
    for name in (".result.0.part", ".folder.1.part", ".other.2.part"):
        os.utime(tmp_path / name, (0, 0))
    remove_abandoned(tmp_path, "result")
    assert sorted(os.listdir(tmp_path)) == [".folder.1.part", ".other.2.part"]
    remove_abandoned(tmp_path)
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no locks of folders")
def test_nobody_s_entry_is_lost_where_several_update_a_file(tmp_path):
    path = tmp_path / "entries"
    path.write_text("")

    def add(entry: int) -> None:
        with updating(path):
            before = path.read_text()
            time.sleep(0.005)
            path.write_text(f"{before}{entry} ")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(20)))
    assert sorted(map(int, path.read_text().split())) == list(range(20))


def test_an_error_while_updating_is_raised_and_lets_others_in(tmp_path):
    for _ in range(2):
        with pytest.raises(ImportError, match="mine"), updating(tmp_path / "new" / "file"):
            raise ImportError("mine")
