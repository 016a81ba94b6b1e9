"""``evaluate.py`` end to end, on settings so small that they take seconds."""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import evaluate
from de_gym.controllers import save_controller
from de_gym.evaluation import PROTOCOLS
from de_gym.optimizers import PAPER_METHODS
from evaluate import EvalConfig

TINY = EvalConfig(functions=(1, 21), runs=3, max_evaluations=500, jobs=1)


@pytest.fixture
def place(tmp_path, monkeypatch, tiny_controller):
    """An empty working folder in which one controller has been trained."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "runs" / "quick-1"
    folder.mkdir(parents=True)
    save_controller(tiny_controller(50), folder / "controller.safetensors")
    return tmp_path


@pytest.fixture
def reports(monkeypatch):
    """Collect the results of reports instead of drawing them, which would take most of the time."""
    written = []
    monkeypatch.setattr(evaluate, "write_report", lambda results, folder, **_: written.append(results) or folder)
    return written


def test_the_default_compares_the_last_trained_controller_with_random_and_constant_control(place):
    page = evaluate.evaluate(TINY, command="python evaluate.py")
    assert page == Path("results/quick/report.html")
    rows = list(csv.DictReader((page.parent / "tables" / "errors.csv").open()))
    assert [row["method"] for row in rows][:3] == ["quick-1", "random", "constant"]
    assert {row["runs"] for row in rows} == {"3"}
    assert (page.parent / "figures" / "parameters.png").exists()


def test_a_second_call_computes_nothing_and_reports_the_same(place, reports):
    evaluate.evaluate(TINY)
    chunks = {path: path.stat().st_mtime_ns for path in Path("results/quick/store").rglob("*.npz")}
    evaluate.evaluate(TINY)
    first, second = reports
    assert first["random"].errors.tobytes() == second["random"].errors.tobytes()
    assert {path: path.stat().st_mtime_ns for path in Path("results/quick/store").rglob("*.npz")} == chunks


def test_protocols_are_the_paper_s_tables_with_its_algorithms():
    full = evaluate.make_protocol(EvalConfig(protocol="paper-cec17-30d"))
    assert full == PROTOCOLS["paper-cec17-30d"]
    assert evaluate.make_protocol(EvalConfig()).num_runs < 51
    names = evaluate.default_names(EvalConfig(protocol="paper-cec17-10d"), PROTOCOLS["paper-cec17-10d"])
    assert names[-9:] == ["de", "jade", "jade-archive", "jso", "cobide", "cobide-pcm", "cde", "cde-pcm", "hses"]
    names = evaluate.default_names(EvalConfig(protocol="paper-cec13-10d"), PROTOCOLS["paper-cec13-10d"])
    assert names[-4:] == ["de", "jade", "jade-archive", "jso"]


OWN_CODE = """
import gymnasium as gym, numpy as np, de_gym
from de_gym.controllers import from_policy

class Middle:
    def __call__(self, observations):
        return np.full((len(observations), 15), 0.1)

adjusted = from_policy(Middle(), gym.make("AdaptiveDEControl-v0", functions=[1], dimension=10))
"""


def test_own_code_is_compared_by_name_in_worker_processes_too(place, reports, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (place / "code_of_a_user.py").write_text(OWN_CODE)
    names = ("code_of_a_user:adjusted", "l-srtde")
    evaluate.evaluate(replace(TINY, methods=names, stored=False, jobs=2, chunk_size=1, out=place / "own"))
    own, plain = reports[0].methods
    assert (own.name, plain.name) == ("code_of_a_user.adjusted", "l-srtde")
    assert (own.errors != plain.errors).all()


def test_export_and_named_methods(place, reports):
    config = replace(TINY, methods=("jade", "constant=0.7,0.3"), ioh=Path("ioh"), out=Path("out"))
    evaluate.evaluate(config)
    assert {path.name for path in Path("out/store/methods").iterdir()} == {"jade", "constant=0.7,0.3"}
    exported = json.loads(next(Path("ioh/jade").glob("*_f1_*.json")).read_text())
    errors = np.load(next(Path("out/store/methods/jade").glob("f1_*.npz")))["errors"]
    assert [run["best"]["y"] for run in exported["scenarios"][0]["runs"]] == errors.tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "jos"], "Unknown method 'jos'. Did you mean 'jso'?"),
        (["--methods", "x.safetensors"], "There is no controller file 'x.safetensors'."),
        (["--methods", "PPO:x.zip"], "Loading 'PPO:x.zip' can execute any code"),
        (["--methods", "PPO:x.zip", "--trust"], "'x.zip' is not a file that a model was saved in."),
        (["--methods", "json:dumps"], "'json:dumps' cannot be used: A controller must be"),
        (["--methods", "nothing_there:agent"], "There is no module 'nothing_there'"),
        (["--functions", "99"], "No function 99 in this suite"),
        (["--traced-function", "7", "--functions", "1", "3"], "`traced_function` must be one of (1, 3), got 7."),
        (["--population-size", "30"], "trained for populations of 50 individuals, got `population_size` 30."),
        (
            ["--methods", "jso", "de", "--population-size", "30"],
            "is for controllers, and there are none to run among jso, de.",
        ),
        (["--runs", "0"], "`num_runs` must be at least 1, got 0."),
        (["--jobs", "0"], "`jobs` must be positive, or -1 for all cores, got 0."),
        (["--out", "runs"], "holds files but no results of this script"),
    ],
)
def test_a_mistake_ends_in_one_sentence(place, monkeypatch, capsys, arguments, message):
    monkeypatch.setattr("sys.argv", ["evaluate.py", "--max-evaluations", "500", *arguments])
    assert evaluate.main() == 1
    error = capsys.readouterr().err.strip()
    assert error.startswith("evaluate.py: ")
    assert message in error
    assert "\n" not in error


def test_other_settings_in_the_same_folder_are_refused(place, reports, monkeypatch, capsys):
    evaluate.evaluate(TINY)
    monkeypatch.setattr("sys.argv", ["evaluate.py", "--max-evaluations", "500", "--seed", "1"])
    assert evaluate.main() == 1
    assert "seed is 0 there and 1 here" in capsys.readouterr().err


def test_ctrl_c_keeps_what_is_finished_and_says_so(place, monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt("Interrupted. 4 of 9 runs were finished")

    monkeypatch.setattr(evaluate, "run_methods", interrupt)
    monkeypatch.setattr("sys.argv", ["evaluate.py", "--max-evaluations", "500"])
    assert evaluate.main() == 130
    assert "evaluate.py: Interrupted. 4 of 9 runs were finished" in capsys.readouterr().err


def test_without_a_training_the_shipped_controller_for_the_budget_is_compared(tmp_path, reports, monkeypatch):
    monkeypatch.chdir(tmp_path)
    evaluate.evaluate(TINY)
    assert [method.name for method in reports[0].methods] == ["adaptive", "random", "constant"]
    assert evaluate.default_names(TINY, PROTOCOLS["paper-cec17-10d"])[0] == "adaptive"
    assert evaluate.default_names(TINY, PROTOCOLS["paper-cec17-30d"])[0] == "adaptive"


def test_a_protocol_keeps_its_own_budget_unless_another_one_is_asked_for():
    assert evaluate.make_protocol(EvalConfig(protocol="small-cec17-10d")).budget == 2500
    assert evaluate.make_protocol(EvalConfig(protocol="small-cec17-10d", max_evaluations=900)).budget == 900
    assert evaluate.make_protocol(EvalConfig()).budget == 100_000


def test_killed_before_it_knows_its_settings_the_same_command_goes_on(place, reports):
    Path("results/quick/.store.0.part").mkdir(parents=True)
    evaluate.evaluate(TINY)
    shutil.rmtree("results/quick/store")
    Path("results/quick/store").mkdir()
    evaluate.evaluate(TINY)
    assert len(reports) == 2


def test_a_folder_of_others_is_never_written_to(place, reports):
    for name in ("notes.txt", ".git", "stored"):
        folder = Path(f"with{name}")
        (folder / name).mkdir(parents=True)
        with pytest.raises(ValueError, match="holds files but no results of this script"):
            evaluate.evaluate(replace(TINY, out=folder))
        assert [path.name for path in folder.iterdir()] == [name]


def _descendants(pid):
    """Return the processes that a process started, and those they started."""
    found = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout.split()
    children = [int(child) for child, parent in zip(found[::2], found[1::2], strict=True) if int(parent) == pid]
    return children + [other for child in children for other in _descendants(child)]


def _alive(pids):
    found = subprocess.run(["ps", "-eo", "pid=,stat="], capture_output=True, text=True, check=True).stdout.split()
    return [pid for pid, state in zip(found[::2], found[1::2], strict=True) if int(pid) in pids and state[0] != "Z"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ps") is None, reason="workers are looked for with ps")
def test_sigterm_ends_the_command_and_its_workers_in_one_sentence(place):
    command = [sys.executable, evaluate.__file__, "--methods", "jso", "--jobs", "2", "--chunk-size", "3"]
    process = subprocess.Popen([*command, "--runs", "51"], stderr=subprocess.PIPE, text=True)
    while not list(Path("results/quick/store").glob("methods/jso/f*.npz")):
        assert process.poll() is None
        time.sleep(0.05)
    workers = _descendants(process.pid)
    assert len(workers) >= 2
    process.terminate()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    last = errors.strip().splitlines()[-1]
    assert last.startswith("evaluate.py: Interrupted. ")
    assert "runs were finished and are kept in" in last
    assert "Traceback" not in errors
    deadline = time.monotonic() + 20
    while _alive(workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _alive(workers) == []


@pytest.mark.parametrize(("stop", "code"), [(KeyboardInterrupt(), 130), (evaluate.Terminated(), 143)])
def test_a_stop_outside_of_the_runs_ends_in_one_sentence_too(stop, code, monkeypatch, capsys):
    def stopped(*_, **__):
        raise stop

    monkeypatch.setattr(evaluate, "evaluate", stopped)
    monkeypatch.setattr(sys, "argv", ["evaluate.py"])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert evaluate.main() == code
    said = capsys.readouterr().err
    assert said.strip() == "evaluate.py: Interrupted. Finished runs are kept; the same command goes on."


def test_a_disk_that_is_full_when_the_report_is_written_is_named_in_one_sentence(place, monkeypatch, capsys):
    def full_disk(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(evaluate, "write_report", full_disk)
    arguments = ["--methods", "de", "--functions", "1", "--runs", "2", "--max-evaluations", "500", "--jobs", "1"]
    monkeypatch.setattr(sys, "argv", ["evaluate.py", *arguments])
    assert evaluate.main() == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "evaluate.py: The disk is full: free some space; the same command goes on, finished runs are kept."


def test_a_ladder_compares_everything_stored_and_published_without_running_it_again(place, reports, capsys):
    rows = [f"other,10,{number},{run},{run / 9:.6f}" for number in (1, *range(3, 29)) for run in range(1, 6)]
    Path("errors.csv").write_text("\n".join(["algorithm,dim,func,run,error", *rows]) + "\n")
    evaluate.evaluate(EvalConfig(protocol="ladder-cec17-10d", methods=("de",), raw_errors=Path("errors.csv"), runs=7))
    (results,) = reports
    names = [method.name for method in results.methods]
    assert names[0] == results.reference == "de"
    assert {*PAPER_METHODS, "random", "constant", "long-10d", "quick-10d", "other (published)"} <= set(names)
    assert "quick-10d-untrained" not in names  # only the repository has it
    assert {method.errors.shape for method in results.methods} == {(27, 5)}
    assert results.protocol.functions == (1, *range(3, 29))
    assert results["jso"].origin == "stored"
    assert results["de"].convergence.errors.shape[:2] == (27, 5)
    output = capsys.readouterr().out
    assert "Published errors have 6 digits; later ones are not compared." in output
    assert "Left out, because not all published entries have them: f29, f30." in output
    assert "Of every method the first 5 runs are compared" in output


def test_a_ladder_runs_what_is_not_stored(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = EvalConfig(protocol="ladder-cec17-10d")
    protocol = evaluate.make_protocol(config)
    names = evaluate.default_names(config, protocol)
    assert names[0] == "adaptive"
    assert len(set(names)) == len(names)
    stored = {column.name for column in evaluate.stored_columns(config, protocol, names)}
    assert set(names) == stored
    limited = replace(config, max_evaluations=500)
    assert evaluate.stored_columns(limited, evaluate.make_protocol(limited), names) == []
    assert evaluate.stored_columns(replace(config, stored=False), protocol, names) == []
    fifty = evaluate.default_names(replace(config, protocol="ladder-cec17-50d"), PROTOCOLS["ladder-cec17-50d"])
    assert {"jso", "adaptive", "random"} <= set(fifty)
    assert "quick-10d" not in fifty  # trained for 50 individuals, and 50 dimensions have 100
