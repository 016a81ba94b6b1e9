from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3.common.callbacks import BaseCallback, CheckpointCallback, EvalCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnvWrapper
from torch import nn

from agents import PAPER_RECIPE, CollapseError, GymnasiumVecEnv, RecurrentREINFORCE, UnitBoxLstmPolicy


def make_agent(env, **arguments):
    options = {"seed": 0, "policy_kwargs": {"lstm_hidden_size": 8}, **PAPER_RECIPE} | arguments
    return RecurrentREINFORCE("UnitBoxLstmPolicy", env, **options)


def parameters(agent):
    return {name: parameter.detach().clone() for name, parameter in agent.policy.named_parameters()}


class Recorder(VecEnvWrapper):
    """Remembers every observation and reward that passes, in order."""

    def reset(self):
        observations = self.venv.reset()
        self.observations, self.rewards, self.dones = [observations], [], []
        return observations

    def step_wait(self):
        observations, rewards, dones, infos = self.venv.step_wait()
        self.observations.append(observations)
        self.rewards.append(rewards)
        self.dones.append(dones)
        return observations, rewards, dones, infos


def collect(agent):
    """Collect one rollout and return it with the environment's own record of it."""
    _, callback = agent._setup_learn(1)
    agent.collect_rollouts(agent.env, callback, agent.rollout_buffer, 1)
    return agent._rollout


def block(agent):
    """Return what an agent has rolled out, but for rewards."""
    return agent._blocks.all[0]


def test_a_known_best_action_is_found_in_seconds(make_target_env, best_action):
    agent = make_agent(
        make_target_env(16), learning_rate=0.02, returns="to_go", baseline="function", max_grad_norm=None
    )
    agent.learn(16 * 5 * 120)
    observation = np.full((1, 3), 0.5, dtype=np.float32)
    action, _ = agent.predict(observation, episode_start=np.array([True]), deterministic=True)
    np.testing.assert_allclose(action[0], best_action, atol=0.06)


@pytest.mark.parametrize("returns", ["total", "to_go"])
@pytest.mark.parametrize("std", ["constant", "state"])
def test_the_gradient_equals_finite_differences_of_the_objective(make_target_env, returns, std):
    env = Recorder(make_target_env(3, lengths=(2, 4)))
    kwargs = {"lstm_hidden_size": 3, "std": std}
    agent = make_agent(env, returns=returns, gamma=0.9, policy_kwargs=kwargs)
    rollout = collect(agent)
    observations = torch.as_tensor(np.stack(env.observations[:-1])).double()
    rewards, ended = np.stack(env.rewards).astype(np.float64), np.cumsum(np.stack(env.dones), axis=0)
    active = np.concatenate([np.ones((1, 3)), ended[:-1] == 0])
    actions = block(agent).actions.double()
    policy = agent.policy.double()
    # The tape holds single precision; the reference is evaluated in double on the same weights.
    reference_rewards = rewards * active
    weights = np.zeros_like(rewards)
    for step in range(len(rewards)):
        first = step if returns == "to_go" else 0
        discounts = 0.9 ** (np.arange(first, len(rewards)) - first)
        weights[step] = (discounts[:, None] * reference_rewards[first:]).sum(axis=0)
    weights = torch.as_tensor(weights * active)

    def loss():
        hidden, _ = policy.lstm_actor(observations)
        mean = torch.sigmoid(policy.action_net(hidden))
        deviation = torch.sigmoid(policy.std_net(hidden)) if std == "state" else torch.full_like(mean, 0.2)
        density = -0.5 * ((actions - mean) / deviation) ** 2 - deviation.log() - 0.5 * np.log(2 * np.pi)
        return -(weights * density.sum(dim=-1)).sum() / 3

    expected = {}
    with torch.no_grad():
        for name, parameter in policy.named_parameters():
            if name.startswith("value_net") or name == "log_std":
                continue
            grad = torch.zeros_like(parameter)
            for index in np.ndindex(*parameter.shape):
                saved = parameter[index].item()
                values = []
                for offset in (1e-6, -1e-6):
                    parameter[index] = saved + offset
                    values.append(loss().item())
                parameter[index] = saved
                grad[index] = (values[0] - values[1]) / 2e-6
            expected[name] = grad
    policy.float()
    value = agent.set_gradient(rollout)
    assert value == pytest.approx(loss_in_double(policy, loss), rel=1e-4)
    for name, grad in expected.items():
        actual = dict(policy.named_parameters())[name].grad.double()
        torch.testing.assert_close(actual, grad, rtol=2e-3, atol=2e-3 * float(grad.abs().max()))


def loss_in_double(policy, loss):
    policy.double()
    value = loss().item()
    policy.float()
    return value


def test_steps_after_the_end_of_an_episode_change_nothing(make_target_env):
    agent = make_agent(make_target_env(4, lengths=(2, 5)), returns="to_go", baseline="function")
    rollout = collect(agent)
    assert not rollout.active.all()
    agent.set_gradient(rollout)
    first = [None if p.grad is None else p.grad.clone() for p in agent.policy.parameters()]
    agent.policy.zero_grad()
    agent._n_updates = 0
    again = collect(agent)
    actions = block(agent).actions
    block(agent).actions = torch.where(torch.as_tensor(again.active)[..., None], actions, torch.full_like(actions, 0.9))
    agent.set_gradient(replace(again, rewards=np.where(again.active, again.rewards, 1e3)))
    for before, parameter in zip(first, agent.policy.parameters(), strict=True):
        if before is not None:
            torch.testing.assert_close(parameter.grad, before, rtol=0, atol=0)


def test_rollout_steps_equal_prediction_by_the_policy(make_target_env):
    env = Recorder(make_target_env(3))
    agent = make_agent(env)
    collect(agent)
    hidden = block(agent).tape.hidden_states()
    means = agent.policy.action_distribution(hidden.flatten(0, 1)).mode().view(5, 3, 4).detach().numpy()
    state, starts = None, np.ones(3, dtype=bool)
    for step in range(5):
        actions, state = agent.predict(env.observations[step], state, starts, deterministic=True)
        np.testing.assert_allclose(actions, means[step], atol=1e-6)
        starts = np.zeros(3, dtype=bool)


def test_groups_come_from_the_functions_of_the_reset(make_target_env):
    rollout = collect(make_agent(make_target_env(8, lengths=(2, 3))))
    lengths = rollout.active.sum(axis=0)
    for group in np.unique(rollout.groups):
        assert len(set(lengths[rollout.groups == group])) == 1
    assert set(rollout.groups) == {0, 1}


def test_density_at_the_clipped_value_is_an_option(make_target_env):
    agents = [make_agent(make_target_env(4), policy_kwargs={"initial_std": 2.0}, log_prob_of=kind, max_grad_norm=None)
              for kind in ("sample", "clipped")]  # fmt: skip
    losses = []
    for agent in agents:
        rollout = collect(agent)
        weights = np.cumsum(rollout.rewards[::-1], axis=0)[-1]
        actions = block(agent).actions
        used = actions if agent.log_prob_of == "sample" else actions.clamp(0.0, 1.0)
        hidden = block(agent).tape.hidden_states().flatten(0, 1)
        log_probs = agent.policy.action_distribution(hidden).log_prob(used.flatten(0, 1)).detach().numpy()
        expected = -(log_probs.reshape(5, 4).sum(axis=0) * weights).sum() / 4
        losses.append(agent.set_gradient(rollout))
        assert losses[-1] == pytest.approx(expected, rel=1e-5)
    assert losses[0] != pytest.approx(losses[1], rel=1e-3)


def test_gradient_norm_is_limited(make_target_env):
    agent = make_agent(make_target_env(4), max_grad_norm=1e-3)
    agent.learn(1)
    norm = torch.sqrt(sum((p.grad**2).sum() for p in agent.policy.parameters() if p.grad is not None))
    assert norm.item() == pytest.approx(1e-3, rel=1e-3)


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(make_target_env):
    trained = [parameters(make_agent(make_target_env(4), seed=seed).learn(60)) for seed in (3, 3, 4)]
    assert all(torch.equal(trained[0][name], trained[1][name]) for name in trained[0])
    assert not torch.equal(trained[0]["action_net.weight"], trained[2]["action_net.weight"])


def test_training_in_two_parts_equals_training_at_once(make_target_env, tmp_path):
    whole = make_agent(make_target_env(4)).learn(120)
    half = make_agent(make_target_env(4)).learn(60)
    half.save(tmp_path / "half.zip")
    continued = RecurrentREINFORCE.load(tmp_path / "half.zip", env=make_target_env(4))
    continued.learn(60, reset_num_timesteps=False)
    for name, parameter in parameters(whole).items():
        assert torch.equal(parameters(continued)[name], parameter), name


def test_a_collapsed_policy_stops_with_a_sentence(make_target_env):
    agent = make_agent(make_target_env(4), collapse_patience=2)
    with torch.no_grad():
        agent.policy.log_std.fill_(9.0)
    with pytest.raises(CollapseError, match="The policy has collapsed: in each of the last 2 updates"):
        agent.learn(10_000)


@pytest.mark.parametrize("baseline", ["none", "function", "standardised"])
def test_a_loss_that_is_not_finite_keeps_the_weights(make_target_env, baseline):
    class NanRewards(VecEnvWrapper):
        def reset(self):
            return self.venv.reset()

        def step_wait(self):
            observations, rewards, dones, infos = self.venv.step_wait()
            return observations, np.full_like(rewards, np.nan), dones, infos

    agent = make_agent(NanRewards(make_target_env(4)), baseline=baseline)
    before = parameters(agent)
    with pytest.raises(CollapseError, match="The update is not finite"):
        agent.learn(1)
    assert all(torch.equal(before[name], parameter) for name, parameter in parameters(agent).items())


def test_sb3_tools_work_with_the_agent(make_target_env, tmp_path):
    agent = make_agent(make_target_env(4), tensorboard_log=str(tmp_path / "logs"))
    callbacks = [
        CheckpointCallback(5, str(tmp_path / "checkpoints")),
        EvalCallback(make_target_env(2), n_eval_episodes=2, eval_freq=5, log_path=str(tmp_path), verbose=0),
    ]
    agent.learn(80, callback=callbacks, progress_bar=True)
    assert agent.num_timesteps == 80
    assert len(list((tmp_path / "checkpoints").glob("*.zip"))) == 4
    assert (tmp_path / "evaluations.npz").exists()
    assert list((tmp_path / "logs").glob("RecurrentREINFORCE_1/events*"))
    assert agent.logger.name_to_value["train/n_updates"] == 4
    mean, _ = evaluate_policy(agent, make_target_env(2), n_eval_episodes=4)
    assert 0.0 < mean < 5.0
    agent.save(tmp_path / "agent.zip")
    again = RecurrentREINFORCE.load(tmp_path / "agent.zip", env=make_target_env(7))
    observation = np.full((2, 3), 0.5, dtype=np.float32)
    for deterministic in (True, False):
        torch.manual_seed(0)
        first = agent.predict(observation, deterministic=deterministic)[0]
        torch.manual_seed(0)
        np.testing.assert_array_equal(again.predict(observation, deterministic=deterministic)[0], first)
    again.learn(35)


def test_a_callback_can_end_the_training(make_target_env):
    agent = make_agent(make_target_env(4))
    agent.learn(10_000, callback=lambda *_: agent.num_timesteps < 30)
    # It stops within the second rollout, of which nothing was learned.
    assert agent.num_timesteps == 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"returns": "sum"}, "`returns` must be one of 'total', 'to_go', got 'sum'"),
        ({"baseline": "critic"}, "`baseline` must be one of 'none', 'function', 'standardised', got 'critic'"),
        ({"back_propagation": "half"}, "`back_propagation` must be one of 'full', 'stored', got 'half'"),
        ({"log_prob_of": "mean"}, "`log_prob_of` must be one of 'sample', 'clipped', got 'mean'"),
    ],
)
def test_unknown_choices_are_rejected(make_target_env, arguments, message):
    with pytest.raises(ValueError, match=message):
        make_agent(make_target_env(1), **arguments)


def test_the_policy_is_the_documented_one(make_target_env):
    policy = make_agent(make_target_env(1)).policy
    assert isinstance(policy, UnitBoxLstmPolicy)
    assert isinstance(policy.lstm_actor, nn.LSTM)
    assert policy.lstm_critic is None


def episode_returns(agent, num_updates):
    """Train and return the mean return of each update's episodes."""
    returns = []

    class Keep(BaseCallback):
        def _on_step(self):
            return True

        def _on_rollout_end(self):
            rollout = self.model._rollout
            returns.append(np.where(rollout.active, rollout.rewards, 0.0).sum(axis=0).mean())

    agent.learn(num_updates * agent.n_envs * 50, callback=Keep())
    return returns


@pytest.mark.parametrize("seed", [0, 1])
def test_the_defaults_learn_to_control_a_run(seed):
    env = gym.make_vec(
        "de_gym:DEParamControl-v0",
        num_envs=32,
        vectorization_mode="vector_entry_point",
        autoreset_mode="SAME_STEP",
        functions=[1],
        population_size=20,
    )
    returns = episode_returns(RecurrentREINFORCE("UnitBoxLstmPolicy", GymnasiumVecEnv(env), seed=seed), 40)
    assert np.mean(returns[-6:]) > np.mean(returns[:6]) + 0.2


def test_the_papers_recipe_has_a_name(make_target_env):
    agent = make_agent(make_target_env(1))
    assert (agent.gamma, agent.returns, agent.baseline) == (1.0, "total", "none")
    agent.learn(5)


def test_a_single_run_has_nothing_to_be_compared_with(make_target_env):
    with pytest.raises(ValueError, match=r"`env` must have at least 2 of them .*, got 1; or choose 'none'"):
        make_agent(make_target_env(1), baseline="standardised")
    assert make_agent(make_target_env(1), baseline="none").n_envs == 1
