"""Every example script trains for real where its library is installed; ``small_task.report`` checks what it saw."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
AGENTS = 'pip install "de-gym[agents]"'
PLUGINS = 'pip install "de-gym[plugins]"'

# Script: (top-level modules it needs, how to get them). RLlib's code comes with every ray, its dependencies do not.
SCRIPTS = {
    "cleanrl_style_ppo.py": (["torch"], AGENTS),
    "rl_zoo3_train.py": (["rl_zoo3"], PLUGINS),
    "rllib_ppo.py": (["ray", "torch", "tree", "lz4", "ormsgpack", "tensorboardX", "pyarrow", "pydantic"], PLUGINS),
    "sb3_ppo.py": (["stable_baselines3"], AGENTS),
    "sb3_ppo_adaptive.py": (["stable_baselines3"], AGENTS),
    "sb3_recurrent_ppo.py": (["stable_baselines3", "sb3_contrib"], AGENTS),
    "sb3_sac.py": (["stable_baselines3"], AGENTS),
    "skrl_ppo.py": (["skrl", "torch"], PLUGINS),
    "tianshou_ppo.py": (["tianshou"], PLUGINS),
    "torchrl_ppo.py": (["torchrl"], PLUGINS),
}
SMALL_TASK = runpy.run_path(str(HERE / "small_task.py"))
report, split_episodes = SMALL_TASK["report"], SMALL_TASK["split_episodes"]


def script_parameters() -> list[object]:
    """Return one test parameter per script, skipped with a reason where a module is missing."""
    parameters = []
    for script, (modules, command) in SCRIPTS.items():
        missing = [module for module in modules if find_spec(module) is None]
        reason = f"{script} needs {', '.join(missing)}: {command}"
        parameters.append(pytest.param(script, marks=pytest.mark.skipif(bool(missing), reason=reason), id=script))
    return parameters


@pytest.mark.slow
@pytest.mark.parametrize("script", script_parameters())
def test_library_trains_on_episodes_of_the_right_length(script, tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    finished = subprocess.run(
        [sys.executable, str(HERE / script)], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "mean return" in finished.stdout.splitlines()[-1]


def test_every_script_is_run():
    scripts = {path.name for path in HERE.glob("*.py")} - {"conftest.py", "small_task.py", "test_plugins.py"}
    assert scripts == set(SCRIPTS)


def test_episodes_are_split_where_they_end_and_the_unfinished_last_one_is_left_out():
    rewards = np.arange(10.0).reshape(5, 2)
    ended = np.array([[0, 0], [1, 0], [0, 1], [1, 0], [0, 0]], bool)
    assert split_episodes(rewards, ended) == ([0 + 2, 4 + 6, 1 + 3 + 5], [2, 2, 3])


@pytest.mark.parametrize(
    ("lengths", "num_steps", "message"),
    [
        ([10, 9], 19, r"must have 10 steps, got \[9\]"),
        ([10, 10.5], 21, r"must have 10 steps, got \[10\.5\]"),
        ([10, 10], 21, "2 episodes of 10 steps cannot be 21 transitions"),
        ([10], 10, "one return and length per episode, got 2 and 1"),
    ],
)
def test_report_refuses_episodes_that_cannot_be(lengths, num_steps, message):
    with pytest.raises(ValueError, match=message):
        report("numpy", [1.0, 2.0], lengths, num_steps)


def test_report_refuses_returns_that_cannot_be():
    with pytest.raises(ValueError, match=r"between 0 and 10, got -1\.0 to 2\.0"):
        report("numpy", [-1.0, 2.0], [10, 10], 20)


def test_report_prints_one_line(capsys):
    report("numpy", [1.0, 2.0], [10, 10], 20)
    assert capsys.readouterr().out.endswith(": 2 episodes, mean return 1.500, length 10\n")
