"""Every setting of a training, by owner: what it belongs to, what it means, what it is by default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from .episodes import BaselineKind, ReturnKind
from .networks import NetworkName
from .policies import MeanKind, StdKind
from .tracking import TrackerName

PresetName = Literal["quick", "short", "long", "paper-10d", "paper-30d", "script-10d"]
AgentName = Literal["reinforce", "recurrent-ppo"]


@dataclass(frozen=True)
class EnvOptions:
    """What is controlled: problems, population, length of a run, reward and observation."""

    suite: str = "cec2013"
    """Benchmark suite of the training and test functions: cec2013, cec2017, or random:SEED."""
    functions: tuple[int, ...] = tuple(range(1, 21))
    """Numbers of the M training functions; every update sees all of them."""
    test_functions: tuple[int, ...] = tuple(range(21, 29))
    """Numbers of the functions that only the final measurement sees."""
    problems: str | None = None
    """What to train on in place of the suite's functions: MODULE:ATTRIBUTE imports your own list of problems (or suite
    object), of one or several dimensions; or the name of a suite, all of whose functions are taken."""
    test_problems: str | None = None
    """The same for the final measurement, in place of the test functions."""
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
    bound_repair: Literal["midpoint", "clip", "reflect", "resample"] = "midpoint"
    """What happens to coordinates outside the box."""
    reward: Literal["relative", "log", "initial_gap"] = "log"
    """Reward of a generation: its share of the remaining error, the decades gained, or its share of the first error."""
    num_bins: int = 5
    """Bins b of the fitness histogram."""
    history_window: int | None = 5
    """Generations g in the mean of past histograms; None keeps all, and the uniform first one."""
    histogram: Literal["fractions", "counts"] = "fractions"
    """Unit of the histograms."""


@dataclass(frozen=True)
class PolicyOptions:
    """The network that is trained."""

    network: NetworkName = "lstm"
    """Hidden layer of the policy: lstm (paper), gru, or mlp, which has no memory."""
    cell_size: int = 64
    """Number of cells of the hidden layer."""
    mean: MeanKind = "sigmoid"
    """Output of the policy's mean: through a sigmoid (paper's text) or as it is (its authors' script)."""
    std: StdKind = "constant"
    """The policy's standard deviation: constant, learned for each number of an action, or an output of the network."""
    initial_std: float = 0.5
    """The constant deviation, or the first value of a learned one."""
    num_knots: int | None = 5
    """Ranks at which mean F and CR are chosen, interpolated in between: 1 gives all the same two means, None chooses
    them at all ranks (paper)."""


@dataclass(frozen=True)
class LearningOptions:
    """How an update is made, by any agent."""

    episodes_per_function: int = 6
    """Trajectories L of each function in an update."""
    learning_rate: float = 0.005
    """Step size of Adam."""
    gamma: float = 0.99
    """Discount factor."""
    max_grad_norm: float | None = 1.0
    """Largest norm of a gradient; None sets no limit."""


@dataclass(frozen=True)
class ReinforceOptions:
    """What only REINFORCE asks for."""

    returns: ReturnKind = "to_go"
    """Weight of a log-probability, the total return or the reward to go."""
    baseline: BaselineKind = "standardised"
    """What is subtracted from the returns."""
    back_propagation: Literal["full", "stored"] = "full"
    """Through all generations, or recorded states as constants."""
    log_prob_of: Literal["sample", "clipped"] = "sample"
    """Density at the sample or at the clipped value."""
    row_blocks: int = 2
    """Parts into which the functions of an update are dealt, with random numbers of their own; each can have a core for
    itself. It decides the result, which the number of cores does not: 1 reproduces what was trained before there was
    this option, such as the controllers that come with the package."""
    collapse_patience: int = 3
    """Suspicious updates in a row that end the training; 0 never ends it."""


@dataclass(frozen=True)
class PpoOptions:
    """What only RecurrentPPO asks for."""

    # One gradient step per update: PPO clips the ratio of all 2N numbers at once, so that more steps move each mean
    # little where the range limits them, and learn less where it does not.
    epochs: int = 1
    """Passes over the data of an update."""
    minibatches: int = 1
    """Parts into which a pass is divided."""
    clip_range: float = 0.2
    """Largest change of a probability ratio."""
    gae_lambda: float = 0.9
    """Bias against variance of the advantage estimate."""


@dataclass(frozen=True)
class MeasurementOptions:
    """What is measured while the policy is trained, and at the end."""

    validation_problems: str = "random:30000"
    """What the policy is tried on while it is trained, so that the best one is kept beside the last: a suite, of which
    the first 20 problems are taken, or MODULE:ATTRIBUTE. Not the test functions, which would then no longer be that."""
    validate_every: int = 10
    """Updates between two such trials; 0 for none. A training with fewer has no best policy but its last."""
    measure_runs: int = 51
    """Runs per function and controller in the final measurement; 0 skips it."""


@dataclass(frozen=True)
class RunOptions:
    """What a training is, and where it is kept."""

    preset: PresetName = "quick"
    """Where the defaults come from: quick (five minutes), short (for small budgets; three minutes), long (for large
    ones; half an hour), the paper's sizes for 10 or 30 dimensions (hours), or its authors' script."""
    agent: AgentName = "reinforce"
    """The learning algorithm. A third one, evolution-strategy, has options of its own, which
    --agent evolution-strategy --help shows."""
    seed: int = 0
    """Root seed; every random number of the training and the measurement follows from it."""
    updates: int = 100
    """Number of policy updates Q."""
    seeds: tuple[int, ...] = ()
    """Several root seeds in place of one: a training each, one after the other, and a summary of their results."""
    resume: str | None = None
    """Folder of an interrupted run to continue; all other settings but --cores and a larger number of updates come from
    there."""
    init: str | None = None
    """Controller that the training starts from: the name of one that comes with the package, or a file."""
    threads: int | None = 1
    """Threads of torch; None uses all cores, which pays for cells of several hundred. With small cells they mostly
    wait for each other, the more so while other programs are running."""
    cores: int | None = None
    """Cores for updates, of which each can use as many as it has --row-blocks, and for measurements; None for all. They
    do not change the result."""
    track: TrackerName | None = None
    """Where the records of the training go beside TensorBoard: wandb (Weights & Biases) or mlflow, if installed."""
    checkpoint_every: int = 10
    """Updates between two checkpoints."""
    half_precision: bool = False
    """Whether the exported controller is stored as float16."""
    output: str = "runs"
    """Folder in which the folder of the run is made."""


OWNERS: Mapping[str, type] = MappingProxyType(
    {
        "env": EnvOptions,
        "policy": PolicyOptions,
        "learning": LearningOptions,
        "reinforce": ReinforceOptions,
        "ppo": PpoOptions,
        "measurement": MeasurementOptions,
    }
)
"""Whose settings the command line shows together, by the name that stands before theirs there."""
