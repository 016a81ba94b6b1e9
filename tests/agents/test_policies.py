import numpy as np
import pytest
import torch
from gymnasium import spaces
from sb3_contrib import RecurrentPPO
from scipy.stats import norm

from agents import UnitBoxLstmPolicy
from agents.networks import HIDDEN_LAYERS
from agents.policies import interpolation_matrix

OBSERVATIONS = spaces.Box(0.0, 1.0, (3,), np.float32)
ACTIONS = spaces.Box(0.0, 1.0, (4,), np.float32)


def make_policy(**arguments):
    torch.manual_seed(1)
    return UnitBoxLstmPolicy(OBSERVATIONS, ACTIONS, lambda _: 0.01, lstm_hidden_size=6, **arguments)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


@pytest.mark.parametrize("mean", ["sigmoid", "linear"])
@pytest.mark.parametrize("std", ["constant", "learned", "state"])
def test_log_probabilities_equal_the_gaussian_density_computed_by_hand(mean, std):
    policy = make_policy(mean=mean, std=std, initial_std=0.2)
    hidden = torch.randn(5, 6)
    actions = torch.rand(5, 4) * 1.4 - 0.2
    weight, bias = (parameter.detach().numpy() for parameter in policy.action_net.parameters())
    expected_mean = hidden.numpy() @ weight.T + bias
    if mean == "sigmoid":
        expected_mean = sigmoid(expected_mean)
    expected_std = np.full((5, 4), 0.2)
    if std == "state":
        weight, bias = (parameter.detach().numpy() for parameter in policy.std_net.parameters())
        expected_std = sigmoid(hidden.numpy() @ weight.T + bias)
    expected = norm.logpdf(actions.numpy(), expected_mean, expected_std).sum(axis=1)
    distribution = policy.action_distribution(hidden)
    np.testing.assert_allclose(distribution.log_prob(actions).detach().numpy(), expected, rtol=2e-5)
    np.testing.assert_allclose(distribution.mode().detach().numpy(), expected_mean, rtol=1e-5)


def test_ranks_between_knots_are_interpolated_for_f_and_cr_apart():
    matrix = interpolation_matrix(3, 6)  # ranks 0, 2 and 5
    values = matrix @ np.array([0.0, 1.0, 4.0, 10.0, 20.0, 0.0])
    expected = [0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 10.0, 15.0, 20.0, 40 / 3, 20 / 3, 0.0]
    np.testing.assert_allclose(values, expected, rtol=1e-6)


def test_means_are_interpolated_between_knots_and_noise_is_independent_from_rank_to_rank():
    policy = make_policy(num_knots=1, initial_std=0.3)
    hidden = torch.randn(4000, 6)
    with torch.no_grad():
        outputs = sigmoid(policy.action_net(hidden).numpy())
        distribution = policy.action_distribution(hidden)
        mode, actions = distribution.mode().numpy(), distribution.get_actions()
        noise = actions.numpy() - mode
        density = distribution.log_prob(actions).numpy()
    np.testing.assert_allclose(mode, np.repeat(outputs, 2, axis=1), rtol=1e-5)  # N = 2: F, F, CR, CR
    np.testing.assert_allclose(np.cov(noise.T), 0.09 * np.eye(4), atol=0.01)
    np.testing.assert_allclose(density, norm.logpdf(actions.numpy(), mode, 0.3).sum(axis=1), rtol=1e-4)


def test_one_knot_per_rank_is_the_policy_without_knots():
    plain, knotted = make_policy(), make_policy(num_knots=2)
    knotted.load_state_dict(plain.state_dict())
    hidden, actions = torch.randn(3, 6), torch.rand(3, 4)
    expected = plain.action_distribution(hidden).log_prob(actions)
    torch.testing.assert_close(knotted.action_distribution(hidden).log_prob(actions), expected)
    torch.testing.assert_close(
        knotted.action_distribution(hidden).mode(), plain.action_distribution(hidden).mode(), rtol=0, atol=0
    )


def test_only_the_learned_deviation_is_trained():
    assert not make_policy(std="constant").log_std.requires_grad
    assert make_policy(std="learned").log_std.requires_grad
    policy = make_policy(std="state")
    trained = {id(p) for group in policy.optimizer.param_groups for p in group["params"]}
    assert {id(policy.std_net.weight), id(policy.std_net.bias)} <= trained


def test_the_state_is_forgotten_at_episode_starts_and_nowhere_else():
    policy = make_policy()
    observations = np.random.default_rng(0).random((6, 2, 3), dtype=np.float32)

    def means(starts):
        state, result = None, []
        for observation, start in zip(observations, starts, strict=True):
            action, state = policy.predict(observation, state, np.array(start), deterministic=True)
            result.append(action)
        return np.stack(result)

    unbroken = means([[True, True]] + [[False, False]] * 5)
    broken = means([[True, True], [False, False], [False, False], [True, False], [False, False], [False, False]])
    fresh_state, fresh = None, []
    for observation in observations[3:, :1]:
        action, fresh_state = policy.predict(observation, fresh_state, np.array([False]), deterministic=True)
        fresh.append(action)
    np.testing.assert_array_equal(broken[:3], unbroken[:3])
    np.testing.assert_array_equal(broken[:, 1], unbroken[:, 1])
    np.testing.assert_allclose(broken[3:, 0], np.stack(fresh)[:, 0], atol=1e-7)
    assert (np.abs(broken[3:, 0] - unbroken[3:, 0]).max(axis=1) > 1e-6).all()


@pytest.mark.parametrize("network", HIDDEN_LAYERS)
def test_the_same_class_trains_under_recurrent_ppo(make_target_env, network):
    agent = RecurrentPPO(
        UnitBoxLstmPolicy,
        make_target_env(4),
        n_steps=5,
        batch_size=20,
        n_epochs=2,
        policy_kwargs={"lstm_hidden_size": 6, "std": "learned", "enable_critic_lstm": True, "network": network},
        seed=0,
    )
    layers = (agent.policy.lstm_actor, agent.policy.lstm_critic)
    assert [type(layer) for layer in layers] == [HIDDEN_LAYERS[network]] * 2
    before = [next(layer.parameters()).detach().clone() for layer in layers]
    agent.learn(40)
    assert not any(torch.equal(next(layer.parameters()), old) for layer, old in zip(layers, before, strict=True))


def test_a_policy_survives_saving_its_constructor_arguments(tmp_path):
    policy = make_policy(mean="linear", std="state", num_knots=2, network="gru")
    again = UnitBoxLstmPolicy(**policy._get_constructor_parameters())
    again.load_state_dict(policy.state_dict())
    observation = np.full((1, 3), 0.5, dtype=np.float32)
    np.testing.assert_array_equal(
        again.predict(observation, deterministic=True)[0], policy.predict(observation, deterministic=True)[0]
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mean": "relu"}, "`mean` must be 'sigmoid' or 'linear', got 'relu'"),
        ({"std": "none"}, "`std` must be 'constant', 'learned' or 'state', got 'none'"),
        ({"network": "rnn"}, "`network` must be one of 'lstm', 'gru', 'mlp', got 'rnn'"),
        ({"initial_std": 0.0}, r"`initial_std` must be positive, got 0\.0"),
        ({"use_sde": True}, "`use_sde` must be False"),
        ({"num_knots": 0}, "`num_knots` must be None or from 1 to half the 4 numbers of an action, got 0"),
        ({"num_knots": 3}, "`num_knots` must be None or from 1 to half the 4 numbers of an action, got 3"),
    ],
)
def test_bad_arguments_are_rejected(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_policy(**arguments)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (spaces.Box(-1.0, 1.0, (4,)), r"needs actions in \[0, 1\]"),
        (spaces.Box(0.0, 1.0, (2, 2)), "needs a one-dimensional Box"),
        (spaces.Discrete(3), "needs a one-dimensional Box"),
    ],
)
def test_other_action_spaces_are_rejected(space, message):
    with pytest.raises(ValueError, match=message):
        UnitBoxLstmPolicy(OBSERVATIONS, space, lambda _: 0.01)
