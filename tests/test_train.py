"""``train.py`` end to end, on settings so small that they take seconds."""

import csv
import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest

import train
from agents.config import PRESETS, TrainConfig
from agents.options import OWNERS, RunOptions
from agents.run_folders import load_run_config
from de_gym import minimize
from de_gym.controllers import load_controller
from de_gym.controllers.networks import NETWORKS
from de_gym.envs.rewards import REWARDS
from de_gym.machine.breeding import BOUND_REPAIRS

ROOT = Path(train.__file__).parent
TINY = [
    "--updates", "3", "--functions", "1", "11", "--test-functions", "21", "--episodes-per-function", "2",
    "--population-size", "8", "--max-generations", "4", "--cell-size", "5", "--num-knots", "3", "--measure-runs", "3",
    "--checkpoint-every", "2", "--threads", "1", "--validate-every", "2",
]  # fmt: skip


def test_without_arguments_the_default_preset_runs():
    assert train.parse_config([]) == TrainConfig()


def test_a_preset_gives_the_defaults_and_every_field_can_be_overridden():
    config = train.parse_config(["--preset", "script-10d", "--updates", "7", "--max-grad-norm", "0.5"])
    assert config == replace(PRESETS["script-10d"], updates=7, max_grad_norm=0.5)
    assert train.parse_config(["--history-window", "None"]).history_window is None
    assert [train.parse_config(["--pbest", value]).pbest for value in ("linear", "0.1")] == ["linear", 0.1]


def test_options_stand_with_their_owners_or_alone():
    short = ["--reward", "initial_gap", "--cell_size=7", "--baseline", "none", "--functions", "1", "2"]
    short += ["--measure-runs", "3"]
    full = [
        "--env.reward", "initial_gap", "--policy.cell-size", "7", "--reinforce.baseline", "none",
        "--env.functions", "1", "2", "--measurement.measure-runs", "3",
    ]  # fmt: skip
    changes = {"reward": "initial_gap", "cell_size": 7, "baseline": "none", "functions": (1, 2), "measure_runs": 3}
    expected = replace(TrainConfig(), **changes)
    assert train.parse_config(short) == train.parse_config(full) == expected


def test_every_setting_has_one_owner():
    owned = [field.name for options in (RunOptions, *OWNERS.values()) for field in fields(options)]
    assert sorted(owned) == sorted(field.name for field in fields(TrainConfig))


def test_choices_are_those_of_the_environment():
    hints = get_type_hints(TrainConfig)
    assert set(get_args(hints["reward"])) == set(REWARDS)
    assert set(get_args(hints["bound_repair"])) == set(BOUND_REPAIRS)
    assert set(get_args(hints["network"])) == set(NETWORKS)


def test_help_shows_options_by_owner_with_all_choices():
    command = [sys.executable, ROOT / "train.py", "--help"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for owner in OWNERS:
        assert f" {owner} options " in text
    for choices in (
        "--env.reward {relative,log,initial_gap}",
        "--policy.network {lstm,gru,mlp}",
        "--agent {reinforce,",
    ):
        assert choices in text


def test_recurrent_ppo_has_the_presets_too():
    config = train.parse_config(["--agent", "recurrent-ppo", "--preset", "short", "--epochs", "2"])
    assert config == replace(PRESETS["short"], agent="recurrent-ppo", epochs=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--agent", "recurrent-ppo", "--row-blocks", "4"],
            "`row_blocks` is an option of reinforce, got it with `agent`",
        ),
        (["--agent", "recurrent-ppo", "--reinforce.returns=total"], "`returns` is an option of reinforce"),
        (["--clip-range", "0.1"], "`clip_range` is an option of ppo, got it with `agent` 'reinforce'"),
    ],
)
def test_options_of_another_agent_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        train.parse_config(arguments)


def test_bad_settings_are_rejected_before_anything_is_made():
    with pytest.raises(ValueError, match="`updates` must be at least 1, got 0"):
        train.parse_config(["--updates", "0"])
    with pytest.raises(ValueError, match=r"`--resume` takes all settings but `--updates` .*, got --seed 5"):
        train.parse_config(["--resume", "runs/x", "--seed", "5"])


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
        "measurement-test.csv", "measurement-test.md", "validation.csv", "best.safetensors",
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


def test_a_finished_run_can_be_extended(tmp_path):
    options = [*TINY, "--measure-runs", "2", "--preset", "short"]
    whole = train.train(train.parse_config([*options, "--updates", "5", "--output", str(tmp_path / "whole")]))
    short = train.train(train.parse_config([*options, "--updates", "3", "--output", str(tmp_path / "short")]))
    with pytest.raises(ValueError, match="`updates` of a run can only grow: it was to have 3, got 2"):
        train.parse_config(["--resume", str(short), "--updates", "2"])
    train.train(train.parse_config(["--resume", str(short), "--updates", "5"]))
    assert contents(short) == contents(whole)
    assert load_run_config(short).updates == 5


@pytest.mark.parametrize("network", ["gru", "mlp"])
def test_another_network_is_trained_resumed_and_exported(network, tmp_path):
    options = [*TINY, "--network", network, "--measure-runs", "0"]
    whole = train.train(train.parse_config([*options, "--updates", "4", "--output", str(tmp_path / "whole")]))
    short = train.train(train.parse_config([*options, "--updates", "2", "--output", str(tmp_path / "short")]))
    train.train(train.parse_config(["--resume", str(short), "--updates", "4"]))
    assert contents(short) == contents(whole)
    controller = load_controller(whole / "controller.safetensors")
    assert controller.info.policy == f"{network}-sigmoid-constant"
    assert minimize(lambda x: x @ x, [(-5, 5)] * 10, controller=controller, max_evaluations=400, seed=0).nfev == 400
    with pytest.raises(
        ValueError, match=f"The controller is of kind '{network}-sigmoid-constant', the policy 'sigmoid"
    ):
        train.train(train.parse_config([*TINY, "--init", str(whole / "controller.safetensors")]))


@pytest.mark.parametrize("network", ["lstm", "gru", "mlp"])
def test_a_training_can_begin_with_a_controller(network, tmp_path):
    options = [*TINY, "--network", network, "--measure-runs", "0"]
    first = train.train(train.parse_config([*options, "--output", str(tmp_path)]))
    start = ["--init", str(first / "controller.safetensors"), "--seed", "3"]
    second = train.train(train.parse_config([*options, *start, "--output", str(tmp_path)]))
    before, after = (load_controller(folder / f"{name}.safetensors").tensors
                     for folder, name in ((first, "controller"), (second, "untrained")))  # fmt: skip
    for name, tensor in before.items():
        np.testing.assert_array_equal(after[name], tensor, err_msg=name)


def test_several_seeds_are_trained_and_summarised(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["train.py", *TINY, "--seeds", "4", "2", "--output", str(tmp_path)])
    assert train.main() == 0
    folders = {path.name: path for path in tmp_path.iterdir()}
    assert set(folders) == {
        "quick-reinforce-seed4-1", "quick-reinforce-seed2-1", "quick-reinforce-seeds-4-2.md"
    }  # fmt: skip
    single = train.train(train.parse_config([*TINY, "--seed", "2", "--output", str(tmp_path / "single")]))
    assert contents(single) == contents(folders["quick-reinforce-seed2-1"])
    value = load_controller(single / "controller.safetensors").info.results["test"]["mean_return"]["trained"]
    table = folders["quick-reinforce-seeds-4-2.md"].read_text()
    assert f"{value:.3f} |" in table.splitlines()[3]
    assert table in capsys.readouterr().out


def test_all_updates_train_on_episodes_of_their_own(tmp_path, monkeypatch):
    seen = []
    original = train.make_training_env

    def recorded(config):
        env = original(config)
        reset = env.unwrapped.vector_env.reset

        def remember(**arguments):
            observations, infos = reset(**arguments)
            if arguments.get("seed") is not None:
                seen.append((arguments["seed"][0], infos["best_error"].tobytes()))
            return observations, infos

        env.unwrapped.vector_env.reset = remember
        return env

    monkeypatch.setattr(train, "make_training_env", recorded)
    for agent in ("reinforce", "recurrent-ppo"):
        seen.clear()
        options = [*TINY, "--agent", agent, "--updates", "4", "--measure-runs", "0"]
        options += ["--row-blocks", "1"] if agent == "reinforce" else []
        folder = train.train(train.parse_config([*options, "--output", str(tmp_path)]))
        assert len(seen) == 5  # the first reset is SB3's own
        assert len({seed for seed, _ in seen[1:]}) == len({errors for _, errors in seen[1:]}) == 4
        with (folder / "progress.csv").open(newline="") as file:
            assert len({row["return"] for row in csv.DictReader(file)}) == 4


def contents(folder):
    """Return what a run has computed, by file."""
    return {path.name: path.read_bytes() for ending in ("csv", "safetensors") for path in folder.glob(f"*.{ending}")}


def test_a_mistake_ends_in_one_sentence(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", ["train.py", "--resume", str(tmp_path)])
    assert train.main() == 1
    assert capsys.readouterr().err.startswith("train.py: ")


def test_a_configuration_of_wrong_types_ends_in_one_sentence(monkeypatch, capsys, tmp_path):
    folder = train.train(train.parse_config([*TINY, "--output", str(tmp_path)]))
    values = json.loads((folder / "config.json").read_text())
    del values["sha256"]  # as one that was written by hand
    (folder / "config.json").write_text(json.dumps(values | {"cell_size": "five"}))
    monkeypatch.setattr(sys, "argv", ["train.py", "--resume", str(folder)])
    capsys.readouterr()
    assert train.main() == 1
    message = capsys.readouterr().err
    assert message.startswith("train.py: ")
    assert message.endswith("`cell_size` must be int, got 'five'.\n")
    assert message.count("\n") == 1


def test_a_full_disk_leaves_a_valid_checkpoint_and_the_training_goes_on(monkeypatch, capsys, tmp_path):
    options = [*TINY, "--updates", "6", "--measure-runs", "0", "--output"]
    whole = train.train(train.parse_config([*options, str(tmp_path / "whole")]))
    original, written = os.fsync, []

    def full_disk(descriptor):
        written.append(descriptor)
        if len(written) == 8:  # the configuration, the first rows, a checkpoint and a trial were written
            raise OSError(errno.ENOSPC, "No space left on device")
        original(descriptor)

    monkeypatch.setattr(os, "fsync", full_disk)
    monkeypatch.setattr(sys, "argv", ["train.py", *options, str(tmp_path / "full")])
    assert train.main() == 1
    (folder,) = (tmp_path / "full").iterdir()
    command = f"python train.py --resume {folder}"
    last_line = capsys.readouterr().err.splitlines()[-1]
    assert last_line.startswith(f"train.py: The disk of {str(folder)!r} is full: free some space; ")
    assert last_line.endswith(command)
    assert not list(folder.glob(".*"))
    monkeypatch.setattr(sys, "argv", command.split()[1:])
    assert train.main() == 0
    assert contents(folder) == contents(whole)


@pytest.mark.parametrize(("number", "name"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")])
def test_a_stop_ends_in_one_sentence_and_the_training_goes_on(number, name, tmp_path):
    options = [*TINY, "--updates", "400", "--checkpoint-every", "1", "--measure-runs", "0", "--output", str(tmp_path)]
    # Tests that a script starts with "&" ignore Ctrl-C, and so would the training.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "train.py"), *options], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    signal.signal(signal.SIGINT, before)
    try:
        while process.poll() is None and rows(tmp_path) < 2:
            time.sleep(0.01)
        process.send_signal(number)
        message = process.communicate(timeout=60)[1]
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 128 + number
    (folder,) = tmp_path.iterdir()
    assert message.splitlines()[-1] == (
        f"train.py: Stopped by {name}; the training goes on from its last checkpoint with: "
        f"python train.py --resume {folder}"
    )
    assert "Traceback" not in message
    assert not list(folder.glob(".*"))
    config = replace(train.parse_config(["--resume", str(folder)]), updates=rows(tmp_path) + 1)
    assert train.train(config) == folder


def test_a_stop_before_the_training_says_so(monkeypatch, capsys):
    monkeypatch.setattr(train, "parse_config", lambda _: os.kill(os.getpid(), signal.SIGTERM))
    monkeypatch.setattr(sys, "argv", ["train.py"])
    assert train.main() == 143
    assert capsys.readouterr().err == "train.py: Stopped before the training began.\n"


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


@pytest.mark.parametrize("command", ["train.py", "evaluate.py"])
def test_help_says_what_is_reproducible(command):
    shown = subprocess.run(
        [sys.executable, ROOT / command, "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert "follows from" in shown
    assert "x86-64" in shown
