"""The audit in small: no call, damaged file or kill does something wrong without a word."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

AUDIT = Path(__file__).parent / "audit"


def audit(*arguments):
    """Run the audit and return what it says."""
    done = subprocess.run([sys.executable, AUDIT, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert done.stdout.endswith(" 0 findings\n")
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", ["--cases 1000", "--flips 400", "--kills 10", "--stops 10", "--writes 25", "--disks 8"]
)
def test_the_audit_finds_nothing(part):
    if "--disks" in part and (os.geteuid() != 0 or sys.platform != "linux"):
        pytest.skip("only root can mount disks, and only Linux has them in memory")
    audit(*part.split())


def test_an_audit_goes_on_where_it_was_stopped(tmp_path):
    kept = tmp_path / "audit.jsonl"
    first = audit("--flips", 40, "--keep", kept)
    (line,) = kept.read_text().splitlines()
    changed = json.loads(line) | {"figures": {"files": 1000}}
    kept.write_text(json.dumps(changed) + "\n")
    assert "40 damaged files of 9 kinds" in first
    assert "flips: 1000 damaged files" in audit("--flips", 40, "--keep", kept)
