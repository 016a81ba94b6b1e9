"""TrainConfig: every setting of a training, flat; and the presets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from .episodes import BaselineKind, ReturnKind
from .networks import NetworkName
from .policies import MeanKind, StdKind

PresetName = Literal["quick", "short", "long", "paper-10d", "paper-30d", "script-10d"]
AgentName = Literal["reinforce", "recurrent-ppo"]


@dataclass(frozen=True)
class TrainConfig:
    """Settings of ``train.py``; the defaults are the preset "quick"."""

    preset: PresetName = "quick"
    """Where the defaults come from: quick (five minutes), short (for small budgets; three minutes), long (for large
    ones; half an hour), the paper's sizes for 10 or 30 dimensions (hours), or its authors' script."""
    agent: AgentName = "reinforce"
    """The learning algorithm."""
    seed: int = 0
    """Root seed; every random number of the training and the measurement follows from it."""
    updates: int = 100
    """Number of policy updates Q."""
    seeds: tuple[int, ...] = ()
    """Several root seeds in place of one: a training each, one after the other, and a summary of their results."""
    resume: str | None = None
    """Folder of an interrupted run to continue; all other settings but a larger number of updates come from there."""
    init: str | None = None
    """Controller that the training starts from: the name of one that comes with the package, or a file."""

    suite: str = "cec2013"
    """Benchmark suite of the training and test functions."""
    functions: tuple[int, ...] = tuple(range(1, 21))
    """Numbers of the M training functions; every update sees all of them."""
    test_functions: tuple[int, ...] = tuple(range(21, 29))
    """Numbers of the functions that only the final measurement sees."""
    problems: str | None = None
    """What to train on in place of the suite's functions: MODULE:ATTRIBUTE imports your own list of problems (or suite
    object), of one or several dimensions; or the name of a suite, all of whose functions are taken."""
    test_problems: str | None = None
    """The same for the final measurement, in place of the test functions."""
    episodes_per_function: int = 6
    """Trajectories L of each function in an update."""
    dimension: int = 10
    """Number of coordinates n of a suite's functions."""
    dimensions: tuple[int, ...] = ()
    """Several numbers of coordinates in one training, in place of one; every function is seen in each of them."""
    population_size: int = 50
    """Number of individuals N."""
    max_generations: int | None = 500
    """Length T of a training episode; None for as many as the budget allows."""
    max_evaluations: int | Literal["episode"] | None = "episode"
    """Budget of a run, to which the p-best schedule refers: a number, what T generations use, so that an episode is a
    whole run from exploring to converging, or None for the suite's 10 000 n."""
    pbest: float | Literal["linear"] = "linear"
    """Fraction of the population that p-best individuals come from: a schedule or a constant."""
    bound_repair: str = "midpoint"
    """What happens to coordinates outside the box."""
    reward: str = "log"
    """Reward of a generation."""
    num_bins: int = 5
    """Bins b of the fitness histogram."""
    history_window: int | None = 5
    """Generations g in the mean of past histograms; None keeps all, and the uniform first one."""
    histogram: Literal["fractions", "counts"] = "fractions"
    """Unit of the histograms."""

    network: NetworkName = "lstm"
    """Hidden layer of the policy: lstm (paper), gru, or mlp, which has no memory."""
    cell_size: int = 64
    """Number of cells of the hidden layer."""
    mean: MeanKind = "sigmoid"
    """Output of the policy's mean."""
    std: StdKind = "constant"
    """Kind of the policy's standard deviation."""
    initial_std: float = 0.5
    """The constant deviation, or the first value of a learned one."""
    num_knots: int | None = 5
    """Ranks at which mean F and CR are chosen, interpolated in between: 1 gives all the same two means, None chooses
    them at all ranks (paper)."""

    learning_rate: float = 0.005
    """Step size of Adam."""
    gamma: float = 0.99
    """Discount factor."""
    max_grad_norm: float | None = 1.0
    """Largest norm of a gradient; None sets no limit."""
    returns: ReturnKind = "to_go"
    """REINFORCE: weight of a log-probability, the total return or the reward to go."""
    baseline: BaselineKind = "standardised"
    """REINFORCE: what is subtracted from the returns."""
    back_propagation: Literal["full", "stored"] = "full"
    """REINFORCE: through all generations, or recorded states as constants."""
    log_prob_of: Literal["sample", "clipped"] = "sample"
    """REINFORCE: density at the sample or at the clipped value."""
    collapse_patience: int = 3
    """REINFORCE: suspicious updates in a row that end the training; 0 never ends it."""
    # One gradient step per update: PPO clips the ratio of all 2N numbers at once, so that more steps move each mean
    # little where the range limits them, and learn less where it does not.
    epochs: int = 1
    """RecurrentPPO: passes over the data of an update."""
    minibatches: int = 1
    """RecurrentPPO: parts into which a pass is divided."""
    clip_range: float = 0.2
    """RecurrentPPO: largest change of a probability ratio."""
    gae_lambda: float = 0.9
    """RecurrentPPO: bias against variance of the advantage estimate."""

    threads: int | None = 1
    """Threads of torch; None uses all cores, which pays for cells of several hundred. With small cells they mostly
    wait for each other, the more so while other programs are running."""
    cores: int | None = None
    """Cores for the runs of a rollout and for the measurement, None for all; they do not change the result."""
    checkpoint_every: int = 10
    """Updates between two checkpoints."""
    validation_problems: str = "random:30000"
    """What the policy is tried on while it is trained, so that the best one is kept beside the last: a suite, of which
    the first 20 problems are taken, or MODULE:ATTRIBUTE. Not the test functions, which would then no longer be that."""
    validate_every: int = 10
    """Updates between two such trials; 0 for none. A training with fewer has no best policy but its last."""
    measure_runs: int = 51
    """Runs per function and controller in the final measurement; 0 skips it."""
    half_precision: bool = False
    """Whether the exported controller is stored as float16."""
    output: str = "runs"
    """Folder in which the folder of the run is made."""


QUICK = TrainConfig()
SHORT = replace(
    QUICK,
    preset="short",
    updates=150,
    episodes_per_function=20,
    max_generations=50,
    reward="relative",
    # A short run has no time for the many useless steps of a wide distribution.
    initial_std=0.2,
    gamma=0.9,
)
LONG = replace(
    QUICK,
    preset="long",
    updates=120,
    episodes_per_function=4,
    max_generations=None,
    max_evaluations=None,
    gamma=0.998,
)
_PAPER = replace(
    QUICK,
    updates=150,
    episodes_per_function=20,
    max_generations=50,
    max_evaluations=None,
    reward="relative",
    num_knots=None,
    gamma=1.0,
)
PAPER_10D = replace(
    _PAPER,
    preset="paper-10d",
    cell_size=2000,
    # NOTE: departures from the paper. Its step size of 0.005 makes results worse from cells of a few hundred on, and
    # without a baseline nothing is learned.
    learning_rate=0.0003,
    threads=None,
    checkpoint_every=5,
)
PAPER_30D = replace(PAPER_10D, preset="paper-30d", dimension=30, population_size=100, cell_size=3000)
SCRIPT_10D = replace(
    _PAPER,
    preset="script-10d",
    cell_size=50,
    mean="linear",
    std="state",
    gamma=0.99,
    max_grad_norm=None,
    baseline="none",
    back_propagation="stored",
    log_prob_of="clipped",
    history_window=None,
    histogram="counts",
)
PRESETS: Mapping[PresetName, TrainConfig] = MappingProxyType(
    {config.preset: config for config in (QUICK, SHORT, LONG, PAPER_10D, PAPER_30D, SCRIPT_10D)}
)


def config_from_json(text: str) -> TrainConfig:
    """Return the configuration that a JSON object of all fields of ``TrainConfig`` describes.

    Raises:
        ValueError: Where a field is missing, unknown or of another type.
    """
    values = json.loads(text)
    if not isinstance(values, dict):
        raise ValueError(f"it must be a JSON object, got {type(values).__name__}.")
    names = {field.name for field in fields(TrainConfig)}
    if values.keys() != names:
        differing = ", ".join(map(repr, sorted(names ^ values.keys())))
        raise ValueError(f"it was written by another version of train.py, which differs in {differing}.")
    for name, hint in get_type_hints(TrainConfig).items():
        if not _has_type(values[name], hint):
            raise ValueError(f"`{name}` must be {_described(hint)}, got {values[name]!r}.")
    tuples: dict[str, Any] = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
    return TrainConfig(**(values | tuples))


def _has_type(value: Any, hint: Any) -> bool:
    """Return whether a JSON value fits a field's type; tuples are lists there."""
    if get_origin(hint) is Literal:
        return type(value) is str and value in get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return any(_has_type(value, choice) for choice in get_args(hint))
    if get_origin(hint) is tuple:
        return type(value) is list and all(_has_type(item, get_args(hint)[0]) for item in value)
    if hint is float:
        return type(value) in (int, float)
    return type(value) is hint


def _described(hint: Any) -> str:
    """Return a field's type in words."""
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(map(_described, get_args(hint)))
    if get_origin(hint) is tuple:
        return f"a list of {_described(get_args(hint)[0])}"
    return "null" if hint is type(None) else str(hint.__name__)
