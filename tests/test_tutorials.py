"""The tutorials as a reader would follow them: every file saved, every file and command run, in order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TUTORIALS = sorted((ROOT / ".github" / "docs").glob("tutorial-*.md"))
BLOCK = re.compile(r"```(python|bash)\n(.*?)```", re.DOTALL)


def command_of(language: str, code: str, folder: Path) -> list[str]:
    """Return what a reader runs: the file that the first line of a block names, or the command."""
    if language == "python":
        name = code.split("\n", 1)[0].removeprefix("# ")
        assert re.fullmatch(r"[a-z_]+\.py", name), name
        (folder / name).write_text(code)
        return [sys.executable, name]
    program, script, *arguments = code.replace("\\\n", " ").split()
    assert program == "python"
    return [sys.executable, str(ROOT / script), *arguments]


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_every_block_runs(tutorial, tmp_path):
    blocks = BLOCK.findall(tutorial.read_text(encoding="utf-8"))
    assert len(blocks) >= 4
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    for language, code in blocks:
        command = command_of(language, code, tmp_path)
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"


def test_there_is_a_tutorial_for_each_reader():
    assert [path.stem for path in TUTORIALS] == ["tutorial-agent", "tutorial-extension", "tutorial-function"]
