"""``train.py`` end to end, on settings so small that they take seconds."""

import csv
import random
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

import train
from agents.config import PRESETS, TrainConfig
from agents.training import load_run_config
from de_gym.controllers import load_controller

ROOT = Path(train.__file__).parent
TINY = [
    "--updates", "3", "--functions", "1", "11", "--test-functions", "21", "--episodes-per-function", "2",
    "--population-size", "8", "--max-generations", "4", "--cell-size", "5", "--num-knots", "3", "--measure-runs", "3",
    "--checkpoint-every", "2", "--threads", "1",
]  # fmt: skip


def test_without_arguments_the_default_preset_runs():
    assert train.parse_config([]) == TrainConfig()


def test_a_preset_gives_the_defaults_and_every_field_can_be_overridden():
    config = train.parse_config(["--preset", "script-10d", "--updates", "7", "--max-grad-norm", "0.5"])
    assert config == replace(PRESETS["script-10d"], updates=7, max_grad_norm=0.5)
    assert train.parse_config(["--history-window", "None"]).history_window is None
    assert [train.parse_config(["--pbest", value]).pbest for value in ("linear", "0.1")] == ["linear", 0.1]


def test_recurrent_ppo_has_the_presets_too():
    config = train.parse_config(["--agent", "recurrent-ppo", "--preset", "short", "--epochs", "2"])
    assert config == replace(PRESETS["short"], agent="recurrent-ppo", epochs=2)


def test_bad_settings_are_rejected_before_anything_is_made():
    with pytest.raises(ValueError, match="`updates` must be at least 1, got 0"):
        train.parse_config(["--updates", "0"])
    with pytest.raises(ValueError, match="`--resume` takes every setting from the interrupted run"):
        train.parse_config(["--resume", "runs/x", "--updates", "5"])


@pytest.mark.parametrize("mistake", [["--functions", "99"], ["--num-knots", "99"], ["--pbest", "7"]])
def test_a_mistake_leaves_no_folder_behind(mistake, tmp_path):
    with pytest.raises(ValueError, match=r"99|`pbest`"):
        train.train(train.parse_config([*TINY, *mistake, "--output", str(tmp_path)]))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("agent", ["reinforce", "recurrent-ppo"])
def test_a_training_leaves_everything_in_its_folder(agent, tmp_path, capsys):
    folder = train.train(train.parse_config([*TINY, "--agent", agent, "--output", str(tmp_path)]))
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "config.json", "progress.csv", "checkpoint.safetensors", "tensorboard", "training.png",
        "controller.safetensors", "untrained.safetensors", "measurement-training.csv", "measurement-training.md",
        "measurement-test.csv", "measurement-test.md",
    }  # fmt: skip
    assert list((folder / "tensorboard").rglob("events*"))
    assert len((folder / "progress.csv").read_text().splitlines()) == 4
    controller = load_controller(folder / "controller.safetensors", population_size=8)
    assert controller.info.env_settings["functions"] == [1, 11]
    assert set(controller.info.results) == {"training", "test"}
    before = load_controller(folder / "untrained.safetensors").tensors
    assert any((before[name] != tensor).any() for name, tensor in controller.tensors.items())
    printed = capsys.readouterr().out
    assert "| f21 |" in printed
    assert "untrained: return" in printed
    assert asdict(load_run_config(folder))["agent"] == agent


def test_a_finished_run_can_be_resumed_without_change(tmp_path):
    folder = train.train(train.parse_config([*TINY, "--output", str(tmp_path)]))
    before = contents(folder)
    assert train.train(train.parse_config(["--resume", str(folder)])) == folder
    assert contents(folder) == before


def contents(folder):
    """Return what a run has computed, by file."""
    return {path.name: path.read_bytes() for ending in ("csv", "safetensors") for path in folder.glob(f"*.{ending}")}


def test_a_mistake_ends_in_one_sentence(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", ["train.py", "--resume", str(tmp_path)])
    assert train.main() == 1
    assert capsys.readouterr().err.startswith("train.py: ")


@pytest.fixture
def start():
    """Return a function that starts train.py as a process of its own; all of them are ended after the test."""
    processes = []

    def start_process(arguments):
        command = [sys.executable, str(ROOT / "train.py"), *arguments]
        processes.append(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return processes[-1]

    yield start_process
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize(("agent", "updates"), [("reinforce", 300), ("recurrent-ppo", 60)])
def test_killed_at_five_random_moments_and_resumed_the_weights_are_bit_identical(agent, updates, start, tmp_path):
    options = [*TINY, "--agent", agent, "--updates", str(updates), "--checkpoint-every", "3", "--measure-runs", "0"]
    assert start([*options, "--output", str(tmp_path / "whole")]).wait(timeout=600) == 0
    (whole,) = (tmp_path / "whole").iterdir()

    rng = random.Random(0)
    part = updates // 6
    process = start([*options, "--output", str(tmp_path / "killed")])
    for kill in range(5):
        moment = kill * part + rng.randint(1, part)
        while process.poll() is None and rows(tmp_path / "killed") < moment:
            time.sleep(0.01)
        assert process.poll() is None, "the training ended before it could be killed"
        process.kill()
        process.wait()
        (folder,) = (tmp_path / "killed").iterdir()
        assert rows(tmp_path / "killed") < updates
        process = start(["--resume", str(folder)])
    assert process.wait(timeout=600) == 0
    assert contents(folder).keys() == contents(whole).keys()
    assert contents(folder) == contents(whole)


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["reinforce", "recurrent-ppo"])
def test_sixty_updates_of_the_short_preset_raise_the_return(agent, tmp_path):
    options = ["--preset", "short", "--agent", agent, "--updates", "60", "--measure-runs", "0"]
    folder = train.train(train.parse_config([*options, "--output", str(tmp_path)]))
    with (folder / "progress.csv").open(newline="", encoding="utf-8") as file:
        returns = [float(row["return"]) for row in csv.DictReader(file)]
    assert len(returns) == 60
    # About 2.5 to 3.0, and the starts that all runs of an update share let one update differ from the next by 0.1.
    assert np.mean(returns[-10:]) > np.mean(returns[:10]) + 0.25


def rows(output):
    """Return how many updates the run in ``output`` has recorded."""
    return max((path.read_text().count("\n") - 1 for path in output.glob("*/progress.csv")), default=0)
