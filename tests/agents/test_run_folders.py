import errno
import json
import os
import shutil
from collections import namedtuple
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from agents.config import PRESETS, TrainConfig
from agents.run_folders import load_run_config, make_run_folder, save_run_config

TINY = TrainConfig(updates=3, population_size=8, max_generations=4, cell_size=5, threads=1)


def test_the_run_folder_is_new_and_holds_the_configuration(tmp_path):
    config = replace(TINY, output=str(tmp_path / "runs"))
    first, second = make_run_folder(config), make_run_folder(config)
    assert first != second
    assert load_run_config(first) == config
    written = json.loads((first / "config.json").read_text())
    assert len(written.pop("sha256")) == 64
    assert written == json.loads(json.dumps(asdict(config)))


def test_a_changed_digit_in_the_configuration_is_noticed(tmp_path):
    save_run_config(TINY, tmp_path)
    path = tmp_path / "config.json"
    path.write_text(path.read_text().replace('"learning_rate": 0.005', '"learning_rate": 0.004'))
    with pytest.raises(ValueError, match=r"config\.json' does not match its checksum: the file is damaged\.$"):
        load_run_config(tmp_path)


def test_a_configuration_that_is_no_text_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "config.json").write_bytes(b'{"seed": \xa0}')
    with pytest.raises(ValueError, match=r"config\.json' is damaged: it is not JSON \(.*\)\.$"):
        load_run_config(tmp_path)


def test_an_output_folder_that_cannot_be_written_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"The output folder '.*file' cannot be written"):
        make_run_folder(replace(TINY, output=str(tmp_path / "file")))
    with pytest.raises(OSError, match="cannot be written: Not a directory"):
        make_run_folder(replace(TINY, output=str(tmp_path / "file" / "below")))


def test_a_full_disk_is_reported(tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, 10**6))
    with pytest.raises(OSError, match=r"has 1 MB free, but the run may need 50 MB"):
        make_run_folder(replace(TINY, output=str(tmp_path)))
    assert not list(tmp_path.iterdir())
    with pytest.raises(OSError, match=r"may need \d{3} MB"):
        make_run_folder(replace(PRESETS["paper-10d"], output=str(tmp_path)))


def test_a_disk_that_is_full_at_the_first_write_is_reported(tmp_path, monkeypatch):
    def full_disk(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match=r"^The output folder '.*' cannot be written: No space left on device\.$"):
        make_run_folder(replace(TINY, output=str(tmp_path)))
    assert not list(tmp_path.iterdir())


def test_a_folder_without_configuration_is_not_a_run(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not the folder of a run"):
        load_run_config(tmp_path)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_read_as_it_was_written(preset, tmp_path):
    save_run_config(PRESETS[preset], tmp_path)
    assert load_run_config(tmp_path) == PRESETS[preset]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"updates": "many"}, r"config\.json' is not the configuration of a run: `updates` must be int, got 'many'"),
        ({"updates": True}, "`updates` must be int, got True"),
        ({"updates": 3.5}, r"`updates` must be int, got 3\.5"),
        ({"gamma": "0.9"}, "`gamma` must be float, got '0.9'"),
        ({"functions": 7}, "`functions` must be a list of int, got 7"),
        ({"functions": [1, "two"]}, r"`functions` must be a list of int, got \[1, 'two'\]"),
        ({"preset": "fast"}, r"`preset` must be 'quick' or 'short' or .*, got 'fast'"),
        ({"preset": ["quick"]}, "`preset` must be 'quick' or"),
        ({"max_evaluations": "all"}, "`max_evaluations` must be int or 'episode' or null, got 'all'"),
        ({"half_precision": 1}, "`half_precision` must be bool, got 1"),
        ({"no_such_field": 1}, "written by another version of train.py, which differs in 'no_such_field'"),
    ],
)
def test_a_configuration_of_wrong_types_is_refused(changes, message, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(asdict(TINY) | changes))
    with pytest.raises(ValueError, match=message):
        load_run_config(tmp_path)


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b"\xff\xfe", b"null"])
def test_what_is_no_configuration_is_refused(text, tmp_path):
    (tmp_path / "config.json").write_bytes(text)
    with pytest.raises(ValueError, match=r"config\.json' is (not the configuration of a run|damaged: it is not JSON)"):
        load_run_config(tmp_path)
    values = asdict(TINY)
    del values["seed"]
    (tmp_path / "config.json").write_text(json.dumps(values))
    with pytest.raises(ValueError, match="differs in 'seed'"):
        load_run_config(tmp_path)


def test_updates_of_earlier_versions_were_not_divided(tmp_path):
    values = asdict(replace(TINY, row_blocks=2))
    (tmp_path / "config.json").write_text(json.dumps(values))
    assert load_run_config(tmp_path).row_blocks == 2
    del values["row_blocks"]
    (tmp_path / "config.json").write_text(json.dumps(values))
    assert load_run_config(tmp_path).row_blocks == 1


def test_whole_numbers_are_numbers(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(asdict(TINY) | {"gamma": 1, "pbest": 0.5}))
    assert load_run_config(tmp_path) == replace(TINY, gamma=1, pbest=0.5)


def test_a_folder_has_its_configuration_from_the_start(tmp_path, monkeypatch):
    seen, replace_folder = [], Path.rename

    def rename(path, target):
        seen.append([file.name for file in path.iterdir()])
        return replace_folder(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    (tmp_path / "quick-reinforce-seed0-1").mkdir()  # of a run that was killed before it had one
    folder = make_run_folder(replace(TINY, output=str(tmp_path)))
    assert (folder.name, seen) == ("quick-reinforce-seed0-1", [["config.json"]])
    assert load_run_config(folder) == replace(TINY, output=str(tmp_path))


def test_a_configuration_that_does_not_fit_on_the_disk_leaves_no_folder(tmp_path, monkeypatch):
    def full_disk(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        make_run_folder(replace(TINY, output=str(tmp_path)))
    assert not list(tmp_path.iterdir())
