"""Rewards and observations of the user: what they are called with, that they are used, and what is refused."""

from __future__ import annotations

import pickle

import gymnasium as gym
import numba
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import de_gym
from de_gym.envs import EnvSettings, RunView
from de_gym.envs.extensions import find_observation, find_reward
from de_gym.envs.features import FEATURES
from de_gym.envs.rewards import REWARDS
from de_gym.envs.shells import SHELLS
from de_gym.evolution.rand_and_best import REPAIRS, STRATEGIES
from de_gym.machine.breeding import BOUND_REPAIRS
from de_gym.machine.replacement import ARCHIVE_RULES

BOTH = pytest.mark.parametrize("env_id", ["DEParamControl-v0", "AdaptiveDEControl-v0"])
ADAPTIVE_SHELLS = [("AdaptiveDEControl-v0", shell) for shell in ("l-srtde", "jso")]
SMALL = {"functions": [1], "dimension": 10, "population_size": 20, "max_evaluations": 2000}


def decades(before, after, initial):
    return -np.log10(max(after, 1e-8) / max(initial, 1e-8))


def diversity(view: RunView):
    return float(np.mean(view.positions.std(axis=0) / (view.upper - view.lower)))


def first_and_last(view: RunView):
    return [view.fitness[0], view.fitness[-1]]


def _share(before, after, initial):
    return (before - after) / initial


def _nothing(before, after, initial):
    return np.nan


@pytest.fixture(autouse=True)
def _no_names_left(monkeypatch):
    monkeypatch.setattr("de_gym.envs.extensions._rewards", {})
    monkeypatch.setattr("de_gym.envs.extensions._observations", {})


def play(env, num_steps=4):
    """Return the observations, rewards and infos of an episode of zero actions in the middle of the box."""
    observation, info = env.reset(seed=3)
    action = np.full(env.action_space.shape, 0.5, np.float32)
    steps = [(observation, None, info)]
    for _ in range(num_steps):
        observation, reward, _, _, info = env.step(action)
        steps.append((observation, reward, info))
    return steps


@BOTH
def test_reward_function_gets_errors_before_after_and_initial(env_id):
    steps = play(gym.make(env_id, reward=decades, **SMALL))
    errors = [info["best_error"] for _, _, info in steps]
    expected = [np.log10(errors[0]) - np.log10(error) for error in errors[1:]]
    np.testing.assert_allclose([reward for _, reward, _ in steps[1:]], expected, rtol=1e-12)
    assert expected[-1] > 0


@BOTH
def test_reward_function_equal_to_a_compiled_one_gives_its_rewards(env_id):
    compiled = play(gym.make(env_id, reward="relative", **SMALL))
    python = play(gym.make(env_id, reward=lambda e, after, _: (e - after) / e, **SMALL))
    assert [reward for _, reward, _ in python[1:]] == [reward for _, reward, _ in compiled[1:]]
    assert all(np.array_equal(own[0], other[0]) for own, other in zip(python, compiled, strict=True))


@BOTH
def test_compiled_reward_of_the_user_is_called_for_all_runs_at_once(env_id):
    calls = []

    def share(before, after, initial):
        calls.append(before)
        return _share(before, after, initial)

    rewards = []
    for reward in (share, numba.njit(_share), "initial_gap"):
        envs = gym.make_vec(env_id, num_envs=3, vectorization_mode="vector_entry_point", **SMALL, reward=reward)
        envs.reset(seed=1)
        low, high = envs.single_action_space.low, envs.single_action_space.high
        rewards.append([envs.step(np.tile((low + high) / 2, (3, 1)))[1] for _ in range(4)])
    assert len(calls) == 12
    np.testing.assert_array_equal(rewards[0], rewards[1])
    np.testing.assert_array_equal(rewards[0], rewards[2])


def test_compiled_reward_that_is_no_number_is_refused():
    env = gym.make("DEParamControl-v0", **SMALL, reward=numba.njit(_nothing))
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"The reward '_nothing' must return a finite number, got .*nan"):
        env.step(env.action_space.sample())


@BOTH
def test_registered_reward_is_the_one_that_is_used(env_id):
    de_gym.register_reward("seven", lambda before, after, initial: 7.0)
    steps = play(gym.make(env_id, reward="seven", **SMALL))
    assert [reward for _, reward, _ in steps[1:]] == [7.0] * 4


@BOTH
def test_vector_env_rewards_every_run_by_the_function_through_resets(env_id):
    options = SMALL | {"max_generations": 2}
    envs = gym.make_vec(
        env_id,
        num_envs=3,
        vectorization_mode="vector_entry_point",
        autoreset_mode=AutoresetMode.NEXT_STEP,
        reward=lambda before, after, initial: 7.0,
        observation=[diversity],
        **options,
    )
    observations, _ = envs.reset(seed=0)
    assert observations.shape == (3, 1)
    actions = np.full(envs.action_space.shape, 0.5, np.float32)
    rewards = np.array([envs.step(actions)[1] for _ in range(4)])
    np.testing.assert_array_equal(rewards, [[7.0] * 3, [7.0] * 3, [0.0] * 3, [7.0] * 3])


@BOTH
def test_run_of_a_vector_env_is_observed_as_the_single_env(env_id):
    options = SMALL | {"observation": [first_and_last_part(), diversity]}
    single = play(gym.make(env_id, **options))
    envs = gym.make_vec(env_id, num_envs=2, vectorization_mode="vector_entry_point", **options)
    observations = [envs.reset(seed=2)[0]]
    actions = np.full(envs.action_space.shape, 0.5, np.float32)
    observations += [envs.step(actions)[0] for _ in range(4)]
    for expected, got in zip(single, observations, strict=True):
        np.testing.assert_array_equal(got[1], expected[0])


def first_and_last_part():
    return de_gym.Observation(first_and_last, size=2)


@BOTH
def test_observation_functions_see_the_run_and_stand_where_they_are_named(env_id):
    built_in = "fitness" if env_id == "DEParamControl-v0" else "spent"
    env = gym.make(env_id, observation=[first_and_last_part(), built_in, diversity], **SMALL)
    plain = gym.make(env_id, observation=[built_in], **SMALL)
    own, steps = play(env), play(plain)
    width = plain.observation_space.shape[0]
    assert env.observation_space.shape == (width + 3,)
    for (observation, _, info), (expected, _, _) in zip(own, steps, strict=True):
        np.testing.assert_array_equal(observation[2:-1], expected)
        assert observation[0] == np.float32(info["best_fitness"]) < observation[1]
        assert 0.05 < observation[-1] < 0.5


def _reach(view):
    return (view.positions.max() - view.positions.min()) / (view.upper[0] - view.lower[0])


def _ends_and_progress(view):
    spent, shares = view.evaluations / view.max_evaluations, view.positions.mean()
    return np.array([view.fitness[0], view.fitness[-1], view.generation, spent, shares])


@pytest.mark.parametrize(("env_id", "shell"), [("DEParamControl-v0", "l-shade"), *ADAPTIVE_SHELLS])
def test_compiled_observation_of_the_user_sees_what_a_python_one_sees(env_id, shell):
    calls, seen = [], []
    options = SMALL | {"functions": [1, 12], "assignment": "in_turn", "shell": shell}

    def reach(view):
        calls.append(view)
        return _reach(view)

    for first, second in ((reach, _ends_and_progress), (numba.njit(_reach), numba.njit(_ends_and_progress))):
        parts = [de_gym.Observation(second, size=5, high=1e4), first]
        envs = gym.make_vec(env_id, num_envs=4, vectorization_mode="vector_entry_point", observation=parts, **options)
        rows = [envs.reset(seed=1)[0]]
        middle = np.full(envs.action_space.shape, 0.5, np.float32)
        rows += [envs.step(middle)[0] for _ in range(20)]
        seen.append(np.stack(rows))
    assert len(calls) == 21 * 4
    assert seen[0][..., 1].max() == 1e4
    np.testing.assert_array_equal(seen[0], seen[1])


def test_compiled_observation_that_does_not_fit_is_refused():
    for function, message in (
        (lambda view: np.nan, "must return numbers, got NaN"),
        (lambda view: view.fitness, r"must return 1 number\(s\), got an array of float64 of shape \(20,\)"),
        (lambda view: view.positions[:1, :1], r"must return 1 number\(s\), got .* of shape \(1, 1\)"),
    ):
        env = gym.make("DEParamControl-v0", observation=[numba.njit(function)], **SMALL)
        with pytest.raises(ValueError, match=message):
            env.reset(seed=0)
    for options in ({"observation": [numba.njit(lambda view: "a")]}, {"reward": numba.njit(lambda errors: 0.0)}):
        env = gym.make("DEParamControl-v0", **SMALL, **options)
        with pytest.raises(TypeError, match=r"must be one that numba can call with its arguments and that returns num"):
            play(env)


@BOTH
def test_view_holds_the_living_in_order_and_the_progress(env_id):
    views = []

    def keep(view):
        views.append(view)
        return 0.0

    steps = play(gym.make(env_id, observation=[keep], **SMALL))
    views = views[-len(steps) :]
    for view, (_, _, info) in zip(views, steps, strict=True):
        assert (np.diff(view.fitness) >= 0).all()
        np.testing.assert_array_equal(view.positions[0], info["best_position"])
        assert view.positions.shape == (len(view.fitness), 10)
        assert (view.generation, view.evaluations, view.max_evaluations) == (
            info["generation"],
            info["evaluations"],
            2000,
        )
        assert (view.lower == -100).all()
        assert (view.upper == 100).all()


@BOTH
def test_registered_observation_has_its_bounds_and_is_clipped_to_them(env_id):
    de_gym.register_observation("ends", lambda view: [-5.0, 5.0], size=2, low=-1, high=2)
    env = gym.make(env_id, observation=["ends"], **SMALL)
    assert (env.observation_space.low.tolist(), env.observation_space.high.tolist()) == ([-1, -1], [2, 2])
    assert env.reset(seed=0)[0].tolist() == [-1.0, 2.0]


def test_features_of_the_adaptive_env_can_be_chosen_by_name():
    env = gym.make("AdaptiveDEControl-v0", observation=["budget", "spent"], **SMALL)
    whole = gym.make("AdaptiveDEControl-v0", **SMALL)
    assert env.unwrapped.features == ("budget", "spent")
    observation = whole.reset(seed=0)[0]
    assert env.reset(seed=0)[0].tolist() == [observation[10], observation[0]]


@BOTH
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reward": "relativ"}, "Did you mean 'relative'"),
        ({"reward": 3}, "Unknown reward 3"),
        ({"observation": []}, "at least one part"),
    ],
)
def test_wrong_choices_are_named(env_id, options, message):
    with pytest.raises(ValueError, match=message):
        gym.make(env_id, **options)


def test_misspelt_part_gets_a_hint_that_knows_registered_names():
    de_gym.register_observation("curvature", diversity)
    with pytest.raises(ValueError, match="Did you mean 'curvature'"):
        EnvSettings(observation=("curvatur",))
    with pytest.raises(ValueError, match="Did you mean 'histogram'"):
        EnvSettings(observation=("histogramm",))
    with pytest.raises(TypeError, match="sequence of parts"):
        EnvSettings(observation="fitness")


@pytest.mark.parametrize("value", [np.nan, np.inf, None, "much", [1.0, 2.0]])
def test_reward_that_is_no_number_is_refused(value):
    env = gym.make("DEParamControl-v0", reward=lambda *errors: value, **SMALL)
    with pytest.raises(ValueError, match="must return a finite number"):
        play(env)


@pytest.mark.parametrize("value", [np.nan, [1.0, 2.0], "a", None, [[1.0]], [[1.0], [1.0, 2.0]]])
def test_observation_that_does_not_fit_is_refused(value):
    env = gym.make("DEParamControl-v0", observation=[lambda view: value], **SMALL)
    with pytest.raises(ValueError, match=r"^The observation .* must return"):
        env.reset(seed=0)


def test_names_cannot_change_their_meaning():
    de_gym.register_reward("mine", decades)
    de_gym.register_reward("mine", decades)
    with pytest.raises(ValueError, match="already"):
        de_gym.register_reward("mine", lambda *errors: 0.0)
    with pytest.raises(ValueError, match="already"):
        de_gym.register_reward("log", decades)
    for name in ("fitness", "spent"):
        with pytest.raises(ValueError, match="already"):
            de_gym.register_observation(name, diversity)


def test_registering_what_is_none_is_refused():
    with pytest.raises(TypeError, match="callable"):
        de_gym.register_reward("mine", 3)
    with pytest.raises(TypeError, match="callable"):
        de_gym.register_observation("mine", 3)
    with pytest.raises(ValueError, match="`low` must be a number below `high`"):
        de_gym.register_observation("mine", diversity, low=1, high=1)
    with pytest.raises(TypeError, match="`high` must consist of real numbers, got '2'"):
        de_gym.register_observation("mine", diversity, low=1, high="2")
    with pytest.raises(ValueError, match="`size` must be at least 1"):
        de_gym.register_observation("mine", diversity, size=0)
    with pytest.raises(TypeError, match="must be a string"):
        de_gym.register_reward("", decades)


@pytest.mark.parametrize("table", [REWARDS, FEATURES, SHELLS, BOUND_REPAIRS, ARCHIVE_RULES, STRATEGIES, REPAIRS])
def test_compiled_tables_are_read_only(table):
    with pytest.raises(TypeError):
        table["mine"] = next(iter(table.values()))


def test_compiled_parts_are_no_functions_of_the_user():
    assert find_reward("log") is None
    assert find_observation("fitness", FEATURES) is None


def test_settings_with_functions_travel_to_other_processes():
    settings = EnvSettings(reward=decades, observation=("fitness", diversity))
    assert pickle.loads(pickle.dumps(settings)) == settings
