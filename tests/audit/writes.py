"""Commands that end at one of their writes: killed, stopped, with the write torn, or because the disk is full.

A hook of the interpreter sees whatever a run opens, renames or removes, so that every state that a kill can leave on
the disk is met, one after the other, and none depends on luck.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from findings import Findings
from kills import Command, Whole, badly_ended, commands, differences, finish, fork, undisturbed

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGES = "os.rename", "os.mkdir", "os.remove", "os.rmdir"
_TORN_ROW = b"9.0,17"


def end_at_writes(every: int, first: int, totals: Findings, seed: int) -> None:
    """End every command at every so many of its writes, in each way, and let it go on."""
    for command in commands(small=True):
        if command.alone:
            continue  # workers write nothing
        whole = undisturbed(command)
        number, last = first, _count_writes(command)
        while number < last:
            for offset, way in enumerate(WAYS):
                write = number + offset * every // len(WAYS)  # the ways share the writes that each leaves out
                if write < last and (unit := f"{command.name}, {way} at write {write}") not in totals:
                    totals.add(unit, *_ended(command, whole, way, write))
            number += every
        print(f"up to {command.name}: {_figures(totals)}", file=sys.stderr, flush=True)


def _ended(command: Command, whole: Whole, way: str, write: int) -> tuple[Counter[str], list[str]]:
    """End a run at a write, let it go on to its end, and return the figures and what is wrong."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        child = fork(_hooked(command, folder, WAYS[way](write)), command.start(folder), folder)
        code, said = finish(child, folder)
        expected = EXIT_CODES[way]
        wrong = [] if code == expected == -signal.SIGKILL else badly_ended(code, expected, said)
        end = finish(fork(command, command.resume(folder), folder), folder)
        return Counter({"ends": 1}), [*wrong, *differences(command, folder, whole, end)]


def _count_writes(command: Command) -> int:
    """Return how many writes a run has."""
    with tempfile.TemporaryDirectory() as name:
        folder, seen = Path(name), Path(name) / ".seen"

        def note(number: int, event: str, arguments: Any) -> None:
            os.pwrite(place, number.to_bytes(8, "little"), 0)

        place = os.open(seen, os.O_WRONLY | os.O_CREAT)
        finish(fork(_hooked(command, folder, note), command.start(folder), folder), folder)
        os.close(place)
        return int.from_bytes(seen.read_bytes(), "little") + 1


Hook = Callable[[int, str, Any], None]


def _hooked(command: Command, folder: Path, hook: Hook) -> Command:
    """Return a command that calls ``hook`` before each of its writes in ``folder``."""
    number = -1

    def see(event: str, arguments: Any) -> None:
        nonlocal number
        if (event == "open" and (arguments[2] or 0) & _WRITING) or event in _CHANGES:
            path = os.path.join(folder, os.fsdecode(arguments[0])) if isinstance(arguments[0], str | bytes) else ""
            # A thread of TensorBoard writes whenever it likes, what no training depends on.
            if path.startswith(str(folder)) and "tensorboard" not in path and not path.endswith(".output"):
                number += 1
                hook(number, event, arguments)

    def main() -> int:
        sys.addaudithook(see)
        return command.main()

    return replace(command, main=main)


def _killed(write: int) -> Hook:
    def hook(number: int, event: str, arguments: Any) -> None:
        if number == write:
            os.kill(os.getpid(), signal.SIGKILL)

    return hook


def _torn(write: int) -> Hook:
    """Open a file, which empties it, or leave half a row at its end; then nothing more."""

    def hook(number: int, event: str, arguments: Any) -> None:
        if number == write:
            if event == "open":
                place = os.open(arguments[0], arguments[2], 0o666)
                os.write(place, _TORN_ROW)
            os.kill(os.getpid(), signal.SIGKILL)

    return hook


def _without_space(write: int) -> Hook:
    def hook(number: int, event: str, arguments: Any) -> None:
        if number >= write and event in ("open", "os.mkdir"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return hook


def _sent(signal_number: signal.Signals) -> Callable[[int], Hook]:
    def way(write: int) -> Hook:
        def hook(number: int, event: str, arguments: Any) -> None:
            if number == write:
                os.kill(os.getpid(), signal_number)

        return hook

    return way


WAYS: dict[str, Callable[[int], Hook]] = {
    "killed": _killed,
    "torn": _torn,
    "without space": _without_space,
    "SIGTERM": _sent(signal.SIGTERM),
    "Ctrl-C": _sent(signal.SIGINT),
}
EXIT_CODES = {"killed": -9, "torn": -9, "without space": 1, "SIGTERM": 128 + 15, "Ctrl-C": 128 + 2}


def _figures(totals: Findings) -> str:
    return f"{totals.figures['ends']} runs ended at a write, in {len(WAYS)} ways, that then went on to their end"


def summary(totals: Findings) -> str:
    """Return the line of figures."""
    return f"writes: {_figures(totals)}, {len(totals.all)} findings"
