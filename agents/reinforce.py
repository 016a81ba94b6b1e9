"""RecurrentREINFORCE: the paper's policy gradient over whole episodes, as a Stable-Baselines3 algorithm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Self

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, Schedule
from stable_baselines3.common.vec_env import VecEnv

from de_gym.arrays import BoolArray, FloatArray, IntArray

from .blocks import Blocks
from .collapse import CollapseGuard
from .episodes import BaselineKind, ReturnKind, policy_gradient_weights
from .policies import UnitBoxLstmPolicy
from .workers import Worker


@dataclass(frozen=True)
class Rollout:
    """One episode of every run: what the update needs, but for what the blocks keep for its gradient."""

    rewards: FloatArray  # (T, B)
    active: BoolArray  # whether the run's episode was still going at that step, (T, B)
    groups: IntArray  # the function of each run, (B,)
    clipped_share: float  # of all sampled numbers, those outside of the box


PAPER_RECIPE: Mapping[str, Any] = MappingProxyType({"gamma": 1.0, "returns": "total", "baseline": "none"})
"""Arguments of ``RecurrentREINFORCE`` that make it the paper's algorithm, which needs far more episodes."""


class RecurrentREINFORCE(OnPolicyAlgorithm):
    """REINFORCE for recurrent policies: roll out one whole episode in every run, then take one gradient step.

    The objective is the mean over runs of sum_t w_t log pi(a_t | s_1 .. s_t), where w_t is the return (see
    ``returns`` and ``baseline``) and the log-probability is summed over the numbers of an action. With M functions
    of L runs each this is the paper's estimator divided by M, a constant that Adam removes.

    The defaults learn; ``PAPER_RECIPE`` holds the paper's own.

    Every update draws from generators seeded by (seed, number of the update) alone. Training can therefore be
    stopped after any update and continued from weights, optimiser and counters, with identical results. Where the
    environment is a ``BlockedVecEnv``, its blocks also have seeds of their own, and their gradients are added.

    Attributes:
        workers: Processes that compute some of the blocks, as ``Blocks.compute`` does; they change no bit.
    """

    policy: UnitBoxLstmPolicy
    workers: Sequence[Worker] = ()

    def __init__(
        self,
        policy: str | type[UnitBoxLstmPolicy],
        env: GymEnv | str,
        learning_rate: float | Schedule = 0.005,
        *,
        gamma: float = 0.9,
        returns: ReturnKind = "to_go",
        baseline: BaselineKind = "standardised",
        back_propagation: Literal["full", "stored"] = "full",
        log_prob_of: Literal["sample", "clipped"] = "sample",
        max_grad_norm: float | None = 1.0,
        collapse_patience: int = 3,
        stats_window_size: int = 100,
        tensorboard_log: str | None = None,
        policy_kwargs: dict[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: torch.device | str = "cpu",
        _init_setup_model: bool = True,
    ) -> None:
        """Store the choices and build the policy.

        Args:
            policy: "UnitBoxLstmPolicy", or that class or a subclass.
            env: Environments that run in lockstep; ``info["function"]`` of a reset (and ``info["part"]`` of a
                ``StackedVecEnv``) groups them for the baseline. In a ``WholeEpisodeVecEnv`` ended runs cost no restart.
            learning_rate: Step size of Adam.
            gamma: Discount factor; 1 in the paper.
            returns: "to_go", the reward after a step, or "total", the whole episode's return for every step (paper).
            baseline: "none" (paper); "function": the mean over the runs of the same function and step, or over all
                runs whose function no other has; "standardised": the same, and divided by the group's deviation.
            back_propagation: "full" through all steps, or "stored": recorded states are constants (script).
            log_prob_of: The "sample" itself, or the "clipped" value that the environment sees (script; biased).
            max_grad_norm: Largest norm of the gradient; longer ones are scaled down. None: no limit.
            collapse_patience: Suspicious updates in a row that end the training; 0 never ends it.
            stats_window_size: Number of episodes in the logged means of SB3.
            tensorboard_log: Folder of the TensorBoard logs, or None.
            policy_kwargs: Arguments of the policy.
            verbose: 0 silent, 1 information, 2 debugging.
            seed: Root seed; None draws one.
            device: Where the network is computed.
            _init_setup_model: Whether to build the network at once; SB3 needs it for loading.
        """
        _check_choice("returns", returns, ("total", "to_go"))
        _check_choice("baseline", baseline, ("none", "function", "standardised"))
        _check_choice("back_propagation", back_propagation, ("full", "stored"))
        _check_choice("log_prob_of", log_prob_of, ("sample", "clipped"))
        self.returns = returns
        self.baseline = baseline
        self.back_propagation = back_propagation
        self.log_prob_of = log_prob_of
        self.collapse_guard = CollapseGuard(collapse_patience)
        self._blocks: Blocks | None = None
        self._rollout: Rollout | None = None
        super().__init__(
            policy,
            env,
            learning_rate=learning_rate,
            n_steps=1,  # unused: a rollout lasts until every run has ended its episode
            gamma=gamma,
            gae_lambda=1.0,
            ent_coef=0.0,
            vf_coef=0.0,
            max_grad_norm=float("inf") if max_grad_norm is None else max_grad_norm,
            use_sde=False,
            sde_sample_freq=-1,
            stats_window_size=stats_window_size,
            tensorboard_log=tensorboard_log,
            policy_kwargs=policy_kwargs,
            verbose=verbose,
            seed=int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed,
            device=device,
            _init_setup_model=_init_setup_model,
            supported_action_spaces=(spaces.Box,),
        )
        if baseline != "none" and self.env is not None and self.n_envs < 2:
            raise ValueError(
                f"`baseline` {baseline!r} compares the runs of an update with each other, so `env` must have at least "
                f"2 of them (see `make_vec_env` or `WholeEpisodeVecEnv`), got {self.n_envs}; or choose 'none'."
            )

    policy_aliases = {"UnitBoxLstmPolicy": UnitBoxLstmPolicy}  # noqa: RUF012  # the form SB3 asks for

    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, rollout_buffer: RolloutBuffer, n_rollout_steps: int
    ) -> bool:
        """Roll out one whole episode in every run, in lockstep and without gradients.

        Args:
            env: The training environments; they are reset first.
            callback: Called at every step; may end the training.
            rollout_buffer: Unused: it holds critic values, and cuts episodes.
            n_rollout_steps: Unused: episodes are whole.

        Returns:
            Whether training goes on.
        """
        self.policy.set_training_mode(False)
        callback.on_rollout_start()
        assert self.seed is not None
        if self._blocks is None or self._blocks.env is not env:
            self._blocks = Blocks(env, self.policy)
        going = np.ones(env.num_envs, dtype=bool)
        all_rewards, all_active, all_clipped = [], [], []
        timesteps_before = self.num_timesteps
        for step in self._blocks.steps(self.seed, self._n_updates, self.workers):
            rewards, dones, infos, num_clipped, actions, clipped_actions = step  # callbacks know them by these names
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            if not callback.on_step():
                # Nobody learns from this: a training that goes on later must count as one that never stopped.
                self.num_timesteps = timesteps_before
                return False
            # What follows the end of a run's episode is neither reported nor learned from.
            ended = np.flatnonzero(going & dones)
            self._update_info_buffer([infos[run] for run in ended], dones[ended])
            all_rewards.append(rewards.astype(np.float64))
            all_active.append(going)
            all_clipped.append(num_clipped)
            going = going & ~dones
        active, reset_infos = np.stack(all_active), self._blocks.reset_infos
        groups = _group_numbers([(info.get("part", 0), info.get("function", 0)) for info in reset_infos])
        clipped_share = float(np.stack(all_clipped)[active].mean() / np.prod(self.action_space.shape or ()))
        self._rollout = Rollout(np.stack(all_rewards), active, groups, clipped_share)
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def train(self) -> None:
        """Take one step of gradient ascent on the episodes just collected."""
        assert self._rollout is not None
        rollout, self._rollout = self._rollout, None
        largest_reward = float(np.abs(rollout.rewards[rollout.active]).max())
        self.collapse_guard.check_rollout(largest_reward=largest_reward, clipped_share=rollout.clipped_share)

        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        loss = self.set_gradient(rollout)
        parameters = [parameter for parameter in self.policy.parameters() if parameter.grad is not None]
        gradient_norm = torch.nn.utils.clip_grad_norm_(parameters, self.max_grad_norm).item()
        self.collapse_guard.check_update(loss=loss, gradient_norm=gradient_norm)
        self.policy.optimizer.step()
        self._n_updates += 1

        episode_returns = np.where(rollout.active, rollout.rewards, 0.0).sum(axis=0)
        self.logger.record("rollout/return", float(episode_returns.mean()))
        self.logger.record("train/loss", loss)
        self.logger.record("train/gradient_norm", gradient_norm)
        self.logger.record("rollout/clipped_share", rollout.clipped_share)
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")

    def set_gradient(self, rollout: Rollout) -> float:
        """Set every ``grad`` of the policy to the gradient of the loss, return the loss."""
        assert self._blocks is not None
        weights = policy_gradient_weights(
            rollout.rewards,
            rollout.active,
            rollout.groups,
            kind=self.returns,
            gamma=self.gamma,
            baseline=self.baseline,
        )
        clip, through_time = self.log_prob_of == "clipped", self.back_propagation == "full"
        loss, gradient = self._blocks.gradient(weights, clip, through_time)
        for parameter, grad in zip(self.policy.parameters(), gradient, strict=True):
            parameter.grad = None if grad is None else torch.as_tensor(grad, device=self.device)
        return loss

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 1,
        tb_log_name: str = "RecurrentREINFORCE",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Self:
        """Train until at least ``total_timesteps`` environment steps are done; see SB3's ``learn``."""
        super().learn(total_timesteps, callback, log_interval, tb_log_name, reset_num_timesteps, progress_bar)
        return self

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_blocks", "_rollout", "workers"]


def _group_numbers(functions: list[Any]) -> IntArray:
    """Return a number for each run, equal for runs of the same function; those that stand alone are one group.

    >>> _group_numbers(["f2", "f1", "f2", "f1"]), _group_numbers(["f3", "f1", "f4", "f1"])
    (array([1, 0, 1, 0]), array([3, 0, 3, 0]))
    """
    names, numbers, counts = np.unique(
        [str(function) for function in functions], return_inverse=True, return_counts=True
    )
    return np.where(counts[numbers] == 1, len(names), numbers).astype(np.int64)


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, choices))}, got {value!r}.")
