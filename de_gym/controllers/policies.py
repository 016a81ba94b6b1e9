"""PolicyController: an agent of any library, with what stood between it and the environment it was trained on.

Nothing here imports a learning library: a policy is known by its methods, a wrapper by its name.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de_gym.arrays import Float32Array, IntArray
from de_gym.checks import shown
from de_gym.controllers.training_envs import TrainingEnv, find_training_env

Actions = NDArray[Any]


class PolicyController:
    """A policy in place of a controller; made by ``from_policy``.

    Attributes:
        population_size: The number of individuals N it was trained for, or None for any.
        env_settings: The settings of its environment that its actions depend on.
        is_residual: Whether its actions adjust an adaptive algorithm, as in ``AdaptiveDEControl-v0``; otherwise they
            set F and CR, as in ``DEParamControl-v0``.
    """

    population_size: int | None

    def __init__(self, memory: _Memory, env: TrainingEnv) -> None:
        """Store a policy behind one of the memories of this module, and where it was trained."""
        self.population_size = env.population_size
        self.env_settings: Mapping[str, Any] = env.settings
        self.is_residual = env.is_residual
        self._env = env
        self._memory = memory

    @property
    def policy(self) -> object:
        """The policy itself."""
        return self._memory.policy

    def reset(self, rngs: Sequence[np.random.Generator]) -> None:
        """Begin ``len(rngs)`` new runs."""
        self._memory.reset(rngs)

    def __call__(self, observations: Float32Array, runs: IntArray | None = None) -> Actions:
        """Return the actions that the environment would have been given, shape (R, A).

        Args:
            observations: What the environment shows of each run, shape (R, O).
            runs: Positions of these runs among those that go on; all of them by default.
        """
        num_runs = len(observations)
        for transform in self._env.observation_transforms:
            observations = transform(observations)
        chosen = self._memory.choose(observations, np.arange(num_runs) if runs is None else runs)
        actions = self._checked(chosen, num_runs)
        for transform in self._env.action_transforms:
            actions = transform(actions)
        return actions

    def keep(self, runs: IntArray) -> None:
        """Go on with only the given runs, in the given order."""
        self._memory.keep(runs)

    def _checked(self, actions: object, num_runs: int) -> Actions:
        """Return the policy's actions as an array; NaN is for the optimiser to find, after all transforms."""
        expected = num_runs, self._env.action_size
        try:
            array = np.asarray(actions)
        except ValueError:  # lists of different lengths
            raise ValueError(f"The policy's actions must have shape {expected}, got {shown(actions)}.") from None
        if array.dtype.kind not in "biuf":
            raise TypeError(f"The policy's actions must be real numbers, got an array of {array.dtype}.")
        if array.shape != expected:
            raise ValueError(
                f"The policy's actions for {num_runs} run(s) must have shape {expected}, got {array.shape}."
            )
        return array


def from_policy(policy: object, env: object = None) -> PolicyController:
    """Return a controller that acts by any policy, for ``minimize``, ``ControlledDE`` and ``AdaptiveDE``.

    >>> import gymnasium as gym, numpy as np, de_gym
    >>> env = gym.make("AdaptiveDEControl-v0", functions=[1], dimension=10)
    >>> controller = from_policy(lambda observations: np.zeros((len(observations), *env.action_space.shape)), env)
    >>> controller.is_residual
    True

    A run's result then depends on its own seed alone as far as the policy's actions for one run depend on that run
    alone. Matrix products of most libraries round differently in batches of different size.

    Args:
        policy: A model of Stable-Baselines3 or sb3-contrib, recurrent or not, which acts by its most likely actions; a
            ``torch.nn.Module`` that maps a tensor of observations to one of actions; or a callable that does so with
            arrays, (R, O) to (R, A). A callable that remembers has ``reset(rngs)`` and ``keep(runs)``, as a
            ``Controller`` has, and is called with (observations, runs) in ``AdaptiveDEControl-v0``.
        env: The environment it was trained on, wrapped as it was then: a Gymnasium environment or vector environment,
            a ``VecEnv`` of Stable-Baselines3, or the environment's settings; by default a model's own.

    Raises:
        TypeError: The policy or the environment is nothing of this.
        ValueError: They do not fit together, or a wrapper does what cannot be done outside an environment.
    """
    if env is None:
        env = policy.get_env() if hasattr(policy, "get_env") else None
        if env is None:
            raise ValueError("`env` must be the environment that the policy was trained on, and the policy has none.")
    found = find_training_env(env)
    acting = _acting_part(policy)
    _check_spaces(acting, found)
    return PolicyController(_make_memory(acting, found), found)


def _acting_part(policy: object) -> object:
    """Return the network of a model: the rest, its environment included, cannot be sent to workers."""
    network = getattr(policy, "policy", None)
    return network if hasattr(policy, "predict") and hasattr(network, "predict") else policy


def _make_memory(policy: Any, env: TrainingEnv) -> _Memory:
    if hasattr(policy, "predict"):
        return _PredictingMemory(policy)
    if hasattr(policy, "state_dict") and hasattr(policy, "forward"):
        return _ModuleMemory(policy)
    if not callable(policy):
        raise TypeError(
            f"`policy` must be a callable, a torch.nn.Module or a model with `predict`, got {type(policy).__name__}."
        )
    if hasattr(policy, "reset") and hasattr(policy, "keep"):
        return _RememberingMemory(policy, env.is_residual)
    return _Memory(policy)


def _check_spaces(policy: object, env: TrainingEnv) -> None:
    """Refuse a policy that says that it was trained on other spaces."""
    for name, ours in (("observation_space", env.observation_space), ("action_space", env.action_space)):
        theirs = getattr(policy, name, None)
        if theirs is not None and ours is not None and theirs != ours:
            raise ValueError(f"The policy was trained with the {name} {theirs}, the environment has {ours}.")


class _Memory:
    """A policy that remembers nothing: a function of observations."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy

    def reset(self, rngs: Sequence[np.random.Generator]) -> None:
        """Begin new runs."""

    def choose(self, observations: Float32Array, runs: IntArray) -> object:
        """Return the policy's actions for the given runs."""
        return self.policy(observations)

    def keep(self, runs: IntArray) -> None:
        """Go on with only the given runs."""


class _RememberingMemory(_Memory):
    """A callable that keeps its own memory of every run."""

    def __init__(self, policy: Any, tells_runs: bool) -> None:
        super().__init__(policy)
        self._tells_runs = tells_runs

    def reset(self, rngs: Sequence[np.random.Generator]) -> None:
        self.policy.reset(rngs)

    def choose(self, observations: Float32Array, runs: IntArray) -> object:
        return self.policy(observations, runs) if self._tells_runs else self.policy(observations)

    def keep(self, runs: IntArray) -> None:
        self.policy.keep(runs)


class _ModuleMemory(_Memory):
    """A ``torch.nn.Module``."""

    def choose(self, observations: Float32Array, runs: IntArray) -> object:
        torch, module = sys.modules["torch"], self.policy
        parameter = next(iter(module.parameters()), None)
        was_training = module.training
        module.eval()
        try:
            with torch.no_grad():
                inputs = torch.as_tensor(observations)
                outputs = module(inputs if parameter is None else inputs.to(parameter))
        except RuntimeError as error:  # torch's, of layers that do not fit
            shape = observations.shape
            raise ValueError(f"The module cannot act on observations of shape {shape}: {error}.") from error
        finally:
            module.train(was_training)
        if not hasattr(outputs, "detach"):
            raise TypeError(f"The module must return one tensor of actions, got {type(outputs).__name__}.")
        return outputs.detach().cpu().numpy()


class _PredictingMemory(_Memory):
    """A policy of Stable-Baselines3; the states of recurrent ones are arrays of shape (layers, R, cells)."""

    def __init__(self, policy: Any) -> None:
        super().__init__(policy)
        self._states: tuple[Actions, ...] | None = None
        self._is_start = True

    def reset(self, rngs: Sequence[np.random.Generator]) -> None:
        self._states, self._is_start = None, True

    def choose(self, observations: Float32Array, runs: IntArray) -> object:
        states = None if self._states is None else tuple(state[:, runs] for state in self._states)
        starts = np.full(len(observations), self._is_start)
        actions, states = self.policy.predict(observations, state=states, episode_start=starts, deterministic=True)
        self._is_start = False
        if self._states is None:
            self._states = states  # the first decision is one about all runs
        elif states is not None:
            for state, part in zip(self._states, states, strict=True):
                state[:, runs] = part
        return actions

    def keep(self, runs: IntArray) -> None:
        if self._states is not None:
            self._states = tuple(state[:, runs] for state in self._states)
