"""The audit in small: no call, damaged file or kill does something wrong without a word."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

AUDIT = Path(__file__).parent / "audit"


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", ["--cases 1000", "--flips 400", "--kills 10", "--stops 10", "--writes 25", "--disks 8"]
)
def test_the_audit_finds_nothing(part):
    if "--disks" in part and (os.geteuid() != 0 or sys.platform != "linux"):
        pytest.skip("only root can mount disks, and only Linux has them in memory")
    done = subprocess.run([sys.executable, AUDIT, *part.split()], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert done.stdout.endswith(" 0 findings\n")


def test_an_audit_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(AUDIT)
    from findings import Findings

    kept = tmp_path / "audit.jsonl"
    Findings("flips", 0, kept).add("files 0 to 9", {"files": 10}, ["other content, silently"])
    again = Findings("flips", 0, kept)
    assert "files 0 to 9" in again
    assert "files 10 to 19" not in again
    assert again.figures["files"] == 10
    assert again.all == ["other content, silently"]
    assert "files 0 to 9" not in Findings("flips", 1, kept)
