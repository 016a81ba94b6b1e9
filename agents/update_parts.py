"""An update by two processes: each plays and differentiates a part of the runs, and both sum over all of them.

Runs meet in three places only: in the baseline of their returns, in the noise that is drawn for all of them at once,
and in the sums of the gradient over runs. The first needs rewards alone, the second can be drawn twice, and the sums
are split by weight, not by run. The bits are therefore those of one process, provided that what the network computes
for a run does not depend on how many other runs there are: ``parts_agree`` asks the processor.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor, nn

from .log_probs import learned_moments, loss_factors, moment_gradients
from .lstm import LstmTape, LstmWeights, lstm_weights, sum_products, sum_rows
from .playing import Step, play
from .reinforce import RecurrentREINFORCE, read_groups
from .rows_process import use_rows
from .seeding import seed_update

Infos = dict[tuple[int, int], dict[str, Any]]
"""What is said of the runs that ended, by step and run."""


@dataclass(frozen=True)
class UpdateArrays:
    """What is known of an update, of all runs: T steps at most, B runs; written by two processes, row by row."""

    inputs: Tensor  # of the hidden layer, (T, B, O)
    hidden: Tensor  # before the first step and after each, (T + 1, B, H)
    samples: Tensor  # (T, B, A)
    rewards: Tensor  # (T, B)
    dones: Tensor  # whether the step ended the run's episode, (T, B)
    weights: Tensor  # of the log-probabilities, (T, B)
    log_probs: Tensor  # (T, B)
    moment_grads: Tensor  # derivatives of the loss by means, and by deviations if they are learned, (M, T, B, A)
    gate_grads: Tensor  # derivatives of the loss by the gates, (T, B, 4H)

    @classmethod
    def make(cls, agent: RecurrentREINFORCE, num_steps: int, path: Path | None = None) -> Self:
        """Return the arrays of an agent: new ones, or those in the file ``path``, which is enlarged."""
        assert agent.action_space.shape is not None
        assert agent.observation_space.shape is not None
        runs, actions, cells = agent.n_envs, agent.action_space.shape[0], agent.policy.lstm_actor.hidden_size
        shapes: dict[str, tuple[int, ...]] = {
            "inputs": (num_steps, runs, agent.observation_space.shape[0]),
            "hidden": (num_steps + 1, runs, cells),
            "samples": (num_steps, runs, actions),
            "rewards": (num_steps, runs),
            "dones": (num_steps, runs),
            "weights": (num_steps, runs),
            "log_probs": (num_steps, runs),
            "moment_grads": (1 if agent.policy.std == "constant" else 2, num_steps, runs, actions),
            "gate_grads": (num_steps, runs, 4 * cells),
        }
        ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes.values())]).tolist()
        memory = np.zeros(ends[-1], np.float32) if path is None else _shared_memory(path, ends[-1])
        parts = {
            name: torch.from_numpy(memory[start:end].reshape(shape))
            for (name, shape), start, end in zip(shapes.items(), ends[:-1], ends[1:], strict=True)
        }
        return cls(**parts)

    def clear(self, first: int, rows: slice) -> None:
        """Let nothing be known of ``rows`` from the step ``first`` on."""
        steps = [self.inputs, self.hidden[1:], self.samples, self.rewards, self.dones, self.log_probs, self.gate_grads]
        for array in [*steps, *self.moment_grads]:
            array[first:, rows] = 0

    def active(self, num_steps: int) -> NDArray[np.bool_]:
        """Return whether the run's episode was still going at that step, shape (T, B)."""
        ended = np.cumsum(self.dones[: num_steps - 1].numpy() != 0, axis=0) > 0
        return np.concatenate([np.ones((1, self.dones.shape[1]), bool), ~ended])

    def steps(self, num_steps: int, infos: Infos) -> Iterator[Step]:
        """Yield what ``play`` yielded for all runs."""
        active = self.active(num_steps)
        by_step: dict[int, dict[int, dict[str, Any]]] = {}
        for (number, run), info in infos.items():
            by_step.setdefault(number, {})[run] = info
        for number in range(num_steps):
            actions, ended = self.samples[number].numpy(), by_step.get(number, {})
            yield Step(
                actions=actions,
                clipped_actions=np.clip(actions, 0.0, 1.0),
                rewards=self.rewards[number].numpy(),
                dones=self.dones[number].numpy() != 0,
                infos=[ended.get(run, {}) for run in range(len(actions))] if ended else [{} for _ in actions],
                going=active[number],
            )


def _shared_memory(path: Path, size: int) -> NDArray[np.float32]:
    """Return so many numbers that every process sees which maps the file; an ``OSError`` where there is no room."""
    with path.open("r+b") as file:
        if hasattr(os, "posix_fallocate"):  # without it, a full disk would end the process at some later write
            os.posix_fallocate(file.fileno(), 0, 4 * size)
        else:
            file.truncate(4 * size)
    return np.memmap(path, np.float32, "r+", shape=(size,))


class Part:
    """Plays and differentiates the runs ``rows`` of an agent's updates, into arrays of all runs."""

    def __init__(self, agent: RecurrentREINFORCE, env: VecEnv, rows: slice, arrays: UpdateArrays) -> None:
        """Act on the rows of ``env`` that the agent is trained on."""
        self.rows, self._agent, self._env, self._arrays = rows, agent, env, arrays
        self._process = use_rows(env.unwrapped.vector_env)  # type: ignore[attr-defined]  # of a GymnasiumVecEnv

    def play(self, update: int) -> tuple[int, Infos]:
        """Play one episode of every run; return the number of steps until the last has ended, and what was said."""
        agent, arrays, rows = self._agent, self._arrays, self.rows
        infos: Infos = {}
        assert agent.seed is not None
        assert isinstance(agent.policy.lstm_actor, nn.LSTM)
        seed_update(self._env, agent.seed, update)
        observations = self._env.reset()
        self._tape = LstmTape(agent.policy.lstm_actor, rows.stop - rows.start)
        self._process.rows = rows
        try:
            for number, step in enumerate(play(agent.policy, self._env, self._tape, observations, rows)):
                arrays.samples[number, rows] = torch.from_numpy(step.actions)
                arrays.rewards[number, rows] = torch.from_numpy(step.rewards)
                arrays.dones[number, rows] = torch.from_numpy(step.dones).float()
                infos |= {(number, rows.start + run): step.infos[run] for run in np.flatnonzero(step.dones).tolist()}
        finally:
            self._process.rows = None
        num_steps = number + 1
        arrays.clear(num_steps, rows)
        arrays.inputs[:num_steps, rows] = self._tape.inputs()
        arrays.hidden[1 : num_steps + 1, rows] = self._tape.hidden_states()
        return num_steps, infos

    def differentiate(self) -> None:
        """Write log-probabilities and the derivatives of the loss by everything in which the runs have not yet met."""
        agent, arrays, rows = self._agent, self._arrays, self.rows
        hidden = self._tape.hidden_states().requires_grad_()
        num_steps = len(hidden)
        samples, weights = arrays.samples[:num_steps, rows], arrays.weights[:num_steps, rows]
        actions = samples.clamp(0.0, 1.0) if agent.log_prob_of == "clipped" else samples
        distribution = agent.policy.action_distribution(hidden.flatten(0, 1))
        log_probs, gradients = moment_gradients(
            distribution, actions.flatten(0, 1), loss_factors(weights, agent.n_envs)
        )
        (hidden_grads,) = torch.autograd.grad(learned_moments(distribution), [hidden], gradients)
        gate_grads = self._tape.pop_gate_grads(hidden_grads, through_time=agent.back_propagation == "full")
        arrays.log_probs[:num_steps, rows] = log_probs.view_as(weights)
        for array, gradient in zip(arrays.moment_grads, gradients, strict=True):
            array[:num_steps, rows] = gradient.view_as(actions)
        for number, step_grads in enumerate(reversed(gate_grads)):
            arrays.gate_grads[number, rows] = step_grads


def sum_hidden_weight(agent: RecurrentREINFORCE, arrays: UpdateArrays, num_steps: int) -> Tensor:
    """Return the gradient of the weight from one hidden state to the next: one of two equal shares of the sums."""
    states = list(arrays.hidden[:num_steps])
    weight = _weights(agent).hidden_weight
    return sum_products(_last_first(arrays.gate_grads, num_steps), states, weight)


def sum_others(agent: RecurrentREINFORCE, arrays: UpdateArrays, num_steps: int) -> dict[str, Tensor]:
    """Return the gradients of all other weights by name: the other share."""
    policy = agent.policy
    policy.zero_grad()
    distribution = policy.action_distribution(arrays.hidden[1 : num_steps + 1].flatten(0, 1))
    moment_grads = [array[:num_steps].flatten(0, 1) for array in arrays.moment_grads]
    torch.autograd.backward(learned_moments(distribution), moment_grads)
    weights = _weights(agent)
    gate_grads = _last_first(arrays.gate_grads, num_steps)
    weights.input_weight.grad = sum_products(gate_grads, list(arrays.inputs[:num_steps]), weights.input_weight)
    weights.input_bias.grad = sum_rows(gate_grads, weights.input_bias)
    weights.hidden_bias.grad = weights.input_bias.grad.clone()
    return {name: weight.grad for name, weight in policy.named_parameters() if weight.grad is not None}


def _last_first(array: Tensor, num_steps: int) -> list[Tensor]:
    return list(array[:num_steps])[::-1]  # views: to reverse a tensor copies it


def _weights(agent: RecurrentREINFORCE) -> LstmWeights:
    assert isinstance(agent.policy.lstm_actor, nn.LSTM)
    return lstm_weights(agent.policy.lstm_actor)


def parts_agree(agent: RecurrentREINFORCE, env: VecEnv, num_first: int, arrays: UpdateArrays) -> bool:
    """Return whether an update in two parts has the bits of the same update as a whole, by doing both.

    Args:
        agent: Plays and differentiates by its present weights; nothing is learned.
        env: What it is trained on.
        num_first: Runs in the first part.
        arrays: Of the agent.
    """
    whole = UpdateArrays.make(agent, len(arrays.rewards))
    everything = Part(agent, env, slice(0, agent.n_envs), whole)
    num_steps, _ = everything.play(0)
    rewards, active = whole.rewards[:num_steps].numpy().astype(np.float64), whole.active(num_steps)
    arrays.weights[:num_steps] = whole.weights[:num_steps] = agent.episode_weights(rewards, active, read_groups(env))
    everything.differentiate()
    for rows in (slice(0, num_first), slice(num_first, agent.n_envs)):
        part = Part(agent, env, rows, arrays)
        part.play(0)
        part.differentiate()
    return all(torch.equal(getattr(whole, field.name), getattr(arrays, field.name)) for field in fields(whole))
