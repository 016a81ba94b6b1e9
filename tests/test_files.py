"""Files that must never be half there."""

from __future__ import annotations

import os

import pytest

from de_gym.files import remove_parts, replacing


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
    keep = [".hidden.part", "file.part", f"file.{'0' * 32}.part", f".{'0' * 32}.part"]
    for name in (*keep, f".result.{'0f' * 16}.part"):
        (tmp_path / name).write_text("")
    remove_parts(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted(keep)
