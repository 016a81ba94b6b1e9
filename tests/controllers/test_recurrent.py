import numpy as np
import pytest

from de_gym.controllers import Controller, ControllerInfo, RecurrentController
from de_gym.controllers.recurrent import POLICY_KINDS, tensor_shapes


def rngs(seeds):
    return [np.random.default_rng(seed) for seed in seeds]


def rollout(controller, observations, seeds):
    """Return actions (T, R, 2N) on observations (T, R, O)."""
    controller.reset(rngs(seeds))
    return np.stack([controller(row) for row in observations])


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def test_one_cell_follows_the_lstm_equations_computed_by_hand():
    tensors = {
        "input_weight": np.array([[0.5], [-0.25], [1.0], [0.75]]),
        "hidden_weight": np.array([[0.1], [0.2], [0.3], [0.4]]),
        "gate_bias": np.array([0.01, 0.02, 0.03, 0.04]),
        "mean_weight": np.array([[2.0], [-1.0]]),
        "mean_bias": np.array([0.1, 0.2]),
        "std": np.array([0.1, 0.1]),
    }
    controller = RecurrentController(tensors, ControllerInfo("sigmoid-constant"), deterministic=True)
    controller.reset(rngs([0]))
    hidden = cell = 0.0
    for observation in (0.3, 0.9, 0.1):
        i = sigmoid(0.5 * observation + 0.1 * hidden + 0.01)
        f = sigmoid(-0.25 * observation + 0.2 * hidden + 0.02)
        g = np.tanh(1.0 * observation + 0.3 * hidden + 0.03)
        o = sigmoid(0.75 * observation + 0.4 * hidden + 0.04)
        cell = f * cell + i * g
        hidden = o * np.tanh(cell)
        expected = [[sigmoid(2.0 * hidden + 0.1), sigmoid(-hidden + 0.2)]]
        actions = controller(np.array([[observation]], dtype=np.float32))
        np.testing.assert_allclose(actions, expected, atol=1e-6)


def test_one_cell_follows_the_gru_equations_computed_by_hand():
    tensors = {
        "input_weight": np.array([[0.5], [-0.25], [1.0]]),
        "hidden_weight": np.array([[0.1], [0.2], [0.3]]),
        "gate_bias": np.array([0.01, 0.02, 0.03, 0.04]),
        "mean_weight": np.array([[2.0], [-1.0]]),
        "mean_bias": np.array([0.1, 0.2]),
        "std": np.array([0.1, 0.1]),
    }
    controller = RecurrentController(tensors, ControllerInfo("gru-linear-constant"), deterministic=True)
    controller.reset(rngs([0]))
    hidden = 0.0
    for observation in (0.3, 0.9, 0.1):
        r = sigmoid(0.5 * observation + 0.1 * hidden + 0.01)
        z = sigmoid(-0.25 * observation + 0.2 * hidden + 0.02)
        n = np.tanh(1.0 * observation + 0.03 + r * (0.3 * hidden + 0.04))
        hidden = (1.0 - z) * n + z * hidden
        expected = np.clip([[2.0 * hidden + 0.1, -hidden + 0.2]], 0.0, 1.0)
        actions = controller(np.array([[observation]], dtype=np.float32))
        np.testing.assert_allclose(actions, expected, atol=1e-6)


def test_a_network_without_memory_gives_the_same_for_the_same_observation(make_controller):
    controller = make_controller("mlp-sigmoid-constant", deterministic=True)
    tensors, observation = controller.tensors, np.linspace(0.0, 1.0, 9, dtype=np.float32)
    actions = rollout(controller, np.stack([observation, 1.0 - observation, observation])[:, None], [0])
    np.testing.assert_array_equal(actions[0], actions[2])
    hidden = np.tanh(tensors["input_weight"] @ observation + tensors["gate_bias"])
    expected = sigmoid(tensors["mean_weight"] @ hidden + tensors["mean_bias"])
    np.testing.assert_allclose(actions[0, 0], expected, atol=1e-6)
    assert not np.array_equal(actions[0], actions[1])


@pytest.mark.parametrize("policy", POLICY_KINDS)
@pytest.mark.parametrize(("cell_size", "knots"), [(1, None), (6, 3), (64, None)])
def test_a_run_is_bit_identical_in_every_batch(make_controller, policy, cell_size, knots):
    controller = make_controller(policy, cell_size, knots=knots)
    observations = np.random.default_rng(0).random((6, 37, 9), dtype=np.float32)
    together = rollout(controller, observations, range(37))
    for runs in ([0], [36], [5, 3], list(range(36, -1, -1)), list(range(16)), [7] * 5):
        separate = rollout(controller, observations[:, runs], runs)
        np.testing.assert_array_equal(separate, together[:, runs])


def test_runs_that_drop_out_leave_the_others_untouched(make_controller):
    controller = make_controller()
    observations = np.random.default_rng(0).random((9, 10, 9), dtype=np.float32)
    together = rollout(controller, observations, range(10))
    controller.reset(rngs(range(10)))
    alive = np.arange(10)
    for generation, row in enumerate(observations):
        np.testing.assert_array_equal(controller(row[alive]), together[generation, alive])
        if generation % 2:
            keep = np.flatnonzero(np.arange(len(alive)) != generation % len(alive))
            controller.keep(keep)
            alive = alive[keep]
    assert len(alive) == 6


def test_reset_forgets_the_hidden_state(make_controller):
    controller = make_controller(deterministic=True)
    observations = np.random.default_rng(0).random((4, 3, 9), dtype=np.float32)
    first = rollout(controller, observations, range(3))
    assert not np.array_equal(controller(observations[0]), first[0])
    np.testing.assert_array_equal(rollout(controller, observations, range(3)), first)


def test_samples_have_the_stated_mean_and_deviation(make_controller):
    sampled, exact = make_controller(), make_controller(deterministic=True)
    observations = np.tile(np.linspace(0.4, 0.6, 9, dtype=np.float32), (4000, 1))
    mean = rollout(exact, observations[None], range(4000))[0, 0]
    inside = (mean > 0.4) & (mean < 0.6)
    actions = rollout(sampled, observations[None], range(4000))[0]
    assert inside.sum() >= 3
    np.testing.assert_allclose(actions.mean(axis=0)[inside], mean[inside], atol=0.008)
    np.testing.assert_allclose(actions.std(axis=0)[inside], 0.1, atol=0.006)


def test_actions_stay_in_the_unit_box_even_when_means_are_far_outside(make_controller):
    controller = make_controller("linear-state")
    controller.tensors["mean_bias"][:] = np.linspace(-30, 30, 10)
    wild = RecurrentController(controller.tensors, controller.info)
    actions = rollout(wild, np.ones((3, 8, 9), dtype=np.float32), range(8))
    assert actions.min() == 0.0
    assert actions.max() == 1.0


def test_saturated_gates_give_no_nan(make_controller):
    controller = make_controller()
    huge = {name: 1e4 * np.sign(tensor) for name, tensor in controller.tensors.items()} | {"std": np.zeros(10)}
    with np.errstate(all="raise"):
        actions = rollout(RecurrentController(huge, controller.info), np.ones((3, 2, 9), dtype=np.float32), range(2))
    assert np.isfinite(actions).all()


def test_recurrent_controller_follows_the_protocol(make_controller):
    controller = make_controller()
    assert isinstance(controller, Controller)
    assert controller.population_size == 5


def test_wrong_observation_shape_is_rejected(make_controller):
    controller = make_controller()
    controller.reset(rngs([0, 1]))
    with pytest.raises(ValueError, match=r"5 individuals and 2 runs must have shape \(2, 9\), got \(2, 8\)"):
        controller(np.zeros((2, 8), dtype=np.float32))


def test_knots_are_interpolated_after_the_sigmoid_and_noise_comes_at_every_rank(make_controller):
    tensors = make_controller(knots=2, deterministic=True).tensors
    tensors["mean_weight"] = np.zeros_like(tensors["mean_weight"])
    tensors["mean_bias"] = np.log([0.2 / 0.8, 0.6 / 0.4, 0.5 / 0.5, 0.9 / 0.1])
    ramp = np.linspace(1.0, 0.0, 5)
    profile = np.stack([ramp, 1.0 - ramp], axis=1)
    tensors["interpolation"] = np.kron(np.eye(2), profile)
    controller = RecurrentController(tensors, ControllerInfo("sigmoid-constant"), deterministic=True)
    controller.reset(rngs([0]))
    expected = [0.2, 0.3, 0.4, 0.5, 0.6, 0.5, 0.6, 0.7, 0.8, 0.9]
    np.testing.assert_allclose(controller(np.zeros((1, 9), dtype=np.float32)), [expected], atol=1e-6)
    tensors["std"] = np.linspace(0.1, 1.0, 10)
    sampling = RecurrentController(tensors, ControllerInfo("sigmoid-constant"))
    sampling.reset(rngs([0]))
    (rng,) = rngs([0])
    noisy = np.clip(expected + tensors["std"] * rng.standard_normal(10), 0.0, 1.0)
    np.testing.assert_allclose(sampling(np.zeros((1, 9), dtype=np.float32)), [noisy], atol=1e-6)


def test_arrays_that_do_not_fit_together_are_named(make_controller):
    controller = make_controller()
    with pytest.raises(ValueError, match=r"do not fit together: gate_bias: \(23,\) instead of \(24,\)"):
        RecurrentController(controller.tensors | {"gate_bias": np.zeros(23)}, controller.info)
    with pytest.raises(ValueError, match=r"do not fit together: std: None instead of \(10,\)"):
        RecurrentController({k: v for k, v in controller.tensors.items() if k != "std"}, controller.info)
    with pytest.raises(ValueError, match=r"interpolation: \(10, 9\) instead of \(10, 10\)"):
        RecurrentController(controller.tensors | {"interpolation": np.zeros((10, 9))}, controller.info)
    with pytest.raises(ValueError, match="needs the matrices 'mean_weight' and 'input_weight'"):
        RecurrentController({}, controller.info)
    odd = {name: np.zeros(shape) for name, shape in tensor_shapes("sigmoid-constant", 9, 6, 5).items()}
    with pytest.raises(ValueError, match="odd or zero size"):
        RecurrentController(odd, controller.info)


def test_unknown_policy_kind_is_rejected(make_controller):
    with pytest.raises(ValueError, match=r"Unknown policy kind 'sigmoid-constnt'. Did you mean 'sigmoid-constant'"):
        RecurrentController(make_controller().tensors, ControllerInfo("sigmoid-constnt"))
