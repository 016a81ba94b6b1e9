"""Every Python snippet of the README and of the pages it leads to runs, and the front page is one."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from de_gym.evaluation.published import SECTION

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / ".github").rglob("*.md"))}
SNIPPETS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
BLOCKS = re.compile(r"```.*?```", re.DOTALL)
CODE = re.compile(r"```.*?```|`[^`\n]*`|!?\[[^\]]*\]\([^)]*\)", re.DOTALL)


def test_there_are_snippets():
    assert len(SNIPPETS) >= 3


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.strip().splitlines()[-1][:40])
def test_snippet_runs(snippet):
    subprocess.run([sys.executable, "-c", snippet], check=True, cwd=ROOT)


def test_the_front_page_has_at_most_180_lines():
    assert len(README.splitlines()) <= 180


def test_numbers_of_results_stand_in_generated_sections_only():
    prose = CODE.sub("", SECTION.sub("", README))
    # Thresholds and settings that the text explains: "the same" of a comparison, and the deviation of a policy.
    assert set(re.findall(r"\d+\.\d+", prose)) <= {"0.5"}


@pytest.mark.parametrize("name", ["README.md", *PAGES])
def test_links_lead_somewhere(name):
    folder, text = (ROOT, README) if name == "README.md" else (next((ROOT / ".github").rglob(name)).parent, PAGES[name])
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", BLOCKS.sub("", text))
    missing = [target for target in targets if "://" not in target and not (folder / target).exists()]
    assert missing == []


def test_the_workflow_runs_the_command_of_the_readme_on_every_python_that_is_promised():
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    (program,) = re.findall(r"awk '(.*)' README.md", (ROOT / ".ci" / "run").read_text(encoding="utf-8"))
    assert f"awk '{program}' README.md" in workflow
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    promised = re.findall(r"Python :: (3\.\d+)", " ".join(settings["project"]["classifiers"]))
    assert re.search(r"python: \[(.*)\]", workflow).group(1) == ", ".join(f'"{version}"' for version in promised)
