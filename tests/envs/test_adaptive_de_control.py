"""The environment around an adaptive algorithm: anchored at zero, scale-free, exact in its counting."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from de_gym import Problem, make_suite
from de_gym.envs import AdaptiveDEControlEnv
from de_gym.envs.run_views import view_run
from de_gym.evolution import two_population
from de_gym.optimizers import METHODS

SHELLS = ("l-srtde", "jso")


@pytest.fixture(params=SHELLS)
def shell(request) -> str:
    return request.param


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


def test_checkers_pass_without_a_warning(shell):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make("AdaptiveDEControl-v0", functions=[1], shell=shell, render_mode="rgb_array").unwrapped)


def test_stable_baselines_checker_passes_without_a_warning(shell):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checker.check_env(gym.make("AdaptiveDEControl-v0", functions=[1], shell=shell).unwrapped)


def test_same_seed_same_rollout(shell):
    np.testing.assert_array_equal(rollout(make(shell=shell), 3), rollout(make(shell=shell), 3))
    assert not np.array_equal(rollout(make(shell=shell), 3), rollout(make(shell=shell), 4))


@pytest.mark.parametrize("kind", ["compiled", "python"])
def test_zeros_are_the_two_population_shell_itself(kind):
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


@pytest.mark.parametrize("kind", ["compiled", "python"])
@pytest.mark.parametrize(("shell", "method"), [("l-srtde", "l-srtde"), ("jso", "jso")])
def test_zeros_are_the_method_itself(shell, method, kind):
    problem = make_suite("cec2013", 10)[12] if kind == "compiled" else sphere_problem()
    optimizer = METHODS[method](replace(METHODS[method].default_settings(), population_size=40))
    optimizer.start(problem.lower[None], problem.upper[None], [np.random.default_rng(3)], 3000)
    initial = optimizer.ask().points
    optimizer.tell(problem.evaluate(initial))
    env = AdaptiveDEControlEnv(problems=[problem], shell=shell, max_evaluations=3000, population_size=40)
    env.reset(seed=0, options={"initial_population": initial})
    follow_generator(env, optimizer)
    terminated, state = False, env._state
    while not terminated:
        _, _, terminated, _, info = env.step(np.zeros(len(env.controls)))
        while optimizer.evaluations[0] < info["evaluations"]:
            optimizer.tell(problem.evaluate(optimizer.ask().points))
        assert info["evaluations"] == optimizer.evaluations[0]
        assert info["best_fitness"] == optimizer.best_fitness[0]
        assert terminated == optimizer.has_ended[0]
        _, fitness = optimizer.population
        np.testing.assert_array_equal(
            np.sort(view_run(env.process._shell.views(state), 0).fitness), np.sort(fitness[0])
        )
    assert info["generation"] > 20


def follow_generator(env, optimizer):
    """Have the environment's run draw the numbers that the optimiser's first run draws."""
    if hasattr(env._state, "generators"):
        env._state.generators[0] = copy.deepcopy(optimizer._rngs[0])
    else:
        env._state.shell_runs["key"] = optimizer._state.runs["key"]


def test_every_control_changes_the_run(shell):
    flat = Problem.from_function(lambda points: np.ones(len(points)), -1.0, 1.0, dimension=10, vectorized=True)
    rough_env = make(functions=[12], shell=shell, population_size=40)
    flat_env = AdaptiveDEControlEnv(problems=[flat], shell=shell, population_size=40)
    for index, name in enumerate(rough_env.controls):
        # Where values differ, nothing begins anew.
        env, ends = flat_env if name == "restart_probability" else rough_env, []
        for residual in (0.0, 1.0):
            action = np.zeros(len(env.controls))
            action[index] = residual
            env.reset(seed=1)
            for _ in range(15):
                observation = env.step(action)[0]
            ends.append(observation)
        assert not np.array_equal(*ends), name


def test_the_best_position_is_kept_when_populations_begin_anew():
    seen = []

    def nested(points):
        values = np.minimum(1.0 + (points**2).sum(axis=1), 20.0 * np.abs(points - 0.9).max(axis=1))
        seen.extend(values.tolist())
        return values

    problem = Problem.from_function(nested, -1.0, 1.0, dimension=2, vectorized=True)
    env = AdaptiveDEControlEnv(problems=[problem], max_evaluations=8000, population_size=30)
    env.reset(seed=3)
    action = np.zeros(len(env.controls))
    action[env.controls.index("restart_probability")] = 1.0
    diversities, has_ended = [], False
    while not has_ended:
        observation, _, terminated, truncated, info = env.step(action)
        has_ended = terminated or truncated
        diversities.append(observation[env.features.index("diversity")])
        assert info["best_fitness"] == min(seen)
        assert nested(info["best_position"][None])[0] == min(seen)
    assert np.diff(diversities).max() > 0.5


def test_observations_depend_on_no_unit(shell):
    def observe(problem):
        env = AdaptiveDEControlEnv(problems=[problem], max_evaluations=2000, shell=shell)
        observations = [env.reset(seed=2)[0]]
        for _ in range(10):
            observations.append(env.step(np.full(len(env.controls), 0.2))[0])
        return np.array(observations)

    reference = observe(sphere_problem())
    np.testing.assert_allclose(observe(sphere_problem(scale=1024.0)), reference, atol=1e-6)
    np.testing.assert_allclose(observe(sphere_problem(width=40.0)), reference, atol=1e-6)
    np.testing.assert_array_equal(observe(sphere_problem(optimum=0.0)), reference)


def test_names_of_controls_and_features(shell):
    env = make(shell=shell)
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


@pytest.mark.parametrize("budget", [20, 100, 997])
def test_no_generation_of_jso_exceeds_the_budget(budget):
    env = make(shell="jso", max_evaluations=budget, population_size=10, functions=[12])
    env.reset(seed=0)
    state = env._state
    for _ in range(budget):  # no generation has no trials
        _, _, terminated, truncated, info = env.step(env.action_space.sample())
        assert not truncated
        assert terminated == (info["evaluations"] + state.shell_runs["size"][0] > budget)
        if terminated:
            break
    assert terminated
    assert info["evaluations"] <= budget


def test_log_rewards_add_up_to_the_decades_gained(shell):
    env = make(functions=[12], shell=shell, max_evaluations=6000)
    _, first = env.reset(seed=0)
    total = sum(env.step(np.zeros(len(env.controls)))[1] for _ in range(10))
    last = env.step(np.zeros(len(env.controls)))
    decades = np.log10(first["best_error"]) - np.log10(last[4]["best_error"])
    assert total + last[1] == pytest.approx(decades)


def test_solving_ends_the_episode(shell):
    env = AdaptiveDEControlEnv(problems=[sphere_problem(optimum=0.0)], max_evaluations=40_000, shell=shell)
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
        ({"max_evaluations": 10, "population_size": 10}, "at least 11 with a population of 10, got 10"),
        ({"max_evaluations": 19, "population_size": 10, "shell": "jso"}, "at least 20 with a population of 10, got 19"),
        ({"max_evaluations": 300, "shell": "jso"}, "at least 364 with a population of 182, got 300"),
        ({"observation": ["front_to_top"], "shell": "jso"}, "Unknown observation part 'front_to_top'"),
        ({"observation": ["spent", "spen"]}, "Unknown observation part 'spen'. Did you mean 'spent'"),
        ({"observation": []}, "`observation` must name at least one part"),
        ({"target_error": -1.0}, "`target_error` must be a finite number of at least 0, got -1.0"),
        ({"render_mode": "ansi"}, "Unknown render mode 'ansi'"),
        ({"population_size": 3}, "`population_size` must be at least 4, got 3"),
        ({"max_generations": 0}, "`max_generations` must be at least 1"),
    ],
)
def test_inconsistent_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_bad_actions_are_refused_and_the_episode_goes_on(shell):
    env = make(shell=shell)
    with pytest.raises(ResetNeeded, match="call `reset` first"):
        env.step(env.action_space.sample())
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"numbers in \[-1, 1\], got NaN"):
        env.step(np.full(env.action_space.shape, np.nan))
    with pytest.raises(ValueError, match="Actions must have shape"):
        env.step(np.zeros(3))
    env.step(env.action_space.sample())


def test_actions_outside_the_box_are_clipped(shell):
    outside, inside = make(shell=shell), make(shell=shell)
    outside.reset(seed=0)
    inside.reset(seed=0)
    wild = np.linspace(-2, 2, len(outside.controls))
    for _ in range(5):
        np.testing.assert_array_equal(outside.step(wild)[0], inside.step(np.clip(wild, -1, 1))[0])


def test_negative_actions_act(shell):
    env = make(shell=shell)
    assert (env.action_space.low == -1.0).all()
    seen = []
    for number in (-1.0, 0.0):
        env.reset(seed=0)
        env.step(np.full(len(env.controls), number))
        seen.append(env.step(np.full(len(env.controls), number))[4]["best_position"])
    assert not np.array_equal(*seen)


def test_reset_options_fix_function_and_start(shell):
    env, suite = make(shell=shell, population_size=20), make_suite("cec2013", 10)
    population = np.random.default_rng(0).uniform(-100, 100, (20, 10))
    _, info = env.reset(seed=0, options={"function": 12, "initial_population": population})
    assert info["function"] == 12
    assert info["best_fitness"] == suite[12].evaluate(population).min()


def test_a_function_without_values_gives_a_valid_observation(shell):
    problem = Problem.from_function(lambda x: np.full(len(x), np.nan), -1, 1, dimension=2, vectorized=True)
    env = AdaptiveDEControlEnv(problems=[problem], population_size=6, max_evaluations=100, shell=shell)
    observation, _ = env.reset(seed=0)
    for _ in range(3):
        assert env.observation_space.contains(observation)
        observation, reward, *_ = env.step(env.action_space.sample())
        assert reward == 0.0


def test_a_python_function_sees_the_population(shell):
    def best_value(view):
        assert view.positions.shape == (len(view.fitness), 10)
        assert (np.diff(view.fitness) >= 0).all()
        return view.fitness[0] / 1e6

    env = make(shell=shell, observation=["spent", best_value], functions=[12])
    observation, info = env.reset(seed=0)
    assert env.features == ("spent", "best_value")
    for _ in range(3):
        assert observation[1] == np.float32(info["best_fitness"] / 1e6)
        observation, *_, info = env.step(env.action_space.sample())


def test_the_best_never_worsens_and_is_where_it_was_found(shell):
    env, best = make(shell=shell, functions=[12]), np.inf
    _, info = env.reset(seed=0)
    for _ in range(10):
        assert info["best_fitness"] <= best
        best = info["best_fitness"]
        assert make_suite("cec2013", 10)[12].evaluate(info["best_position"][None])[0] == best
        *_, info = env.step(env.action_space.sample())


def test_success_rates_of_jso_are_counted():
    env = AdaptiveDEControlEnv(problems=[sphere_problem(1e-3)], shell="jso", population_size=40, max_evaluations=3000)
    env.reset(seed=0)
    before = env._state.fitness[0].copy()
    observation, *_, info = env.step(np.zeros(7))
    assert info["generation"] == 1
    replaced = (env._state.improvements[0, :40] >= 0).mean()
    assert info["success_rate"] == replaced == pytest.approx(observation[env.features.index("success_rate")])
    assert 0.0 < replaced < 1.0
    assert (env._state.parent_fitness[0] == before).all()


def test_picture_shows_both_populations_and_the_controls(shell):
    env = make(render_mode="rgb_array", shell=shell)
    env.reset(seed=0)
    first = env.render()
    env.step(env.action_space.sample())
    env.step(env.action_space.sample())
    second = env.render()
    assert first.shape == second.shape == (320, 960, 3)
    assert not np.array_equal(first, second)
