"""Blocks: the runs of an update in parts that are rolled out and differentiated by themselves, by whichever process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from de_gym.arrays import BoolArray, Float32Array, FloatArray, IntArray

from .policies import UnitBoxLstmPolicy
from .seeding import seed_update
from .stacking import StackedVecEnv
from .tapes import Tape, make_tape
from .workers import Worker, share

Infos: TypeAlias = list[dict[str, Any]]


class BlockedVecEnv(StackedVecEnv):
    """The blocks of an update, one behind the other; what is learned follows from them, not from who computes them."""

    @staticmethod
    def _named(infos: Infos, number: int) -> Infos:
        """Return the infos as they are: runs of different blocks may be compared with each other."""
        return infos


class Step(NamedTuple):
    """One step of B runs; the actions are None where another block, or another process, chose some of them."""

    rewards: Float32Array  # (B,)
    dones: BoolArray  # (B,)
    infos: Infos
    num_clipped: IntArray  # the numbers of each run's action outside of the box, (B,)
    actions: NDArray[np.float32] | None = None  # (B, A)
    clipped_actions: NDArray[np.float32] | None = None  # (B, A)


class Record(NamedTuple):
    """One episode of every run of a block, but for what the gradient needs."""

    reset_infos: Infos
    rewards: Float32Array  # (T, B)
    dones: BoolArray  # (T, B)
    num_clipped: IntArray  # (T, B)
    infos: list[dict[int, dict[str, Any]]]  # of every step, those that are not empty by run


Task: TypeAlias = tuple[int, str, tuple[Any, ...]]
"""Number of a block, and the method that is called with what arguments."""
Gradient: TypeAlias = list[NDArray[np.float32] | None]
"""Of every parameter of the policy, and None for those that the loss does not depend on."""


class Block:
    """Some of an update's runs.

    Everything it draws follows from (root seed, update, number of the block), so that nothing depends on who computes
    it, or on what else that process computes.

    Attributes:
        env: Its runs.
        reset_infos: What the environment said of the runs as their episodes began.
        tape: What the hidden layer did, until it is differentiated.
        actions: As sampled, (T, B, A), once all episodes have ended.
    """

    tape: Tape
    actions: Tensor

    def __init__(self, number: int, env: VecEnv, policy: UnitBoxLstmPolicy) -> None:
        """Let ``policy`` act in ``env``."""
        self.env = env
        self.reset_infos: Infos = []
        self._number = number
        self._policy = policy

    def steps(self, root_seed: int, update: int) -> Iterator[Step]:
        """Roll out one whole episode in every run, in lockstep and without gradients."""
        seed_update(self.env, root_seed, update, self._number)
        observations = self.env.reset()
        # Copied now: runs that restart in the middle of the rollout may get another function. Wrappers of a VecEnv have
        # an empty list of their own, hence `unwrapped`.
        self.reset_infos = list(self.env.unwrapped.reset_infos)
        self.tape = make_tape(self._policy.lstm_actor, self.env.num_envs)
        device = self._policy.device  # asked once: it takes longer to find than it seems
        all_samples = []
        going = np.ones(self.env.num_envs, dtype=bool)
        while going.any():
            with torch.no_grad():
                hidden = self.tape.step(torch.as_tensor(observations, dtype=torch.float32, device=device))
                samples = self._policy.action_distribution(hidden).get_actions()
            all_samples.append(samples)
            actions: NDArray[np.float32] = samples.cpu().numpy()
            clipped_actions = np.clip(actions, 0.0, 1.0)
            observations, rewards, dones, infos = self.env.step(clipped_actions)
            num_clipped = (actions != clipped_actions).sum(axis=1)
            yield Step(rewards, dones, infos, num_clipped, actions, clipped_actions)
            # The network goes on in all rows, because the rounding of its matrix products depends on their number.
            going = going & ~dones
        self.actions = torch.stack(all_samples)

    def record(self, root_seed: int, update: int) -> Record:
        """Roll out one whole episode in every run, and return what became of it."""
        rewards, dones, infos, num_clipped, *_ = zip(*self.steps(root_seed, update), strict=True)
        said = [{run: info for run, info in enumerate(step) if info} for step in infos]
        return Record(self.reset_infos, np.stack(rewards), np.stack(dones), np.stack(num_clipped), said)

    def gradient(self, weights: FloatArray, num_runs: int, clip: bool, through_time: bool) -> tuple[float, Gradient]:
        """Return the block's share of the loss and of its gradient, and forget the episodes.

        Args:
            weights: Factors of the log-probabilities, of as many steps as any block has, (T, B).
            num_runs: The runs of all blocks.
            clip: Whether densities are taken at the clipped action.
            through_time: Whether the gradient flows through the states.
        """
        policy, num_steps = self._policy, len(self.actions)
        factors = torch.as_tensor(weights[:num_steps], dtype=torch.float32, device=policy.device).flatten()
        hidden_states = self.tape.hidden_states().requires_grad_()
        actions = self.actions.clamp(0.0, 1.0) if clip else self.actions
        policy.zero_grad()
        log_probs = policy.action_distribution(hidden_states.flatten(0, 1)).log_prob(actions.flatten(0, 1))
        log_probs.backward(-(torch.ones(()) / num_runs) * factors)  # type: ignore[no-untyped-call]  # torch
        assert hidden_states.grad is not None
        self.tape.backward(hidden_states.grad, through_time=through_time)
        found = [None if entry.grad is None else entry.grad.cpu().numpy() for entry in policy.parameters()]
        policy.zero_grad()
        del self.tape, self.actions  # the next rollout needs the room
        return float(-(factors * log_probs.detach()).sum() / num_runs), found


class Blocks:
    """All runs of an update: a single block, or several that processes share."""

    def __init__(self, env: VecEnv, policy: UnitBoxLstmPolicy) -> None:
        """Let ``policy`` act in ``env``, which is one block unless it is made of several."""
        self.env = env
        self._policy = policy
        parts = env.parts if isinstance(env, BlockedVecEnv) else [env]
        self.all = [Block(number, part, policy) for number, part in enumerate(parts)]
        self._helpers: list[Worker] = []

    @property
    def reset_infos(self) -> Infos:
        """What the environments said of all runs as their episodes began."""
        return [info for block in self.all for info in block.reset_infos]

    def steps(self, root_seed: int, update: int, workers: Sequence[Worker]) -> Iterator[Step]:
        """Yield the steps of all runs: of one block while they happen, of several after they have."""
        if len(self.all) == 1:
            yield from self.all[0].steps(root_seed, update)
            return
        self._helpers = [worker for worker in workers if worker.is_ready()][: len(self.all) - 1]
        weights = {name: tensor.cpu().numpy() for name, tensor in self._policy.state_dict().items()}
        records = self._share("record", [(root_seed, update)] * len(self.all), weights)
        for block, record in zip(self.all, records, strict=True):
            block.reset_infos = record.reset_infos
        self.env.reset_infos = self.reset_infos
        yield from replayed(records)

    def gradient(self, weights: FloatArray, clip: bool, through_time: bool) -> tuple[float, Gradient]:
        """Return the loss and its gradient, the sums over the blocks in their order; see ``Block.gradient``."""
        ends = np.cumsum([block.env.num_envs for block in self.all])
        rows = np.split(weights, ends[:-1], axis=1)
        (loss, total), *others = self._share(
            "gradient", [(part, weights.shape[1], clip, through_time) for part in rows]
        )
        for other_loss, other in others:
            loss += other_loss
            # The same parameters have a gradient in every block.
            total = [mine if its is None else mine + its for mine, its in zip(total, other, strict=True)]
        return loss, total

    def compute(self, weights: Mapping[str, NDArray[np.float32]] | None, tasks: Sequence[Task]) -> list[Any]:
        """Give the policy its weights, unless it has them, and return what methods of some blocks return."""
        if weights is not None:
            self._policy.load_state_dict({name: torch.as_tensor(array) for name, array in weights.items()})
        return [getattr(self.all[number], method)(*arguments) for number, method, arguments in tasks]

    def _share(
        self,
        method: str,
        arguments: Sequence[tuple[Any, ...]],
        weights: Mapping[str, NDArray[np.float32]] | None = None,
    ) -> list[Any]:
        """Return what a method of every block returns, computed by this process and its helpers in turn."""
        tasks: list[Task] = [(number, method, given) for number, given in enumerate(arguments)]
        step = 1 + len(self._helpers)
        requests = [(weights if first else None, tasks[first::step]) for first in range(step)]
        shares = share(self._helpers, "compute", self.compute, requests)
        return [shares[number % step][number // step] for number in range(len(tasks))]


def replayed(records: Sequence[Record]) -> Iterator[Step]:
    """Yield the steps of blocks that were recorded apart; what has ended waits for the others."""
    length = max(len(record.rewards) for record in records)
    starts = np.cumsum([0, *(record.rewards.shape[1] for record in records)]).tolist()
    rewards, dones, num_clipped = (
        np.concatenate([np.pad(array, ((0, length - len(array)), (0, 0))) for array in arrays], axis=1)
        for arrays in zip(*(record[1:4] for record in records), strict=True)
    )
    for step in range(length):
        infos: Infos = [{} for _ in range(starts[-1])]
        for start, record in zip(starts, records, strict=False):
            for run, info in record.infos[step].items() if step < len(record.infos) else ():
                infos[start + run] = info
        yield Step(rewards[step], dones[step], infos, num_clipped[step])
