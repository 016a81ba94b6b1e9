"""What a second core saves a training: an update by one process, and by two that share its runs.

Both alternate, and their weights are compared bit for bit. Real seconds are what counts, on idle cores; a loaded
machine can still tell how long two idle cores would take, from the CPU time of both processes: the longer of the two
while they play, the first one's while it reports the steps, and so on.

Run: python tests/benchmarks/bench_cores.py
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace

import numpy as np
import torch
import tyro

from agents.config import PRESETS
from agents.options import PresetName
from agents.partner import SecondProcess, partnered
from agents.training import episode_length, make_agent, make_training_env


@dataclass(frozen=True)
class Config:
    """What to measure."""

    preset: PresetName = "quick"
    """Whose updates."""
    updates: int = 10
    """How many, after one that is not counted."""


class CriticalPath:
    """Sums the CPU time of whichever process the other one waits for."""

    def __init__(self, partner: SecondProcess) -> None:
        """Watch a partner's process."""
        self._clock = (~partner._process.pid << 3) | 2  # Linux's number of another process's CPU clock
        self._answer, partner._answer = partner._answer, self._wait  # type: ignore[method-assign]
        self.restart()

    def restart(self) -> None:
        """Begin to count."""
        self.seconds, self._before = 0.0, self._clocks()

    def _clocks(self) -> tuple[float, float]:
        return time.process_time(), time.clock_gettime(self._clock)

    def _wait(self, kind: str, update: int) -> object:
        """Answer as the partner does; both processes are at the same point afterwards."""
        here = time.process_time()
        answer = self._answer(kind, update)
        there = time.clock_gettime(self._clock)
        self.seconds += max(here - self._before[0], there - self._before[1])
        self._before = time.process_time(), there
        return answer

    def finish(self) -> float:
        """Return the seconds since the beginning."""
        return self.seconds + time.process_time() - self._before[0]


def main(config: Config) -> int:
    """Print seconds of an update by one process and by two."""
    torch.set_num_threads(1)
    settings = replace(PRESETS[config.preset], cores=2)
    envs = [make_training_env(replace(settings, cores=1)) for _ in range(2)]
    agents = [make_agent(replace(settings, cores=1), env) for env in envs]
    together = agents[1]
    steps = envs[0].num_envs * episode_length(settings)
    seconds = np.empty((config.updates + 1, 2, 2))
    with partnered(settings, together, envs[1]):
        if not together.partner.wait():
            return 1
        path = CriticalPath(together.partner)
        for update in range(config.updates + 1):
            for number, agent in enumerate(agents):
                path.restart()
                start = time.perf_counter(), time.process_time()
                agent.learn(steps, reset_num_timesteps=False)
                needed = path.finish() if agent is together else time.process_time() - start[1]
                seconds[update, number] = time.perf_counter() - start[0], needed
            weights = [list(agent.policy.state_dict().values()) for agent in agents]
            assert all(torch.equal(*pair) for pair in zip(*weights, strict=True)), "a second process changes bits"
    for row, name in enumerate(("real seconds", "seconds on idle cores")):
        best, median = seconds[1:, :, row].min(axis=0), np.median(seconds[1:, :, row], axis=0)
        for kind, (one, two) in (("best", best), ("median", median)):
            print(f"{config.preset}, {name}, {kind}: {one:.3f} by one process, {two:.3f} by two, x{one / two:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Config, description=__doc__)))
