"""A residual controller from nothing, by one command: a grid of maps, the folder, the exported file."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from tqdm import tqdm

from de_gym.arrays import FloatArray, IntArray
from de_gym.checks import shown
from de_gym.controllers import ResidualController, save_residual_controller
from de_gym.controllers.residual import INPUTS, NUM_SIZE_WEIGHTS, num_numbers
from de_gym.optimizers.adaptive import CONTROL_NAMES
from de_gym.registry import known_name

from .evolution_strategy import EvolutionStrategy, Stage
from .interruptions import resumable, stop_if_asked

CONTROLLER_FILE = "controller.safetensors"

# Positions of what does not depend on a run's features: each control's first weight, and the first population's size.
_CONSTANTS = np.append(np.arange(len(CONTROL_NAMES)) * len(INPUTS), num_numbers(len(CONTROL_NAMES)) - NUM_SIZE_WEIGHTS)


@dataclass(frozen=True)
class Regime:
    """What one map of a controller is for, and what it is trained on.

    Attributes:
        budget: log10(budget / (10^4 n)) of the map's place in the grid.
        dimension: log10(n / 10) of its place.
        stage: What its problems are drawn from; its number of generations is that of the training.
        num_candidates: Candidates of a generation.
        size_weight: Where the search for the first population's size begins.
        start: Where the search for other weights begins, by control and input; zeros where nothing is said.
        scales: First step of a control's weights, as a factor; 1 where nothing is said.
        unused: Controls that are left alone.
    """

    budget: float
    dimension: float
    stage: Stage
    num_candidates: int = 32
    size_weight: float = 0.0
    start: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)
    unused: tuple[str, ...] = ()

    def initial(self) -> FloatArray:
        """Return the numbers of the controller that the search begins with."""
        weights = np.zeros((len(CONTROL_NAMES), len(INPUTS)))
        for control, entries in self.start.items():
            for name, weight in entries.items():
                weights[CONTROL_NAMES.index(control), INPUTS.index(name)] = weight
        return np.concatenate([weights.ravel(), [self.size_weight], np.zeros(NUM_SIZE_WEIGHTS - 1)])

    def all_scales(self) -> FloatArray:
        """Return the scale of each of the controller's numbers."""
        by_control = [self.scales.get(name, 1.0) for name in CONTROL_NAMES]
        return np.concatenate([np.repeat(by_control, len(INPUTS)), np.ones(NUM_SIZE_WEIGHTS)])

    def free(self, only_constants: bool) -> IntArray:
        """Return the positions of the controller's numbers that are searched."""
        is_used = np.repeat([name not in self.unused for name in CONTROL_NAMES], len(INPUTS))
        used = np.flatnonzero(np.append(is_used, np.ones(NUM_SIZE_WEIGHTS, np.bool_)))
        return np.intersect1d(used, _CONSTANTS) if only_constants else used


_FEW, _MANY = 0.0, 0.5
_SOME_COORDINATES, _MANY_COORDINATES = (10, 5, 10, 3, 10, 2, 10, 7), (30, 20, 50, 30, 15)

# What the successors of L-SRTDE add late in a run, and changes that help a little each on CEC'13 and on random problems
# of validation (seed 10 000). From here a search of few generations gets further than from zeros.
_LATE_START = {
    "triple_probability": {"constant": -0.3, "spent": 0.6},
    "eigenvector_probability": {"constant": 0.6},
    "noise_probability": {"constant": 0.05},
    "pbest_share": {"constant": 0.3},
    "crossover_spread": {"constant": 0.3},
}

# Where few coordinates at a time are worth changing, which the memory then says, basins must live long enough for their
# coordinates to be put together: successes that replace their target do not crowd the others out.
_SEPARABLE_START = {
    "in_place_probability": {"constant": 6.0, "crossover_memory": -7.0},
    "sparse_probability": {"constant": 3.0, "crossover_memory": -3.0},
}

# Populations in which nothing is left to find begin anew.
_RESTARTING_START = {"restart_probability": {"constant": 2.0}}

# The more generations a run has, the more it suffers from CR and F that are a little wrong.
_LONG_SCALES = {
    "crossover_shift": 0.15,
    "mean_scale_factor": 0.5,
    "noise_probability": 0.5,
    "in_place_probability": 4.0,
    "sparse_probability": 2.0,
}

# What pays in long runs with few coordinates only, and what no tiny run lives to see.
_ONLY_WITH_FEW = ("in_place_probability",)
_NOT_IN_TINY_RUNS = (*_ONLY_WITH_FEW, "restart_probability")

# On validation problems a local search at the end of a run pays the more, and from the earlier on, the shorter the
# run. With 1000 n evaluations and few coordinates it gains nothing on average; there it is for smooth valleys, in which
# populations are slow, and of which a few times as many gradients as there are coordinates reach the end.
_TINY_DESCENT_SHARE, _LARGE_DESCENT_SHARE, _SMALL_DESCENT_SHARE = 0.4, 0.3, 0.12

# Long runs with many coordinates are what training costs most, so these have fewer candidates and problems.
REGIMES = {
    "tiny-few": Regime(
        -1.9,
        _FEW,
        Stage(32, _SOME_COORDINATES, 50.0, 300.0, num_problems=240, descent_share=_TINY_DESCENT_SHARE),
        unused=_NOT_IN_TINY_RUNS,
    ),
    "tiny-many": Regime(
        -1.9,
        _MANY,
        Stage(24, _MANY_COORDINATES, 50.0, 300.0, num_problems=160, descent_share=_LARGE_DESCENT_SHARE),
        unused=_NOT_IN_TINY_RUNS,
    ),
    "short-few": Regime(
        -1.0,
        _FEW,
        Stage(24, _SOME_COORDINATES, 500.0, 2000.0, num_problems=144, descent_share=_SMALL_DESCENT_SHARE),
        start=_RESTARTING_START,
        scales=_LONG_SCALES,
        unused=_ONLY_WITH_FEW,
    ),
    "short-many": Regime(
        -1.0,
        _MANY,
        Stage(9, _MANY_COORDINATES, 500.0, 2000.0, num_problems=60, descent_share=_LARGE_DESCENT_SHARE),
        start=_RESTARTING_START,
        scales=_LONG_SCALES,
        unused=_ONLY_WITH_FEW,
    ),
    "long-few": Regime(
        0.0,
        _FEW,
        Stage(30, (10, 10, 5), 1e4, 1e4, num_problems=80, cec2013_share=0.4),
        size_weight=0.2,
        start=_LATE_START | _SEPARABLE_START | _RESTARTING_START,
        scales=_LONG_SCALES,
    ),
    "long-many": Regime(
        0.0,
        _MANY,
        Stage(10, (30, 50, 30, 20), 1e4, 1e4, num_problems=40, cec2013_share=0.5),
        num_candidates=20,
        start=_LATE_START | _RESTARTING_START,
        scales=_LONG_SCALES,
        unused=_ONLY_WITH_FEW,
    ),
}


@dataclass(frozen=True)
class EvolutionConfig:
    """Settings of ``train.py --agent evolution-strategy``."""

    agent: Literal["evolution-strategy"] = "evolution-strategy"
    """The learning algorithm."""
    seed: int = 0
    """Root seed of the training."""
    maps: tuple[str, ...] | None = None
    """Maps to train, which must be a grid; all by default, fewer for a controller of fewer budgets or dimensions."""
    generations: int | None = None
    """Generations of each map; as many as are planned for it by default."""
    step_size: float = 0.1
    """First standard deviation of every weight."""
    only_constants: bool = False
    """Whether residuals are constant along a run: a control that tells what reacting to the run is worth."""
    workers: int = 1
    """Processes that share the runs of a generation, -1 for all there are; they do not change the result."""
    backend: Literal["local", "dask", "ray"] = "local"
    """Where they are: on this machine, or on a cluster (RAY_ADDRESS, DASK_SCHEDULER_ADDRESS)."""
    resume: str | None = None
    """Folder of an interrupted training to go on with; whatever decides its result must be the same."""
    output: str = "runs"
    """Folder in which the folder of the training is made."""


def train_residual_controller(config: EvolutionConfig) -> Path:
    """Train as configured, export the controller, and return the folder of the training."""
    names = _checked_maps(config.maps)
    kind = "evolution-strategy-constant" if config.only_constants else "evolution-strategy"
    folder = Path(config.resume) if config.resume else Path(config.output) / f"{kind}-seed{config.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    command = _command(config)
    with resumable(folder, f"{command} --resume {shlex.quote(str(folder))}"):
        parts = {name: _train_map(name, folder, config) for name in names}
        info = {
            "trained_by": command,
            "seed": config.seed,
            "generations": {name: strategy.num_generations for name, strategy in parts.items()},
            "evaluations": sum(strategy.num_evaluations for strategy in parts.values()),
        }
        places = [(REGIMES[name].budget, REGIMES[name].dimension) for name in parts]
        maps = dict(zip(places, (strategy.controller() for strategy in parts.values()), strict=True))
        save_residual_controller(ResidualController.joined(maps, info), folder / CONTROLLER_FILE)
    return folder


def _checked_maps(chosen: Sequence[str] | None) -> list[str]:
    """Return names of maps, none given twice, that leave no gap between budgets and dimensions."""
    names = [known_name("map", name, REGIMES) for name in (REGIMES if chosen is None else chosen)]
    places = {(REGIMES[name].budget, REGIMES[name].dimension) for name in names}
    budgets, dimensions = ({place[axis] for place in places} for axis in (0, 1))
    if not places or len(places) != len(names) or len(places) != len(budgets) * len(dimensions):
        raise ValueError(f"`maps` must be all maps of some budgets and some dimensions, each once, got {shown(names)}.")
    return names


def _command(config: EvolutionConfig) -> str:
    """Return the command of a training, as far as its result depends on it."""
    chosen = "" if config.maps is None else f" --maps {' '.join(config.maps)}"
    chosen += "" if config.generations is None else f" --generations {config.generations}"
    chosen += "" if config.step_size == EvolutionConfig.step_size else f" --step-size {config.step_size}"
    chosen += " --only-constants" if config.only_constants else ""
    return f"python train.py --agent evolution-strategy --seed {config.seed}{chosen}"


def _train_map(name: str, folder: Path, config: EvolutionConfig) -> EvolutionStrategy:
    """Return the strategy of one map after its last generation; every generation is kept in its file."""
    path = folder / f"strategy-{name}.json"
    strategy = _strategy(path, REGIMES[name], config)
    total = REGIMES[name].stage.num_generations if config.generations is None else config.generations
    missing = total - strategy.num_generations
    if missing < 0:
        raise ValueError(
            f"`generations` must be at least the {strategy.num_generations} of {str(path)!r}, got {total}."
        )
    with tqdm(total=total, initial=total - missing, desc=name, disable=None) as bar:

        def keep(strategy: EvolutionStrategy) -> None:
            strategy.save(path)
            bar.set_postfix(beats_anchor=f"{strategy.anchor_scores[-1]:.2f}")
            bar.update()
            stop_if_asked()

        strategy.learn(missing, keep)
    return strategy


def _strategy(path: Path, regime: Regime, config: EvolutionConfig) -> EvolutionStrategy:
    """Return the strategy of a map, as far as its file says it got."""
    initial = regime.initial()
    if config.only_constants:
        initial[np.setdiff1d(np.arange(len(initial)), _CONSTANTS)] = 0.0
    planned = EvolutionStrategy(
        regime.stage,
        num_candidates=regime.num_candidates,
        step_size=config.step_size,
        seed=config.seed,
        workers=config.workers,
        backend=config.backend,
        initial=initial,
        scales=regime.all_scales(),
        free=regime.free(config.only_constants),
    )
    if not path.exists():
        return planned
    strategy = EvolutionStrategy.load(path, workers=config.workers, backend=config.backend)
    for name, wanted in planned.settings.items():
        if (found := strategy.settings[name]) != wanted:
            raise ValueError(f"{str(path)!r} is a training with another `{name}`: {shown(found)}, got {shown(wanted)}.")
    return strategy
