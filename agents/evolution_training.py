"""A residual controller from nothing, by one command: the curriculum, the folder, and the exported file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tqdm import tqdm

from de_gym.controllers import save_residual_controller

from .evolution_strategy import Curriculum, EvolutionStrategy
from .interruptions import resumable

# Runs long enough that what they teach holds for shorter ones, and short enough to be paid for.
CURRICULUM = Curriculum((5, 10, 10, 20), smallest_budget=2000.0, largest_budget=10_000.0, num_problems=45)
STRATEGY_FILE, CONTROLLER_FILE = "strategy.json", "controller.safetensors"


@dataclass(frozen=True)
class EvolutionConfig:
    """Settings of ``train.py --agent evolution-strategy``."""

    agent: Literal["evolution-strategy"] = "evolution-strategy"
    """The learning algorithm."""
    seed: int = 0
    """Root seed of the training."""
    generations: int = 60
    """Generations of the evolution strategy."""
    step_size: float = 0.12
    """First standard deviation of every weight."""
    workers: int = 1
    """Processes that share the runs of a generation; they do not change the result."""
    resume: str | None = None
    """Folder of an interrupted training to go on with; the seed must be the same."""
    output: str = "runs"
    """Folder in which the folder of the training is made."""


def train_residual_controller(config: EvolutionConfig) -> Path:
    """Train as configured, export the controller, and return the folder of the training."""
    folder = Path(config.resume) if config.resume else Path(config.output) / f"evolution-strategy-seed{config.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    with resumable(folder):
        strategy = _strategy(folder / STRATEGY_FILE, config)
        missing = max(config.generations - strategy.num_generations, 0)
        with tqdm(total=config.generations, initial=config.generations - missing, disable=None) as bar:

            def keep(strategy: EvolutionStrategy) -> None:
                strategy.save(folder / STRATEGY_FILE)
                bar.set_postfix(beats_anchor=f"{strategy.anchor_scores[-1]:.2f}")
                bar.update()

            strategy.learn(missing, keep)
        info = {
            "trained_by": "python train.py --agent evolution-strategy "
            f"--seed {config.seed} --generations {strategy.num_generations}",
            "seed": config.seed,
            "generations": strategy.num_generations,
            "evaluations": strategy.num_evaluations,
        }
        # It fades: with the budget that the algorithm's constants were made for, they are hard to improve upon.
        exported = replace(strategy.controller(), fades=True, info=info)
        save_residual_controller(exported, folder / CONTROLLER_FILE)
    return folder


def _strategy(path: Path, config: EvolutionConfig) -> EvolutionStrategy:
    """Return the strategy of the training, as far as its file says it got."""
    if not path.exists():
        return EvolutionStrategy(CURRICULUM, step_size=config.step_size, seed=config.seed, workers=config.workers)
    strategy = EvolutionStrategy.load(path, workers=config.workers)
    if strategy.seed != config.seed:
        raise ValueError(f"{str(path)!r} is a training with seed {strategy.seed}, got `seed` {config.seed}.")
    return strategy
