"""Train a controller: ``python train.py`` runs the default to the end in about five minutes.

Everything goes into one folder: configuration, progress, checkpoints, TensorBoard logs, the training curve, the
exported controller and its measurement. A run that was killed goes on with ``python train.py --resume FOLDER``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import tyro
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from agents.callbacks import SeedEveryRollout, TrainingMonitor
from agents.checkpoints import CHECKPOINT_FILE, load_checkpoint
from agents.collapse import CollapseError
from agents.config import PRESETS, PresetName, TrainConfig
from agents.export import export_controller
from agents.measuring import Measurement, comparison_table, measure_controller, pooled_p_value, write_measurements
from agents.plotting import plot_training
from agents.policies import UnitBoxLstmPolicy
from agents.training import (
    check_config,
    env_settings,
    episode_length,
    load_run_config,
    make_agent,
    make_run_folder,
    make_training_env,
    set_threads,
)
from de_gym.controllers import ConstantController, Controller, RandomController, RecurrentController, save_controller


@dataclass(frozen=True)
class _Defaults:
    """What decides the defaults of all other settings."""

    preset: PresetName = "quick"


def parse_config(arguments: Sequence[str]) -> TrainConfig:
    """Return the configuration of the command line: a preset, and the fields that were overridden."""
    chosen, _ = tyro.cli(_Defaults, args=arguments, return_unknown_args=True, add_help=False)
    config = tyro.cli(TrainConfig, default=PRESETS[chosen.preset], args=arguments, description=__doc__)
    if config.resume is not None:
        if config != replace(TrainConfig(), resume=config.resume):
            raise ValueError("`--resume` takes every setting from the interrupted run; give no other argument.")
        return replace(load_run_config(Path(config.resume)), resume=config.resume)
    check_config(config)
    return config


def train(config: TrainConfig) -> Path:
    """Train as configured, export and measure the controller, and return the folder of the run."""
    set_threads(config)
    env = make_training_env(config)
    agent = make_agent(config, env)
    folder = make_run_folder(config) if config.resume is None else Path(config.resume)
    agent.tensorboard_log = str(folder / "tensorboard")
    untrained = exported(agent, config)
    updates = 0
    if (folder / CHECKPOINT_FILE).exists():
        updates = load_checkpoint(agent, folder / CHECKPOINT_FILE, config.updates).updates
    print(f"Run folder: {folder}. Updates: {updates} of {config.updates} done.")

    monitor = TrainingMonitor(folder, config.updates, config.checkpoint_every, updates)
    callbacks: list[BaseCallback] = [monitor]
    if config.agent == "recurrent-ppo":
        callbacks.insert(0, SeedEveryRollout(config.seed, updates))
    steps_per_update = env.num_envs * episode_length(config)
    agent.learn(
        (config.updates - updates) * steps_per_update,
        callback=callbacks,
        tb_log_name=config.agent,
        reset_num_timesteps=False,
    )
    env.close()
    plot_training(monitor.rows, folder / "training.png", f"{config.agent}, preset {config.preset}, seed {config.seed}")
    finish(config, folder, untrained, agent)
    return folder


def exported(
    agent: OnPolicyAlgorithm, config: TrainConfig, results: dict[str, object] | None = None
) -> RecurrentController:
    """Return the agent's present policy as a controller."""
    assert isinstance(agent.policy, UnitBoxLstmPolicy)
    settings = env_settings(config) | {"functions": list(config.functions)}
    return export_controller(
        agent.policy, preset=config.preset, env_settings=settings, seed=config.seed, results=results
    )


def finish(config: TrainConfig, folder: Path, untrained: RecurrentController, agent: OnPolicyAlgorithm) -> None:
    """Export the trained controller, with its measurement beside the reference controllers unless that is off."""
    trained = exported(agent, config)
    save_controller(untrained, folder / "untrained.safetensors", half_precision=config.half_precision)
    path = folder / "controller.safetensors"
    save_controller(trained, path, half_precision=config.half_precision)  # at once: the measurement takes minutes
    results: dict[str, object] = {}
    if config.measure_runs:
        controllers: dict[str, Controller] = {
            "trained": trained,
            "untrained": untrained,
            "random": RandomController(config.population_size),
            "constant": ConstantController(population_size=config.population_size),
        }
        for kind, functions in (("training", config.functions), ("test", config.test_functions)):
            measurements = measure(controllers, config, functions)
            write_measurements(folder / f"measurement-{kind}.csv", measurements)
            results[kind] = summary(measurements)
            table = comparison_table(measurements)
            (folder / f"measurement-{kind}.md").write_text(table + "\n")
            print(f"\n{kind.capitalize()} functions, {config.measure_runs} runs each, sampled actions:\n{table}")
    save_controller(exported(agent, config, results), path, half_precision=config.half_precision)
    print(f"\nController: {path}")


def measure(
    controllers: dict[str, Controller], config: TrainConfig, functions: Sequence[int]
) -> dict[str, Measurement]:
    """Return the measurement of each controller on ``functions``, all with the same seeds."""
    settings = env_settings(config)
    return {
        name: measure_controller(controller, settings, functions, config.measure_runs, config.seed)
        for name, controller in controllers.items()
    }


def summary(measurements: dict[str, Measurement]) -> dict[str, object]:
    """Return mean returns, and the p values against the trained controller, as JSON values."""
    trained = measurements["trained"]
    means = {name: float(measurement.returns.mean()) for name, measurement in measurements.items()}
    others = {name: pooled_p_value(trained, other) for name, other in measurements.items() if name != "trained"}
    return {"mean_return": means, "p_against_trained": others}


def main() -> int:
    """Run the command line; a mistake of the caller or a collapse ends in one sentence."""
    try:
        train(parse_config(sys.argv[1:]))
    except (CollapseError, OSError, ValueError) as error:
        print(f"train.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
