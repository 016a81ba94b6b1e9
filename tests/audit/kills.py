"""Commands killed at random moments after their start-up: what goes on must end with the bits of a run that was not.

Programs are loaded once and every run is a fork of that process, so that kills fall into the work and not the imports.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_LONGEST = 300.0  # seconds after which a run counts as hanging

TINY_TRAINING = [
    "--functions", "1", "2", "--test-functions", "21", "--episodes-per-function", "2", "--dimension", "2",
    "--population-size", "8", "--max-generations", "12", "--updates", "12", "--checkpoint-every", "1",
    "--cell-size", "4", "--measure-runs", "2",
]  # fmt: skip
TINY_EVALUATION = [
    "--methods", "random", "de", "jso", "--functions", "1", "3", "5", "--runs", "6", "--max-evaluations", "900",
    "--chunk-size", "1", "--no-stored", "--protocol", "paper-cec17-10d",
]  # fmt: skip


@dataclass(frozen=True)
class Command:
    """A command and what it leaves.

    Attributes:
        name: What reports call it.
        start: Returns its arguments, given the folder it works in.
        resume: Returns the arguments with which it goes on after a kill.
        main: Runs it with ``sys.argv``.
        results: Files that must have the same content whatever happened, as patterns.
    """

    name: str
    start: Callable[[Path], list[str]]
    resume: Callable[[Path], list[str]]
    main: Callable[[], int]
    results: tuple[str, ...]


def commands() -> list[Command]:
    """Return the commands, with everything loaded that they need."""
    import agents.evolution_training as evolution
    import evaluate
    import train
    from agents.evolution_strategy import Curriculum

    # The command's own curriculum takes minutes for a generation.
    evolution.CURRICULUM = Curriculum(dimensions=(2,), largest_budget=80.0, num_problems=4)  # type: ignore[misc]
    trained = ("*/*.safetensors", "*/progress.csv", "*/measurement-*.csv")

    def training(*agent: str) -> tuple[Callable[[Path], list[str]], Callable[[Path], list[str]]]:
        def start(folder: Path) -> list[str]:
            return ["train.py", *agent, *TINY_TRAINING, "--output", str(folder)]

        def resume(folder: Path) -> list[str]:
            begun = [path.parent for path in folder.glob("*/config.json")]
            return ["train.py", "--resume", str(begun[0])] if begun else start(folder)

        return start, resume

    def evolving(folder: Path) -> list[str]:
        return ["train.py", "--agent", "evolution-strategy", "--generations", "6", "--output", str(folder)]

    def evaluating(jobs: str) -> Callable[[Path], list[str]]:
        return lambda folder: ["evaluate.py", *TINY_EVALUATION, "--jobs", jobs, "--out", str(folder / "out")]

    evaluated = ("out/store/methods/*/*.npz", "out/tables/*")
    return [
        Command("train reinforce", *training(), train.main, trained),
        Command("train recurrent-ppo", *training("--agent", "recurrent-ppo"), train.main, trained),
        Command("train evolution-strategy", evolving, evolving, train.main, ("*/*.safetensors", "*/strategy.json")),
        Command("evaluate 1 job", evaluating("1"), evaluating("1"), evaluate.main, evaluated),
        Command("evaluate 2 jobs", evaluating("2"), evaluating("2"), evaluate.main, evaluated),
    ]


def kill(count: int, seed: int, first: int) -> dict[str, Any]:
    """Kill commands ``count`` times, let each go on to its end, and return the figures and the findings."""
    totals: dict[str, Any] = {"kills": 0, "runs": 0, "late": 0, "by_command": {}, "findings": []}
    known = commands()
    expected: dict[str, tuple[float, dict[str, str]]] = {}
    number = first
    while totals["kills"] < count and len(totals["findings"]) < 50:
        command = known[number % len(known)]
        with tempfile.TemporaryDirectory() as name:
            if command.name not in expected:
                expected[command.name] = _unkilled(command, Path(name))
            else:
                _killed(command, Path(name), expected[command.name], np.random.default_rng([seed, number]), totals)
                number += 1
    return totals


def _unkilled(command: Command, folder: Path) -> tuple[float, dict[str, str]]:
    """Return how long a run takes, and what it leaves."""
    for attempt in ("warm", "timed"):
        place = folder / attempt
        place.mkdir()
        began = time.monotonic()
        code, output = _finish(_fork(command, command.start(place), place), place)
        if code != 0:
            raise RuntimeError(f"{command.name} ends with {code} without a kill: {output[-500:]}")
    return time.monotonic() - began, _contents(place, command.results)


def _killed(
    command: Command, folder: Path, expected: tuple[float, dict[str, str]], rng: np.random.Generator, totals: Any
) -> None:
    """Kill a command once or several times, let it go on, and note what is wrong."""
    duration, contents = expected
    arguments = command.start(folder)
    kills = 0
    for _ in range(int(rng.integers(1, 5))):
        child = _fork(command, arguments, folder)
        time.sleep(float(rng.uniform(0.02, 0.95)) * duration)
        if os.waitpid(child, os.WNOHANG)[0]:
            totals["late"] += 1
            break
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        kills += 1
        arguments = command.resume(folder)
    code, output = _finish(_fork(command, arguments, folder), folder)
    totals["kills"] += kills
    totals["runs"] += 1
    totals["by_command"][command.name] = totals["by_command"].get(command.name, 0) + kills
    found = _contents(folder, command.results)
    if code != 0:
        totals["findings"].append(f"{command.name} after {kills} kills ends with {code}: {output[-400:]!r}")
    elif found != contents:
        different = sorted(name for name in {*found, *contents} if found.get(name) != contents.get(name))
        totals["findings"].append(f"{command.name} after {kills} kills left other bits in {different[:5]}")
    elif parts := [path.name for path in folder.rglob("*.part") if "store" not in str(path)]:
        totals["findings"].append(f"{command.name} after {kills} kills left {parts}")


def _fork(command: Command, arguments: list[str], folder: Path) -> int:
    """Start a command in a process group of its own, with its output in a file of the folder."""
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        os.setsid()
        output = os.open(folder / ".output", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(folder)
        sys.argv = arguments
        code = command.main()
        sys.stdout.flush()
        sys.stderr.flush()
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
        for path in sorted(folder.glob(pattern)):
            data = _arrays(path) if path.suffix == ".npz" else path.read_bytes().replace(str(folder).encode(), b"")
            found[str(path.relative_to(folder))] = hashlib.sha256(data).hexdigest()
    return found


def _arrays(path: Path) -> bytes:
    """Return the arrays of a file as bytes; the archive around them has a date."""
    with np.load(path) as file:
        return b"".join(name.encode() + file[name].tobytes() for name in sorted(file.files))


def summary(totals: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a report: findings, and one line of figures."""
    for finding in totals["findings"]:
        yield f"  {finding}"
    each = ", ".join(f"{count} of {name}" for name, count in sorted(totals["by_command"].items()))
    yield (
        f"kills: {totals['kills']} kills ({each}) in {totals['runs']} runs that then went on to their end, "
        f"{len(totals['findings'])} findings"
    )
