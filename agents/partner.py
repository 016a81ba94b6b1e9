"""A second process that does its part of every update, bit for bit, so that two cores train faster than one."""

from __future__ import annotations

import os
import signal
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib.externals.loky.backend import get_context
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from de_gym.arrays import IntArray

from .config import TrainConfig
from .playing import Step
from .reinforce import RecurrentREINFORCE, read_groups
from .shared_updates import SharedUpdate
from .training import episode_length, make_agent, make_training_env, num_cores, num_training_functions
from .update_parts import Infos, Part, UpdateArrays, parts_agree, sum_hidden_weight, sum_others

# Below so many individuals and generations, a training ends about when the second process has started.
_WORTH_PROCESS = 20_000_000
# A little more than half: the first process also reports every step to the callbacks, and takes the optimiser's step.
_PARTNERS_SHARE = 0.54


class PartnerLostError(RuntimeError):
    """The second process has ended."""


def wants_partner(config: TrainConfig) -> bool:
    """Return whether a second process can help a training, and is worth it."""
    is_divisible = config.agent == "reinforce" and config.network == "lstm" and config.threads == 1
    is_own = config.problems is not None and ":" in config.problems  # whose functions may remember their calls
    if not is_divisible or is_own or config.dimensions or num_cores(config) == 1:
        return False
    runs = num_training_functions(config) * config.episodes_per_function
    return config.updates * runs * episode_length(config) * config.population_size >= _WORTH_PROCESS


@contextmanager
def partnered(config: TrainConfig, agent: OnPolicyAlgorithm, env: VecEnv) -> Iterator[None]:
    """Give an agent a second process for as long as it is trained, where that is worth it."""
    if not (isinstance(agent, RecurrentREINFORCE) and wants_partner(config)):
        yield
        return
    try:
        partner = agent.partner = SecondProcess(config, agent, env)
    except OSError as error:
        warnings.warn(f"The training goes on in one process: {error}.", RuntimeWarning, stacklevel=2)
        yield
        return
    try:
        yield
    finally:
        agent.partner = None
        partner.close()


class PartnersUpdate(SharedUpdate):
    """An update that a partner takes part in."""

    def __init__(self, partner: SecondProcess, update: int, played: tuple[int, Infos], groups: IntArray) -> None:
        """Store what is known of the episodes: their steps, what was said of runs that ended, runs' functions."""
        self._partner, self._update, self._played, self.groups = partner, update, played, groups

    def steps(self) -> Iterator[Step]:
        """Yield the steps of all runs."""
        return self._partner.arrays.steps(*self._played)

    def backward(self) -> Tensor | None:
        """Add the gradient of the loss to every ``grad`` of the policy, and return the log-probabilities (T, B)."""
        num_steps, _ = self._played
        try:
            self._partner.backward(self._update, num_steps)
        except PartnerLostError:
            return None
        return self._partner.arrays.log_probs[:num_steps].clone()


class SecondProcess:
    """The second process and this one's part of the work; a training is the same without it, at any update."""

    def __init__(self, config: TrainConfig, agent: RecurrentREINFORCE, env: VecEnv) -> None:
        """Start the process, which is ready at some later update."""
        self._agent, self._env = agent, env
        folder = "/dev/shm" if Path("/dev/shm").is_dir() else None  # memory, not a disk
        number, name = tempfile.mkstemp(prefix="de_gym-", dir=folder)
        os.close(number)
        self._path = Path(name)
        try:
            self.arrays = UpdateArrays.make(agent, episode_length(config), self._path)
            self._part = Part(agent, env, slice(0, agent.n_envs), self.arrays)
            self._start(config)
        except BaseException:
            self._path.unlink(missing_ok=True)
            raise

    def _start(self, config: TrainConfig) -> None:
        context = get_context("loky")  # a fork would inherit locks of torch's threads; spawn would run the main script
        self._connection, theirs = context.Pipe()
        half = replace(config, cores=max(num_cores(config) // 2, 1), seeds=())
        self._process = context.Process(target=_serve, args=(half, self._path, theirs), daemon=True)
        with _without_interrupts():
            self._process.start()
        theirs.close()
        self.is_ready = self.is_lost = False

    def play(self, update: int) -> SharedUpdate | None:
        """Play the episodes of an update together; None where this process has to do it alone."""
        try:
            if not self._can_help():
                return None
            weights = {name: weight.numpy() for name, weight in self._agent.policy.state_dict().items()}
            self._send("play", update, weights)
            num_steps, infos = self._part.play(update)
            groups = read_groups(self._env)
            their_steps, their_infos = self._answer("played", update)
            num_steps = max(num_steps, their_steps)
            self._begin_learning(update, num_steps, groups)
        except PartnerLostError:
            return None
        return PartnersUpdate(self, update, (num_steps, infos | their_infos), groups)

    def _begin_learning(self, update: int, num_steps: int, groups: IntArray) -> None:
        """Let the other process go on before the callbacks are told of the steps."""
        arrays = self.arrays
        rewards = arrays.rewards[:num_steps].numpy().astype(np.float64)
        arrays.weights[:num_steps] = self._agent.episode_weights(rewards, arrays.active(num_steps), groups)
        self._send("differentiate", update)

    def backward(self, update: int, num_steps: int) -> None:
        """Add the gradient of the loss to every ``grad`` of the agent's policy."""
        self._part.differentiate()
        self._answer("differentiated", update)
        self._send("sum", update, num_steps)
        hidden_weight_grad = sum_hidden_weight(self._agent, self.arrays, num_steps)
        gradients = self._answer("summed", update)
        lstm_name = "lstm_actor.weight_hh_l0"
        for name, weight in self._agent.policy.named_parameters():
            if name == lstm_name or name in gradients:
                gradient = hidden_weight_grad if name == lstm_name else torch.from_numpy(gradients[name])
                weight.grad = gradient if weight.grad is None else weight.grad.add_(gradient)

    def wait(self) -> bool:
        """Wait until the other process has started, and return whether it can help."""
        try:
            if not self.is_ready and not self.is_lost:
                self._take_ready(self._answer("ready", 0))
        except PartnerLostError:
            return False
        return self.is_ready

    def _can_help(self) -> bool:
        if not self.is_ready and not self.is_lost and self._connection.poll():
            self.wait()
        return self.is_ready and not self.is_lost

    def _take_ready(self, partners_runs: int) -> None:
        self._path.unlink(missing_ok=True)  # both have it; nothing is left behind by a kill
        self._part.rows = slice(partners_runs, self._agent.n_envs)
        self.is_ready = partners_runs > 0
        if not self.is_ready:
            self.close()
            warnings.warn(
                "The training goes on in one process: on this processor, the network's results for some of the runs "
                "differ in their last bits from those for all of them at once.",
                RuntimeWarning,
                stacklevel=4,
            )

    def _send(self, kind: str, update: int, content: object = None) -> None:
        try:
            self._connection.send((kind, update, content))
        except OSError:
            self._lose()

    def _answer(self, kind: str, update: int) -> Any:
        """Return the content of an answer; those to questions that nobody waits for any more are dropped."""
        try:
            while True:
                *of, content = self._connection.recv()
                if of == [kind, update]:
                    return content
        except (EOFError, OSError):
            self._lose()

    def _lose(self) -> None:
        if not self.is_lost:
            self.close()
            warnings.warn(
                "The second process of the training has ended; the training goes on in one, with the same results.",
                RuntimeWarning,
                stacklevel=4,
            )
        raise PartnerLostError

    def close(self) -> None:
        """End the process."""
        self.is_lost = True
        self._connection.close()
        self._process.terminate()
        self._process.join()
        self._path.unlink(missing_ok=True)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Keep Ctrl-C from processes that are started meanwhile: it is for the training, which ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def partners_runs(num_runs: int) -> list[int]:
    """Return how many runs, the first ones, the second process may take, best first.

    Compiled loops over numbers compute a few at once, and those that are left over in another way. What is left over
    is the same where all numbers before are a multiple of what is computed at once.

    >>> partners_runs(400), partners_runs(120), partners_runs(80)
    ([216, 208, 224], [64], [40, 48, 32])
    """
    wanted = _PARTNERS_SHARE * num_runs
    choices = dict.fromkeys(multiple * round(wanted / multiple) for multiple in (8, 16, 32))
    return [choice for choice in choices if 0 < choice < num_runs]


def _serve(config: TrainConfig, path: Path, connection: Connection) -> None:
    """Do the second part of updates until the first process has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where it could not be kept from us
    torch.set_num_threads(1)
    env = make_training_env(config)
    agent = make_agent(config, env)
    assert isinstance(agent, RecurrentREINFORCE)
    arrays = UpdateArrays.make(agent, episode_length(config), path)
    try:
        for answer in _answers(connection, agent, env, arrays):
            connection.send(answer)
    except (EOFError, OSError):  # the first process has ended
        return


def _answers(
    connection: Connection, agent: RecurrentREINFORCE, env: VecEnv, arrays: UpdateArrays
) -> Iterator[tuple[str, int, object]]:
    """Yield what the first process asks for: kind of the answer, update, content."""
    found = (runs for runs in partners_runs(agent.n_envs) if parts_agree(agent, env, runs, arrays))
    part = Part(agent, env, slice(0, next(found, 0)), arrays)
    yield "ready", 0, part.rows.stop
    while True:
        kind, update, content = connection.recv()
        if kind == "play":
            agent.policy.load_state_dict({name: torch.from_numpy(array) for name, array in content.items()})
            yield "played", update, part.play(update)
        elif kind == "differentiate":
            part.differentiate()
            yield "differentiated", update, None
        else:
            gradients = sum_others(agent, arrays, num_steps=content)
            yield "summed", update, {name: gradient.numpy() for name, gradient in gradients.items()}
