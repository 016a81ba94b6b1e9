"""What Gymnasium knows of the environments before and after they are made."""

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

import de_gym  # noqa: F401  # registers

ADAPTIVE = {"functions": [1], "dimension": 2, "max_evaluations": 600}
SMALL = {"functions": [1], "population_size": 8}


def episode_length(env):
    env.reset(seed=0)
    for step in range(1, 1000):
        *_, terminated, truncated, _ = env.step(np.zeros(env.action_space.shape, np.float32))
        if terminated or truncated:
            return step, terminated, truncated
    raise AssertionError


@pytest.mark.parametrize(
    ("env_id", "options", "steps"),
    [
        ("DEParamControl-v0", SMALL, 50),
        ("DEParamControl-v0", SMALL | {"max_generations": 7}, 7),
        ("DEParamControl-v0", SMALL | {"max_generations": None, "max_evaluations": 80}, None),
        ("AdaptiveDEControl-v0", ADAPTIVE, None),
        ("AdaptiveDEControl-v0", ADAPTIVE | {"max_generations": 5}, 5),
    ],
)
def test_spec_says_how_long_an_episode_may_be_where_it_is_known(env_id, options, steps):
    env = gym.make(env_id, **options)
    assert env.spec.max_episode_steps == env.unwrapped.spec.max_episode_steps == steps
    length = episode_length(env)
    if steps is not None:
        assert length == (steps, False, True)
    again = gym.make(env.spec)  # the same, whether Gymnasium counts too or not
    assert again.spec.max_episode_steps == steps
    assert episode_length(again) == length


def test_gymnasiums_own_limit_holds_in_native_vector_environments_too():
    single = gym.make("DEParamControl-v0", max_episode_steps=4, **SMALL)
    assert episode_length(single) == (4, False, True)
    for options in ({"max_episode_steps": 4}, {"max_episode_steps": 9, "max_generations": 4}):
        envs = gym.make_vec("DEParamControl-v0", 2, "vector_entry_point", **SMALL, **options)
        envs.reset(seed=0)
        ended = [envs.step(np.zeros((2, 16)))[3].tolist() for _ in range(4)]
        assert ended == [[False] * 2] * 3 + [[True] * 2]
    with pytest.raises(ValueError, match="`max_episode_steps` must be at least 1, got 0"):
        gym.make_vec("DEParamControl-v0", 2, "vector_entry_point", **SMALL, max_episode_steps=0)


def test_an_environment_is_made_by_its_package_and_id_without_an_import():
    code = "import gymnasium as gym; print(gym.make('de_gym:DEParamControl-v0', functions=[1]).spec.id)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "DEParamControl-v0\n"
