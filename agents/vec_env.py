"""Natively batched Gymnasium ``VectorEnv``s as the ``VecEnv`` that Stable-Baselines3 asks for.

``GymnasiumVecEnv`` restarts ended runs at once, as every SB3 algorithm expects; in ``WholeEpisodeVecEnv`` they wait
for the next reset, which is all that an algorithm needs that rolls out whole episodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv


class GymnasiumVecEnv(VecEnv):
    """Steps a Gymnasium ``VectorEnv`` exactly as SB3's ``DummyVecEnv`` would step its single environments.

    Only same-step autoreset can be translated: SB3 expects the first observation of the next episode together
    with the last reward of the old one, and the old episode's last observation in its info.
    """

    autoreset_mode: ClassVar[AutoresetMode] = AutoresetMode.SAME_STEP

    def __init__(self, vector_env: gym.vector.VectorEnv[Any, Any, Any]) -> None:
        """Adapt ``vector_env``, which must have the ``autoreset_mode`` of this class."""
        mode = vector_env.metadata.get("autoreset_mode")
        if mode is not self.autoreset_mode:
            raise ValueError(
                f"{type(self).__name__} needs a vector env with `autoreset_mode` {self.autoreset_mode}, got {mode}."
            )
        self.vector_env = vector_env
        super().__init__(vector_env.num_envs, vector_env.single_observation_space, vector_env.single_action_space)

    def reset(self) -> NDArray[np.float32]:
        """Begin a new episode in every run and return the observations (R, O); ``reset_infos`` has the infos."""
        seeds = None if self._seeds[0] is None else self._seeds
        options = self._options[0] or None
        if any(other != self._options[0] for other in self._options):
            raise ValueError("A vector env takes one dictionary of reset options for all runs, got different ones.")
        observations, infos = self.vector_env.reset(seed=seeds, options=options)  # type: ignore[arg-type]  # a list is allowed
        self.reset_infos = _split_infos(infos, self.num_envs)
        self._reset_seeds()
        self._reset_options()
        return np.array(observations)

    def step_async(self, actions: NDArray[np.float32]) -> None:
        """Remember the actions (R, A) of the coming step."""
        self._actions = actions

    def step_wait(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Take the step; return observations, rewards, which episodes ended, and one info per run."""
        observations, rewards, terminated, truncated, batch_infos = self.vector_env.step(self._actions)
        ended = np.logical_or(terminated, truncated)
        infos = _split_infos(batch_infos, self.num_envs)
        if ended.any():
            final_infos = _split_infos(batch_infos["final_info"], self.num_envs)
            for run in np.flatnonzero(ended):
                self.reset_infos[run] = infos[run]
                infos[run] = final_infos[run] | {"terminal_observation": batch_infos["final_obs"][run]}
        for info, cut in zip(infos, np.logical_and(truncated, ~terminated).tolist(), strict=True):
            info["TimeLimit.truncated"] = cut
        # SB3 keeps rewards in single precision everywhere; the conversion is here so that it happens once.
        return np.array(observations), rewards.astype(np.float32), ended, infos

    def close(self) -> None:
        """Close the vector env."""
        self.vector_env.close()

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        """Return the vector env's attribute once per index: all runs share it."""
        return [getattr(self.vector_env, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None) -> None:
        """Set an attribute of the vector env, which all runs share; ``indices`` must therefore be None."""
        if indices is not None:
            raise ValueError(f"Attribute {attr_name!r} is shared by all runs; `indices` must be None, got {indices}.")
        setattr(self.vector_env, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: int | Iterable[int] | None = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call the vector env's method once and return its result once per index."""
        result = getattr(self.vector_env, method_name)(*method_args, **method_kwargs)
        return [result] * len(list(self._get_indices(indices)))

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: int | Iterable[int] | None = None
    ) -> list[bool]:
        """Return False for every index: single-env wrappers cannot stand around a run of a batch."""
        return [False] * len(list(self._get_indices(indices)))

    def get_images(self) -> list[Any]:
        """Return one picture per run."""
        return list(self.vector_env.render() or ())


class WholeEpisodeVecEnv(GymnasiumVecEnv):
    """Runs one episode in every run; a run that has ended stands still until the next ``reset``.

    While it waits, its observation stays the last one, its reward is 0, it does not end again, and its actions are
    ignored. No run is therefore restarted only to be thrown away when the last one ends. Infos are made of runs that
    end, and are empty otherwise.
    """

    autoreset_mode: ClassVar[AutoresetMode] = AutoresetMode.DISABLED

    @property
    def has_ended(self) -> bool:
        """Whether the episodes of all runs have ended."""
        return bool(self._waiting.all())

    def reset(self) -> NDArray[np.float32]:
        """Begin a new episode in every run and return the observations (R, O); ``reset_infos`` has the infos."""
        self._observations = super().reset()
        self._waiting = np.zeros(self.num_envs, dtype=bool)
        self._ended_inside = self._waiting
        return self._observations.copy()

    def step_wait(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Take the step; return observations, rewards, which episodes ended, and one info per run."""
        if self.has_ended:
            raise ResetNeeded("The episodes of all runs have ended: call `reset` first.")
        if self._ended_inside.any():
            # The vector env steps all of its runs or none; what the restarted ones do is seen by nobody.
            self.vector_env.reset(options={"reset_mask": self._ended_inside})
        stepped, rewards, terminated, truncated, batch_infos = self.vector_env.step(self._actions)
        self._ended_inside = np.logical_or(terminated, truncated)
        going = ~self._waiting
        self._observations = np.where(going[:, None], stepped, self._observations)
        ended = self._ended_inside & going
        self._waiting = self._waiting | ended
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        runs = np.flatnonzero(ended)
        if len(runs):
            last = _split_infos({key: values[runs] for key, values in batch_infos.items()}, len(runs))
            for run, info in zip(runs, last, strict=True):
                cut = bool(truncated[run] and not terminated[run])
                infos[run] = info | {"terminal_observation": stepped[run], "TimeLimit.truncated": cut}
        return self._observations.copy(), np.where(going, rewards, 0.0).astype(np.float32), ended, infos


def _split_infos(infos: dict[str, Any], num_envs: int) -> list[dict[str, Any]]:
    """Return one dictionary per run from Gymnasium's dictionary of arrays and masks (``_key`` masks ``key``)."""
    keys = [key for key in infos if not key.startswith("_") and key not in ("final_obs", "final_info")]
    # Python scalars, as a single env returns them; rows of matrices stay arrays.
    columns = [infos[key].tolist() if infos[key].ndim == 1 else infos[key] for key in keys]
    masks = np.stack([infos[f"_{key}"] for key in keys])  # (keys, R)
    everywhere: list[bool] = np.all(masks, axis=0).tolist()
    split = [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]
    for run in range(num_envs):
        if not everywhere[run]:
            split[run] = {key: split[run][key] for key, valid in zip(keys, masks[:, run], strict=True) if valid}
    return split
