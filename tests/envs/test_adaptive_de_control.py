"""The environment around an adaptive algorithm: anchored at zero, scale-free, exact in its counting."""

from __future__ import annotations

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from de_gym import Problem
from de_gym.envs import AdaptiveDEControlEnv
from de_gym.evolution import two_population


def make(**options) -> AdaptiveDEControlEnv:
    return AdaptiveDEControlEnv(**({"functions": [1, 6, 12], "max_evaluations": 3000} | options))


def rollout(env, seed: int, steps: int = 12):
    generator = np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed)
    record = [observation]
    for _ in range(steps):
        observation, reward, terminated, truncated, info = env.step(generator.uniform(-1, 1, env.action_space.shape))
        record += [observation, np.array([reward, terminated, truncated, info["best_fitness"]])]
        if terminated or truncated:
            break
    return np.concatenate(record)


def sphere_problem(scale: float = 1.0, offset: float = 0.0, width: float = 5.0, optimum: float | None = None):
    def function(points):
        return scale * ((points / width * 5.0 - 1.0) ** 2).sum(axis=1) + offset

    return Problem.from_function(function, -width, width, optimum, dimension=4, vectorized=True)


def test_checkers_pass_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make("AdaptiveDEControl-v0", functions=[1], render_mode="rgb_array").unwrapped)


def test_stable_baselines_checker_passes_without_a_warning():
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checker.check_env(gym.make("AdaptiveDEControl-v0", functions=[1]).unwrapped)


def test_same_seed_same_rollout():
    np.testing.assert_array_equal(rollout(make(), 3), rollout(make(), 3))
    assert not np.array_equal(rollout(make(), 3), rollout(make(), 4))


@pytest.mark.parametrize("kind", ["compiled", "python"])
def test_zeros_are_the_algorithm_itself(kind):
    options = {"functions": [12]} if kind == "compiled" else {"problems": [sphere_problem()], "functions": None}
    if kind == "python":
        options.pop("functions")
        env = AdaptiveDEControlEnv(max_evaluations=3000, **options)
    else:
        env = make(**options)
    env.reset(seed=5)
    batch = env._problems
    start = env._state.positions[:1, 0, : env.process.population_size].reshape(-1, batch.dimension).copy()
    keys, starts = env._state.runs["key"].copy(), np.array([0, len(start)])
    values = batch.evaluate_ragged(start, starts)
    state = two_population.start(keys, start, starts, values, 3000, batch.lower, batch.upper)
    terminated = False
    while not terminated:
        parameters = two_population.set_parameters(state.runs, np.zeros((1, len(env.controls))))
        trials = two_population.breed(state, parameters, batch.lower, batch.upper)
        while len(trials.points):
            values = batch.evaluate_ragged(trials.points, trials.starts)
            two_population.select(state, parameters, trials, values)
            trials = two_population.breed(state, parameters, batch.lower, batch.upper, begins=False)
        observation, _, terminated, _, info = env.step(np.zeros(len(env.controls)))
        assert info["best_fitness"] == state.runs["best_fitness"][0]
        np.testing.assert_array_equal(observation, two_population.observe(state, batch.lower, batch.upper)[0])
        assert terminated == two_population.has_ended(state)[0]
    assert info["evaluations"] == 3000


def test_every_control_changes_the_run():
    env = make(functions=[12])
    for index, name in enumerate(env.controls):
        ends = []
        for residual in (0.0, 1.0):
            action = np.zeros(len(env.controls))
            action[index] = residual
            env.reset(seed=1)
            for _ in range(10):
                observation = env.step(action)[0]
            ends.append(observation)
        assert not np.array_equal(*ends), name


def test_observations_depend_on_no_unit():
    def observe(problem):
        env = AdaptiveDEControlEnv(problems=[problem], max_evaluations=2000)
        observations = [env.reset(seed=2)[0]]
        for _ in range(10):
            observations.append(env.step(np.full(len(env.controls), 0.2))[0])
        return np.array(observations)

    reference = observe(sphere_problem())
    np.testing.assert_allclose(observe(sphere_problem(scale=1024.0)), reference, atol=1e-6)
    np.testing.assert_allclose(observe(sphere_problem(width=40.0)), reference, atol=1e-6)
    np.testing.assert_array_equal(observe(sphere_problem(optimum=0.0)), reference)


def test_names_of_controls_and_features():
    env = make()
    assert len(env.controls) == len(set(env.controls)) == env.action_space.shape[0]
    assert len(env.features) == len(set(env.features)) == env.observation_space.shape[0]
    observation, _ = env.reset(seed=0)
    assert observation[env.features.index("dimension")] == 0.0
    assert observation[env.features.index("success_rate")] == 0.5


@pytest.mark.parametrize("budget", [11, 100, 997])
def test_the_budget_is_used_to_the_last_evaluation(budget):
    env = make(max_evaluations=budget, population_size=10, functions=[12])
    _, info = env.reset(seed=0)
    assert info["evaluations"] == 10
    terminated = False
    while not terminated:
        _, _, terminated, truncated, info = env.step(env.action_space.sample())
        assert not truncated
    assert info["evaluations"] == budget
    with pytest.raises(ResetNeeded, match="call `reset` first"):
        env.step(env.action_space.sample())


def test_log_rewards_add_up_to_the_decades_gained():
    env = make(functions=[12])
    _, first = env.reset(seed=0)
    total = sum(env.step(np.zeros(len(env.controls)))[1] for _ in range(10))
    last = env.step(np.zeros(len(env.controls)))
    decades = np.log10(first["best_error"]) - np.log10(last[4]["best_error"])
    assert total + last[1] == pytest.approx(decades)


def test_solving_ends_the_episode():
    env = AdaptiveDEControlEnv(problems=[sphere_problem(optimum=0.0)], max_evaluations=40_000)
    env.reset(seed=0)
    terminated = False
    while not terminated:
        _, _, terminated, _, info = env.step(np.zeros(len(env.controls)))
    assert info["best_error"] < 1e-8
    assert info["evaluations"] < 40_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shell": "jade"}, "Unknown shell 'jade'"),
        ({"reward": "lgo"}, "Did you mean 'log'"),
        ({"max_evaluations": 10, "population_size": 10}, "`max_evaluations` must pay for more than the initial"),
        ({"population_size": 3}, "`population_size` must be at least 4, got 3"),
        ({"max_generations": 0}, "`max_generations` must be at least 1"),
    ],
)
def test_inconsistent_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_bad_actions_are_refused():
    env = make()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"numbers in \[-1, 1\], got NaN"):
        env.step(np.full(env.action_space.shape, np.nan))
    with pytest.raises(ValueError, match="Actions must have shape"):
        env.step(np.zeros(3))


def test_picture_shows_both_populations_and_the_controls():
    env = make(render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    env.step(env.action_space.sample())
    env.step(env.action_space.sample())
    second = env.render()
    assert first.shape == second.shape == (320, 960, 3)
    assert not np.array_equal(first, second)
