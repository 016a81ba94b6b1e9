"""Trackers get what TensorBoard gets; the packages themselves are stood in for, under their names."""

import sys
from types import SimpleNamespace

import pytest

import train
from agents.tracking import Tracking

TINY = [
    "--updates", "2", "--functions", "1", "11", "--episodes-per-function", "2", "--population-size", "8", "--cell-size",
    "4", "--max-generations", "3", "--num-knots", "2", "--measure-runs", "0", "--validate-every", "1", "--threads", "1",
]  # fmt: skip


class FakeTracker:
    """Both packages at once: records what is called, in order."""

    def __init__(self):
        self.calls = []

    def init(self, project, name, config):
        self.calls.append(("begin", name, config))
        return SimpleNamespace(log=self.log_metrics)

    def start_run(self, run_name):
        self.calls.append(("begin", run_name, {}))

    def log_params(self, settings):
        self.calls[-1] = (*self.calls[-1][:2], settings)

    def log_metrics(self, figures, step):
        self.calls.append(("log", step, figures))

    def finish(self):
        self.calls.append(("end",))

    end_run = finish


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_every_update_is_logged_between_beginning_and_end(name, monkeypatch, tmp_path):
    tracker = FakeTracker()
    monkeypatch.setitem(sys.modules, name, tracker)
    folder = train.train(train.parse_config([*TINY, "--track", name, "--output", str(tmp_path)]))
    (begin, title, settings), *logged, end = tracker.calls
    assert (begin, title, end) == ("begin", folder.name, ("end",))
    assert settings["population_size"] == 8
    assert settings["init"] == "None"
    assert [step for _, step, _ in logged] == [12, 24]
    expected = {"rollout/return", "train/loss", "validation/return", "function_returns/f1", "function_returns/f11"}
    assert expected <= set(logged[-1][2])
    assert all(type(value) is float for _, _, figures in logged for value in figures.values())


def test_a_tracker_that_is_not_installed_is_said_before_the_training(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ValueError, match="`track` 'wandb' needs the package 'wandb': pip install wandb"):
        train.parse_config([*TINY, "--track", "wandb"])


def test_a_training_that_fails_ends_the_trackers_run(monkeypatch, tmp_path):
    tracker = FakeTracker()
    monkeypatch.setitem(sys.modules, "wandb", tracker)
    monkeypatch.setattr(Tracking, "_on_step", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        train.train(train.parse_config([*TINY, "--track", "wandb", "--output", str(tmp_path)]))
    assert tracker.calls[-1] == ("end",)
