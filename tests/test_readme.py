"""Every Python snippet of the README runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SNIPPETS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)


def test_there_are_snippets():
    assert len(SNIPPETS) >= 4


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.strip().splitlines()[0][:40])
def test_snippet_runs(snippet):
    subprocess.run([sys.executable, "-c", snippet], check=True, cwd=ROOT)
