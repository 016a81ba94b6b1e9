"""Cost of one update at the paper's setting, and of the exported controller; ratios measured in one run.

    PYTHONPATH=. python tests/benchmarks/bench_agents.py [--generations 50]

M = L = 20, N = 50, n = 10: 400 runs in lockstep, 20 000 environment steps an update. CPU time of one thread.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback

from agents.config import PRESETS, TrainConfig
from agents.export import export_controller
from agents.training import env_settings, make_agent, make_training_env


def cpu_seconds(work: Callable[[], object], repetitions: int = 1) -> float:
    """Return the CPU time of one call, the least of several."""
    times = []
    for _ in range(repetitions):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def products_per_second(num_runs: int, cell_size: int) -> float:
    """Return GFLOP/s of plain torch products of the three shapes of an LSTM step and its gradient."""
    hidden, gates = torch.randn(num_runs, cell_size), torch.randn(num_runs, 4 * cell_size)
    weight = torch.randn(4 * cell_size, cell_size)
    products: list[Callable[[], torch.Tensor]] = [
        lambda: torch.mm(hidden, weight.t()),
        lambda: torch.mm(gates, weight),
        lambda: torch.mm(gates.t(), hidden),
    ]
    for product in products:
        product()
    seconds = sum(cpu_seconds(product, 5) for product in products)
    return 3 * 2 * num_runs * 4 * cell_size * cell_size / seconds / 1e9


def bench_update(config: TrainConfig) -> None:
    """Print the CPU time of one update, split into rollout, environment and gradient."""
    env = make_training_env(config)
    agent = make_agent(config, env)
    _, callback = agent._setup_learn(1)
    assert isinstance(callback, BaseCallback)
    collect = lambda: agent.collect_rollouts(env, callback, agent.rollout_buffer, 1)  # noqa: E731
    small = make_agent(replace(config, cell_size=4), env)
    _, small_callback = small._setup_learn(1)
    small.collect_rollouts(env, small_callback, small.rollout_buffer, 1)  # compiles the environment
    actions = np.full((env.num_envs, 2 * config.population_size), 0.5, dtype=np.float32)
    env_seconds = config.max_generations * cpu_seconds(lambda: env.step(actions), 5)

    rollout, update = cpu_seconds(collect), cpu_seconds(agent.train)
    total = rollout + update
    rows = env.num_envs * config.max_generations
    observation_size = env.observation_space.shape[0]
    flop = 3 * rows * 2 * 4 * config.cell_size * (config.cell_size + observation_size)
    print(
        f"cell {config.cell_size:4d}: {total:6.2f} CPU-s an update = rollout {rollout:.2f} (environment about "
        f"{env_seconds:.2f}) + gradient {update:.2f}; peak memory "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB"
    )
    if config.cell_size >= 500:
        reached = flop / (total - env_seconds) / 1e9
        plain = products_per_second(env.num_envs, config.cell_size)
        print(f"           {reached:.1f} GFLOP/s, plain torch.mm {plain:.1f} GFLOP/s: {reached / plain:.0%}")


def bench_controller(config: TrainConfig, num_runs: int) -> None:
    """Print the CPU time of one generation of ``num_runs`` runs of an exported policy."""
    env = make_training_env(replace(config, episodes_per_function=1))
    policy = make_agent(config, env).policy
    controller = export_controller(policy, env_settings(config))  # type: ignore[arg-type]  # SB3 knows the base
    observations = np.random.default_rng(0).random((num_runs, controller.observation_size), dtype=np.float32)
    controller.reset([np.random.default_rng(run) for run in range(num_runs)])
    controller(observations)
    repetitions = 300 if config.cell_size < 500 else 3
    seconds = min(
        cpu_seconds(lambda: [controller(observations) for _ in range(repetitions)]) / repetitions for _ in range(3)
    )
    print(f"controller, cell {config.cell_size:4d}, {num_runs:2d} runs: {1e6 * seconds / num_runs:8.1f} us a run")


def main() -> None:
    """Run all benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generations", type=int, default=50, help="length of an episode; shorter is only quicker")
    generations = parser.parse_args().generations
    torch.set_num_threads(1)
    quick = replace(PRESETS["quick"], max_generations=generations)
    script = replace(PRESETS["script-10d"], max_generations=generations)
    paper = replace(PRESETS["paper-10d"], max_generations=generations)
    for config in (quick, paper):
        for num_runs in (1, 51):
            bench_controller(config, num_runs)
    for config in (script, quick, paper):
        bench_update(config)


if __name__ == "__main__":
    main()
