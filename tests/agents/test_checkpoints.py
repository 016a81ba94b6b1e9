import pytest
import torch
from safetensors.torch import save_file

from agents import RecurrentREINFORCE
from agents.checkpoints import Progress, load_checkpoint, save_checkpoint


def make_agent(env, cell_size=6):
    return RecurrentREINFORCE("UnitBoxLstmPolicy", env, seed=5, policy_kwargs={"lstm_hidden_size": cell_size})


def test_an_agent_goes_on_from_a_checkpoint_bit_for_bit(make_target_env, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    whole = make_agent(make_target_env()).learn(100)
    first = make_agent(make_target_env()).learn(60)
    save_checkpoint(first, 3, path)
    second = make_agent(make_target_env())
    assert load_checkpoint(second, path) == Progress(updates=3, gradient_steps=3, timesteps=60)
    second.learn(40, reset_num_timesteps=False)
    assert second.num_timesteps == whole.num_timesteps
    for name, parameter in whole.policy.state_dict().items():
        assert torch.equal(second.policy.state_dict()[name], parameter), name


def test_no_temporary_file_is_left(make_target_env, tmp_path):
    save_checkpoint(make_agent(make_target_env()), 0, tmp_path / "checkpoint.safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.safetensors"]


def test_a_damaged_checkpoint_is_recognised(make_target_env, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    agent = make_agent(make_target_env())
    with pytest.raises(ValueError, match="is missing or damaged"):
        load_checkpoint(agent, path)
    save_checkpoint(agent, 0, path)
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(ValueError, match="is missing or damaged"):
        load_checkpoint(agent, path)
    save_file({"x": torch.zeros(2)}, path)
    with pytest.raises(ValueError, match="is not a checkpoint of this version: its format is None"):
        load_checkpoint(agent, path)


def test_a_checkpoint_of_another_network_is_recognised(make_target_env, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(make_agent(make_target_env(), cell_size=6), 0, path)
    with pytest.raises(ValueError, match="does not fit the configuration of its run"):
        load_checkpoint(make_agent(make_target_env(), cell_size=7), path)
