"""A second process that does its part of every update: the same bits, and none the worse if it is lost."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from stable_baselines3.common.callbacks import BaseCallback

from agents import partner as partners
from agents import update_parts
from agents.config import QUICK, TrainConfig
from agents.partner import SecondProcess, partnered, partners_runs, wants_partner
from agents.rows_process import RowsProcess
from agents.training import episode_length, make_agent, make_training_env
from agents.update_parts import UpdateArrays, parts_agree
from de_gym.evolution.run_arrays import take_runs

SMALL = TrainConfig(
    updates=3,
    functions=(1, 3, 5, 11),
    episodes_per_function=8,
    population_size=8,
    max_generations=6,
    cell_size=8,
    num_knots=2,
    cores=2,
)
SCRIPT = replace(
    SMALL, std="state", mean="linear", back_propagation="stored", log_prob_of="clipped", num_knots=None, baseline="none"
)


@pytest.fixture(autouse=True)
def _any_training_is_worth_it(monkeypatch):
    monkeypatch.setattr(partners, "_WORTH_PROCESS", 1)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Recording(BaseCallback):
    """Keeps what callbacks see, and may do something at the end of the second rollout."""

    def __init__(self, at_end=lambda agent: None):
        super().__init__()
        self.seen, self._at_end, self._rollouts = [], at_end, 0

    def _on_step(self):
        names = ("actions", "clipped_actions", "rewards", "dones")
        infos = enumerate(self.locals["infos"])
        ended = [(run, info["episode"]["r"], info["best_error"]) for run, info in infos if info]
        self.seen.append([*(np.copy(self.locals[name]) for name in names), np.array(ended)])
        return True

    def _on_rollout_end(self):
        self._rollouts += 1
        if self._rollouts == 2:
            self._at_end(self.model)


def trained(config, callback=None, *, ready=True):
    """Return weights and what a callback saw, after all updates."""
    env = make_training_env(replace(config, cores=1))
    agent = make_agent(replace(config, cores=1), env)
    callback = callback or Recording()
    with partnered(config, agent, env):
        if agent.partner is not None and ready and not agent.partner.wait():
            pytest.skip("this processor's products of parts differ from those of the whole")
        agent.learn(config.updates * env.num_envs * episode_length(config), callback=callback)
        losses = agent.logger.name_to_value["train/loss"]
    assert agent.partner is None
    return list(agent.policy.state_dict().values()), callback.seen, losses


def assert_same(one, other):
    for weight, expected in zip(one[0], other[0], strict=True):
        assert torch.equal(weight, expected)
    for step, expected_step in zip(one[1], other[1], strict=True):
        for array, expected in zip(step, expected_step, strict=True):
            np.testing.assert_array_equal(array, expected)


OTHERS = [pytest.param(config, marks=pytest.mark.slow) for config in (SCRIPT, replace(SMALL, std="learned"))]


@pytest.mark.parametrize("config", [SMALL, *OTHERS])
def test_two_processes_give_the_bits_of_one(config):
    shared = []

    def remember(agent):
        shared.append(type(agent._rollout.tape).__name__)

    assert_same(trained(config, Recording(remember)), trained(replace(config, cores=1)))
    assert shared == ["PartnersUpdate"]


def kill(agent):
    agent.partner._process.terminate()
    agent.partner._process.join()


class KillingAtOnce(Recording):
    def _on_training_start(self):
        kill(self.model)


# Before the first update, and after the episodes of the second one.
@pytest.mark.parametrize("callback", [pytest.param(KillingAtOnce(), marks=pytest.mark.slow), Recording(kill)])
def test_a_partner_that_is_killed_changes_nothing(callback):
    with pytest.warns(RuntimeWarning, match="second process of the training has ended"):
        lost = trained(SMALL, callback)
    assert_same(lost, trained(replace(SMALL, cores=1)))


def test_a_training_does_not_wait_for_a_partner_and_leaves_none_behind():
    processes = []

    def remember(agent):
        processes.append(agent.partner)

    begun = trained(SMALL, Recording(remember), ready=False)
    assert_same(begun, trained(replace(SMALL, cores=1)))
    assert not processes[0]._process.is_alive()
    assert not processes[0]._path.exists()


def test_parts_that_would_change_bits_are_not_computed_apart(monkeypatch):
    env = make_training_env(SMALL)
    agent = make_agent(SMALL, env)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        partner = SecondProcess(SMALL, agent, env)
    monkeypatch.setattr(partner, "_answer", lambda kind, update: 0)
    with pytest.warns(RuntimeWarning, match="differ in their last bits"):
        assert not partner.wait()
    assert partner.play(0) is None
    assert not partner._process.is_alive()


def test_no_room_for_shared_arrays_is_said_and_costs_nothing_else(monkeypatch):
    def full(path, size):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(update_parts, "_shared_memory", full)
    with pytest.warns(RuntimeWarning, match="goes on in one process: .*No space left"):
        alone = trained(SMALL)
    assert_same(alone, trained(replace(SMALL, cores=1)))


def test_parts_are_compared_with_the_whole(monkeypatch):
    env = make_training_env(SMALL)
    agent = make_agent(SMALL, env)
    arrays = UpdateArrays.make(agent, episode_length(SMALL))
    assert parts_agree(agent, env, 16, arrays)
    original = update_parts.Part.differentiate

    def differentiate(self):
        original(self)
        if self.rows.start:
            arrays.gate_grads[0, -1, 0] += 1e-6

    monkeypatch.setattr(update_parts.Part, "differentiate", differentiate)
    assert not parts_agree(agent, env, 16, arrays)


def test_rows_are_advanced_as_in_the_whole_and_others_stand_still():
    env = make_training_env(SMALL).unwrapped.vector_env.unwrapped
    env.reset(seed=3)
    state, problems = take_runs(env._state, np.arange(32)), env._problems
    actions = np.random.default_rng(0).random((32, env.process.action_size))
    process = RowsProcess(env.process)
    process.rows = slice(8, 20)
    part = process.advance(state, problems, actions)
    np.testing.assert_array_equal(state.fitness[:8], env._state.fitness[:8])
    whole = env.process.advance(env._state, problems, actions)
    for found, expected in [(part.figures.T, whole.figures.T), (part.observations, whole.observations)]:
        np.testing.assert_array_equal(found[8:20], expected[8:20])
        assert (found[:8] == 0).all()
        assert (found[20:] == 0).all()
    np.testing.assert_array_equal(state.positions[8:20], env._state.positions[8:20])
    process.rows = None
    assert (process.advance(state, problems, actions).counts[1, :8] == 1).all()
    assert process.population_size == 8


def test_trainings_that_cannot_be_shared_are_not():
    assert wants_partner(SMALL)
    changes = [{"cores": 1}, {"agent": "recurrent-ppo"}, {"network": "gru"}, {"threads": 2}, {"dimensions": (5, 10)}]
    for change in [*changes, {"problems": "my:problems", "functions": QUICK.functions}]:
        assert not wants_partner(replace(SMALL, **change))
    assert all(0 < runs < 7 for runs in partners_runs(7))
    assert partners_runs(400)[-1] == 224
