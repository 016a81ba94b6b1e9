import json
import shutil
from collections import namedtuple
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from sb3_contrib import RecurrentPPO

from agents import RecurrentREINFORCE
from agents.config import PRESETS, TrainConfig
from agents.training import (
    check_config,
    env_settings,
    episode_length,
    load_run_config,
    make_agent,
    make_run_folder,
    make_training_env,
)

TINY = TrainConfig(
    updates=3,
    functions=(1, 11),
    test_functions=(21,),
    episodes_per_function=2,
    population_size=8,
    max_generations=4,
    cell_size=5,
    measure_runs=3,
    threads=1,
)


def test_training_runs_every_function_equally_often_from_one_population():
    env = make_training_env(TINY)
    env.seed(3)
    env.reset()
    assert [info["function"] for info in env.unwrapped.reset_infos] == [1, 1, 11, 11]
    positions = [info["best_position"] for info in env.unwrapped.reset_infos]
    np.testing.assert_array_equal(positions[0], positions[1])
    assert env.observation_space.shape == (18,)


def test_the_baseline_knows_the_function_of_every_run():
    agent = make_agent(TINY, make_training_env(TINY))
    _, callback = agent._setup_learn(1)
    agent.collect_rollouts(agent.env, callback, agent.rollout_buffer, 1)
    np.testing.assert_array_equal(agent._rollout.groups, [0, 0, 1, 1])


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_say_what_the_table_of_decisions_says(preset):
    config = PRESETS[preset]
    assert config.preset == preset
    check_config(config)
    assert config.functions == tuple(range(1, 21))
    if preset == "quick":
        assert (episode_length(config), env_settings(config)["max_evaluations"]) == (500, 501 * 50)
        return
    if preset == "short":
        assert (episode_length(config), env_settings(config)["max_evaluations"]) == (50, 51 * 50)
        return
    if preset == "long":
        assert episode_length(config) == 1999  # and the initial population: 100,000 evaluations
        return
    assert (config.max_generations, config.max_evaluations, config.reward) == (50, None, "relative")
    if preset.startswith("paper"):
        assert (config.returns, config.baseline, config.gamma) == ("to_go", "standardised", 1.0)
        assert (config.mean, config.std, config.initial_std) == ("sigmoid", "constant", 0.5)
        assert config.updates == 150
    if preset == "script-10d":
        assert (config.returns, config.baseline, config.gamma) == ("to_go", "none", 0.99)
        assert (config.mean, config.std, config.back_propagation) == ("linear", "state", "stored")
        assert (config.histogram, config.history_window, config.log_prob_of) == ("counts", None, "clipped")
        assert (config.cell_size, config.learning_rate, config.max_grad_norm) == (50, 0.005, None)


def test_an_episode_ends_with_the_budget_or_the_generation_limit():
    small = replace(PRESETS["long"], population_size=10, max_evaluations=105)
    assert episode_length(small) == 9  # ten populations fit, the first is the initial one
    assert episode_length(replace(small, max_generations=4)) == 4
    assert episode_length(replace(small, max_generations=50)) == 9
    with pytest.raises(ValueError, match="'episode' needs a number of generations, got `max_generations` None"):
        check_config(replace(small, max_evaluations="episode"))


def test_paper_presets_have_the_sizes_of_the_paper():
    sizes = [(c.dimension, c.population_size, c.cell_size) for c in (PRESETS["paper-10d"], PRESETS["paper-30d"])]
    assert sizes == [(10, 50, 2000), (30, 100, 3000)]


def test_agents_get_the_settings_of_the_configuration():
    env = make_training_env(TINY)
    agent = make_agent(replace(TINY, returns="total", mean="linear", std="state", max_grad_norm=None), env)
    assert isinstance(agent, RecurrentREINFORCE)
    assert (agent.returns, agent.policy.mean, agent.policy.std) == ("total", "linear", "state")
    assert agent.max_grad_norm == float("inf")
    ppo = make_agent(replace(TINY, agent="recurrent-ppo", clip_range=0.3), env)
    assert isinstance(ppo, RecurrentPPO)
    assert ppo.clip_range(1.0) == 0.3
    assert ppo.n_steps == 4


@pytest.mark.parametrize("agent", ["reinforce", "recurrent-ppo"])
def test_initial_weights_depend_on_the_seed_alone(agent):
    config = replace(TINY, agent=agent)
    first, second = (make_agent(config, make_training_env(config)).policy.state_dict() for _ in range(2))
    other = make_agent(replace(config, seed=1), make_training_env(config)).policy.state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["action_net.weight"], other["action_net.weight"])


def test_the_run_folder_is_new_and_holds_the_configuration(tmp_path):
    config = replace(TINY, output=str(tmp_path / "runs"))
    first, second = make_run_folder(config), make_run_folder(config)
    assert first != second
    assert load_run_config(first) == config
    assert json.loads((first / "config.json").read_text()) == json.loads(json.dumps(asdict(config)))


def test_an_output_folder_that_cannot_be_written_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"The output folder '.*file' cannot be written"):
        make_run_folder(replace(TINY, output=str(tmp_path / "file")))
    with pytest.raises(OSError, match="cannot be written: Not a directory"):
        make_run_folder(replace(TINY, output=str(tmp_path / "file" / "below")))


def test_a_full_disk_is_reported(tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, 10**6))
    with pytest.raises(OSError, match=r"has 1 MB free, but the run may need 50 MB"):
        make_run_folder(replace(TINY, output=str(tmp_path)))
    assert not list(tmp_path.iterdir())
    with pytest.raises(OSError, match=r"may need \d{3} MB"):
        make_run_folder(replace(PRESETS["paper-10d"], output=str(tmp_path)))


def test_a_folder_without_configuration_is_not_a_run(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not the folder of a run"):
        load_run_config(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"no_such_field": 1}))
    with pytest.raises(ValueError, match=r"written by another version of train\.py"):
        load_run_config(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"updates": 0}, "`updates` must be at least 1, got 0"),
        ({"threads": 0}, "`threads` must be at least 1, or None for all cores, got 0"),
        ({"measure_runs": -1}, "`measure_runs` must be at least 0, got -1"),
        ({"learning_rate": float("nan")}, "`learning_rate` must be positive, got nan"),
        ({"gamma": 1.5}, r"`gamma` must be a number in \[0, 1\], got 1.5"),
        ({"gae_lambda": 7.0}, r"`gae_lambda` must be a number in \[0, 1\], got 7.0"),
        ({"clip_range": -1.0}, "`clip_range` must be positive, got -1.0"),
        ({"max_grad_norm": 0.0}, "`max_grad_norm` must be positive, or None for no limit, got 0.0"),
        ({"agent": "recurrent-ppo", "minibatches": 999}, "`minibatches` must leave at least 2 of the"),
        ({"test_functions": (21, 99)}, "No function 99 in this suite"),
        ({"functions": ()}, "`functions` must name at least one training function"),
    ],
)
def test_settings_that_cannot_work_are_rejected(changes, message):
    with pytest.raises(ValueError, match=message):
        check_config(replace(TINY, **changes))
