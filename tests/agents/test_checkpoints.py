import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from agents import RecurrentPPO, RecurrentREINFORCE, UnitBoxLstmPolicy
from agents.checkpoints import Progress, load_checkpoint, save_checkpoint
from agents.collapse import CollapseError
from de_gym.tensor_files import content_checksum, read_tensor_file


def make_agent(env, cell_size=6):
    return RecurrentREINFORCE("UnitBoxLstmPolicy", env, seed=5, policy_kwargs={"lstm_hidden_size": cell_size})


def test_an_agent_goes_on_from_a_checkpoint_bit_for_bit(make_target_env, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    whole = make_agent(make_target_env()).learn(100)
    first = make_agent(make_target_env()).learn(60)
    save_checkpoint(first, 3, path)
    second = make_agent(make_target_env())
    assert load_checkpoint(second, path, max_updates=5) == Progress(updates=3, gradient_steps=3, timesteps=60)
    second.learn(40, reset_num_timesteps=False)
    assert second.num_timesteps == whole.num_timesteps
    for name, parameter in whole.policy.state_dict().items():
        assert torch.equal(second.policy.state_dict()[name], parameter), name


def test_a_stop_does_not_begin_the_count_of_suspicious_updates_again(make_target_env, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    agent = make_agent(make_target_env()).learn(60)
    agent.collapse_guard.check_rollout(largest_reward=0.0, clipped_share=0.0)
    agent.collapse_guard.check_rollout(largest_reward=0.0, clipped_share=0.0)
    save_checkpoint(agent, 3, path)
    continued = make_agent(make_target_env())
    assert load_checkpoint(continued, path, max_updates=5).suspicious_updates == 2
    with pytest.raises(CollapseError, match="in each of the last 3 updates"):
        continued.collapse_guard.check_rollout(largest_reward=0.0, clipped_share=0.0)


def test_no_temporary_file_is_left(make_target_env, tmp_path):
    save_checkpoint(make_agent(make_target_env()), 0, tmp_path / "checkpoint.safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.safetensors"]


def test_a_damaged_checkpoint_is_recognised(make_target_env, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    agent = make_agent(make_target_env())
    with pytest.raises(ValueError, match=r"There is no checkpoint '.*checkpoint\.safetensors'"):
        load_checkpoint(agent, path, 5)
    save_checkpoint(agent, 0, path)
    content = path.read_bytes()
    path.write_bytes(content[:-7])
    with pytest.raises(ValueError, match="is truncated or not a safetensors file"):
        load_checkpoint(agent, path, 5)
    path.write_bytes(content.replace(b'"updates": "0"', b'"updates": "1"'))
    with pytest.raises(ValueError, match="does not match its checksum: the file is damaged"):
        load_checkpoint(agent, path, 5)
    save_file({"x": np.zeros(2)}, path)
    with pytest.raises(ValueError, match="is not a checkpoint of this version: its format is None"):
        load_checkpoint(agent, path, 5)


def test_a_checkpoint_of_another_network_is_recognised(make_target_env, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(make_agent(make_target_env(), cell_size=6), 0, path)
    message = r"does not fit its run: 'action_net\.weight' is float32 \(4, 6\), not float32 \(4, 7\)"
    with pytest.raises(ValueError, match=message):
        load_checkpoint(make_agent(make_target_env(), cell_size=7), path, 5)


def drop(name):
    return lambda tensors, metadata: tensors.pop(name)


def put(name, value):
    return lambda tensors, metadata: tensors.update({name: value(tensors[name])})


def state(**changes):
    return lambda tensors, metadata: metadata.update(changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("policy/action_net.bias", lambda old: old * np.float32("nan")), "has NaN or infinity"),
        (drop("policy/action_net.bias"), r"'action_net\.bias' is missing, not float32 \(4,\)"),
        (put("policy/action_net.bias", lambda old: old.astype(np.float16)), r"is float16 \(4,\), not float32"),
        (drop("optimizer/1/exp_avg_sq"), r"the optimiser's state of 'action_net.weight' is .*, not .*exp_avg_sq"),
        (put("optimizer/1/exp_avg", lambda old: old[:1]), "the optimiser's state of 'action_net.weight'"),
        (
            put("optimizer/1/step", lambda old: np.add(old, 1, dtype=np.float32, out=old)),
            "more steps with some parameters than with others",
        ),
        (state(updates="1000000", gradient_steps="1000000"), "after 1000000 updates, of 5 in the whole training"),
        (state(updates="2"), "its counters contradict each other"),
        (state(timesteps="1"), "its counters contradict each other"),
        (state(timesteps="-60"), "its counters must be whole numbers"),
        (state(updates="0", gradient_steps="0"), "the optimiser's state is of parameters"),
        (lambda tensors, metadata: metadata.pop("updates"), "its counters must be whole numbers, got .*None"),
        (lambda tensors, metadata: tensors.update(other=np.zeros(2)), "it holds an unknown array 'other'"),
        (
            lambda tensors, metadata: [tensors.pop(name) for name in list(tensors) if name.startswith("optimizer/")],
            r"the optimiser's state is of parameters \[\], not \[1, 2, 5, 6, 7, 8\]",
        ),
    ],
)
def test_a_checkpoint_that_makes_no_sense_is_refused_and_changes_nothing(make_target_env, tmp_path, change, message):
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(make_agent(make_target_env()).learn(60), 3, path)
    load_checkpoint(make_agent(make_target_env()), path, 5)
    tensors, metadata = read_tensor_file(path)
    change(tensors, metadata)
    save_file(tensors, path, metadata | {"sha256": content_checksum(tensors, metadata)})
    agent = make_agent(make_target_env())
    before = {name: tensor.clone() for name, tensor in agent.policy.state_dict().items()}
    with pytest.raises(ValueError, match=message):
        load_checkpoint(agent, path, 5)
    assert all(torch.equal(before[name], tensor) for name, tensor in agent.policy.state_dict().items())
    assert (agent._n_updates, agent.num_timesteps, agent.policy.optimizer.state_dict()["state"]) == (0, 0, {})


@pytest.mark.parametrize("std", ["constant", "learned", "state"])
@pytest.mark.parametrize("critic", [False, True])
def test_checkpoints_of_all_policies_load(make_target_env, tmp_path, std, critic):
    path, kwargs = tmp_path / "c.safetensors", {"lstm_hidden_size": 4, "std": std, "enable_critic_lstm": critic}
    agents = [RecurrentREINFORCE(UnitBoxLstmPolicy, make_target_env(), policy_kwargs=kwargs) for _ in range(2)]
    if critic:
        options = {"n_steps": 5, "batch_size": 10, "n_epochs": 2, "policy_kwargs": kwargs}
        agents += [RecurrentPPO(UnitBoxLstmPolicy, make_target_env(), **options) for _ in range(2)]
    for trained, fresh in zip(agents[::2], agents[1::2], strict=True):
        save_checkpoint(trained.learn(20), 1, path)
        assert load_checkpoint(fresh, path, 1).updates == 1


def test_weights_that_are_not_finite_leave_the_last_checkpoint(make_target_env, tmp_path):
    path, agent = tmp_path / "checkpoint.safetensors", make_agent(make_target_env())
    save_checkpoint(agent, 0, path)
    before = path.read_bytes()
    with torch.no_grad():
        agent.policy.action_net.bias[0] = float("inf")
    with pytest.raises(ValueError, match=r"'policy/action_net\.bias' has NaN or infinite float32 numbers"):
        save_checkpoint(agent, 1, path)
    assert path.read_bytes() == before
