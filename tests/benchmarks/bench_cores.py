"""What a second core saves a training, by CPU time, so that a loaded machine can tell: the busier process's share.

Two trainings alternate, one for one core and one for two, whose weights are compared bit for bit. With two idle cores
an update takes at least the CPU time of this process, and about that where the worker's is no longer. Waiting for the
worker is not in it, so on idle cores the last column, real seconds, is the one to read.

Run: python tests/benchmarks/bench_cores.py
"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
import torch
import tyro

from agents.config import PRESETS
from agents.options import PresetName
from agents.training import episode_length, make_agent, make_training_env, several_cores


@dataclass(frozen=True)
class Config:
    """What to measure."""

    preset: PresetName = "quick"
    """Whose updates."""
    updates: int = 3
    """How many, after one that is not counted."""


def main(config: Config) -> int:
    """Print CPU seconds of an update and the largest gain that a second core can bring."""
    torch.set_num_threads(1)
    agents, seconds = {}, {cores: np.empty((config.updates + 1, 2)) for cores in (1, 2)}
    with ExitStack() as stack:
        for cores in seconds:
            settings = replace(PRESETS[config.preset], cores=cores)
            env = make_training_env(settings)
            agents[cores] = make_agent(settings, env), env.num_envs * episode_length(settings)
            workers = stack.enter_context(several_cores(agents[cores][0], settings))
            assert all(worker.is_ready(timeout=600.0) for worker in workers)
        for update in range(config.updates + 1):
            for cores, (agent, steps) in agents.items():
                clocks = time.process_time, time.perf_counter
                starts = [clock() for clock in clocks]
                agent.learn(steps, reset_num_timesteps=False)
                seconds[cores][update] = [clock() - start for clock, start in zip(clocks, starts, strict=True)]
            weights = [list(agent.policy.state_dict().values()) for agent, _ in agents.values()]
            assert all(torch.equal(*pair) for pair in zip(*weights, strict=True)), "a second core changes bits"
    alone, together = (np.median(rows[1:], axis=0) for rows in seconds.values())
    fastest, shared = (rows[1:, 1].min() for rows in seconds.values())  # what other programs disturbed least
    print(f"{config.preset}: an update takes {alone[0]:.2f} CPU-s on one core")
    print(f"and of this process {together[0]:.2f} on two: at most {alone[0] / together[0]:.2f} times as fast")
    print(f"real seconds {alone[1]:.2f} and {together[1]:.2f}: {alone[1] / together[1]:.2f} times as fast")
    print(f"of the fastest updates {fastest:.2f} and {shared:.2f}: {fastest / shared:.2f} times as fast")
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Config, description=__doc__)))
