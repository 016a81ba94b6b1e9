import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.error import ResetNeeded
from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from agents import GymnasiumVecEnv, RecurrentREINFORCE, UnitBoxLstmPolicy, WholeEpisodeVecEnv

ID = "de_gym:DEParamControl-v0"
# A loose target lets some episodes end early (terminated) while others reach the generation limit (truncated).
SETTINGS = {"functions": [1, 11], "dimension": 10, "population_size": 8, "max_generations": 6, "target_error": 600.0}


def make_bridge(num_envs=3, bridge=GymnasiumVecEnv, **settings):
    return bridge(
        gym.make_vec(
            ID,
            num_envs=num_envs,
            vectorization_mode="vector_entry_point",
            autoreset_mode=bridge.autoreset_mode,
            **(SETTINGS | settings),
        )
    )


def test_sb3_checker_warns_of_the_box_from_0_to_1_alone():
    with pytest.warns(UserWarning, match="symmetric and normalized Box action space") as caught:
        check_env(gym.make(ID, **SETTINGS).unwrapped)
    assert len(caught) == 1


def assert_same_infos(actual, expected):
    assert actual.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_array_equal(actual[key], value, err_msg=key)
        assert isinstance(value, np.ndarray) or type(actual[key]) is type(value), key


def test_the_bridge_equals_dummy_vec_env_step_by_step():
    bridge, dummy = make_bridge(), DummyVecEnv([lambda: gym.make(ID, **SETTINGS) for _ in range(3)])
    rng = np.random.default_rng(0)
    endings = set()
    for venv in (bridge, dummy):
        venv.seed(11)
    np.testing.assert_array_equal(bridge.reset(), dummy.reset())
    for step in range(120):
        if step == 60:
            for venv in (bridge, dummy):
                venv.seed(5)
            np.testing.assert_array_equal(bridge.reset(), dummy.reset())
        actions = rng.random((3, 16), dtype=np.float32)
        (obs, rewards, dones, infos), expected = bridge.step(actions), dummy.step(actions)
        np.testing.assert_array_equal(obs, expected[0])
        np.testing.assert_array_equal(rewards, expected[1])
        np.testing.assert_array_equal(dones, expected[2])
        assert (obs.dtype, rewards.dtype, dones.dtype) == tuple(array.dtype for array in expected[:3])
        for run in range(3):
            assert_same_infos(infos[run], expected[3][run])
            assert_same_infos(bridge.reset_infos[run], dummy.reset_infos[run])
            if dones[run]:
                endings.add(infos[run]["TimeLimit.truncated"])
    assert endings == {True, False}


def test_spaces_are_those_of_one_run():
    bridge = make_bridge()
    assert bridge.num_envs == 3
    assert bridge.observation_space.shape == (18,)
    assert bridge.action_space.shape == (16,)


def test_a_run_that_has_ended_stands_still_until_the_reset():
    waiting, restarting = make_bridge(6, WholeEpisodeVecEnv), make_bridge(6)
    rng, lengths = np.random.default_rng(0), set()
    for seed in (11, 5, 3, 8):
        for venv in (waiting, restarting):
            venv.seed(seed)
        before = waiting.reset()
        np.testing.assert_array_equal(before, restarting.reset())
        going = np.ones(6, dtype=bool)
        for step in range(1, 7):
            actions = rng.random((6, 16), dtype=np.float32)
            (obs, rewards, dones, infos), expected = waiting.step(actions), restarting.step(actions)
            ended = going & expected[2]
            np.testing.assert_array_equal(dones, ended)
            np.testing.assert_array_equal(rewards, np.where(going, expected[1], 0.0))
            for run in range(6):
                if ended[run]:
                    assert_same_infos(infos[run], expected[3][run])
                    np.testing.assert_array_equal(obs[run], expected[3][run]["terminal_observation"])
                    lengths.add(step)
                else:
                    assert infos[run] == {}
                    np.testing.assert_array_equal(obs[run], expected[0][run] if going[run] else before[run])
            assert (obs.dtype, rewards.dtype, dones.dtype) == tuple(array.dtype for array in expected[:3])
            going, before = going & ~ended, obs
        assert not going.any()
        with pytest.raises(ResetNeeded, match="The episodes of all runs have ended"):
            waiting.step(actions)
    assert len(lengths) > 2


def test_no_run_is_started_to_be_thrown_away(monkeypatch):
    bridge = make_bridge(4, WholeEpisodeVecEnv, target_error=1e-8)
    resets = []
    original = bridge.vector_env.reset
    monkeypatch.setattr(bridge.vector_env, "reset", lambda **kwargs: resets.append(kwargs) or original(**kwargs))
    agent = RecurrentREINFORCE(UnitBoxLstmPolicy, bridge, seed=0)
    agent.learn(2 * 4 * 6)
    assert agent._n_updates == 2
    assert len(resets) == 3  # SB3's own before the first update, and one for each update


def test_runs_that_wait_and_runs_that_restart_train_the_same_weights():
    trained = []
    for bridge in (WholeEpisodeVecEnv, GymnasiumVecEnv):
        env = VecMonitor(make_bridge(8, bridge, assignment="in_turn", shared_start=True))
        agent = RecurrentREINFORCE(UnitBoxLstmPolicy, env, seed=0, returns="to_go", baseline="standardised")
        trained.append(agent.learn(3 * 8 * 6).policy.state_dict())
        assert {episode["l"] for episode in agent.ep_info_buffer} > {6}
    for name, parameter in trained[0].items():
        assert torch.equal(trained[1][name], parameter), name


@pytest.mark.parametrize("bridge", [GymnasiumVecEnv, WholeEpisodeVecEnv])
@pytest.mark.parametrize("mode", gym.vector.AutoresetMode)
def test_other_autoreset_modes_are_rejected(bridge, mode):
    if mode is bridge.autoreset_mode:
        return
    env = gym.make_vec(ID, num_envs=2, vectorization_mode="vector_entry_point", autoreset_mode=mode, **SETTINGS)
    name = bridge.autoreset_mode.name
    with pytest.raises(ValueError, match=rf"needs a vector env with `autoreset_mode` AutoresetMode\.{name}, got"):
        bridge(env)


def test_options_reach_the_reset_once():
    bridge = make_bridge()
    bridge.set_options({"function": 11})
    bridge.reset()
    assert [info["function"] for info in bridge.reset_infos] == [11, 11, 11]
    assert bridge._options == [{}, {}, {}]
    bridge.set_options([{"function": 11}, {"function": 1}, {}])
    with pytest.raises(ValueError, match="one dictionary of reset options for all runs"):
        bridge.reset()


def test_attributes_are_shared_by_all_runs():
    bridge = make_bridge()
    assert bridge.get_attr("num_envs") == [3, 3, 3]
    assert bridge.get_attr("num_envs", indices=[0, 2]) == [3, 3]
    bridge.set_attr("colour", "green")
    assert bridge.get_attr("colour", indices=1) == ["green"]
    assert not bridge.has_attr("no_such_attribute")
    assert bridge.env_is_wrapped(gym.Wrapper) == [False] * 3
    assert bridge.env_method("__repr__", indices=[1]) == [repr(bridge.vector_env)]
    with pytest.raises(ValueError, match="Attribute 'colour' is shared by all runs"):
        bridge.set_attr("colour", "red", indices=[0])
    bridge.close()


@pytest.mark.parametrize(
    ("algorithm", "policy", "arguments"),
    [
        (PPO, "MlpPolicy", {"n_steps": 12, "batch_size": 24}),
        (SAC, "MlpPolicy", {"learning_starts": 40, "batch_size": 16}),
        (RecurrentPPO, UnitBoxLstmPolicy, {"n_steps": 12, "batch_size": 24}),
        (RecurrentREINFORCE, UnitBoxLstmPolicy, {}),
    ],
)
def test_sb3_algorithms_learn_through_the_bridge(algorithm, policy, arguments):
    agent = algorithm(policy, VecMonitor(make_bridge(4)), seed=0, device="cpu", **arguments)
    agent.learn(384)
    assert agent.num_timesteps >= 384
    assert agent.ep_info_buffer[-1]["l"] <= 6
