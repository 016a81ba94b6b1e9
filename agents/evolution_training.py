"""A residual controller from nothing: two evolution strategies for short and for long runs, joined and refined.

Weights that are linear in the logarithm of the budget can hold what two controllers learned at two budgets. Each of
those is found faster alone, with half the numbers; together they are then refined on runs of all lengths.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
from tqdm import tqdm

from de_gym.arrays import FloatArray, IntArray
from de_gym.controllers import save_residual_controller
from de_gym.controllers.residual import BASE_INPUTS, INPUTS
from de_gym.optimizers.adaptive import CONTROL_NAMES

from .evolution_strategy import Curriculum, EvolutionStrategy
from .interruptions import resumable

# What the two specialists learn from, and where their weights stand on the scale of log10(budget / (10^4 n)).
SHORT = Curriculum((2, 3, 5, 10, 20, 30), smallest_budget=50.0, largest_budget=1000.0, num_problems=80)
LONG = Curriculum((5, 10, 10, 20), smallest_budget=2000.0, largest_budget=10_000.0, num_problems=45)
JOINT = Curriculum((2, 5, 10, 20, 30), smallest_budget=50.0, largest_budget=10_000.0, num_problems=60)
_SHORT_BUDGET, _LONG_BUDGET = -1.65, 0.0
STEP_SIZES: Mapping[str, float] = MappingProxyType({"short": 0.15, "long": 0.12, "joint": 0.03})

CONTROLLER_FILE = "controller.safetensors"
_NUM_BASE = len(BASE_INPUTS)
_NUM_WEIGHTS = len(CONTROL_NAMES) * len(INPUTS)


@dataclass(frozen=True)
class EvolutionConfig:
    """Settings of ``train.py --agent evolution-strategy``."""

    agent: Literal["evolution-strategy"] = "evolution-strategy"
    """The learning algorithm."""
    seed: int = 0
    """Root seed of the training."""
    short_generations: int = 120
    """Generations of the strategy for short runs."""
    long_generations: int = 60
    """Generations of the strategy for long runs."""
    joint_generations: int = 20
    """Generations that refine both together."""
    workers: int = 1
    """Processes that share the runs of a generation; they do not change the result."""
    resume: str | None = None
    """Folder of an interrupted training to go on with; its other settings must be the same."""
    output: str = "runs"
    """Folder in which the folder of the training is made."""


def train_residual_controller(config: EvolutionConfig) -> Path:
    """Train as configured, export the controller, and return the folder of the training."""
    folder = Path(config.resume) if config.resume else Path(config.output) / f"evolution-strategy-seed{config.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    with resumable(folder):
        short = _train_stage("short", SHORT, config, config.short_generations, folder, free=_free_of_specialist())
        long = _train_stage("long", LONG, config, config.long_generations, folder, free=_free_of_specialist())
        joined = join_specialists(short.mean, long.mean)
        joint = _train_stage("joint", JOINT, config, config.joint_generations, folder, initial=joined)
        stages = {"short": short, "long": long, "joint": joint}
        info = {
            "trained_by": "python train.py --agent evolution-strategy",
            "seed": config.seed,
            "generations": {name: stage.num_generations for name, stage in stages.items()},
            "evaluations": sum(stage.num_evaluations for stage in stages.values()),
        }
        save_residual_controller(replace(joint.controller(), info=info), folder / CONTROLLER_FILE)
    return folder


def join_specialists(short: FloatArray, long: FloatArray) -> FloatArray:
    """Return the controller that equals the one for long runs at the largest budget, the other at a small one.

    Between and beyond, its weights lie on straight lines over the logarithm of the budget.
    """
    joined = np.zeros_like(long)
    shape = len(CONTROL_NAMES), len(INPUTS)
    weights, short_weights, long_weights = (v[:_NUM_WEIGHTS].reshape(shape) for v in (joined, short, long))
    span = _LONG_BUDGET - _SHORT_BUDGET
    slopes = (long_weights[:, :_NUM_BASE] - short_weights[:, :_NUM_BASE]) / span
    weights[:, :_NUM_BASE] = long_weights[:, :_NUM_BASE] - slopes * _LONG_BUDGET
    weights[:, _NUM_BASE:] = slopes
    constant, dimension = 0.5 * (short[_NUM_WEIGHTS:] + long[_NUM_WEIGHTS:])[:2]
    slope = (long[_NUM_WEIGHTS] - short[_NUM_WEIGHTS]) / span
    middle = 0.5 * (_LONG_BUDGET + _SHORT_BUDGET)
    joined[_NUM_WEIGHTS:] = constant - slope * middle, dimension, slope
    return joined


def _free_of_specialist() -> IntArray:
    """Return the positions of all numbers but those that multiply the budget."""
    is_free = np.zeros((len(CONTROL_NAMES), len(INPUTS)), np.bool_)
    is_free[:, :_NUM_BASE] = True
    return np.concatenate([np.flatnonzero(is_free), _NUM_WEIGHTS + np.arange(2)])


def _train_stage(
    name: str,
    curriculum: Curriculum,
    config: EvolutionConfig,
    num_generations: int,
    folder: Path,
    *,
    initial: FloatArray | None = None,
    free: IntArray | None = None,
) -> EvolutionStrategy:
    """Return the strategy of a stage after its generations, going on where its file in the folder stops."""
    path = folder / f"{name}.json"
    if path.exists():
        strategy = EvolutionStrategy.load(path, workers=config.workers)
        if (strategy.curriculum, strategy.seed) != (curriculum, config.seed):
            raise ValueError(f"{str(path)!r} is of a training with other settings or another seed than {config.seed}.")
    else:
        strategy = EvolutionStrategy(
            curriculum,
            step_size=STEP_SIZES[name],
            seed=config.seed,
            workers=config.workers,
            initial=initial,
            free=free,
        )
    missing = max(num_generations - strategy.num_generations, 0)
    with tqdm(total=num_generations, initial=num_generations - missing, desc=name, disable=None) as bar:

        def keep(strategy: EvolutionStrategy) -> None:
            strategy.save(path)
            bar.set_postfix(beats_anchor=f"{strategy.anchor_scores[-1]:.2f}")
            bar.update()

        strategy.learn(missing, keep)
    return strategy
