from dataclasses import replace

import numpy as np
import pytest
import torch
from sb3_contrib import RecurrentPPO

from agents import RecurrentREINFORCE, export_controller
from agents.config import PRESETS, TrainConfig
from agents.training import check_config, env_settings, episode_length, make_agent, make_training_env, set_threads
from de_gym.controllers import load_controller, save_controller

NOT_DEFAULT = {
    "pbest": 0.3,
    "bound_repair": "clip",
    "num_bins": 4,
    "history_window": 3,
    "histogram": "counts",
    "reward": "relative",
    "suite": "cec2017",
    "dimension": 30,
    "max_evaluations": 77,
}
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
    assert len(agent._blocks.all) == 2


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
    assert config.row_blocks == 1
    if preset.startswith("paper"):
        assert (config.returns, config.baseline, config.gamma) == ("to_go", "standardised", 1.0)
        assert (config.mean, config.std, config.initial_std) == ("sigmoid", "constant", 0.5)
        assert config.updates == 150
    if preset == "script-10d":
        assert (config.returns, config.baseline, config.gamma) == ("to_go", "none", 0.99)
        assert (config.mean, config.std, config.back_propagation) == ("linear", "state", "stored")
        assert (config.histogram, config.history_window, config.log_prob_of) == ("counts", None, "clipped")
        assert (config.cell_size, config.learning_rate, config.max_grad_norm) == (50, 0.005, None)


def test_every_setting_of_the_environment_comes_from_the_configuration():
    config = replace(TINY, **NOT_DEFAULT)
    expected = NOT_DEFAULT | {"population_size": 8, "max_generations": 4}
    assert env_settings(config) == expected
    for block in make_training_env(config).unwrapped.parts:
        settings = block.unwrapped.vector_env.unwrapped.process.settings
        for name in ("pbest", "bound_repair", "num_bins", "history_window", "histogram", "reward", "population_size"):
            assert getattr(settings, name) == expected[name], name


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
        ({"seeds": (1, 2, 1)}, r"`seeds` must differ and need `measure_runs`, got \(1, 2, 1\) and 3"),
        ({"seeds": (1, 2), "measure_runs": 0}, r"`seeds` must differ and need `measure_runs`, got \(1, 2\) and 0"),
        ({"row_blocks": 0}, "`row_blocks` must be at least 1, got 0"),
        ({"functions": ()}, "`functions` must name at least one training function"),
    ],
)
def test_settings_that_cannot_work_are_rejected(changes, message):
    with pytest.raises(ValueError, match=message):
        check_config(replace(TINY, **changes))


def test_training_begins_with_the_weights_of_a_controller(tmp_path):
    config = replace(TINY, num_knots=3)
    trained = make_agent(replace(config, seed=1), make_training_env(config))
    settings = env_settings(config)
    path = save_controller(export_controller(trained.policy, settings), tmp_path / "c.safetensors")
    warm = make_agent(replace(config, init=str(path)), make_training_env(config))
    cold = make_agent(config, make_training_env(config))
    for name, tensor in export_controller(warm.policy, settings).tensors.items():
        np.testing.assert_array_equal(tensor, load_controller(path).tensors[name], err_msg=name)
    assert not torch.equal(cold.policy.action_net.weight, warm.policy.action_net.weight)
    with pytest.raises(ValueError, match=r"`init` '.*' cannot begin this training: .*'gate_bias' has shape \(20,\)"):
        make_agent(replace(config, init=str(path), cell_size=6), make_training_env(config))
    with pytest.raises(ValueError, match="trained with `histogram` fractions, got counts"):
        make_agent(replace(config, init=str(path), histogram="counts"), make_training_env(config))
    with pytest.raises(ValueError, match="is of kind 'sigmoid-constant', the policy 'linear-constant'"):
        make_agent(replace(config, init=str(path), mean="linear"), make_training_env(config))
    with pytest.raises(ValueError, match="Unknown controller 'no-such-controller'"):
        make_agent(replace(config, init="no-such-controller"), make_training_env(config))


def test_every_packaged_controller_of_a_preset_can_begin_its_training():
    make_agent(replace(PRESETS["short"], init="short-10d"), make_training_env(PRESETS["short"]))
    make_agent(replace(PRESETS["script-10d"], init="script-10d"), make_training_env(PRESETS["script-10d"]))


def test_all_cores_are_a_number_that_a_run_keeps(monkeypatch):
    given = []
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    monkeypatch.setattr(torch, "set_num_threads", given.append)
    assert set_threads(TrainConfig(threads=None)).threads == 3
    assert set_threads(TrainConfig(threads=2)).threads == 2
    assert given == [3, 2]
