"""Cost of an environment step as a multiple of its function evaluations alone, on one thread.

Run: python tests/benchmarks/bench_envs.py
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.envs import AdaptiveDEControlVectorEnv, DEParamControlEnv, DEParamControlVectorEnv
from de_gym.envs.stepping import breed_runs
from de_gym.evolution import two_population

FUNCTIONS = list(range(1, 21))
REPEATS = 30
NUM_ACTIONS = 8

VectorEnv = DEParamControlVectorEnv | AdaptiveDEControlVectorEnv


def cpu_seconds(work: Callable[[], object], number: int) -> float:
    """Return CPU seconds per call of ``number`` calls."""
    start = time.process_time()
    for _ in range(number):
        work()
    return (time.process_time() - start) / number


def next_trials(env: DEParamControlEnv | DEParamControlVectorEnv, actions: np.ndarray) -> tuple[FloatArray, IntArray]:
    """Return the points (T, D) that the next step with these actions would evaluate, and where each run's begin."""
    lower, upper = env._problems.lower, env._problems.upper
    return breed_runs(env._state, actions.astype(np.float64), lower, upper, env.process.settings.codes)


def next_parts(envs: AdaptiveDEControlVectorEnv, actions: np.ndarray) -> Iterator[two_population.Trials]:
    """Yield what the next step would evaluate, part by part."""
    state = two_population.TwoPopulations(*(array.copy() for array in envs._state.shell))
    parameters, box = two_population.set_parameters(state.runs, actions), (envs._problems.lower, envs._problems.upper)
    trials = two_population.breed(state, parameters, *box)
    while len(trials.points):
        yield trials
        values = envs._problems.evaluate_ragged(trials.points, trials.starts)
        two_population.select(state, parameters, trials, values)
        trials = two_population.breed(state, parameters, *box, begins=False)


def next_generation(envs: AdaptiveDEControlVectorEnv, actions: np.ndarray) -> tuple[FloatArray, IntArray]:
    """Return what ``next_trials`` does, of all parts of a generation together."""
    parts = list(next_parts(envs, actions))
    owners = np.concatenate([np.repeat(np.arange(len(actions)), np.diff(part.starts)) for part in parts])
    points = np.concatenate([part.points for part in parts])[np.argsort(owners, kind="stable")]
    return points, np.append(0, np.bincount(owners, minlength=len(actions)).cumsum())


def bench_vector(envs: VectorEnv, actions: np.ndarray, next_points: Callable) -> tuple[float, float]:
    """Return CPU seconds of a step and of its evaluations, given several actions."""
    envs.reset(seed=0)
    steps, evaluations = [], []
    for repeat in range(REPEATS):
        action = actions[repeat % len(actions)]
        steps.append(cpu_seconds(lambda action=action: envs.step(action), 4))
        trials = next_points(envs, action)
        evaluations.append(cpu_seconds(lambda trials=trials: envs._problems.evaluate_ragged(*trials), 4))
    return float(np.median(steps)), float(np.median(evaluations))


def bench_parameters(num_envs: int = 400) -> tuple[float, float]:
    """Return what ``bench_vector`` does, for M x L runs as in training."""
    envs = DEParamControlVectorEnv(
        num_envs, functions=FUNCTIONS, assignment="in_turn", max_generations=None, max_evaluations=10**9
    )
    actions = np.random.default_rng(0).random((NUM_ACTIONS, *envs.action_space.shape)).astype(np.float32)
    return bench_vector(envs, actions, next_trials)


def bench_adaptive(num_envs: int, dimension: int, largest: float) -> tuple[float, float]:
    """Return what ``bench_vector`` does, for actions up to ``largest`` in size."""
    envs = AdaptiveDEControlVectorEnv(num_envs, functions=FUNCTIONS, dimension=dimension, assignment="in_turn")
    shape = NUM_ACTIONS, *envs.action_space.shape
    actions = np.random.default_rng(0).uniform(-largest, largest, shape).astype(np.float32)
    return bench_vector(envs, actions, next_generation)


def bench_single() -> tuple[float, float]:
    """Return CPU seconds of a step and of its evaluations, mean over the functions, for one run."""
    step_means, evaluation_means = [], []
    for function in FUNCTIONS:
        env = DEParamControlEnv(functions=[function], max_generations=None, max_evaluations=10**9, target_error=0.0)
        env.reset(seed=0)
        actions = np.random.default_rng(0).random((NUM_ACTIONS, *env.action_space.shape)).astype(np.float32)
        steps, evaluations = [], []
        for repeat in range(REPEATS):
            action = actions[repeat % NUM_ACTIONS]
            steps.append(cpu_seconds(lambda env=env, action=action: env.step(action), 20))
            trials = next_trials(env, action[None])[0][None]
            evaluations.append(cpu_seconds(lambda env=env, trials=trials: env._problems.evaluate(trials), 20))
        step_means.append(np.median(steps))
        evaluation_means.append(np.median(evaluations))
    return float(np.mean(step_means)), float(np.mean(evaluation_means))


def main() -> None:
    """Print the ratios."""
    for name, runs, bound, bench in (
        ("DEParamControl, 400 runs", 400, 1.4, bench_parameters),
        ("DEParamControl, single", 1, 4.0, bench_single),
        ("AdaptiveDEControl, 100 runs, n = 10, zeros", 100, 1.5, lambda: bench_adaptive(100, 10, 0.0)),
        ("AdaptiveDEControl, 100 runs, n = 10, random actions", 100, 1.5, lambda: bench_adaptive(100, 10, 1.0)),
        ("AdaptiveDEControl, 40 runs, n = 30, zeros", 40, 1.5, lambda: bench_adaptive(40, 30, 0.0)),
        ("AdaptiveDEControl, 40 runs, n = 30, random actions", 40, 1.5, lambda: bench_adaptive(40, 30, 1.0)),
    ):
        step, evaluation = bench()
        print(
            f"{name}: step {step * 1e6:.1f} us, evaluations alone {evaluation * 1e6:.1f} us, "
            f"ratio {step / evaluation:.2f} (bound {bound}), {runs / step:,.0f} env steps per CPU-second"
        )


if __name__ == "__main__":
    main()
