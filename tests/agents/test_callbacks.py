import csv
import itertools
import os
import shutil
import sys
import warnings

import numpy as np
import pytest
import torch
from sb3_contrib import RecurrentPPO
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from agents import RecurrentREINFORCE, UnitBoxLstmPolicy
from agents.callbacks import PROGRESS_FILE, SeedEveryRollout, TrainingMonitor, Validation, append_row
from agents.checkpoints import CHECKPOINT_FILE, load_checkpoint
from agents.interruptions import resumable


def make_reinforce(env):
    return RecurrentREINFORCE("UnitBoxLstmPolicy", env, seed=5, policy_kwargs={"lstm_hidden_size": 6})


def make_ppo(env):
    kwargs = {"lstm_hidden_size": 6, "std": "learned"}
    return RecurrentPPO(UnitBoxLstmPolicy, env, n_steps=5, batch_size=10, n_epochs=2, seed=5, policy_kwargs=kwargs)


def run(agent, folder, total, every=2, first=0):
    folder.mkdir(exist_ok=True)
    callbacks = [TrainingMonitor(folder, total, every, first)]
    if isinstance(agent, RecurrentPPO):
        callbacks.insert(0, SeedEveryRollout(5, first))
    agent.learn((total - first) * 20, callback=callbacks, reset_num_timesteps=False)
    return callbacks[-1]


@pytest.mark.parametrize("make_agent", [make_reinforce, make_ppo])
def test_a_stopped_training_goes_on_bit_for_bit(make_target_env, tmp_path, make_agent):
    whole = make_agent(make_target_env())
    rows = run(whole, tmp_path / "whole", 5).rows
    run(make_agent(make_target_env()), tmp_path / "parts", 3)
    # What a kill in the middle of the next update leaves behind: rows beyond the checkpoint, one of them cut off.
    append_row(tmp_path / "parts" / PROGRESS_FILE, rows[0])
    with (tmp_path / "parts" / PROGRESS_FILE).open("a") as file:
        file.write("5.0,10")
    continued = make_agent(make_target_env())
    first = load_checkpoint(continued, tmp_path / "parts" / CHECKPOINT_FILE, max_updates=5).updates
    assert first == 3
    assert run(continued, tmp_path / "parts", 5, first=first).rows == rows
    for name, parameter in whole.policy.state_dict().items():
        assert torch.equal(continued.policy.state_dict()[name], parameter), name
    files = [(tmp_path / kind / PROGRESS_FILE).read_text() for kind in ("whole", "parts")]
    assert files[0] == files[1]


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_rows_that_a_power_cut_took_do_not_stop_the_training(make_target_env, tmp_path, kept):
    run(make_reinforce(make_target_env()), tmp_path, 3)
    header, *rows = (tmp_path / PROGRESS_FILE).read_text().splitlines(keepends=True)
    (tmp_path / PROGRESS_FILE).write_text("".join([header, *rows[:kept], "3.0,6"]))
    continued = make_reinforce(make_target_env())
    with pytest.warns(RuntimeWarning, match=r"progress\.csv' is damaged or incomplete"):
        load_checkpoint(continued, tmp_path / CHECKPOINT_FILE, max_updates=4)
    assert [row["update"] for row in run(continued, tmp_path, 4, first=3).rows] == [*range(1, kept + 1), 4]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content.replace(b"2.0,", b"2.5,"),
        lambda content: content.replace(b"update", b"updatf"),
        lambda content: content.replace(b"3.0,", b"\xff.0,"),
        lambda content: content.replace(b"3.0,", b"3.0,1.0,"),
        lambda content: b"\0" * len(content),
        lambda content: b'"' + b"1" * 200_000,
    ],
)
@pytest.mark.parametrize("name", [PROGRESS_FILE, "validation.csv"])
def test_a_damaged_record_is_said_and_stops_no_training(make_target_env, tmp_path, damage, name):
    def go_on(agent, total, first):
        monitor = TrainingMonitor(tmp_path, total, 1, first)
        trials = Validation(tmp_path, 1, first, lambda path: float(path.write_text("policy")))
        agent.learn((total - first) * 20, callback=[trials, monitor], reset_num_timesteps=False)

    go_on(make_reinforce(make_target_env()), 3, 0)
    continued, content = make_reinforce(make_target_env()), (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(damage(content))
    with pytest.warns(RuntimeWarning, match=f"{name}' is damaged or incomplete: the training goes on exactly"):
        load_checkpoint(continued, tmp_path / CHECKPOINT_FILE, max_updates=4)
    go_on(continued, 4, 3)
    assert (tmp_path / PROGRESS_FILE).read_text().splitlines()[-1].startswith("4.0,")


def test_records_that_have_grown_since_the_checkpoint_are_whole(make_target_env, tmp_path):
    rows = run(make_reinforce(make_target_env()), tmp_path, 3).rows
    append_row(tmp_path / PROGRESS_FILE, rows[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_checkpoint(make_reinforce(make_target_env()), tmp_path / CHECKPOINT_FILE, max_updates=4)


def test_rows_hold_the_figures_of_the_rollout(make_target_env, tmp_path):
    agent = make_reinforce(make_target_env(4))
    row = run(agent, tmp_path, 1).rows[0]
    assert row["update"] == 1.0
    assert row["timesteps"] == 20.0
    returns = [episode["r"] for episode in agent.ep_info_buffer]
    assert row["return"] == pytest.approx(np.mean(returns), abs=1e-5)
    assert -1.5 < row["log10_error"] < 0.0
    assert 0.0 <= row["clipped_share"] < 0.2
    assert row["zero_return_share"] == 0.0


def test_training_ends_after_the_stated_updates_even_when_episodes_are_short(make_target_env, tmp_path):
    agent = make_reinforce(make_target_env(4, lengths=(1, 2)))
    monitor = run(agent, tmp_path / "whole", 4)
    assert len(monitor.rows) == 4
    assert agent._n_updates == 4
    # What was begun and never learned from is not counted by a training that goes on later.
    run(make_reinforce(make_target_env(4, lengths=(1, 2))), tmp_path / "parts", 2)
    continued = make_reinforce(make_target_env(4, lengths=(1, 2)))
    first = load_checkpoint(continued, tmp_path / "parts" / CHECKPOINT_FILE, max_updates=4).updates
    assert run(continued, tmp_path / "parts", 4, first=first).rows == monitor.rows
    whole, parts = ((tmp_path / kind / CHECKPOINT_FILE).read_bytes() for kind in ("whole", "parts"))
    assert whole == parts


def ended_at_write(number, function):
    """Call a function in a fork that ends at its write of a number; return whether it came so far."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    seen = itertools.count()

    def see(event, arguments):
        writes = event == "open" and (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR)
        if (writes or event in ("os.rename", "os.remove")) and next(seen) == number:
            os._exit(9)

    try:
        sys.addaudithook(see)
        function()
    finally:
        os._exit(0)


def test_killed_at_any_write_a_resumed_training_loses_no_row(make_target_env, tmp_path):
    run(make_reinforce(make_target_env()), tmp_path / "whole", 4)
    whole = {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()}
    run(make_reinforce(make_target_env()), tmp_path / "begun", 3)

    def go_on():
        agent = make_reinforce(make_target_env())
        first = load_checkpoint(agent, folder / CHECKPOINT_FILE, max_updates=4).updates
        run(agent, folder, 4, first=first)

    for number in range(100):
        folder = tmp_path / f"killed-{number}"
        shutil.copytree(tmp_path / "begun", folder)
        is_killed = ended_at_write(number, go_on)
        with resumable(folder, "python"):
            go_on()
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == whole, f"killed at write {number}"
        if not is_killed:
            break
    assert 5 < number < 50


def test_checkpoints_are_written_at_the_stated_updates(make_target_env, tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr("agents.callbacks.save_checkpoint", lambda agent, updates, *others: saved.append(updates))
    run(make_reinforce(make_target_env()), tmp_path, 5, every=2)
    assert saved == [2, 4, 5]


def test_the_best_policy_of_all_trials_is_kept(make_target_env, tmp_path):
    returns = iter([1.0, 3.0, 2.0])

    def try_policy(path):
        mean_return = next(returns)
        path.write_text(str(mean_return))
        return mean_return

    make_reinforce(make_target_env(4)).learn(7 * 4 * 5, callback=Validation(tmp_path, 2, 0, try_policy))
    rows = list(csv.DictReader((tmp_path / "validation.csv").open()))
    assert [(row["update"], row["return"]) for row in rows] == [("2.0", "1.0"), ("4.0", "3.0"), ("6.0", "2.0")]
    assert (tmp_path / "best.safetensors").read_text() == "3.0"
    assert {path.name for path in tmp_path.iterdir()} == {"validation.csv", "best.safetensors"}


def test_trials_go_on_where_a_run_was_stopped(make_target_env, tmp_path):
    (tmp_path / "validation.csv").write_text("update,return\n2.0,5.0\n4.0,9.0\n")
    Validation(tmp_path, 2, 3, lambda path: 0.0)._on_training_start()
    assert (tmp_path / "validation.csv").read_text().split() == ["update,return", "2.0,5.0"]


def test_tensorboard_has_settings_and_a_curve_of_every_function(make_target_env, tmp_path):
    agent = make_reinforce(make_target_env(4))
    agent.tensorboard_log = str(tmp_path / "tb")
    agent.learn(2 * 4 * 5, callback=TrainingMonitor(tmp_path, 2, 1, settings={"preset": "quick", "functions": (1, 2)}))
    (folder,) = (tmp_path / "tb").iterdir()
    accumulator = EventAccumulator(str(folder)).Reload()
    tags = accumulator.Tags()
    assert {"rollout/return", "function_returns/f5"} <= set(tags["scalars"])
    assert not {tag for tag in tags["scalars"] if tag.endswith("return_mean")}
    assert "_hparams_/session_start_info" in accumulator.summary_metadata


@pytest.mark.parametrize(("make_agent", "module"), [(make_reinforce, "blocks"), (make_ppo, "callbacks")])
def test_every_update_has_the_seeds_of_its_own_number(make_target_env, tmp_path, monkeypatch, make_agent, module):
    from agents import seeding

    numbers, seeds = [], []

    def recorded(env, root_seed, update, block=0):
        numbers.append((root_seed, update))
        monkeypatch.setattr(env, "seed", seeds.append, raising=False)
        seeding.seed_update(env, root_seed, update, block)

    monkeypatch.setattr(f"agents.{module}.seed_update", recorded)
    run(make_agent(make_target_env()), tmp_path, 3)
    assert numbers[:3] == [(5, 0), (5, 1), (5, 2)]
    assert len(set(seeds[:3])) == 3
