"""Commands killed or stopped at random moments: what then goes on must end with the bits of a whole run.

Every run is a fork of a process that has run the command before, so that signals fall into the work, not the imports.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from findings import Findings

_LONGEST = 300.0  # seconds after which a run counts as hanging
_MOST_FINDINGS = 50
_TURNS = (0, 3, 2, 1, 0, 3, 2, 4, 2)  # of the commands: workers take as long to start as whole runs of the others

TINY_TRAINING = [
    "--functions", "1", "2", "--test-functions", "21", "--episodes-per-function", "2", "--dimension", "2",
    "--population-size", "8", "--max-generations", "12", "--updates", "8", "--checkpoint-every", "1",
    "--cell-size", "4", "--measure-runs", "2", "--threads", "1", "--validate-every", "3",
]  # fmt: skip
TINY_EVALUATION = [
    "--methods", "random", "de", "jso", "--functions", "1", "3", "--runs", "6", "--max-evaluations", "900",
    "--chunk-size", "1", "--no-stored", "--protocol", "paper-cec17-10d",
]  # fmt: skip


@dataclass(frozen=True)
class Command:
    """A command and what it leaves.

    Attributes:
        name: What reports call it.
        start: Returns its arguments, given the folder it works in.
        resume: Returns the arguments with which it goes on.
        main: Runs it with ``sys.argv``.
        results: Files that must have the same content whatever happened, as patterns.
        alone: Arguments that leave everything to one process.
    """

    name: str
    start: Callable[[Path], list[str]]
    resume: Callable[[Path], list[str]]
    main: Callable[[], int]
    results: tuple[str, ...]
    alone: tuple[str, ...] = ()


@dataclass(frozen=True)
class Whole:
    """A run that nobody disturbed: how many seconds it took, and a checksum of every file that it left."""

    duration: float
    contents: dict[str, str]


def commands() -> list[Command]:
    """Return the commands, with everything loaded that they need: three trainings and two evaluations."""
    import agents.evolution_training as evolution
    import evaluate
    import train
    from agents.evolution_strategy import Stage

    # The command's own problems take minutes for a generation.
    stage = Stage(4, (2,), largest_budget=80.0, num_problems=4)
    evolution.REGIMES = {  # type: ignore[misc]
        name: evolution.Regime(budget, 0.0, stage, num_candidates=6)
        for name, budget in (("short", -1.0), ("long", 0.0))
    }
    trained = ("*/*.safetensors", "*/progress.csv", "*/validation.csv", "*/measurement-*.csv")

    def training(*agent: str) -> tuple[Callable[[Path], list[str]], Callable[[Path], list[str]]]:
        def start(folder: Path) -> list[str]:
            return ["train.py", *agent, *TINY_TRAINING, "--output", str(folder)]

        def resume(folder: Path) -> list[str]:
            begun = [path.parent for path in folder.glob("*/config.json")]
            return ["train.py", "--resume", str(begun[0])] if begun else start(folder)

        return start, resume

    def evolving(folder: Path) -> list[str]:
        return ["train.py", "--agent", "evolution-strategy", "--output", str(folder)]

    def evaluating(jobs: str) -> Callable[[Path], list[str]]:
        return lambda folder: ["evaluate.py", *TINY_EVALUATION, "--jobs", jobs, "--out", str(folder / "out")]

    evaluated = ("out/store/methods/*/*.npz", "out/tables/*")
    return [
        Command("train reinforce", *training(), train.main, trained),
        Command("train recurrent-ppo", *training("--agent", "recurrent-ppo"), train.main, trained),
        Command("train evolution-strategy", evolving, evolving, train.main, ("*/*.safetensors", "*/strategy-*.json")),
        Command("evaluate 1 job", evaluating("1"), evaluating("1"), evaluate.main, evaluated),
        Command("evaluate 2 jobs", evaluating("2"), evaluating("2"), evaluate.main, evaluated, ("--jobs", "1")),
    ]


def disturb(signals: tuple[signal.Signals, ...], count: int, seed: int, first: int) -> dict[str, Any]:
    """Send ``count`` of the signals, let every run go on to its end, and return the figures and the findings."""
    totals: dict[str, Any] = {"signals": 0, "runs": 0, "late": 0, "by_command": {}, "findings": Findings()}
    known, number = commands(), first
    wholes: dict[str, Whole] = {}
    while totals["signals"] < count and len(totals["findings"]) < _MOST_FINDINGS:
        command = known[_TURNS[number % len(_TURNS)]]
        with tempfile.TemporaryDirectory() as name:
            if command.name not in wholes:
                wholes[command.name] = _undisturbed(command, Path(name))
                print(f"{command.name}: {wholes[command.name].duration:.1f} s", file=sys.stderr, flush=True)
            else:
                rng = np.random.default_rng([seed, number])
                _disturbed(command, Path(name), wholes[command.name], (rng, signals), totals)
                number += 1
                if number % 10 == 0:
                    print(f"up to run {number}: {_figures(totals)}", file=sys.stderr, flush=True)
    return totals


kill = partial(disturb, (signal.SIGKILL,))
stop = partial(disturb, (signal.SIGINT, signal.SIGTERM))


def _undisturbed(command: Command, folder: Path) -> Whole:
    """Run a command in this process, for what it imports and compiles, and then in a fork that is timed."""
    warm, place = folder / "warm", folder / "timed"
    warm.mkdir()
    place.mkdir()
    sys.argv = [*command.start(warm), *command.alone]  # a fork has no use for the workers of another process
    with (warm / ".output").open("w") as output, redirect_stdout(output), redirect_stderr(output):
        command.main()
    began = time.monotonic()
    code, said = _finish(_fork(command, command.start(place), place), place)
    if code != 0:
        raise RuntimeError(f"{command.name} ends with {code} though nobody disturbed it: {said[-500:]}")
    return Whole(time.monotonic() - began, _contents(place, command.results))


def _disturbed(
    command: Command,
    folder: Path,
    whole: Whole,
    how: tuple[np.random.Generator, tuple[signal.Signals, ...]],
    totals: Any,
) -> None:
    """Send a command one or several signals, let it go on, and note what is wrong."""
    rng, signals = how
    arguments, sent, wrong = command.start(folder), [], []
    for _ in range(int(rng.integers(1, 13))):
        child = _fork(command, arguments, folder)
        # What is done is kept, so that the last signals find a run near its end.
        time.sleep(float(rng.uniform(0.02, 0.6)) * whole.duration)
        if os.waitpid(child, os.WNOHANG)[0]:
            totals["late"] += 1
            arguments = command.resume(folder)
            break
        number, to_all = signals[int(rng.integers(len(signals)))], bool(rng.integers(2))
        sent.append(number.name)
        wrong += _signalled(child, number, to_all, folder)
        arguments = command.resume(folder)
    code, output = _finish(_fork(command, arguments, folder), folder)
    totals["signals"] += len(sent)
    totals["runs"] += 1
    totals["by_command"][command.name] = totals["by_command"].get(command.name, 0) + len(sent)
    for problem in [*wrong, *_differences(command, folder, whole, (code, output))]:
        totals["findings"].note(f"{command.name} after {', '.join(sent)}: {problem}")


def _signalled(child: int, number: signal.Signals, to_all: bool, folder: Path) -> list[str]:
    """Send a signal to a run, alone or with all of its processes, wait for its end, and return what is wrong."""
    if number == signal.SIGKILL:
        os.killpg(child, number)
        os.waitpid(child, 0)
        return []
    before = len((folder / ".output").read_text(errors="replace"))
    (os.killpg if to_all else os.kill)(child, number)
    code, output = _finish(child, folder)
    said = output[before:].splitlines()
    wrong = []
    if code == 0:
        return []  # it came to its end before it noticed
    if code != 128 + number:
        wrong.append(f"it ends with {code}")
    if not said or not said[-1].startswith(("train.py: Stopped ", "evaluate.py: Interrupted.")):
        wrong.append(f"it says {said[-3:]} at the end")
    if any("Traceback" in line or "Error" in line for line in said):
        wrong.append(f"it says {output[before:][-600:]!r}")
    if _has_processes(child):
        wrong.append("some of its processes go on")
    return wrong


def _has_processes(group: int) -> bool:
    """Return whether a process of the group is left after a moment, and end it."""
    deadline = time.monotonic() + 10.0
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.05)
    os.killpg(group, signal.SIGKILL)
    return True


def _differences(command: Command, folder: Path, whole: Whole, end: tuple[int, str]) -> list[str]:
    """Return what a run that went on to its end left otherwise than one that nobody disturbed."""
    code, output = end
    if code != 0:
        return [f"it ends with {code}: {output[-400:]!r}"]
    found = _contents(folder, command.results)
    if different := sorted(name for name in {*found, *whole.contents} if found.get(name) != whole.contents.get(name)):
        return [f"other bits in {different[:5]}"]
    # Evaluations may share a folder, so what another one may be writing is left for a minute.
    found_aside = [path for path in folder.rglob(".*") if path.name != ".output" and "out" not in path.parts]
    return [f"it left {[path.name for path in found_aside]}"] if found_aside else []


def _fork(command: Command, arguments: list[str], folder: Path) -> int:
    """Start a command in a process group of its own, with its output in a file of the folder."""
    output = os.open(folder / ".output", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    child = os.fork()
    if child:
        os.close(output)
        return child
    code = 70
    try:
        os.setsid()
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(folder)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv = arguments
        code = command.main()
        sys.stdout.flush()
        sys.stderr.flush()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        os._exit(code)


def _finish(child: int, folder: Path) -> tuple[int, str]:
    """Return the exit code of a child and what it said; -1 where it hangs."""
    deadline = time.monotonic() + _LONGEST
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), (folder / ".output").read_text(errors="replace")
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1, "it hangs"


def _contents(folder: Path, patterns: tuple[str, ...]) -> dict[str, str]:
    """Return a checksum of everything that matters, by the name of the file."""
    found = {}
    for pattern in patterns:
        for path in sorted(path for path in folder.glob(pattern) if not path.name.startswith(".")):
            data = _arrays(path) if path.suffix == ".npz" else path.read_bytes().replace(str(folder).encode(), b"")
            found[str(path.relative_to(folder))] = hashlib.sha256(data).hexdigest()
    return found


def _arrays(path: Path) -> bytes:
    """Return the arrays of a file as bytes; the archive around them has a date."""
    with np.load(path) as file:
        return b"".join(name.encode() + file[name].tobytes() for name in sorted(file.files))


def _figures(totals: dict[str, Any]) -> str:
    each = ", ".join(f"{count} of {name}" for name, count in sorted(totals["by_command"].items()))
    return (
        f"{totals['signals']} ({each}) in {totals['runs']} runs that then went on to their end, "
        f"{len(totals['findings'])} findings"
    )


def summary(totals: dict[str, Any]) -> str:
    """Return the line of figures."""
    return f"signals: {_figures(totals)}"
