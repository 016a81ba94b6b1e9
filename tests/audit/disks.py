"""Commands on a disk that is too small, a real one in memory: one sentence, and with more space they go on.

Linux lets only root mount it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from findings import Findings
from kills import Command, Whole, badly_ended, commands, differences, finish, fork, undisturbed

_ENOUGH = 64 * 2**20


def fill(count: int, first: int, totals: Findings, seed: int) -> None:
    """Run commands on ``count`` disks of random sizes, and with more space let them go on."""
    known = [command for command in commands(small=True) if not command.alone]  # workers write nothing
    wholes: dict[str, tuple[Whole, int]] = {}
    for number in range(first, first + count):
        command = _without_precaution(known[number % len(known)])
        if (unit := f"disk {number}") in totals:
            continue
        if command.name not in wholes:
            wholes[command.name] = undisturbed(command), _size(command)
        whole, size = wholes[command.name]
        totals.add(unit, *_filled(command, whole, int(np.random.default_rng([seed, number]).uniform(0.0, size))))
    print(f"up to disk {first + count - 1}: {_figures(totals)}", file=sys.stderr, flush=True)


def _filled(command: Command, whole: Whole, size: int) -> tuple[Counter[str], list[str]]:
    """Run a command on a disk of so many bytes, let it go on, and return the figures and what is wrong."""
    with _disk(size) as folder:
        code, said = finish(fork(command, command.start(folder), folder), folder)
        subprocess.run(["mount", "-o", f"remount,size={_ENOUGH}", folder], check=True)
        end = finish(fork(command, command.resume(folder), folder), folder)
        wrong = [*badly_ended(code, 1, said), *differences(command, folder, whole, end)]
        return Counter({"disks": 1, "full": int(code != 0)}), [f"{command.name}, {size} bytes: {one}" for one in wrong]


def _size(command: Command) -> int:
    """Return how many bytes a run takes, in whole pages."""
    with _disk(_ENOUGH) as folder:
        finish(fork(command, command.start(folder), folder), folder)
        return int(subprocess.run(["du", "-s", "-B1", folder], capture_output=True, check=True).stdout.split()[0])


@contextmanager
def _disk(size: int) -> Iterator[Path]:
    """Give the folder of a disk of at least a page."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / "disk"
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={max(size, 8192)}", "tmpfs", place], check=True)
        try:
            (place / ".output").symlink_to(Path(name) / "output")  # what is said has space enough
            yield place
        finally:
            subprocess.run(["umount", place], check=True)


def _without_precaution(command: Command) -> Command:
    """Return a command that begins although the disk is nearly full."""

    def main() -> int:
        from agents import run_folders

        run_folders._bytes_needed = lambda config: 0
        return command.main()

    return replace(command, main=main)


def _figures(totals: Findings) -> str:
    return f"{totals.figures['disks']} disks, of which {totals.figures['full']} were full before the end of a run"


def summary(totals: Findings) -> str:
    """Return the line of figures."""
    return f"disks: {_figures(totals)}, {len(totals.all)} findings"
