"""Keeps pytest from importing the example scripts: each needs a library that may not be installed."""

from pathlib import Path

collect_ignore = [path.name for path in Path(__file__).parent.glob("*.py") if not path.name.startswith("test_")]
