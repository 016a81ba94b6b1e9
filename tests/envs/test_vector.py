"""The vector environment: equal to single ones bit for bit, autoreset modes, independence of the runs."""

from __future__ import annotations

from typing import NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode

from de_gym import Problem
from de_gym.envs import (
    AdaptiveDEControlEnv,
    AdaptiveDEControlVectorEnv,
    DEParamControlEnv,
    DEParamControlVectorEnv,
)
from de_gym.envs.run_env import RunEnv
from de_gym.envs.run_vector_env import RunVectorEnv

OPTIONS = {"functions": [1, 6, 12, 24], "population_size": 10}


class Family(NamedTuple):
    """An environment in its single and its vector form."""

    id: str
    single: type[RunEnv]
    vector: type[RunVectorEnv]
    action_size: int
    shell: dict[str, str] = {}  # noqa: RUF012  # never changed

    @property
    def options(self) -> dict[str, object]:
        return OPTIONS | self.shell

    def make(self, num_envs: int, **options) -> RunVectorEnv:
        return self.vector(num_envs, **(self.options | options))

    def actions(self, steps: int, num_envs: int):
        return np.random.default_rng(0).random((steps, num_envs, self.action_size)).astype(np.float32)


FAMILIES = [
    Family("DEParamControl-v0", DEParamControlEnv, DEParamControlVectorEnv, 20),
    Family("AdaptiveDEControl-v0", AdaptiveDEControlEnv, AdaptiveDEControlVectorEnv, 15),
    Family("AdaptiveDEControl-v0", AdaptiveDEControlEnv, AdaptiveDEControlVectorEnv, 7, {"shell": "jso"}),
]


@pytest.fixture(params=FAMILIES, ids=lambda family: "-".join([family.id, *family.shell.values()]))
def family(request) -> Family:
    return request.param


def in_python(points):
    return np.abs(points).sum(axis=1)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize("num_envs", [1, 5])
@pytest.mark.parametrize("kind", ["compiled", "python"])
def test_equal_to_gymnasiums_own_vectorisation(family, kind, mode, num_envs):
    options = family.options | {"max_generations": 7}
    if kind == "python":
        problem = Problem.from_function(in_python, -5, 5, 0.0, dimension=10, vectorized=True)
        options = {"problems": [problem], "population_size": 10, "max_generations": 7} | family.shell
    native = family.vector(num_envs, autoreset_mode=mode, **options)
    copies = gym.make_vec(
        family.id,
        num_envs=num_envs,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        **options,
    )
    ours, our_infos = native.reset(seed=5)
    theirs, their_infos = copies.reset(seed=5)
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(our_infos["function"], their_infos["function"])
    for actions in family.actions(20, num_envs):
        our_step, their_step = native.step(actions), copies.step(actions)
        for our_part, their_part in zip(our_step[:4], their_step[:4], strict=True):
            np.testing.assert_array_equal(our_part, their_part)
            assert our_part.dtype == their_part.dtype
        assert_same_infos(our_step[4], their_step[4])


def assert_same_infos(ours: dict, theirs: dict) -> None:
    for key, values in theirs.items():
        if key.startswith("_"):
            np.testing.assert_array_equal(ours[key], values)
        elif key == "final_info":
            assert_same_infos(ours[key], values)
        elif key == "final_obs":
            for our_part, their_part in zip(ours[key], values, strict=True):
                np.testing.assert_array_equal(our_part, their_part)
        else:
            valid = theirs[f"_{key}"]
            np.testing.assert_array_equal(np.asarray(ours[key])[valid], np.asarray(values)[valid])


@pytest.mark.parametrize("num_envs", [1, 3, 8])
def test_run_i_equals_the_single_environment(family, num_envs):
    vector = family.make(num_envs, autoreset_mode="Disabled")
    singles = [family.single(**family.options) for _ in range(num_envs)]
    observations, _ = vector.reset(seed=40)
    for run, single in enumerate(singles):
        np.testing.assert_array_equal(observations[run], single.reset(seed=40 + run)[0])
    for actions in family.actions(15, num_envs):
        observations, rewards, *_, infos = vector.step(actions)
        for run, single in enumerate(singles):
            observation, reward, _, _, info = single.step(actions[run])
            np.testing.assert_array_equal(observations[run], observation)
            assert rewards[run] == reward
            assert infos["best_fitness"][run] == info["best_fitness"]
            np.testing.assert_array_equal(infos["best_position"][run], info["best_position"])


def test_resetting_one_run_leaves_the_others_untouched(family):
    touched, untouched = family.make(3, autoreset_mode="Disabled"), family.make(3, autoreset_mode="Disabled")
    touched.reset(seed=1)
    untouched.reset(seed=1)
    mask = np.array([False, True, False])
    for number, actions in enumerate(family.actions(10, 3)):
        if number == 4:
            touched.reset(seed=99, options={"reset_mask": mask})
        ours, rewards, *_ = touched.step(actions)
        theirs, expected, *_ = untouched.step(actions)
        np.testing.assert_array_equal(ours[~mask], theirs[~mask])
        np.testing.assert_array_equal(rewards[~mask], expected[~mask])
        assert (number < 4) == np.array_equal(ours[mask], theirs[mask])


def test_best_positions_are_where_the_best_fitness_was_found(family):
    envs = family.vector(6, functions=[5, 12], assignment="in_turn", max_generations=4, **family.shell)
    _, infos = envs.reset(seed=0)
    for _ in range(8):  # beyond a restart
        values = envs._problems.evaluate(infos["best_position"][:, None])
        np.testing.assert_array_equal(values[:, 0], infos["best_fitness"])
        *_, infos = envs.step(envs.action_space.sample())


def test_reset_mask_is_not_taken_out_of_the_callers_options(family):
    env = family.make(2, autoreset_mode="Disabled")
    env.reset(seed=0)
    options = {"reset_mask": np.array([True, False])}
    env.reset(options=options)
    assert set(options) == {"reset_mask"}


def test_disabled_mode_refuses_to_step_ended_runs(family):
    env = family.make(2, max_generations=1, autoreset_mode="Disabled")
    env.reset(seed=0)
    env.step(family.actions(1, 2)[0])
    with pytest.raises(ResetNeeded, match=r"Runs \[0, 1\] have ended"):
        env.step(family.actions(1, 2)[0])
    env.reset(options={"reset_mask": np.array([True, True])})
    env.step(family.actions(1, 2)[0])


def sorted_positions(env) -> np.ndarray:
    """Return the points of every run's population in an order that its values do not change."""
    positions = env._state.positions
    return np.sort(positions if positions.ndim == 3 else positions[:, 0], axis=1)


def test_functions_in_turn_and_a_shared_start(family):
    env = family.make(8, assignment="in_turn", shared_start=True)
    for _ in range(2):
        _, infos = env.reset(seed=3)
        assert infos["function"].tolist() == [1, 1, 6, 6, 12, 12, 24, 24]
        positions = sorted_positions(env)
        assert (positions == positions[0]).all()
    before = positions[0]
    env.reset()
    assert not np.array_equal(sorted_positions(env)[0], before)


def test_a_run_that_restarts_alone_keeps_the_shared_start(family):
    env = family.make(4, assignment="in_turn", shared_start=True, autoreset_mode="Disabled")
    env.reset(seed=0)
    start = sorted_positions(env)[1]
    env.step(family.actions(1, 4)[0])
    env.reset(options={"reset_mask": np.array([False, True, False, False])})
    np.testing.assert_array_equal(sorted_positions(env)[1], start)


def test_reset_options_fix_functions_of_all_runs(family):
    env = family.make(3)
    assert env.reset(seed=0, options={"function": 12})[1]["function"].tolist() == [12, 12, 12]
    assert env.reset(seed=0, options={"function": [24, 1, 6]})[1]["function"].tolist() == [24, 1, 6]


def test_made_by_id_natively(family):
    env = gym.make_vec(family.id, num_envs=3, **family.options)
    assert isinstance(env.unwrapped, family.vector)
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP is env.unwrapped.autoreset_mode
    named = gym.make_vec(f"de_gym:{family.id}", num_envs=2, autoreset_mode=AutoresetMode.SAME_STEP, **family.options)
    assert named.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP


def test_a_list_of_actions_is_accepted(family):
    env = family.make(2)
    env.reset(seed=0)
    env.step(list(family.actions(1, 2)[0]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_envs": 0}, "`num_envs` must be at least 1, got 0"),
        ({"num_envs": 3, "assignment": "in_turn"}, r"multiple of the number of functions \(4\).* got 3"),
        ({"num_envs": 2, "assignment": "turns"}, "Unknown assignment 'turns'"),
        ({"num_envs": 2, "autoreset_mode": "Later"}, "Unknown autoreset mode 'Later'"),
        ({"num_envs": 2, "render_mode": "human"}, "Unknown render mode 'human'"),
    ],
)
def test_inconsistent_arguments_are_named(family, options, message):
    with pytest.raises(ValueError, match=message):
        family.make(**options)


def test_bad_seeds_masks_and_actions_are_named(family):
    env = family.make(2, autoreset_mode="Disabled")
    with pytest.raises(ResetNeeded, match="call `reset` first"):
        env.step(family.actions(1, 2)[0])
    with pytest.raises(ResetNeeded, match="call `reset` for all runs first"):
        env.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(ValueError, match="one number or 2 of them, got 3"):
        env.reset(seed=[1, 2, 3])
    env.reset(seed=[1, 2])
    with pytest.raises(ValueError, match=r"boolean array of shape \(2,\), got int64 of shape \(3,\)"):
        env.reset(options={"reset_mask": np.array([1, 0, 1])})
    with pytest.raises(ValueError, match="must select at least one run"):
        env.reset(options={"reset_mask": np.array([False, False])})
    with pytest.raises(ValueError, match=r"shape \(2, \d+\), got \(2, 19\)"):
        env.step(np.zeros((2, 19)))
    with pytest.raises(ValueError, match="one function number or 2"):
        env.reset(options={"function": [1, 6, 12]})
