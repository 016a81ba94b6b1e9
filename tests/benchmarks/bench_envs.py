"""Cost of an environment step as a multiple of its function evaluations alone, in one run, on one thread.

Run: python tests/benchmarks/bench_envs.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from de_gym.envs import DEParamControlEnv, DEParamControlVectorEnv
from de_gym.envs.stepping import breed_runs

FUNCTIONS = list(range(1, 21))
REPEATS = 30


def cpu_seconds(work: Callable[[], object], number: int) -> float:
    """Return CPU seconds per call of ``number`` calls."""
    start = time.process_time()
    for _ in range(number):
        work()
    return (time.process_time() - start) / number


def next_trials(env: DEParamControlEnv | DEParamControlVectorEnv, actions: np.ndarray) -> np.ndarray:
    """Return the points (R, N, D) that the next step with these actions would evaluate."""
    lower, upper = env._problems.lower, env._problems.upper
    trials, _ = breed_runs(env._state, actions.astype(np.float64), lower, upper, env.process.settings.codes)
    return trials.reshape(len(actions), -1, lower.shape[1])


def bench_vector(num_envs: int = 400) -> tuple[float, float]:
    """Return CPU seconds of a step and of its evaluations, for M x L runs as in training."""
    envs = DEParamControlVectorEnv(
        num_envs, functions=FUNCTIONS, assignment="in_turn", max_generations=None, max_evaluations=10**9
    )
    envs.reset(seed=0)
    actions = np.random.default_rng(0).random((8, *envs.action_space.shape)).astype(np.float32)
    steps, evaluations = [], []
    for repeat in range(REPEATS):
        action = actions[repeat % 8]
        steps.append(cpu_seconds(lambda action=action: envs.step(action), 4))
        trials = next_trials(envs, action)
        evaluations.append(cpu_seconds(lambda trials=trials: envs._problems.evaluate(trials), 4))
    return float(np.median(steps)), float(np.median(evaluations))


def bench_single() -> tuple[float, float]:
    """Return CPU seconds of a step and of its evaluations, mean over the functions, for one run."""
    step_means, evaluation_means = [], []
    for function in FUNCTIONS:
        env = DEParamControlEnv(functions=[function], max_generations=None, max_evaluations=10**9, target_error=0.0)
        env.reset(seed=0)
        actions = np.random.default_rng(0).random((8, *env.action_space.shape)).astype(np.float32)
        steps, evaluations = [], []
        for repeat in range(REPEATS):
            action = actions[repeat % 8]
            steps.append(cpu_seconds(lambda env=env, action=action: env.step(action), 20))
            trials = next_trials(env, action[None])
            evaluations.append(cpu_seconds(lambda env=env, trials=trials: env._problems.evaluate(trials), 20))
        step_means.append(np.median(steps))
        evaluation_means.append(np.median(evaluations))
    return float(np.mean(step_means)), float(np.mean(evaluation_means))


def main() -> None:
    """Print the ratios."""
    for name, runs, bound, (step, evaluation) in (
        ("vector env, 400 runs", 400, 1.5, bench_vector()),
        ("single env", 1, 4.0, bench_single()),
    ):
        print(
            f"{name}: step {step * 1e6:.1f} us, evaluations alone {evaluation * 1e6:.1f} us, "
            f"ratio {step / evaluation:.2f} (bound {bound}), {runs / step:,.0f} env steps per CPU-second"
        )


if __name__ == "__main__":
    main()
