"""RL Baselines3 Zoo: PPO from the command line, then our own RecurrentREINFORCE added to its algorithms."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

import rl_zoo3.train
from rl_zoo3.utils import ALGOS
from small_task import ENV_ID, EPISODE_LENGTH, TASK, report
from stable_baselines3.common.monitor import load_results

from agents.reinforce import RecurrentREINFORCE

PACKAGE, ZOO_ID = ENV_ID.split(":")  # the Zoo asks for them separately
NUM_STEPS = 400
COMMON = {"n_envs": 4, "n_timesteps": NUM_STEPS, "env_kwargs": TASK}
HYPERPARAMETERS = {
    "ppo": COMMON
    | {
        "policy": "MlpPolicy",
        "n_steps": 5 * EPISODE_LENGTH,
        "batch_size": 50,
        # SB3's Gaussian starts with all means at 0: the middle of this box, but a corner of [0, 1].
        "env_wrapper": [{"gymnasium.wrappers.RescaleAction": {"min_action": -1, "max_action": 1}}],
    },
    "reinforce": COMMON | {"policy": "UnitBoxLstmPolicy", "policy_kwargs": {"lstm_hidden_size": 16}},
}


def arguments(algorithm: str, folder: Path) -> list[str]:
    """Return the command line of a training run, with its hyperparameters in a file as the Zoo wants them."""
    settings = folder / f"{algorithm}.yml"
    settings.write_text(json.dumps({ZOO_ID: HYPERPARAMETERS[algorithm]}))  # JSON is YAML
    names = ["--algo", algorithm, "--env", ZOO_ID, "--gym-packages", PACKAGE]
    files = ["--conf-file", str(settings), "--log-folder", str(folder)]
    return [*names, *files, "--eval-freq", "-1", "--seed", "0", "--device", "cpu", "--verbose", "0"]


def report_run(algorithm: str, folder: Path) -> None:
    episodes = load_results(str(folder / algorithm / f"{ZOO_ID}_1"))
    report("rl_zoo3", episodes["r"].tolist(), episodes["l"].tolist(), NUM_STEPS)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-m", "rl_zoo3.train", *arguments("ppo", folder)], check=True)
        report_run("ppo", folder)

        ALGOS["reinforce"] = RecurrentREINFORCE
        with mock.patch.object(sys, "argv", ["train", *arguments("reinforce", folder)]):
            rl_zoo3.train.train()
        report_run("reinforce", folder)


if __name__ == "__main__":
    main()
