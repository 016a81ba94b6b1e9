"""Training on the user's own problems, and in several dimensions at once."""

from dataclasses import replace

import numpy as np
import pytest

from agents.config import TrainConfig
from agents.stacking import StackedVecEnv
from agents.task_sets import TaskSet, held_out_sets, training_sets
from agents.training import check_config, env_settings, episode_length, make_training_env
from de_gym.controllers import load_controller
from train import CONTROLLER_FILE, parse_config, train

MODULE = """
import numpy as np
from de_gym import Problem

def bowl(x):
    return float(np.sum(x**2))

TRAINING = [Problem.from_function(bowl, -5, 5, 0.0, dimension=n, name=f"bowl of {n}") for n in (3, 3, 5)]
TEST = [Problem.from_function(bowl, -1, 2, 0.0, dimension=2, name="held-out bowl")]
"""
TINY = TrainConfig(
    updates=1, episodes_per_function=2, population_size=8, max_generations=4, cell_size=4, num_knots=2, measure_runs=2
)


@pytest.fixture
def module(tmp_path, monkeypatch):
    name = f"own_training_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return name


@pytest.mark.parametrize("agent", ["reinforce", "recurrent-ppo"])
def test_a_training_on_own_problems_of_two_dimensions_is_exported_and_measured(module, tmp_path, agent):
    config = replace(
        TINY, agent=agent, problems=f"{module}:TRAINING", test_problems=f"{module}:TEST", output=str(tmp_path / "runs")
    )
    check_config(config)
    folder = train(config)
    controller = load_controller(folder / CONTROLLER_FILE)
    settings = controller.info.env_settings
    assert (settings["suite"], settings["dimension"], settings["dimensions"]) == (f"{module}:TRAINING", None, [3, 5])
    table = (folder / "measurement-training.md").read_text()
    assert table.count("bowl of 3 (n = 3)") == 2
    assert table.count("bowl of 5 (n = 5)") == 1
    assert "| held-out bowl |" in (folder / "measurement-test.md").read_text()
    assert "held-out bowl" in (folder / "measurement-test.csv").read_text()


def test_own_problems_alone_are_not_tested_on_the_functions_of_a_suite(module):
    config = replace(TINY, problems=f"{module}:TRAINING")
    assert training_sets(config) == [
        TaskSet(f"{module}:TRAINING", 3, (0, 1)),
        TaskSet(f"{module}:TRAINING", 5, (2,)),
    ]
    assert held_out_sets(config) == []
    assert training_sets(replace(config, dimensions=(5,))) == [TaskSet(f"{module}:TRAINING", 5, (2,))]
    with pytest.raises(ValueError, match="`problems` take the place of `functions`"):
        check_config(replace(config, functions=(1, 2)))
    with pytest.raises(ValueError, match="has no problems of dimension 7"):
        check_config(replace(config, test_problems=f"{module}:TEST", dimensions=(7,)))


def test_the_command_line_takes_own_problems_and_dimensions(module):
    config = parse_config(["--problems", f"{module}:TRAINING", "--updates", "2"])
    assert config.problems == f"{module}:TRAINING"
    assert parse_config(["--dimensions", "5", "10"]).dimensions == (5, 10)
    with pytest.raises(ValueError, match="There is no module"):
        parse_config(["--problems", "no_such_module_of_mine:PROBLEMS"])


def test_runs_of_several_dimensions_are_those_of_each_dimension_alone():
    config = replace(TINY, functions=(1, 2), dimensions=(5, 10), row_blocks=1)
    env = make_training_env(config)
    assert isinstance(env.unwrapped, StackedVecEnv)
    assert env.num_envs == 8
    env.seed(3)
    observations = env.reset()
    assert [(info["part"], info["function"]) for info in env.unwrapped.reset_infos] == [
        (part, function) for part in (0, 1) for function in (1, 1, 2, 2)
    ]
    alone = make_training_env(replace(TINY, functions=(1, 2), dimension=10, row_blocks=1))
    alone.seed(3 + 4)
    np.testing.assert_array_equal(alone.reset(), observations[4:])
    actions = np.random.default_rng(0).random((8, 16), dtype=np.float32)
    ended = np.zeros(8, bool)
    for _ in range(episode_length(config)):
        together, separate = env.step(actions), alone.step(actions[4:])
        for stacked, single in zip(together[:3], separate[:3], strict=True):
            np.testing.assert_array_equal(stacked[4:], single)
        ended |= together[2]
    assert ended.all()


def test_a_dimension_whose_runs_have_ended_waits_for_the_others():
    config = replace(TINY, functions=(1,), dimensions=(5, 10), max_generations=None, max_evaluations=None)
    env = make_training_env(config)
    assert episode_length(config) == 100_000 // 8 - 1
    short, long = env.unwrapped.parts
    env.seed(0)
    env.reset()
    short._waiting[:] = True
    before = short._observations.copy()
    observations, rewards, dones, infos = env.step(np.full((4, 16), 0.5, np.float32))
    np.testing.assert_array_equal(observations[:2], before)
    assert (rewards[:2] == 0.0).all()
    assert not dones.any()
    assert len(infos) == 4
    assert not long.has_ended
    assert env_settings(config)["dimension"] is None


def test_parts_with_other_spaces_are_refused():
    parts = [make_training_env(replace(TINY, functions=(1,), population_size=size)) for size in (8, 10)]
    with pytest.raises(ValueError, match="must have the same spaces"):
        StackedVecEnv(parts)
