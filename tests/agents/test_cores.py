"""Several cores: the same bits as one, in rollouts, gradients and measurements."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import nn

import agents
from agents import measuring_aside
from agents.config import PRESETS, TrainConfig
from agents.lstm import LstmTape, lstm_weights
from agents.measuring_aside import Measurer
from agents.task_sets import training_sets
from agents.threading_env import ThreadedProcess, use_threads
from agents.training import check_config, make_agent, make_training_env
from de_gym.controllers import RandomController

SMALL = TrainConfig(
    updates=2,
    functions=(1, 11, 13),
    test_functions=(21,),
    episodes_per_function=3,
    population_size=8,
    max_generations=6,
    cell_size=5,
    num_knots=2,
    measure_runs=4,
)


@pytest.mark.parametrize("config", [SMALL, replace(PRESETS["script-10d"], functions=(1, 2), episodes_per_function=3)])
def test_cores_change_no_bit_of_a_training(config):
    policies = []
    for cores in (1, 2, 3):
        env = make_training_env(replace(config, cores=cores))
        agent = make_agent(replace(config, cores=cores), env)
        agent.learn(2 * env.num_envs * 6)
        assert isinstance(env.unwrapped.vector_env.unwrapped.process, ThreadedProcess) == (cores > 1)
        policies.append(agent.policy.state_dict())
    for name, weight in policies[0].items():
        for other in policies[1:]:
            assert torch.equal(weight, other[name]), name


def test_measurements_in_other_processes_are_those_of_this_one(monkeypatch):
    sets = training_sets(SMALL)
    with Measurer(SMALL) as here:
        assert here._pool is None  # so little that a process is not worth it
        alone = here.begin(RandomController(8), sets)()
    monkeypatch.setattr(measuring_aside, "_WORTH_PROCESSES", 1)
    with Measurer(replace(SMALL, cores=2)) as elsewhere:
        assert elsewhere._pool is not None
        shared = elsewhere.begin(RandomController(8), sets)()
    assert shared.functions == alone.functions == (1, 11, 13)
    np.testing.assert_array_equal(shared.returns, alone.returns)
    np.testing.assert_array_equal(shared.errors, alone.errors)


def test_a_training_that_ends_leaves_no_process_behind(monkeypatch):
    monkeypatch.setattr(measuring_aside, "_WORTH_PROCESSES", 1)
    measurer = Measurer(replace(SMALL, cores=2, measure_runs=500))
    with measurer:
        measurer.begin(RandomController(8), training_sets(SMALL))
        processes = list(measurer._pool._processes.values())
        assert len(processes) == 2
    for process in processes:
        process.join(10)
        assert not process.is_alive()


def test_workers_that_measure_need_no_torch():
    code = "import sys, agents.measuring; sys.exit('torch' in sys.modules)"
    root = Path(agents.__file__).parents[1]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
    with pytest.raises(AttributeError, match="no attribute 'Reinforce'"):
        agents.Reinforce  # noqa: B018
    assert set(agents.__all__) <= set(dir(agents))
    assert all(getattr(agents, name) is not None for name in agents.__all__)


def test_python_rewards_are_not_called_from_threads():
    env = gym.make_vec(
        "de_gym:DEParamControl-v0",
        num_envs=4,
        vectorization_mode="vector_entry_point",
        functions=[1],
        reward=lambda before, after, initial: before - after,
    )
    use_threads(env, 2)
    assert not isinstance(env.unwrapped.process, ThreadedProcess)


def test_gradients_summed_by_two_threads_are_the_same_bits():
    torch.manual_seed(0)
    lstm = nn.LSTM(7, 6)
    inputs, hidden_grads = torch.randn(9, 5, 7), torch.randn(9, 5, 6)
    found = []
    for in_parallel in (False, True):
        lstm.zero_grad()
        tape = LstmTape(lstm, 5)
        for step in inputs:
            tape.step(step)
        tape.backward(hidden_grads, through_time=True, in_parallel=in_parallel)
        found.append([weight.grad.clone() for weight in lstm_weights(lstm)])
    for one, two in zip(*found, strict=True):
        assert torch.equal(one, two)


def test_cores_must_be_a_number_of_them():
    with pytest.raises(ValueError, match="`cores` must be at least 1, or None"):
        check_config(replace(SMALL, cores=0))
