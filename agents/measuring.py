"""Controllers measured side by side in the environment: returns and errors of the same seeds for each of them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from scipy.stats import ranksums, trim_mean

from de_gym import make_suite
from de_gym.arrays import FloatArray
from de_gym.controllers import Controller
from de_gym.problems.own_suites import find_problems, is_own


def measuring_functions(suites: Collection[str]) -> dict[str, Callable[..., Measurement]]:
    """Return what a worker can do that only measures, if it finds the problems; it needs no torch."""
    for suite in suites:
        if is_own(suite):
            find_problems(suite)
    return {"measure": measure_controller}


@dataclass(frozen=True)
class Measurement:
    """Returns and final errors of one controller, both of shape (functions, runs).

    Attributes:
        functions: Numbers of the functions in their suite.
        returns: Sums of rewards.
        errors: Final errors.
        labels: What tables call the functions; "f" and the number by default.
    """

    functions: tuple[int, ...]
    returns: FloatArray
    errors: FloatArray
    labels: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """What tables call the functions."""
        return self.labels or tuple(f"f{function}" for function in self.functions)


def join_measurements(measurements: Sequence[Measurement]) -> Measurement:
    """Return one measurement of all functions of several, which have equally many runs."""
    return Measurement(
        tuple(number for measurement in measurements for number in measurement.functions),
        np.concatenate([measurement.returns for measurement in measurements]),
        np.concatenate([measurement.errors for measurement in measurements]),
        tuple(label for measurement in measurements for label in measurement.labels),
    )


def measure_controller(
    controller: Controller, settings: Mapping[str, Any], functions: Sequence[int], num_runs: int, seed: int
) -> Measurement:
    """Run one episode per function and seed, and return what was reached.

    Run s of function f depends on (seed, f, s) and on the controller alone, so that different controllers meet
    the same initial populations.

    Args:
        controller: What chooses F and CR.
        settings: Arguments of the environment other than its functions.
        functions: Numbers of the functions in the suite.
        num_runs: Episodes per function.
        seed: Root seed of the measurement.
    """
    # The env holds the whole suite and functions are fixed by number: a run then does not depend on the others.
    suite = set(make_suite(settings["suite"], settings["dimension"]).numbers)
    env = gym.make_vec(
        "de_gym:DEParamControl-v0",
        num_envs=len(functions) * num_runs,
        vectorization_mode="vector_entry_point",
        autoreset_mode=gym.vector.AutoresetMode.SAME_STEP,
        functions=sorted(suite.union(functions)),
        **settings,
    )
    sequences = [np.random.SeedSequence([seed, function, run]) for function in functions for run in range(num_runs)]
    seeds = [int(sequence.generate_state(1)[0] % 2**31) for sequence in sequences]
    options = {"function": np.repeat(functions, num_runs).tolist()}
    observations, _ = env.reset(seed=seeds, options=options)  # type: ignore[arg-type]  # a list is allowed
    controller.reset([np.random.default_rng(sequence.spawn(1)[0]) for sequence in sequences])
    returns, errors = np.zeros(env.num_envs), np.full(env.num_envs, np.nan)
    going = np.ones(env.num_envs, dtype=bool)
    while going.any():
        observations, rewards, terminated, truncated, infos = env.step(controller(observations))
        returns += np.where(going, rewards, 0.0)
        ending = going & (terminated | truncated)
        if ending.any():
            errors[ending] = infos["final_info"]["best_error"][ending]
        going &= ~ending
    env.close()
    shape = (len(functions), num_runs)
    return Measurement(tuple(functions), returns.reshape(shape), errors.reshape(shape))


def pooled_p_value(first: Measurement, second: Measurement) -> float:
    """Return the two-sided rank-sum p of equal returns, pooled over functions and runs."""
    return float(ranksums(first.returns.ravel(), second.returns.ravel()).pvalue)


class SeedSummary(NamedTuple):
    """A figure of several trainings that differ in their seed alone."""

    mean: float
    interquartile_mean: float  # of the middle half
    lower: float  # of the interquartile mean's 95 % bootstrap interval
    upper: float


def summarize_seeds(values: Sequence[float], num_resamples: int = 10_000) -> SeedSummary:
    """Return the mean, the interquartile mean and its bootstrap interval over seeds.

    >>> summarize_seeds([1.0, 1.0, 1.0])
    SeedSummary(mean=1.0, interquartile_mean=1.0, lower=1.0, upper=1.0)
    """
    figures = np.asarray(values, dtype=np.float64)
    resamples = np.random.default_rng(0).choice(figures, (num_resamples, len(figures)))
    lower, upper = np.quantile(trim_mean(resamples, 0.25, axis=1), [0.025, 0.975])
    return SeedSummary(float(figures.mean()), float(trim_mean(figures, 0.25)), float(lower), float(upper))


def seed_table(results: Sequence[Mapping[str, Any]]) -> str:
    """Return a Markdown table over trainings of several seeds, from what ``train.py`` stored with each controller.

    Its figures are mean returns of the trained controllers on the training and on the test functions.
    """
    kinds = [kind for kind in ("training", "test") if kind in results[0]]
    lines = [
        f"| return, {len(results)} seeds | mean | interquartile mean | 95 % interval | each |",
        "|---|---|---|---|---|",
    ]
    for kind in kinds:
        values = [result[kind]["mean_return"]["trained"] for result in results]
        found = summarize_seeds(values)
        each = ", ".join(f"{value:.3f}" for value in values)
        interval = f"{found.lower:.3f} to {found.upper:.3f}"
        lines.append(f"| {kind} functions | {found.mean:.3f} | {found.interquartile_mean:.3f} | {interval} | {each} |")
    return "\n".join(lines)


def comparison_table(measurements: Mapping[str, Measurement]) -> str:
    """Return a Markdown table: mean return and mean error of each controller and function, then pooled figures.

    The p values compare each controller's returns with those of the first one.
    """
    names = list(measurements)
    reference = measurements[names[0]]
    lines = [
        "| function | " + " | ".join(f"{name}: return | error" for name in names) + " |",
        "|" + "---|" * (1 + 2 * len(names)),
    ]
    for row, function in enumerate(reference.names):
        cells = [
            f"{measurement.returns[row].mean():.3f} | {measurement.errors[row].mean():.3e}"
            for measurement in measurements.values()
        ]
        lines.append(f"| {function} | " + " | ".join(cells) + " |")
    means = [f"{measurement.returns.mean():.3f} | " for measurement in measurements.values()]
    lines.append("| mean | " + "| ".join(means) + "|")
    p_values = [f"{pooled_p_value(reference, measurements[name]):.1e} | " for name in names[1:]]
    lines.append(f"| p against {names[0]} | | | " + "| ".join(p_values) + "|")
    return "\n".join(lines)


def write_measurements(path: Path, measurements: Mapping[str, Measurement]) -> None:
    """Write every single run as a row: controller, function, run, return, error."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["controller", "function", "run", "return", "error"])
        for name, measurement in measurements.items():
            for row, function in enumerate(measurement.labels or measurement.functions):
                for run in range(measurement.returns.shape[1]):
                    values = (measurement.returns[row, run], measurement.errors[row, run])
                    writer.writerow([name, function, run, *(repr(float(value)) for value in values)])
