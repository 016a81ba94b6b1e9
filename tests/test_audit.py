"""The audit in small: no call, damaged file or kill does something wrong without a word."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

AUDIT = Path(__file__).parent / "audit"


@pytest.mark.slow
@pytest.mark.parametrize("part", [("--cases", "1000"), ("--flips", "400"), ("--kills", "10"), ("--stops", "10")])
def test_the_audit_finds_nothing(part):
    done = subprocess.run([sys.executable, AUDIT, *part], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert done.stdout.endswith("0 findings\n")
