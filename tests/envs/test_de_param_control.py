"""The single environment: contract, counting, endings, errors."""

from __future__ import annotations

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from de_gym import Problem, make_suite
from de_gym.envs import DEParamControlEnv
from de_gym.envs.rewards import REWARDS
from de_gym.envs.state import ranked_positions


def make(**options) -> DEParamControlEnv:
    functions = {} if "problems" in options else {"functions": [1, 6, 12]}
    return DEParamControlEnv(**(functions | options))


def rollout(env, seed: int, steps: int = 12):
    generator = np.random.default_rng(seed)
    observation, info = env.reset(seed=seed)
    record = [observation]
    for _ in range(steps):
        action = generator.random(env.action_space.shape).astype(np.float32)
        observation, reward, terminated, truncated, info = env.step(action)
        record += [observation, np.array([reward, terminated, truncated, info["best_fitness"]])]
        if terminated or truncated:
            break
    return np.concatenate(record)


def test_gymnasium_checker_passes_without_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make("DEParamControl-v0", functions=[1, 6, 12], render_mode="rgb_array").unwrapped)


def test_made_by_id_with_the_papers_defaults():
    env = gym.make("DEParamControl-v0")
    assert env.observation_space.shape == (60,)
    assert env.action_space.shape == (100,)
    assert gym.make("de_gym:DEParamControl-v0", dimension=30).action_space.shape == (200,)
    settings = env.unwrapped.process.settings
    assert (settings.max_generations, settings.max_evaluations, settings.pbest) == (50, 100_000, "linear")


def test_same_seed_same_rollout():
    np.testing.assert_array_equal(rollout(make(), 3), rollout(make(), 3))
    assert not np.array_equal(rollout(make(), 3), rollout(make(), 4))


def test_observation_parts_have_their_place():
    env = make(functions=[12])
    observation, _ = env.reset(seed=0)
    assert observation[0] == 0.0
    assert observation[49] == 1.0
    assert (np.diff(observation[:50]) >= 0).all()
    np.testing.assert_allclose(observation[50:55].sum(), 1.0, rtol=1e-6)
    np.testing.assert_allclose(observation[55:60], 0.2)
    counts = np.histogram(observation[:50], 5, range=(0, 1))[0] / 50
    np.testing.assert_allclose(observation[50:55], counts, rtol=1e-6)
    following, *_ = env.step(env.action_space.sample())
    np.testing.assert_allclose(following[55:60], observation[50:55], rtol=1e-6)


def test_counted_histogram_scales_with_the_population():
    shares, _ = make(functions=[12]).reset(seed=0)
    counts, _ = make(functions=[12], histogram="counts").reset(seed=0)
    np.testing.assert_allclose(counts[50:], 50 * shares[50:], rtol=1e-6)


def test_first_half_of_the_action_is_f_and_second_half_is_cr():
    env = make(functions=[12])
    env.reset(seed=0)
    action = np.concatenate([np.full(50, 0.25), np.full(50, 0.75)]).astype(np.float32)
    info = env.step(action)[4]
    assert (info["mean_scale_factor"], info["mean_crossover_rate"]) == pytest.approx((0.25, 0.75))


def test_means_of_f_and_cr_are_told_of_python_functions_too():
    problem = Problem.from_function(lambda x: float(np.sum(x**2)), -5, 5, 0.0, dimension=4)
    env = DEParamControlEnv(problems=[problem], population_size=10)
    env.reset(seed=0)
    *_, info = env.step(np.repeat(np.float32([0.25, 0.75]), 10))
    assert (info["mean_scale_factor"], info["mean_crossover_rate"]) == (0.25, 0.75)


def test_zero_scale_factors_change_nothing():
    env = make(functions=[12])
    _, before = env.reset(seed=0)
    _, reward, _, _, after = env.step(np.zeros(100, np.float32))
    assert reward == 0.0
    assert after["best_fitness"] == before["best_fitness"]


def test_best_position_is_where_the_best_fitness_was_found():
    env = make(functions=[12])
    _, info = env.reset(seed=0)
    found = [info]
    for _ in range(10):
        *_, info = env.step(env.action_space.sample())
        found.append(info)
    values = make_suite("cec2013", 10)[12].evaluate(np.array([info["best_position"] for info in found]))
    np.testing.assert_array_equal(values, [info["best_fitness"] for info in found])
    assert found[-1]["best_fitness"] < found[0]["best_fitness"]


def test_action_belongs_to_the_rank():
    """With F = 0 for all but the best, only the best individual can move."""
    env = make(functions=[1], max_generations=None)
    env.reset(seed=0)
    before = ranked_positions(env._state)[0]
    action = np.zeros(100, np.float32)
    action[0], action[50:] = 0.5, 1.0
    env.step(action)
    after = ranked_positions(env._state)[0]
    unmoved = sum((row == after).all(axis=1).any() for row in before[1:])
    assert unmoved == 49


def test_reward_is_the_relative_improvement_of_the_best_error():
    env = make(functions=[6])
    _, before = env.reset(seed=1)
    for _ in range(10):
        _, reward, _, _, after = env.step(env.action_space.sample())
        assert reward == pytest.approx((before["best_error"] - after["best_error"]) / before["best_error"])
        before = after


@pytest.mark.parametrize("reward", REWARDS)
def test_every_reward_runs_and_is_never_negative(reward):
    env = make(reward=reward)
    env.action_space.seed(0)
    env.reset(seed=0)
    assert all(env.step(env.action_space.sample())[1] >= 0 for _ in range(10))


def test_truncated_at_the_generation_limit():
    env = make(max_generations=3)
    env.reset(seed=0)
    endings = [env.step(env.action_space.sample())[2:4] for _ in range(3)]
    assert endings == [(False, False), (False, False), (False, True)]


@pytest.mark.parametrize(("budget", "generations"), [(250, 4), (249, 3), (100, 1), (299, 4), (300, 5)])
def test_budget_is_counted_exactly_and_never_exceeded(budget, generations):
    env = make(max_evaluations=budget, max_generations=None, functions=[12])
    env.reset(seed=0)
    for generation in range(1, generations + 1):
        _, _, terminated, truncated, info = env.step(env.action_space.sample())
        assert info["evaluations"] == 50 * (generation + 1) <= budget
        assert terminated == (generation == generations)
        assert not truncated


def test_solving_the_function_terminates_with_reward_one():
    calls = []

    def solved_later(points):
        calls.append(len(points))
        return np.full(len(points), 3.0 if len(calls) < 4 else 0.0)

    problem = Problem.from_function(solved_later, -1, 1, 0.0, dimension=2, vectorized=True)
    env = DEParamControlEnv(problems=[problem], population_size=5)
    env.reset(seed=0)
    results = [env.step(env.action_space.sample()) for _ in range(3)]
    assert [result[1] for result in results] == [0.0, 0.0, 1.0]
    assert [result[2] for result in results] == [False, False, True]
    assert [result[3] for result in results] == [False, False, False]
    assert sum(calls) == results[-1][4]["evaluations"] == 20
    with pytest.raises(ResetNeeded, match="call `reset` first"):
        env.step(env.action_space.sample())


@pytest.mark.parametrize("vectorized_env", [False, True])
def test_a_value_below_the_stated_minimum_is_said_and_not_rewarded(vectorized_env):
    # Values fall by ten a generation and pass the stated minimum in the second.
    calls = []

    def falling(points):
        calls.append(len(points))
        return np.linspace(0.0, 1.0, len(points)) + 15.0 - 10.0 * (len(calls) - 1)

    problem = Problem.from_function(falling, -1, 1, 0.0, dimension=2, vectorized=True)
    options = {"problems": [problem], "population_size": 5}
    env = gym.make_vec("DEParamControl-v0", 1, **options) if vectorized_env else DEParamControlEnv(**options)
    env.reset(seed=0)
    assert env.step(env.action_space.sample())[1] == pytest.approx(10.0 / 15.0)
    with pytest.warns(RuntimeWarning, match="`optimum` of the problem is wrong"):
        _, reward, terminated, _, info = env.step(env.action_space.sample())
    assert reward == 0.0
    assert not terminated
    assert info["best_error"] == pytest.approx(15.0)  # counted from as far below the best as the first error was
    _, reward, terminated, _, info = env.step(env.action_space.sample())
    assert reward == pytest.approx(10.0 / 15.0)
    assert not terminated


@pytest.mark.parametrize("env_id", ["DEParamControl-v0", "AdaptiveDEControl-v0"])
def test_a_first_population_below_the_stated_minimum_is_said_and_rewards_follow_its_spread(env_id):
    def play(optimum):
        problem = Problem.from_function(lambda x: float(x @ x) - 5.0, -1, 1, optimum, dimension=2)
        env = gym.make(env_id, problems=[problem], population_size=8, max_evaluations=400)
        first = env.reset(seed=0)[1]["best_error"]
        return first, [env.step(np.full(env.action_space.shape, 0.5))[1:3] for _ in range(5)]

    with pytest.warns(RuntimeWarning, match="`optimum` of the problem is wrong"):
        mistaken = play(0.0)
    assert mistaken == play(None)
    assert mistaken[0] > 0.1
    assert all(reward < 1.0 for reward, _ in mistaken[1])


def test_whole_numbers_of_any_kind_are_plain_ones():
    env = make(population_size=np.uint8(200), max_generations=np.int8(3))
    assert env.action_space.shape == (400,)
    assert np.isfinite(rollout(env, 0)).all()
    with pytest.raises(TypeError, match=r"`population_size` must be a whole number, got 50\.0"):
        make(population_size=50.0)


def test_a_shrinking_population_with_an_archive_passes_the_checker():
    options = {"functions": [12], "shell": "l-shade", "max_evaluations": 1000, "max_generations": None}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make("DEParamControl-v0", render_mode="rgb_array", **options).unwrapped)
    env = make(**options)
    env.reset(seed=0)
    sizes, evaluations, terminated = [50], 50, False
    while not terminated:
        observation, _, terminated, truncated, info = env.step(np.full(100, 0.5))
        # The trials were as many as the individuals before the generation.
        assert info["evaluations"] - evaluations == sizes[-1]
        evaluations = info["evaluations"]
        planned = int(50 + (4 - 50) * evaluations / 1000 + 0.5)
        sizes.append(max(min(planned, sizes[-1]), 4))
        assert env.observation_space.contains(observation)
        assert observation[50:55].sum() == pytest.approx(1.0)
        np.testing.assert_array_equal(observation[sizes[-1] : 50], 1.0)  # beyond the living
        assert not truncated
    assert sizes[-1] < 10
    assert evaluations <= 1000 < evaluations + sizes[-1]


@pytest.mark.parametrize(("action", "size"), [("knots", 10), ("mean_and_spread", 4)])
def test_short_actions_pass_the_checker_and_say_what_they_did(action, size):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make("DEParamControl-v0", functions=[1], action=action, render_mode="rgb_array").unwrapped)
    env = make(action=action)
    assert env.action_space.shape == (size,)
    env.reset(seed=0)
    info = env.step(np.full(size, 0.5))[4]
    assert info["mean_scale_factor"] == pytest.approx(0.5, abs=0.15)


def test_flat_function_gives_a_valid_observation():
    problem = Problem.from_function(lambda points: np.ones(len(points)), -1, 1, 0.0, dimension=2, vectorized=True)
    env = DEParamControlEnv(problems=[problem], population_size=6)
    observation, _ = env.reset(seed=0)
    np.testing.assert_array_equal(observation[:6], 0.0)
    np.testing.assert_array_equal(observation[6:11], [1, 0, 0, 0, 0])
    assert env.observation_space.contains(observation)


def test_problem_without_a_known_minimum_is_never_solved_but_rewarded():
    problem = Problem.from_function(lambda points: (points**2).sum(axis=-1), -5, 5, dimension=3, vectorized=True)
    env = DEParamControlEnv(problems=[problem], max_generations=200, pbest=0.1)
    env.reset(seed=0)
    total, ended = 0.0, False
    while not ended:
        _, reward, terminated, truncated, _ = env.step(np.full(env.action_space.shape, 0.7, np.float32))
        total += reward
        ended = terminated or truncated
    assert truncated
    assert total > 0


def test_reset_options_fix_function_and_start():
    env, suite = make(), make_suite("cec2013", 10)
    population = np.random.default_rng(0).uniform(-100, 100, (50, 10))
    _, info = env.reset(seed=0, options={"function": 12, "initial_population": population})
    assert info["function"] == 12
    assert info["best_fitness"] == suite[12].evaluate(population).min()


def test_fixing_the_function_keeps_the_initial_population():
    env = make()
    env.reset(seed=5)
    drawn = np.sort(env._state.positions[0], axis=0)
    env.reset(seed=5, options={"function": 12})
    np.testing.assert_array_equal(np.sort(env._state.positions[0], axis=0), drawn)


def test_every_function_of_the_set_is_drawn():
    env = make()
    env.reset(seed=0)
    assert {env.reset()[1]["function"] for _ in range(60)} == {1, 6, 12}


def test_frame_shows_the_run():
    env = make(render_mode="rgb_array", functions=[1])
    env.reset(seed=0)
    first = env.render()
    env.step(env.action_space.sample())
    second = env.render()
    assert first.shape == (320, 960, 3)
    assert first.dtype == np.uint8
    assert (first != second).any()
    assert first.std() > 10


@pytest.mark.slow
def test_record_video(tmp_path):
    pytest.importorskip("moviepy")
    env = gym.wrappers.RecordVideo(
        gym.make("DEParamControl-v0", functions=[1], max_generations=5, render_mode="rgb_array"), str(tmp_path)
    )
    env.reset(seed=0)
    for _ in range(5):
        env.step(env.action_space.sample())
    env.close()
    assert list(tmp_path.glob("*.mp4"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"population_size": 3}, "`population_size` must be at least 4, got 3"),
        ({"num_bins": 0}, "`num_bins` must be at least 1, got 0"),
        ({"history_window": 0}, "`history_window` must be at least 1, got 0"),
        ({"max_generations": 0}, "`max_generations` must be at least 1, got 0"),
        ({"max_evaluations": 99}, "at least 100 with a population of 50, got 99"),
        ({"target_error": -1.0}, "`target_error` must be a finite number of at least 0, got -1.0"),
        ({"target_error": float("nan")}, "`target_error` must be a finite number"),
        ({"pbest": "linaer"}, "Unknown schedule for `pbest` 'linaer'. Did you mean 'linear'"),
        ({"pbest": 0.0}, r"fraction in \(0, 1\], got 0.0"),
        ({"bound_repair": "clamp"}, "Unknown bound repair 'clamp'"),
        ({"reward": "relativ"}, "Did you mean 'relative'"),
        ({"histogram": "share"}, "Unknown histogram kind 'share'"),
        ({"observation": ["fitnes"]}, "Unknown observation part 'fitnes'. Did you mean 'fitness'"),
        ({"observation": []}, "`observation` must name at least one part"),
        ({"render_mode": "ansi"}, "Unknown render mode 'ansi'. Available: 'human', 'rgb_array'"),
        ({"problems": []}, "`problems` must hold at least one problem, got none"),
    ],
)
def test_inconsistent_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_callables_must_be_wrapped_as_problems():
    with pytest.raises(TypeError, match=r"got function; Problem.from_function turns a callable into one"):
        make(problems=[lambda point: 0.0])


def test_unknown_argument_is_a_type_error():
    with pytest.raises(TypeError, match="population"):
        make(population=50)


def test_step_before_reset():
    with pytest.raises(ResetNeeded, match="call `reset` first"):
        make().step(np.zeros(100, np.float32))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.zeros(99), r"Actions must have shape \(100,\), got \(99,\)"),
        (np.full(100, np.nan), "Actions must be numbers in .0, 1., got NaN"),
    ],
)
def test_bad_actions_are_refused_and_the_episode_goes_on(action, message):
    env = make()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        env.step(action)
    env.step(env.action_space.sample())


def test_actions_outside_the_box_are_clipped():
    outside, inside = make(), make()
    outside.reset(seed=0)
    inside.reset(seed=0)
    wild = np.tile(np.linspace(-1, 2, 50, dtype=np.float32), 2)  # both F and CR, beyond both ends
    for _ in range(5):
        one, other = outside.step(wild), inside.step(np.clip(wild, 0, 1))
        np.testing.assert_array_equal(one[0], other[0])
        for key in ("mean_scale_factor", "mean_crossover_rate"):
            assert one[4][key] == other[4][key]
    assert outside.reset(seed=0)[1]["function"] == inside.reset(seed=0)[1]["function"]
    assert not np.isnan(outside.step(np.full(100, np.inf))[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"functon": 1}, "Unknown reset option 'functon'. Did you mean 'function'"),
        ({"function": 2}, "Unknown function number 2.*Available: 1, 6, 12"),
        ({"initial_population": np.zeros((3, 10))}, r"must have shape \(50, 10\), got \(3, 10\)"),
        ({"initial_population": np.full((50, 10), np.nan)}, "must be finite"),
        ({"initial_population": np.full((50, 10), 101.0)}, "must lie inside the bounds"),
    ],
)
def test_bad_reset_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make().reset(seed=0, options=options)


def test_failing_user_function_is_named_and_the_env_is_usable_after_reset():
    fail = [False]

    def fragile(points):
        if fail[0]:
            raise ZeroDivisionError("simulation diverged")
        return (points**2).sum(axis=-1)

    problem = Problem.from_function(fragile, -1, 1, 0.0, dimension=2, vectorized=True)
    env = DEParamControlEnv(problems=[problem])
    env.reset(seed=0)
    fail[0] = True
    with pytest.raises(Exception, match="fragile"):
        env.step(env.action_space.sample())
    fail[0] = False
    env.reset(seed=0)
    env.step(env.action_space.sample())
