"""Several cores: the same bits as one, in updates and measurements."""

import operator
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from stable_baselines3.common.callbacks import BaseCallback

import agents
from agents import training
from agents.blocks import Block, BlockedVecEnv, Blocks, Record, replayed
from agents.config import TrainConfig
from agents.interruptions import TrainingStopped
from agents.measuring import measuring_functions
from agents.shared_measuring import measure_on_sets
from agents.task_sets import training_sets
from agents.training import check_config, episode_length, make_agent, make_training_env, several_cores
from agents.workers import Worker
from de_gym.controllers import RandomController
from train import parse_config, train

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
    threads=1,
)
OWN = """
from de_gym import Problem

def bowl(x):
    return float(x @ x)

PROBLEMS = [Problem.from_function(bowl, -5, 5 + n, 0.0, dimension=n) for n in (3, 3, 5)]
"""


@pytest.fixture(autouse=True)
def _work_that_is_worth_processes(monkeypatch):
    monkeypatch.setattr(training, "_WORTH_PROCESSES", 0)


class Seen(BaseCallback):
    """Keeps what a callback is told of every step."""

    def __init__(self):
        super().__init__()
        self.steps = []

    def _on_step(self):
        infos = [info.get("best_error") for info in self.locals["infos"]]
        functions = [info["function"] for info in self.training_env.unwrapped.reset_infos]
        arrays = (self.locals[name].tolist() for name in ("rewards", "dones", "num_clipped"))
        self.steps.append((*arrays, infos, functions))
        return True


def trained(config, num_updates=2):
    """Return the weights after some updates with all workers, and what callbacks were told."""
    env = make_training_env(config)
    agent, seen = make_agent(config, env), Seen()
    with several_cores(agent, config):
        for worker in agent.workers:
            assert worker.is_ready(timeout=60.0)
        agent.learn(num_updates * env.num_envs * episode_length(config), callback=seen)
    env.close()
    return agent.policy.state_dict(), seen.steps


def assert_same(first, second):
    """Check that two trainings agree bit for bit."""
    for name, weight in first[0].items():
        assert torch.equal(weight, second[0][name]), name
    assert first[1] == second[1]


@pytest.mark.parametrize(
    "changes",
    [
        {"row_blocks": 3},
        {"network": "gru", "back_propagation": "stored", "dimensions": (5, 10)},
        {"network": "mlp", "std": "state", "log_prob_of": "clipped"},
    ],
)
def test_cores_change_no_bit_of_a_training(changes):
    config = replace(SMALL, **changes)
    alone = trained(replace(config, cores=1))
    assert len(alone[1]) == 2 * episode_length(config)
    assert_same(alone, trained(replace(config, cores=2)))
    if config.row_blocks == 3:  # three blocks for two processes, then one for each, and one that only measures
        assert_same(alone, trained(replace(config, cores=4)))


def test_blocks_draw_numbers_of_their_own_and_the_first_those_of_an_undivided_update():
    whole = make_training_env(replace(SMALL, row_blocks=1))
    divided = make_training_env(SMALL)
    assert isinstance(divided, BlockedVecEnv)
    assert not isinstance(whole, BlockedVecEnv)
    policy = make_agent(SMALL, divided).policy
    steps = [list(block.steps(3, 1)) for block in (Block(0, whole, policy), *Blocks(divided, policy).all)]
    first_of_all, first, second = (np.stack([step.actions for step in block]) for block in steps)
    np.testing.assert_array_equal(first[0, :3], first_of_all[0, :3])
    assert not np.isin(second, first).any()
    functions = [info["function"] for block in Blocks(divided, policy).all for info in _started(block)]
    assert functions == [1, 1, 1, 13, 13, 13, 11, 11, 11]


def test_every_block_of_every_update_has_a_seed_of_its_own():
    # Actions alone do not tell: means of different runs differ whatever the noise.
    env = make_training_env(SMALL)
    blocks, seeds = Blocks(env, make_agent(SMALL, env).policy).all, []
    for update in range(2):
        for block in blocks:
            next(block.steps(3, update))
            seeds.append(torch.initial_seed())
    assert len(set(seeds)) == 2 * len(blocks) == 4


def _started(block):
    next(block.steps(0, 0))
    return block.reset_infos


def test_a_block_that_has_ended_waits_for_the_others():
    first = Record(
        [], np.ones((2, 1)), np.array([[False], [True]]), np.ones((2, 1), int), [{}, {0: {"best_error": 3.0}}]
    )
    second = Record([], np.full((1, 2), 5.0), np.ones((1, 2), bool), np.full((1, 2), 7), [{1: {"best_error": 4.0}}])
    steps = list(replayed([second, first]))
    assert [step.rewards.tolist() for step in steps] == [[5.0, 5.0, 1.0], [0.0, 0.0, 1.0]]
    assert [step.dones.tolist() for step in steps] == [[True, True, False], [False, False, True]]
    assert [step.num_clipped.tolist() for step in steps] == [[7, 7, 1], [0, 0, 1]]
    assert [step.infos for step in steps] == [[{}, {"best_error": 4.0}, {}], [{}, {}, {"best_error": 3.0}]]


def test_own_numbers_of_parts_survive_the_division(tmp_path, monkeypatch):
    config = own_problems(tmp_path, monkeypatch)
    env = make_training_env(config)
    env.reset()
    assert [(info["part"], info["function"]) for info in env.unwrapped.reset_infos] == [
        (part, function) for part, function in ((0, 0), (1, 2), (0, 1)) for _ in range(3)
    ]


def own_problems(folder, monkeypatch):
    """Return the configuration of a training on problems of a module of one's own."""
    name = f"own_blocks_{folder.name.replace('-', '_')}"
    (folder / f"{name}.py").write_text(OWN)
    monkeypatch.syspath_prepend(folder)
    return replace(SMALL, functions=TrainConfig().functions, problems=f"{name}:PROBLEMS")


def test_own_problems_are_computed_by_workers_too(tmp_path, monkeypatch):
    config = own_problems(tmp_path, monkeypatch)
    assert_same(trained(replace(config, cores=1)), trained(replace(config, cores=2)))


def test_a_worker_that_lacks_the_problems_leaves_the_work_to_this_process(tmp_path, monkeypatch):
    config = own_problems(tmp_path, monkeypatch)
    alone = trained(replace(config, cores=1))
    Path(tmp_path / f"{config.problems.partition(':')[0]}.py").unlink()  # this process has it in memory
    env = make_training_env(config)
    agent, seen = make_agent(config, env), Seen()
    with several_cores(agent, replace(config, cores=2)):
        with pytest.warns(UserWarning, match=r"Another process cannot share the work \(.*no module"):
            assert not agent.workers[0].is_ready(timeout=60.0)
        agent.learn(2 * env.num_envs * episode_length(config), callback=seen)
    assert_same(alone, (agent.policy.state_dict(), seen.steps))


def test_gradients_of_blocks_add_up_to_that_of_all_runs():
    env = make_training_env(replace(SMALL, row_blocks=1))
    agent = make_agent(SMALL, env)
    whole = Block(0, env, agent.policy)
    rewards = whole.record(0, 0).rewards
    weights = np.random.default_rng(0).normal(size=rewards.shape)
    tape, actions, num_runs = whole.tape, whole.actions, rewards.shape[1]
    inputs, total = torch.stack(tape._inputs), []
    loss, expected = whole.gradient(weights, num_runs, False, True)
    for rows in (slice(0, 4), slice(4, num_runs)):  # the same noise, as if two blocks had drawn it
        part = Block(0, env, agent.policy)
        part.tape, part.actions = type(tape)(agent.policy.lstm_actor, len(weights[0, rows])), actions[:, rows]
        for step in inputs[:, rows]:
            part.tape.step(step)
        total.append(part.gradient(weights[:, rows], num_runs, False, True))
    assert sum(part for part, _ in total) == pytest.approx(loss, rel=1e-5)
    for grad, first, second in zip(expected, *(grads for _, grads in total), strict=True):
        if grad is None:
            assert first is second is None
        else:
            np.testing.assert_allclose(first + second, grad, rtol=1e-4, atol=1e-6 * np.abs(grad).max())


def test_the_update_takes_the_sum_of_all_blocks_each_with_the_weights_of_its_runs():
    env = make_training_env(SMALL)
    blocks = Blocks(env, make_agent(SMALL, env).policy)
    length = len(list(blocks.steps(0, 0, ())))
    weights = np.random.default_rng(0).normal(size=(length, env.num_envs))
    loss, gradient = blocks.gradient(weights, False, True)
    list(blocks.steps(0, 0, ()))  # the same episodes again: a gradient forgets them
    first = env.parts[0].num_envs
    parts = [
        block.gradient(weights[:, rows], env.num_envs, False, True)
        for block, rows in zip(blocks.all, (slice(0, first), slice(first, None)), strict=True)
    ]
    assert loss == sum(part for part, _ in parts)
    for grad, one, other in zip(gradient, *(grads for _, grads in parts), strict=True):
        np.testing.assert_array_equal(grad, None if one is None else one + other)


def test_a_worker_that_is_killed_ends_the_training_in_one_sentence(tmp_path, monkeypatch):
    config = replace(SMALL, cores=2, updates=500, output=str(tmp_path), checkpoint_every=1, validate_every=0)
    started = []
    original = Worker.__init__

    def remembered(worker, make):
        original(worker, make)
        started.append(worker)

    monkeypatch.setattr(Worker, "__init__", remembered)
    monkeypatch.setattr(Worker, "is_ready", killed_after_two_updates(Worker.is_ready))
    begun = time.monotonic()
    with pytest.raises(TrainingStopped, match=r"^A worker process died \(exit code -9\); the training goes on from"):
        train(config)
    assert time.monotonic() - begun < 60.0
    (worker,) = started
    assert not worker._process.is_alive()
    (folder,) = tmp_path.iterdir()
    finished = train(replace(parse_config(["--resume", str(folder), "--cores", "1"]), updates=8))
    whole = train(replace(config, cores=1, updates=8, output=str(tmp_path / "whole")))
    for name in ("checkpoint.safetensors", "controller.safetensors", "progress.csv"):
        assert (finished / name).read_bytes() == (whole / name).read_bytes(), name


def killed_after_two_updates(is_ready):
    """Return an ``is_ready`` that waits for the worker, and kills it as the third update begins."""
    asked = []

    def ready_and_killed(worker, timeout=60.0):
        asked.append(is_ready(worker, 60.0))
        if len(asked) == 3:
            os.kill(worker.pid, signal.SIGKILL)
        return asked[-1]

    return ready_and_killed


def test_errors_of_a_worker_are_raised_here_with_their_place():
    worker = Worker(lambda: {"divide": operator.truediv})
    assert worker.is_ready(timeout=60.0)
    for divisor in (0, 4):
        worker.send("divide", 1, divisor)
    with pytest.raises(ZeroDivisionError) as caught:
        worker.receive()
    assert caught.value.__notes__[0].startswith("In a worker process:\nTraceback ")
    assert worker.receive() == 0.25
    worker.close()
    assert not worker._process.is_alive()


def test_a_worker_ends_even_while_it_works_and_ignores_the_signals_of_the_training():
    worker = Worker(lambda: {"sleep": time.sleep})
    assert worker.is_ready(timeout=60.0)
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(worker.pid, number)
    worker.send("sleep", 0.01)
    assert worker.receive() is None
    worker.send("sleep", 600.0)
    begun = time.monotonic()
    worker.close()
    assert time.monotonic() - begun < 10.0


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "raise SystemExit(-signal.SIGKILL)"])
def test_a_worker_ends_with_the_process_that_started_it(end, tmp_path):
    (tmp_path / "asleep.py").write_text('import time\n\ndef make():\n    return {"sleep": time.sleep}\n')
    code = (
        "import os, signal, asleep\nfrom agents.workers import Worker\nworker = Worker(asleep.make)\n"
        "worker.is_ready(60.0)\nworker.send('sleep', 600.0)\nprint(worker.pid, flush=True)\n"
    )
    path = os.pathsep.join([str(tmp_path), str(Path(agents.__file__).parents[1])])
    ended = subprocess.run(
        [sys.executable, "-c", code + end],
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert ended.returncode in (-signal.SIGKILL, 256 - signal.SIGKILL)
    pid, deadline = int(ended.stdout), time.monotonic() + 10.0
    while is_running(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(pid):
    """Return whether a process is there and not only waits to be counted."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_measurements_in_other_processes_are_those_of_this_one():
    config = replace(SMALL, agent="recurrent-ppo", functions=(1, 11, 13, 14), cores=3)
    sets = training_sets(config)
    alone = measure_on_sets(RandomController(8), config, sets, 4)
    env = make_training_env(config)
    with several_cores(make_agent(config, env), config) as workers:
        assert all(worker.is_ready(timeout=60.0) for worker in workers)
        shared = measure_on_sets(RandomController(8), config, sets, 4, workers)
        single = measure_on_sets(RandomController(8), config, [sets[0]._replace(functions=(13,))], 4, workers)
    assert len(workers) == 2
    assert shared.functions == alone.functions == (1, 11, 13, 14)
    np.testing.assert_array_equal(shared.returns, alone.returns)
    np.testing.assert_array_equal(shared.errors, alone.errors)
    np.testing.assert_array_equal(single.errors, alone.errors[2:3])


def test_a_worker_that_only_measures_must_find_the_problems():
    worker = Worker(partial(measuring_functions, ["cec2013", "no_such_module:PROBLEMS"]))
    with pytest.warns(UserWarning, match="There is no module 'no_such_module'"):
        assert not worker.is_ready(timeout=60.0)
    worker.close()


def test_little_work_needs_no_other_process(monkeypatch):
    monkeypatch.undo()
    with several_cores(make_agent(SMALL, make_training_env(SMALL)), replace(SMALL, cores=2)) as workers:
        assert workers == []


def test_measuring_needs_no_torch():
    code = "import sys, agents.measuring; sys.exit('torch' in sys.modules)"
    root = Path(agents.__file__).parents[1]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
    with pytest.raises(AttributeError, match="no attribute 'Reinforce'"):
        agents.Reinforce  # noqa: B018
    assert set(agents.__all__) <= set(dir(agents))
    assert all(getattr(agents, name) is not None for name in agents.__all__)


def test_cores_must_be_a_number_of_them():
    with pytest.raises(ValueError, match="`cores` must be at least 1, or None"):
        check_config(replace(SMALL, cores=0))
