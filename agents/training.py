"""From a TrainConfig to environments and an agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium as gym
import torch
from joblib import cpu_count
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from de_gym.controllers import RecurrentController, load
from de_gym.problems.budgets import default_max_evaluations

from .blocks import BlockedVecEnv, Blocks
from .config import TrainConfig
from .export import import_controller
from .measuring import measuring_functions
from .policies import UnitBoxLstmPolicy
from .reinforce import RecurrentREINFORCE
from .stacking import StackedVecEnv
from .task_sets import TaskSet, held_out_sets, training_sets, validation_sets
from .tracking import import_tracker
from .vec_env import GymnasiumVecEnv, WholeEpisodeVecEnv
from .workers import Functions, Worker

# Below so many individuals and generations, starting processes takes longer than what they are for.
_WORTH_PROCESSES = 10_000_000
_COUNTS = "updates", "episodes_per_function", "row_blocks", "cell_size", "checkpoint_every", "epochs", "minibatches"


def env_settings(config: TrainConfig, part: TaskSet | None = None) -> dict[str, Any]:
    """Return the environment's arguments as JSON values: those of one set, or what all that is trained on shares.

    The dimension is None where there are several.
    """
    sets = [part] if part is not None else training_sets(config)
    return {
        "suite": sets[0].suite,
        "dimension": sets[0].dimension if len(sets) == 1 else None,
        "population_size": config.population_size,
        "max_generations": config.max_generations,
        "max_evaluations": _budget(config),
        "pbest": config.pbest,
        "bound_repair": config.bound_repair,
        "reward": config.reward,
        "num_bins": config.num_bins,
        "history_window": config.history_window,
        "histogram": config.histogram,
    }


def episode_length(config: TrainConfig) -> int:
    """Return the largest number of generations in an episode; the initial population is evaluated too."""
    largest = max(part.dimension for part in training_sets(config))
    budget = _budget(config) or default_max_evaluations(largest)
    whole_run = max(budget // config.population_size - 1, 1)
    return whole_run if config.max_generations is None else min(config.max_generations, whole_run)


def _budget(config: TrainConfig) -> int | None:
    if config.max_evaluations != "episode":
        return config.max_evaluations
    if config.max_generations is None:
        raise ValueError("`max_evaluations` 'episode' needs a number of generations, got `max_generations` None.")
    return (config.max_generations + 1) * config.population_size


def make_training_env(config: TrainConfig) -> VecEnv:
    """Return M x L runs in lockstep: every function L times, those of one dimension from one initial population."""
    blocks = [VecMonitor(_make_block(config, number)) for number in range(num_row_blocks(config))]
    return blocks[0] if len(blocks) == 1 else BlockedVecEnv(blocks)


def num_row_blocks(config: TrainConfig) -> int:
    """Return into how many blocks an update is divided: no more than there are functions."""
    most = max(len(part.functions) for part in training_sets(config))
    return min(config.row_blocks, most) if config.agent == "reinforce" else 1


def _make_block(config: TrainConfig, number: int) -> VecEnv:
    """Return the runs of a block; functions are dealt in turn, since neighbours often cost about the same."""
    sets, num_blocks = training_sets(config), num_row_blocks(config)
    own = [part._replace(functions=part.functions[number::num_blocks]) for part in sets]
    parts = {place: _make_part(config, part) for place, part in enumerate(own) if part.functions}
    return parts[0] if len(sets) == 1 else StackedVecEnv(list(parts.values()), list(parts))


def _make_part(config: TrainConfig, part: TaskSet) -> VecEnv:
    bridge = WholeEpisodeVecEnv if config.agent == "reinforce" else GymnasiumVecEnv
    vector_env = gym.make_vec(
        "de_gym:DEParamControl-v0",
        num_envs=len(part.functions) * config.episodes_per_function,
        vectorization_mode="vector_entry_point",
        autoreset_mode=bridge.autoreset_mode,
        functions=list(part.functions),
        assignment="in_turn",
        shared_start=True,
        **env_settings(config, part),
    )
    return bridge(vector_env)


def num_cores(config: TrainConfig) -> int:
    """Return how many cores the training may use."""
    return cpu_count() if config.cores is None else config.cores


def num_training_functions(config: TrainConfig) -> int:
    """Return M, the number of functions that an update sees, each dimension counted apart."""
    return sum(len(part.functions) for part in training_sets(config))


def make_agent(config: TrainConfig, env: VecEnv) -> OnPolicyAlgorithm:
    """Return the agent that ``config`` describes, with random weights or those of a controller."""
    agent = _make_untrained_agent(config, env)
    if config.init is not None:
        assert isinstance(agent.policy, UnitBoxLstmPolicy)
        try:
            import_controller(agent.policy, _recurrent(config.init), env_settings(config))
        except ValueError as error:
            raise ValueError(f"`init` {config.init!r} cannot begin this training: {error}") from error
    return agent


def _recurrent(name_or_path: str) -> RecurrentController:
    controller = load(name_or_path)
    if not isinstance(controller, RecurrentController):
        raise ValueError(f"it is a {type(controller).__name__}, where a recurrent network is trained.")
    return controller


def _make_untrained_agent(config: TrainConfig, env: VecEnv) -> OnPolicyAlgorithm:
    policy_kwargs: dict[str, Any] = {
        "lstm_hidden_size": config.cell_size,
        "network": config.network,
        "mean": config.mean,
        "std": config.std,
        "initial_std": config.initial_std,
        "num_knots": config.num_knots,
    }
    if config.agent == "recurrent-ppo":
        return RecurrentPPO(
            UnitBoxLstmPolicy,
            env,
            learning_rate=config.learning_rate,
            n_steps=episode_length(config),
            batch_size=_part_size(config),
            n_epochs=config.epochs,
            gamma=config.gamma,
            gae_lambda=config.gae_lambda,
            clip_range=config.clip_range,
            max_grad_norm=float("inf") if config.max_grad_norm is None else config.max_grad_norm,
            policy_kwargs=policy_kwargs | {"enable_critic_lstm": True},
            seed=config.seed,
            device="cpu",
        )
    return RecurrentREINFORCE(
        UnitBoxLstmPolicy,
        env,
        learning_rate=config.learning_rate,
        gamma=config.gamma,
        returns=config.returns,
        baseline=config.baseline,
        back_propagation=config.back_propagation,
        log_prob_of=config.log_prob_of,
        max_grad_norm=config.max_grad_norm,
        collapse_patience=config.collapse_patience,
        policy_kwargs=policy_kwargs,
        seed=config.seed,
    )


def _steps_per_update(config: TrainConfig) -> int:
    """Return the number of generations that an update learns from."""
    return episode_length(config) * num_training_functions(config) * config.episodes_per_function


def _part_size(config: TrainConfig) -> int:
    """Return how many of them RecurrentPPO takes at once."""
    return -(-_steps_per_update(config) // config.minibatches)


def check_config(config: TrainConfig) -> None:
    """Raise a ``ValueError`` for the first setting that cannot work; environment and policy check their own."""
    for name in _COUNTS:
        if getattr(config, name) < 1:
            raise ValueError(f"`{name}` must be at least 1, got {getattr(config, name)}.")
    if config.track is not None:
        import_tracker(config.track)
    for name in ("threads", "cores"):
        if getattr(config, name) is not None and getattr(config, name) < 1:
            raise ValueError(f"`{name}` must be at least 1, or None for all cores, got {getattr(config, name)}.")
    _budget(config)
    if config.measure_runs < 0:
        raise ValueError(f"`measure_runs` must be at least 0, got {config.measure_runs}.")
    if not config.learning_rate > 0.0:
        raise ValueError(f"`learning_rate` must be positive, got {config.learning_rate}.")
    for name in ("gamma", "gae_lambda"):
        if not 0.0 <= getattr(config, name) <= 1.0:
            raise ValueError(f"`{name}` must be a number in [0, 1], got {getattr(config, name)}.")
    if not config.clip_range > 0.0:
        raise ValueError(f"`clip_range` must be positive, got {config.clip_range}.")
    if config.max_grad_norm is not None and not config.max_grad_norm > 0.0:
        raise ValueError(f"`max_grad_norm` must be positive, or None for no limit, got {config.max_grad_norm}.")
    if config.seeds and (not config.measure_runs or len(set(config.seeds)) < len(config.seeds)):
        raise ValueError(f"`seeds` must differ and need `measure_runs`, got {config.seeds} and {config.measure_runs}.")
    if not config.functions:
        raise ValueError("`functions` must name at least one training function, got none.")
    held_out_sets(config)  # suites know their numbers; asked before the training
    if config.validate_every < 0:
        raise ValueError(f"`validate_every` must be at least 0, got {config.validate_every}.")
    if config.validate_every:
        validation_sets(config)
    steps = _steps_per_update(config)
    # RecurrentPPO divides by the deviation of each part's advantages, which a single number has not.
    if config.agent == "recurrent-ppo" and 1 in (_part_size(config), steps % _part_size(config)):
        raise ValueError(
            f"`minibatches` must leave at least 2 of the {steps} generations of an update for every part, "
            f"got {config.minibatches}."
        )


def set_threads(config: TrainConfig) -> TrainConfig:
    """Give torch the configured number of threads, and return the configuration with that number.

    Sums that threads share depend on how many there are in their last bits: a run that goes on elsewhere needs the
    number it began with, not that of the cores it finds.
    """
    threads = torch.get_num_threads() if config.threads is None else config.threads
    torch.set_num_threads(threads)
    return replace(config, threads=threads)


@contextmanager
def several_cores(agent: OnPolicyAlgorithm, config: TrainConfig) -> Iterator[list[Worker]]:
    """Let other processes share an agent's updates, and yield them; they can share measurements, too."""
    measured = [*training_sets(config), *held_out_sets(config)]
    functions = sum(len(part.functions) for part in measured)
    runs = config.updates * num_training_functions(config) * config.episodes_per_function
    runs += functions * config.measure_runs
    work = runs * episode_length(config) * config.population_size
    num_workers = num_cores(config) - 1 if work >= _WORTH_PROCESSES else 0
    num_of_blocks = min(num_workers, num_row_blocks(config) - 1)
    make_measuring = partial(measuring_functions, {part.suite for part in measured} | {config.validation_problems})
    workers = [Worker(partial(_make_functions, config, make_measuring)) for _ in range(num_of_blocks)]
    workers += [Worker(make_measuring) for _ in range(num_workers - num_of_blocks)]
    try:
        if isinstance(agent, RecurrentREINFORCE):
            agent.workers = workers[:num_of_blocks]
        yield workers
    finally:
        if isinstance(agent, RecurrentREINFORCE):
            agent.workers = ()
        for worker in workers:
            worker.close()


def _make_functions(config: TrainConfig, make_measuring: Callable[[], Functions]) -> Functions:
    """Return what a worker can do; its blocks are those of an agent of its own."""
    set_threads(config)
    env = make_training_env(config)
    agent = make_agent(replace(config, init=None), env)  # its weights come with every update
    assert isinstance(agent, RecurrentREINFORCE)
    return {"compute": Blocks(env, agent.policy).compute, **make_measuring()}
