"""Commands killed or stopped at random moments: what then goes on must end with the bits of a whole run.

Every run is a fork of a process that has run the command before, so that signals fall into the work, not the imports.
Moments are counted in processor time, so that they do not depend on what else the machine does.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from findings import Findings
from tqdm import tqdm

_LONGEST = 300.0  # seconds after which a run counts as hanging
_MOST_FINDINGS = 50
LAST_WORDS = (
    "train.py: Stopped ", "train.py: The disk of ", "train.py: The output folder ", "evaluate.py: Interrupted.",
    "evaluate.py: No space left on device. ", "evaluate.py: The disk is full: ",
)  # fmt: skip

TINY_TRAINING = [
    "--functions", "1", "2", "--test-functions", "21", "--episodes-per-function", "2", "--dimension", "2",
    "--population-size", "8", "--max-generations", "12", "--updates", "8", "--checkpoint-every", "1",
    "--cell-size", "4", "--measure-runs", "2", "--threads", "1", "--validate-every", "3",
]  # fmt: skip
TINY_EVALUATION = [
    "--methods", "random", "de", "jso", "--functions", "1", "3", "--runs", "6", "--max-evaluations", "900",
    "--chunk-size", "1", "--no-stored", "--protocol", "paper-cec17-10d",
]  # fmt: skip
SMALLER_TRAINING = ["--updates", "4", "--validate-every", "2", "--max-generations", "4"]
SMALLER_EVALUATION = ["--methods", "random", "de", "--functions", "1", "--runs", "2", "--max-evaluations", "200"]


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
    """A run that nobody disturbed: its seconds of processor time, and a checksum of every file that it left."""

    work: float
    contents: dict[str, str]


def commands(fork_workers: bool = True, small: bool = False) -> list[Command]:
    """Return the commands, with everything loaded that they need: three trainings and two evaluations.

    Args:
        fork_workers: Whether workers are forks too: those that load everything anew take longer to start than runs.
        small: Whether to do as little as shows all kinds of files.
    """
    from joblib.externals.loky.backend import context

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
            return ["train.py", *agent, *TINY_TRAINING, *(SMALLER_TRAINING if small else ()), "--output", str(folder)]

        def resume(folder: Path) -> list[str]:
            begun = [path.parent for path in folder.glob("[!.]*/config.json")]
            return ["train.py", "--resume", str(begun[0])] if begun else start(folder)

        return start, resume

    def evolving(folder: Path) -> list[str]:
        return ["train.py", "--agent", "evolution-strategy", "--output", str(folder)]

    def evaluating(jobs: str) -> Callable[[Path], list[str]]:
        chosen = [*TINY_EVALUATION, *(SMALLER_EVALUATION if small else ()), "--jobs", jobs]
        return lambda folder: ["evaluate.py", *chosen, "--out", str(folder / "out")]

    def evaluate_by_workers() -> int:
        context.set_start_method("fork" if fork_workers else "loky", force=True)
        return evaluate.main()

    evaluated = ("out/store/methods/*/*.npz", "out/tables/*")
    return [
        Command("train reinforce", *training(), train.main, trained),
        Command("train recurrent-ppo", *training("--agent", "recurrent-ppo"), train.main, trained),
        Command("train evolution-strategy", evolving, evolving, train.main, ("*/*.safetensors", "*/strategy-*.json")),
        Command("evaluate 1 job", evaluating("1"), evaluating("1"), evaluate.main, evaluated),
        Command("evaluate 2 jobs", evaluating("2"), evaluating("2"), evaluate_by_workers, evaluated, ("--jobs", "1")),
    ]


def disturb(signals: tuple[signal.Signals, ...], count: int, first: int, totals: Findings, seed: int) -> None:
    """Send ``count`` of the signals, and let every run go on to its end."""
    # What stops workers depends on how they were started.
    known, number = commands(fork_workers=signal.SIGKILL in signals), first
    wholes: dict[str, Whole] = {}
    while totals.figures["signals"] < count and len(totals.all) < _MOST_FINDINGS:
        command = known[number % len(known)]
        if (unit := f"run {number}") not in totals:
            if command.name not in wholes:
                wholes[command.name] = undisturbed(command)
            rng = np.random.default_rng([seed, number])
            with tempfile.TemporaryDirectory() as name:
                totals.add(unit, *_disturbed(command, Path(name), wholes[command.name], rng, signals))
            print(f"up to {unit}: {_figures(totals)}", file=sys.stderr, flush=True)
        number += 1


kill = partial(disturb, (signal.SIGKILL,))
stop = partial(disturb, (signal.SIGINT, signal.SIGTERM))


def undisturbed(command: Command) -> Whole:
    """Run a command in this process, for what it imports and compiles, and then in a fork that is measured."""
    with tempfile.TemporaryDirectory() as name:
        warm, place = Path(name) / "warm", Path(name) / "measured"
        warm.mkdir()
        place.mkdir()
        sys.argv = [*command.start(warm), *command.alone]  # a fork has no use for the workers of another process
        with (warm / ".output").open("w") as output, redirect_stdout(output), redirect_stderr(output):
            command.main()
        child = fork(command, command.start(place), place)
        work = _wait(child, float("inf"))
        code, said = finish(child, place)
        if code != 0:
            raise RuntimeError(f"{command.name} ends with {code} though nobody disturbed it: {said[-500:]}")
        print(f"{command.name}: {work:.2f} s", file=sys.stderr, flush=True)
        return Whole(work, _contents(place, command.results))


def _disturbed(
    command: Command, folder: Path, whole: Whole, rng: np.random.Generator, signals: tuple[signal.Signals, ...]
) -> tuple[Counter[str], list[str]]:
    """Send a command one or several signals, let it go on, and return the figures and what is wrong."""
    arguments, sent, wrong = command.start(folder), [], []
    for _ in range(int(rng.integers(1, 13))):
        child = fork(command, arguments, folder)
        # What is done is kept, so that the last signals find a run near its end.
        _wait(child, float(rng.uniform(0.02, 0.6)) * whole.work)
        time.sleep(float(rng.uniform(0.0, 0.01)))  # also while it waits for the disk
        number, to_all = signals[int(rng.integers(len(signals)))], bool(rng.integers(2))
        if has_ended(child):
            finish(child, folder)
            arguments = command.resume(folder)
            break
        sent.append(number.name)
        wrong += _signalled(child, number, to_all, folder)
        arguments = command.resume(folder)
    end = finish(fork(command, arguments, folder), folder)
    problems = [*wrong, *differences(command, folder, whole, end)]
    figures = Counter({"signals": len(sent), "runs": 1, f"of {command.name}": len(sent)})
    return figures, [f"{command.name} after {', '.join(sent)}: {problem}" for problem in problems]


def _wait(child: int, work: float) -> float:
    """Wait until a run has done so much work, in seconds of its processes, or ended; return how much it has done."""
    done, deadline = 0.0, time.monotonic() + _LONGEST
    while done < work and not has_ended(child) and time.monotonic() < deadline:
        done = max(done, _work(child))
        time.sleep(0.004)
    return done


def _work(process: int) -> float:
    """Return the seconds of processor time of a process and of those that it started."""
    place, nanoseconds = Path("/proc") / str(process), 0
    with suppress(OSError):
        nanoseconds = int((place / "schedstat").read_text().split()[0])
        for thread in (place / "task").iterdir():
            for started in (thread / "children").read_text().split():
                nanoseconds += int(1e9 * _work(int(started)))
    return 1e-9 * nanoseconds


def has_ended(child: int) -> bool:
    """Return whether a run has ended; its exit code is left for ``finish``."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _signalled(child: int, number: signal.Signals, to_all: bool, folder: Path) -> list[str]:
    """Send a signal to a run, alone or with all of its processes, wait for its end, and return what is wrong."""
    if number == signal.SIGKILL:
        os.killpg(child, number)
        os.waitpid(child, 0)
        return []
    before = len((folder / ".output").read_text(errors="replace"))
    (os.killpg if to_all else os.kill)(child, number)
    code, output = _end(child, folder)
    goes_on = ["some of its processes go on"] if _has_processes(child) else []
    return badly_ended(code, 128 + number, output[before:]) + goes_on


def badly_ended(code: int, expected: int, output: str) -> list[str]:
    """Return what is wrong with how a run that was stopped ended, and with what it said."""
    if code == 0:
        return []  # it came to its end before it noticed
    said = output.splitlines()
    wrong = [] if code == expected else [f"it ends with {code}"]
    if not said or not said[-1].startswith(LAST_WORDS):
        wrong.append(f"it says {said[-3:]} at the end")
    if any("Traceback" in line or "Error" in line for line in said):
        wrong.append(f"it says {output[-600:]!r}")
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


def differences(command: Command, folder: Path, whole: Whole, end: tuple[int, str]) -> list[str]:
    """Return what a run that went on to its end left otherwise than one that nobody disturbed."""
    code, output = end
    if code != 0:
        return [f"it ends with {code}: {output[-400:]!r}"]
    found = _contents(folder, command.results)
    if different := sorted(name for name in {*found, *whole.contents} if found.get(name) != whole.contents.get(name)):
        return [f"other bits in {different[:5]}"]
    # What others may be writing in a folder that can be shared is left for a minute.
    found_aside = [path for path in folder.rglob(".*") if path.parent != folder and "out" not in path.parts]
    return [f"it left {[path.name for path in found_aside]}"] if found_aside else []


def fork(command: Command, arguments: list[str], folder: Path) -> int:
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
        tqdm.set_lock(threading.RLock())  # its own one is shared by all forks, and a killed one never gives it back
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv = arguments
        code = command.main()
        sys.stdout.flush()
        sys.stderr.flush()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        os._exit(code)


def finish(child: int, folder: Path) -> tuple[int, str]:
    """Wait for a run, end the processes that it left, and return its exit code and what it said; -1 where it hangs."""
    end = _end(child, folder)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return end


def _end(child: int, folder: Path) -> tuple[int, str]:
    """Wait for a run and return its exit code and what it said; -1 where it hangs and had to be killed."""
    deadline = time.monotonic() + _LONGEST
    while not (ended := has_ended(child)) and time.monotonic() < deadline:
        time.sleep(0.005)
    if not ended:
        os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    said = (folder / ".output").read_text(errors="replace")
    return (os.waitstatus_to_exitcode(status), said) if ended else (-1, "it hangs")


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


def _figures(totals: Findings) -> str:
    each = ", ".join(f"{count} {name}" for name, count in sorted(totals.figures.items()) if name.startswith("of "))
    return f"{totals.figures['signals']} ({each}) in {totals.figures['runs']} runs that then went on to their end"


def summary(totals: Findings) -> str:
    """Return the line of figures."""
    return f"signals: {_figures(totals)}, {len(totals.all)} findings"
