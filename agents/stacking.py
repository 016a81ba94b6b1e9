"""StackedVecEnv: several VecEnvs as one, for runs that cannot share a batch, such as those of different dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn


class StackedVecEnv(VecEnv):
    """The runs of several VecEnvs, one behind the other; all need the same spaces.

    Infos of a reset say under "part" which of them a run belongs to. One that rolls out whole episodes and has ended
    all of them stands still until the next ``reset``, as its runs do.
    """

    def __init__(self, parts: Sequence[VecEnv], numbers: Sequence[int] | None = None) -> None:
        """Put ``parts`` one behind the other, and number them from 0 unless they have ``numbers``."""
        spaces = {str((part.observation_space, part.action_space)) for part in parts}
        if len(spaces) != 1:
            raise ValueError(f"All parts must have the same spaces, got {' and '.join(sorted(spaces))}.")
        self.parts = list(parts)
        self._numbers = list(range(len(self.parts)) if numbers is None else numbers)
        ends = np.cumsum([0, *(part.num_envs for part in parts)]).tolist()
        self._slices = [slice(start, stop) for start, stop in pairwise(ends)]
        super().__init__(ends[-1], parts[0].observation_space, parts[0].action_space)

    def reset(self) -> NDArray[Any]:
        """Begin a new episode in every run; ``reset_infos`` has the infos."""
        observations, infos = [], []
        for number, part, rows in zip(self._numbers, self.parts, self._slices, strict=True):
            own = part.unwrapped
            own._seeds, own._options = self._seeds[rows], self._options[rows]
            observations.append(np.asarray(part.reset()))
            infos += self._named(own.reset_infos, number)
        self.reset_infos = infos
        self._reset_seeds()
        self._reset_options()
        self._observations = observations
        return np.concatenate(observations)

    @staticmethod
    def _named(infos: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
        """Return infos of a reset that say to which part their runs belong."""
        return [info | {"part": number} for info in infos]

    def step_async(self, actions: NDArray[Any]) -> None:
        """Remember the actions of the coming step."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Step all parts that have not ended."""
        rewards, dones = np.zeros(self.num_envs, np.float32), np.zeros(self.num_envs, bool)
        infos: list[dict[str, Any]] = []
        for number, (part, rows) in enumerate(zip(self.parts, self._slices, strict=True)):
            if getattr(part, "has_ended", False):
                infos += [{} for _ in range(part.num_envs)]
                continue
            stepped, rewards[rows], dones[rows], part_infos = part.step(self._actions[rows])
            self._observations[number] = np.asarray(stepped)
            infos += part_infos
        return np.concatenate(self._observations), rewards, dones, infos

    def close(self) -> None:
        """Close all parts."""
        for part in self.parts:
            part.close()

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        """Return an attribute once per index."""
        values = [value for part in self.parts for value in part.get_attr(attr_name)]
        return [values[index] for index in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None) -> None:
        """Set an attribute of all parts; ``indices`` must be None."""
        for part in self.parts:
            part.set_attr(attr_name, value, indices)

    def env_method(
        self, method_name: str, *method_args: Any, indices: int | Iterable[int] | None = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of every part and return its results, once per index."""
        values = [value for part in self.parts for value in part.env_method(method_name, *method_args, **method_kwargs)]
        return [values[index] for index in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type[Any], indices: int | Iterable[int] | None = None) -> list[bool]:
        """Return whether single environments are wrapped."""
        values = [value for part in self.parts for value in part.env_is_wrapped(wrapper_class)]
        return [values[index] for index in self._get_indices(indices)]
