"""The wheel, installed alone in an empty environment without torch, minimises and makes the environment."""

from __future__ import annotations

import subprocess
import sys
import venv
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


@pytest.mark.slow
def test_wheel_works_without_torch(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)], check=True, cwd=tmp_path
    )
    (wheel,) = tmp_path.glob("*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", wheel], check=True, cwd=tmp_path)
    finished = subprocess.run([python, "-c", SMOKE], check=True, cwd=tmp_path, capture_output=True, text=True)
    assert "smoke test passed" in finished.stdout
