"""Train a controller: ``python train.py`` runs the default to the end in about five minutes.

Everything goes into one folder: configuration, progress, checkpoints, TensorBoard logs, the training curve, the
exported controller and its measurement. A run that was stopped goes on with ``python train.py --resume FOLDER``, for
longer than planned with ``--updates``, with other ``--cores``; a new one starts from a trained controller with
``--init``.
``--agent evolution-strategy`` trains a residual controller of an adaptive algorithm instead, with settings of its own.

A training follows from its seed, bit for bit, also where it is stopped and resumed. REINFORCE and RecurrentPPO do so on
one model of processor (torch's matrix products differ in the last bit between models), with one number of threads and
of row blocks, which a run keeps for good, and with any number of cores. The evolution strategy gives the same bits on
any x86-64 processor and with any number of workers.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import tyro
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from agents.callbacks import SeedEveryRollout, TrainingMonitor, Validation
from agents.checkpoints import CHECKPOINT_FILE, load_checkpoint
from agents.collapse import CollapseError
from agents.command_line import parse_training
from agents.config import PRESETS, TrainConfig
from agents.evolution_training import EvolutionConfig, train_residual_controller
from agents.export import export_controller
from agents.interruptions import TrainingStopped, exit_code, resumable, signals_interrupt
from agents.measuring import (
    Measurement,
    comparison_table,
    pooled_p_value,
    seed_table,
    write_measurements,
)
from agents.options import PresetName
from agents.plotting import plot_training
from agents.policies import UnitBoxLstmPolicy
from agents.run_folders import load_run_config, make_run_folder, save_run_config
from agents.shared_measuring import measure_on_sets
from agents.task_sets import held_out_sets, training_sets, validation_sets
from agents.tracking import Tracking
from agents.training import (
    check_config,
    env_settings,
    episode_length,
    make_agent,
    make_training_env,
    set_threads,
    several_cores,
)
from agents.workers import Worker
from de_gym.controllers import (
    ConstantController,
    Controller,
    RandomController,
    RecurrentController,
    load_controller,
    save_controller,
)

CONTROLLER_FILE = "controller.safetensors"


@dataclass(frozen=True)
class _AgentChoice:
    """What decides whose settings the command line has."""

    agent: str = "reinforce"


@dataclass(frozen=True)
class _Choice:
    """What decides how all other settings are read."""

    preset: PresetName = "quick"
    resume: str | None = None


@dataclass(frozen=True)
class _Continuation:
    """All that can be said about a run that goes on."""

    resume: str
    updates: int | None = None
    cores: int | None = None


def parse_config(arguments: Sequence[str]) -> TrainConfig:
    """Return the configuration of the command line: a preset, and the fields that were overridden."""
    chosen, _ = tyro.cli(_Choice, args=arguments, return_unknown_args=True, add_help=False)
    if chosen.resume is not None:
        return _continued_config(arguments)
    config = parse_training(arguments, PRESETS[chosen.preset], __doc__)
    if config.init is not None and config.init.endswith(".safetensors"):
        config = replace(config, init=str(Path(config.init).absolute()))
    check_config(config)
    return config


def _continued_config(arguments: Sequence[str]) -> TrainConfig:
    """Return the configuration of the run to continue, with more updates where they are asked for."""
    wanted, others = tyro.cli(_Continuation, args=arguments, return_unknown_args=True)
    if others:
        raise ValueError(
            "`--resume` takes all settings but `--updates` and `--cores` from the interrupted run, "
            f"got {' '.join(others)}."
        )
    config = load_run_config(Path(wanted.resume))
    updates = config.updates if wanted.updates is None else wanted.updates
    if updates < config.updates:
        raise ValueError(f"`updates` of a run can only grow: it was to have {config.updates}, got {updates}.")
    cores = config.cores if wanted.cores is None else wanted.cores
    config = replace(config, resume=wanted.resume, updates=updates, cores=cores)
    check_config(config)
    return config


def train(config: TrainConfig) -> Path:
    """Train as configured, export and measure the controller, and return the folder of the run."""
    config = set_threads(config)
    env = make_training_env(config)
    agent = make_agent(config, env)
    folder = make_run_folder(config) if config.resume is None else Path(config.resume)
    command = f"python train.py --resume {shlex.quote(str(folder))}"
    with resumable(folder, command), several_cores(agent, config) as workers:
        untrained = exported(agent, config)
        rows = learn(config, folder, agent, env, workers)
        env.close()
        plot_training(rows, folder / "training.png", f"{config.agent}, preset {config.preset}, seed {config.seed}")
        trained = exported(agent, config)
        save_controller(untrained, folder / "untrained.safetensors", half_precision=config.half_precision)
        path = folder / CONTROLLER_FILE
        save_controller(trained, path, half_precision=config.half_precision)  # at once: the measurement takes minutes
        controllers: dict[str, Controller] = {
            "trained": trained,
            "untrained": untrained,
            "random": RandomController(config.population_size),
            "constant": ConstantController(population_size=config.population_size),
        }
        results = measure(controllers, config, workers, folder)
        save_controller(exported(agent, config, results), path, half_precision=config.half_precision)
        print(f"\nController: {path}")
    return folder


def train_seeds(config: TrainConfig) -> Path:
    """Train once with each of ``config.seeds``, write and print the summary, and return its file."""
    results = []
    for seed in config.seeds:
        folder = train(replace(config, seed=seed, seeds=()))
        results.append(load_controller(folder / CONTROLLER_FILE).info.results)
    table = seed_table(results)
    path = Path(config.output) / f"{config.preset}-{config.agent}-seeds-{'-'.join(map(str, config.seeds))}.md"
    path.write_text(table + "\n")
    print(f"\n{table}\n\nSummary of all seeds: {path}")
    return path


def learn(
    config: TrainConfig, folder: Path, agent: OnPolicyAlgorithm, env: VecEnv, workers: Sequence[Worker]
) -> list[dict[str, float]]:
    """Do the updates that the run in ``folder`` still lacks, and return the record of all."""
    updates = 0
    if (folder / CHECKPOINT_FILE).exists():
        updates = load_checkpoint(agent, folder / CHECKPOINT_FILE, config.updates).updates
    if config.resume is not None:
        save_run_config(replace(config, resume=None), folder)  # perhaps with more updates than before
    print(f"Run folder: {folder}. Updates: {updates} of {config.updates} done.")
    agent.tensorboard_log = str(folder / "tensorboard")
    monitor = TrainingMonitor(folder, config.updates, config.checkpoint_every, updates, asdict(config))
    callbacks: list[BaseCallback] = [monitor]
    if config.validate_every:
        # Before the monitor: a checkpoint of an update is one of its trial too.
        trials = Validation(folder, config.validate_every, updates, partial(try_policy, agent, config, workers))
        callbacks.insert(0, trials)
    if config.agent == "recurrent-ppo":
        callbacks.insert(0, SeedEveryRollout(config.seed, updates))
    tracking = None if config.track is None else Tracking(config.track, folder.name, asdict(config))
    if tracking is not None:
        callbacks.append(tracking)
    steps = (config.updates - updates) * env.num_envs * episode_length(config)
    try:
        agent.learn(steps, callback=callbacks, tb_log_name=config.agent, reset_num_timesteps=False)
    finally:
        monitor.close()
        if tracking is not None:
            tracking.close()
    return monitor.rows


def try_policy(agent: OnPolicyAlgorithm, config: TrainConfig, workers: Sequence[Worker], path: Path) -> float:
    """Write the agent's present policy to ``path``, and return its mean return on the validation problems."""
    controller = exported(agent, config)
    save_controller(controller, path, half_precision=config.half_precision)
    return float(measure_on_sets(controller, config, validation_sets(config), 1, workers).returns.mean())


def exported(
    agent: OnPolicyAlgorithm, config: TrainConfig, results: dict[str, object] | None = None
) -> RecurrentController:
    """Return the agent's present policy as a controller."""
    assert isinstance(agent.policy, UnitBoxLstmPolicy)
    sets = training_sets(config)
    settings = env_settings(config) | {"functions": list(sets[0].functions)}
    if len(sets) > 1:
        settings["dimensions"] = [part.dimension for part in sets]
    return export_controller(agent.policy, settings, preset=config.preset, seed=config.seed, results=results)


def measure(
    controllers: Mapping[str, Controller], config: TrainConfig, workers: Sequence[Worker], folder: Path
) -> dict[str, object]:
    """Measure controllers on the training and on the test functions, unless that is off, and return a summary."""
    results: dict[str, object] = {}
    for kind, sets in {"training": training_sets(config), "test": held_out_sets(config)}.items():
        if not sets or not config.measure_runs:
            continue
        measurements = {
            name: measure_on_sets(controller, config, sets, config.measure_runs, workers)
            for name, controller in controllers.items()
        }
        write_measurements(folder / f"measurement-{kind}.csv", measurements)
        results[kind] = summary(measurements)
        table = comparison_table(measurements)
        (folder / f"measurement-{kind}.md").write_text(table + "\n")
        num_runs = measurements["trained"].returns.shape[1]
        print(f"\n{kind.capitalize()} functions, {num_runs} runs each, sampled actions:\n{table}")
    return results


def summary(measurements: dict[str, Measurement]) -> dict[str, object]:
    """Return mean returns, and the p values against the trained controller, as JSON values."""
    trained = measurements["trained"]
    means = {name: float(measurement.returns.mean()) for name, measurement in measurements.items()}
    others = {name: pooled_p_value(trained, other) for name, other in measurements.items() if name != "trained"}
    return {"mean_return": means, "p_against_trained": others}


def _wants_evolution(arguments: Sequence[str]) -> bool:
    """Return whether the command line asks for the agent that has settings of its own."""
    chosen, _ = tyro.cli(_AgentChoice, args=arguments, return_unknown_args=True, add_help=False)
    return chosen.agent == "evolution-strategy"


def main() -> int:
    """Run the command line; a mistake of the caller, a collapse or a stop from outside ends in one sentence."""
    try:
        with signals_interrupt():
            if _wants_evolution(sys.argv[1:]):
                folder = train_residual_controller(tyro.cli(EvolutionConfig, args=sys.argv[1:], description=__doc__))
                print(f"Controller: {folder / CONTROLLER_FILE}")
                return 0
            config = parse_config(sys.argv[1:])
            if config.seeds:
                train_seeds(config)
            else:
                train(config)
    except (TrainingStopped, CollapseError, OSError, ValueError) as error:
        print(f"train.py: {error}", file=sys.stderr)
        return error.exit_code if isinstance(error, TrainingStopped) else 1
    except KeyboardInterrupt as stop:
        print("train.py: Stopped before the training began.", file=sys.stderr)
        return exit_code(stop)
    return 0


if __name__ == "__main__":
    sys.exit(main())
