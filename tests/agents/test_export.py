import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

from agents import UnitBoxLstmPolicy, export_controller
from agents.export import import_controller
from de_gym import make_suite
from de_gym.controllers import load_controller, save_controller
from de_gym.optimizers import ControlledDE, run

SETTINGS = {
    "population_size": 50,
    "num_bins": 5,
    "history_window": 5,
    "histogram": "fractions",
    "pbest": "linear",
    "bound_repair": "midpoint",
}


def make_policy(cell_size=64, population_size=50, **arguments):
    torch.manual_seed(2)
    policy = UnitBoxLstmPolicy(
        spaces.Box(0.0, 1.0, (population_size + 10,), np.float32),
        spaces.Box(0.0, 1.0, (2 * population_size,), np.float32),
        lambda _: 0.01,
        lstm_hidden_size=cell_size,
        **arguments,
    )
    # Larger weights than the initial ones, so that gates and sigmoids leave their linear range.
    with torch.no_grad():
        for parameter in policy.parameters():
            if parameter is not policy.log_std:
                parameter.mul_(2.0)
    return policy


@pytest.mark.parametrize("mean", ["sigmoid", "linear"])
@pytest.mark.parametrize("std", ["constant", "learned", "state"])
@pytest.mark.parametrize(("cell_size", "num_knots"), [(50, None), (64, None), (64, 5)])
def test_the_controller_equals_the_torch_policy_over_an_episode(mean, std, cell_size, num_knots):
    policy = make_policy(cell_size, mean=mean, std=std, num_knots=num_knots)
    controller = export_controller(policy, SETTINGS, deterministic=True)
    controller.reset([np.random.default_rng(run) for run in range(3)])
    state, starts = None, np.ones(3, dtype=bool)
    rng = np.random.default_rng(0)
    for _ in range(50):
        observations = rng.random((3, 60), dtype=np.float32)
        expected, state = policy.predict(observations, state, starts, deterministic=True)
        np.testing.assert_allclose(controller(observations), expected, rtol=0, atol=1e-6)
        starts = np.zeros(3, dtype=bool)


@pytest.mark.parametrize("network", ["gru", "mlp"])
@pytest.mark.parametrize(("std", "cell_size", "num_knots"), [("constant", 50, None), ("state", 64, 5)])
def test_a_controller_with_another_hidden_layer_equals_its_torch_policy(network, std, cell_size, num_knots, tmp_path):
    policy = make_policy(cell_size, std=std, num_knots=num_knots, network=network)
    exported = export_controller(policy, SETTINGS, deterministic=True)
    controller = load_controller(save_controller(exported, tmp_path / "other.safetensors"), deterministic=True)
    assert controller.info.policy.startswith(f"{network}-sigmoid-")
    controller.reset([np.random.default_rng(run) for run in range(3)])
    state, starts = None, np.ones(3, dtype=bool)
    rng = np.random.default_rng(0)
    for _ in range(50):
        observations = rng.random((3, 60), dtype=np.float32)
        expected, state = policy.predict(observations, state, starts, deterministic=True)
        np.testing.assert_allclose(controller(observations), expected, rtol=0, atol=1e-6)
        starts = np.zeros(3, dtype=bool)


def test_samples_of_the_controller_have_the_deviations_of_the_policy():
    policy = make_policy(8, 4, mean="linear", std="state")
    sampled, exact = export_controller(policy, SETTINGS), export_controller(policy, SETTINGS, deterministic=True)
    observations = np.random.default_rng(0).random((1, 14), dtype=np.float32)
    for controller in (sampled, exact):
        controller.reset([np.random.default_rng(5)])
    hidden, _ = policy.lstm_actor(torch.as_tensor(observations)[None])
    deviation = policy.action_distribution(hidden[0]).distribution.stddev.detach().numpy()
    mean = policy.action_net(hidden[0]).detach().numpy()
    noise = np.random.default_rng(5).standard_normal(8)
    np.testing.assert_allclose(sampled(observations), np.clip(mean + deviation * noise, 0.0, 1.0), atol=1e-6)


def test_samples_of_an_interpolating_controller_have_noise_at_every_rank():
    policy = make_policy(8, 5, num_knots=2)
    controller = export_controller(policy, SETTINGS)
    controller.reset([np.random.default_rng(5)])
    observations = np.random.default_rng(0).random((1, 15), dtype=np.float32)
    hidden, _ = policy.lstm_actor(torch.as_tensor(observations)[None])
    knots = torch.sigmoid(policy.action_net(hidden[0])).detach().numpy()[0]
    mean = np.concatenate([np.linspace(knots[0], knots[1], 5), np.linspace(knots[2], knots[3], 5)])
    expected = mean + 0.2 * np.random.default_rng(5).standard_normal(10)
    np.testing.assert_allclose(controller(observations)[0], np.clip(expected, 0.0, 1.0), atol=1e-6)
    assert controller.population_size == 5


def test_export_carries_where_it_comes_from(tmp_path):
    settings = SETTINGS | {"population_size": 4}
    controller = export_controller(make_policy(8, 4), settings, preset="quick", seed=9, results={"return": 2.5})
    info = load_controller(save_controller(controller, tmp_path / "c.safetensors"), population_size=4).info
    assert (info.preset, info.seed, info.policy) == ("quick", 9, "sigmoid-constant")
    assert info.env_settings == settings
    assert info.results == {"return": 2.5}


@pytest.mark.parametrize("missing", SETTINGS)
def test_a_controller_that_cannot_say_how_it_was_trained_is_not_exported(missing):
    settings = {name: value for name, value in SETTINGS.items() if name != missing}
    with pytest.raises(ValueError, match=f"must say in which decision process .*, but lack {missing}"):
        export_controller(make_policy(8, 4), settings)
    with pytest.raises(ValueError, match="but lack population_size, num_bins, history_window, histogram, pbest, bound"):
        export_controller(make_policy(8, 4), {})


@pytest.mark.parametrize("std", ["constant", "learned", "state"])
@pytest.mark.parametrize(("num_knots", "network"), [(None, "lstm"), (2, "gru"), (2, "mlp")])
def test_an_imported_controller_acts_as_it_did(std, num_knots, network):
    policy = make_policy(8, 4, std=std, num_knots=num_knots, network=network)
    with torch.no_grad():
        policy.log_std.mul_(0.5 if std == "learned" else 1.0)
    controller = export_controller(policy, SETTINGS)
    torch.manual_seed(99)
    arguments = {"lstm_hidden_size": 8, "std": std, "num_knots": num_knots, "network": network}
    other = UnitBoxLstmPolicy(policy.observation_space, policy.action_space, lambda _: 0.01, **arguments)
    import_controller(other, controller, SETTINGS)
    for name, tensor in export_controller(other, SETTINGS).tensors.items():
        np.testing.assert_allclose(tensor, controller.tensors[name], rtol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    ("name", "value"),
    [("pbest", 0.1), ("bound_repair", "clip"), ("history_window", None), ("histogram", "counts")],
)
def test_an_exported_controller_acts_in_the_process_it_was_trained_in(name, value):
    policy, settings = make_policy(8, 10), SETTINGS | {"population_size": 10}
    problem, seeds = make_suite("cec2013", 10)[11], np.random.SeedSequence(1).spawn(3)
    usual, changed = export_controller(policy, settings), export_controller(policy, settings | {name: value})
    found = [
        run(optimizer, problem, seeds=seeds, max_evaluations=600).best_positions
        for optimizer in (ControlledDE(changed), ControlledDE(usual, **{name: value}), ControlledDE(usual))
    ]
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


def test_the_exported_arrays_are_copies():
    policy = make_policy(8, 4)
    controller = export_controller(policy, SETTINGS)
    before = controller.tensors["mean_weight"].copy()
    nn.init.zeros_(policy.action_net.weight)
    np.testing.assert_array_equal(controller.tensors["mean_weight"], before)
