"""What is distributed: a wheel that works alone and leaves others alone, and a source distribution with all of it."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SMOKE = """
import importlib.util
assert importlib.util.find_spec("torch") is None
import gymnasium as gym, numpy as np
from de_gym import minimize
from de_gym.controllers import available
result = minimize(lambda x: float(np.sum(x**2)), [(-5, 5)] * 10, max_evaluations=20_000, seed=0)
assert result.fun < 1e-2, result
env = gym.make("de_gym:DEParamControl-v0", functions=[1])
env.reset(seed=0)
env.step(env.action_space.sample())
print("smoke test passed with controllers", available())
"""
OTHER_PROJECT = """
[project]
name = "agents"
version = "1.0"
[tool.setuptools]
packages = ["agents"]
"""
LEARN = """
import sys
import gymnasium as gym
from de_gym_agents import RecurrentREINFORCE, UnitBoxLstmPolicy, WholeEpisodeVecEnv
env = gym.make_vec("de_gym:DEParamControl-v0", num_envs=2, vectorization_mode="vector_entry_point",
                   autoreset_mode="Disabled", functions=[1], population_size=8, max_generations=3)
agent = RecurrentREINFORCE(UnitBoxLstmPolicy, WholeEpisodeVecEnv(env), seed=0).learn(6)
assert agent._n_updates == 1
assert "agents" not in sys.modules
"""


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """Return the source distribution and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("distributions")
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], check=True, cwd=folder)
    (source,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return source, wheel


def test_every_package_is_listed_for_the_wheel():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "de_gym").rglob("*.py")}
    assert set(settings["packages"]) == {".".join(folder.parts) for folder in folders} | {"de_gym_agents"}
    assert settings["package-dir"] == {"de_gym_agents": "agents"}


@pytest.mark.slow
def test_wheel_holds_no_package_agents(distributions):
    names = zipfile.ZipFile(distributions[1]).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"de_gym", "de_gym_agents"}
    modules = {path.name for path in (ROOT / "agents").glob("*.py")}
    assert {name.split("/")[1] for name in names if name.startswith("de_gym_agents/")} == modules


@pytest.mark.slow
def test_source_distribution_holds_scripts_and_tests(distributions):
    with tarfile.open(distributions[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tests = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("*.py")}
    assert names >= tests | {"train.py", "evaluate.py", "README.md", "LICENSE", "agents/__init__.py"}


@pytest.mark.slow
def test_wheel_works_without_torch_and_beside_another_distribution_named_agents(distributions, tmp_path):
    (tmp_path / "other" / "agents").mkdir(parents=True)
    (tmp_path / "other" / "pyproject.toml").write_text(OTHER_PROJECT)
    (tmp_path / "other" / "agents" / "__init__.py").write_text("OWNER = 'another project'\n")
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*arguments):
        options = {"check": True, "cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
        return subprocess.run([python, *arguments], **options).stdout

    run("-m", "pip", "install", "--quiet", str(tmp_path / "other"), distributions[1])
    assert "smoke test passed" in run("-c", SMOKE)
    run("-m", "pip", "uninstall", "--quiet", "--yes", "de-gym")
    assert run("-c", "import agents; print(agents.OWNER)") == "another project\n"


@pytest.mark.slow
def test_installed_agents_learn_under_their_own_name(distributions, tmp_path):
    zipfile.ZipFile(distributions[1]).extractall(tmp_path)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, "-c", LEARN], check=True, cwd=tmp_path, env=environment)
