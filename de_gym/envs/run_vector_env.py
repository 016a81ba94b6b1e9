"""RunVectorEnv: R runs of a process, advanced together by compiled code, as a Gymnasium vector environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from de_gym.arrays import BoolArray, Float32Array, FloatArray, IntArray
from de_gym.checks import LARGEST_SIZE, is_several, listed, shown, truth, whole
from de_gym.envs.actions import check_actions
from de_gym.envs.process import Outcome, Process, State
from de_gym.envs.run_env import check_render_mode, draw_start, make_spaces
from de_gym.envs.task import Task, check_options
from de_gym.evolution import scale_to_bounds
from de_gym.evolution.run_arrays import put_runs, take_runs
from de_gym.problems import ProblemBatch
from de_gym.registry import known_name, lookup

# What ``info`` says of a state, in the order in which ``_infos`` finds it, and the names of masks.
_STATE_KEYS = ("best_error", "best_fitness", "best_position", "evaluations", "generation", "function")
_STATE_MASKS = tuple(f"_{key}" for key in _STATE_KEYS)

ASSIGNMENTS = {"random": "random", "in_turn": "in_turn"}


class RunVectorEnv(VectorEnv[Float32Array, Float32Array, NDArray[Any]]):
    """R independent runs of a process in one call; the environments with ids say which process."""

    def __init__(
        self,
        num_envs: int,
        task: Task,
        process: Process,
        autoreset_mode: AutoresetMode | str,
        assignment: str,
        shared_start: bool,
        render_mode: str | None,
    ) -> None:
        """Build R runs of a process on the task's problems."""
        num_envs = whole("num_envs", num_envs, 1, LARGEST_SIZE)
        check_render_mode(render_mode, [])
        self.task = task
        self.process = process
        assignment = known_name("assignment", assignment, ASSIGNMENTS)
        if assignment == "in_turn" and num_envs % len(self.task.problems):
            raise ValueError(
                f"`num_envs` must be a multiple of the number of functions ({len(self.task.problems)}) "
                f"to assign them in turn, got {num_envs}."
            )
        self.num_envs = num_envs
        self.autoreset_mode = _as_autoreset_mode(autoreset_mode)
        self.metadata = {"render_modes": [], "autoreset_mode": self.autoreset_mode}
        self.render_mode = None
        self.single_observation_space, self.single_action_space = make_spaces(process)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._step_masks = tuple(f"_{key}" for key in process.step_figures)
        self._in_turn = assignment == "in_turn"
        self._shared_start = truth("shared_start", shared_start)
        self._rngs: list[np.random.Generator] = []
        self._positions_in_task = np.zeros(num_envs, np.int64)
        self._functions = np.zeros(num_envs, np.int64)
        self._shared_uniforms: FloatArray | None = None
        self._problems: ProblemBatch | None = None
        self._state: State | None = None
        # Kept, because asking the system for fresh memory costs more than copying the actions.
        self._actions = np.empty((num_envs, process.action_size))
        self._ended = np.zeros(0, np.int64)  # runs that wait for their restart

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32Array, dict[str, Any]]:
        """Start new runs: all of them, or those of ``options["reset_mask"]``.

        ``options["function"]`` fixes the function, one number or one per run, and ``options["initial_population"]``
        the start, shape (N, D) or (R, N, D).
        """
        chosen = check_options(options, ("function", "initial_population", "reset_mask"))
        runs = self._runs_to_reset(chosen.get("reset_mask"))
        self._seed_runs(seed, runs)
        if len(runs) == self.num_envs:
            self._shared_uniforms = self._state = None
        self._restart(runs, chosen.get("function"), chosen.get("initial_population"))
        started = self._describe()
        return started.observations, self._infos(started, np.ones(self.num_envs, np.bool_))

    def step(self, actions: ArrayLike) -> tuple[Float32Array, FloatArray, BoolArray, BoolArray, dict[str, Any]]:
        """Run one generation of every run, restarting ended runs as the autoreset mode says."""
        checked, state = check_actions(actions, self._actions, self.process.action_low), self._running_state()
        valid = stepped = np.ones(self.num_envs, np.bool_)
        if len(self._ended):
            if self.autoreset_mode == AutoresetMode.DISABLED:
                ended = self._ended.tolist()
                raise ResetNeeded(f"Runs {ended} have ended: call `reset` with options={{'reset_mask': mask}} first.")
            stepped = valid.copy()
            stepped[self._ended] = False
            outcome = self._restart_some(checked, np.flatnonzero(stepped))
        else:
            assert self._problems is not None
            outcome = self.process.advance(state, self._problems, checked)
        observations, infos = outcome.observations, self._infos(outcome, valid, stepped)
        if outcome.num_ended:
            self._ended = np.flatnonzero(outcome.flags.any(axis=0))
            if self.autoreset_mode == AutoresetMode.SAME_STEP:
                observations, infos = self._restart_ended(observations, infos)
        terminated, truncated = outcome.flags
        return observations, outcome.figures[0], terminated, truncated, infos

    def _runs_to_reset(self, mask: object) -> IntArray:
        """Return the indices of the runs to reset."""
        if mask is None:
            return np.arange(self.num_envs)
        try:
            array = np.asarray(mask)
        except ValueError:  # lists of different lengths
            raise ValueError(f"`reset_mask` must be a boolean array, got {shown(mask)}.") from None
        if array.shape != (self.num_envs,) or array.dtype != np.bool_:
            raise ValueError(
                f"`reset_mask` must be a boolean array of shape {(self.num_envs,)}, "
                f"got {array.dtype} of shape {array.shape}."
            )
        if not array.any():
            raise ValueError("`reset_mask` must select at least one run, got none.")
        if self._state is None and not array.all():
            raise ResetNeeded("`reset_mask` needs running episodes: call `reset` for all runs first.")
        return np.flatnonzero(array)

    def _seed_runs(self, seed: int | Sequence[int | None] | None, runs: IntArray) -> None:
        """Give the runs being reset their generators; without a seed they go on with the ones they have."""
        if seed is None or isinstance(seed, Sequence | np.ndarray):
            seeds = [None] * self.num_envs if seed is None else listed("seed", seed, "whole numbers")
        else:
            seeds = [whole("seed", seed, 0) + run for run in range(self.num_envs)]
        if len(seeds) != self.num_envs:
            raise ValueError(f"`seed` must be one number or {self.num_envs} of them, got {len(seeds)}.")
        if not self._rngs:
            self._rngs = [np_random(run_seed)[0] for run_seed in seeds]
            return
        for run in runs:
            if seeds[run] is not None:
                self._rngs[run] = np_random(seeds[run])[0]

    def _restart(self, runs: IntArray, numbers: object, population: object) -> None:
        """Start new episodes in the given runs and leave all others untouched."""
        task = self.task
        fixed = self._one_per_run(numbers)
        size = self.process.population_size
        uniforms = np.empty((len(runs), size, task.dimension))
        keys = np.empty(len(runs), np.uint64)
        for row, run in enumerate(runs):
            drawn, uniforms[row], keys[row : row + 1] = draw_start(task, self.process, self._rngs[run], fixed[run])
            in_turn = self._in_turn and fixed[run] is None
            self._positions_in_task[run] = run * len(task.problems) // self.num_envs if in_turn else drawn
        if self._shared_start:
            if self._shared_uniforms is None:
                self._shared_uniforms = uniforms[0]
            uniforms = np.broadcast_to(self._shared_uniforms, uniforms.shape)
        self._functions = task.numbers[self._positions_in_task]
        self._problems = ProblemBatch([task.problems[position] for position in self._positions_in_task])
        problems = self._problems if len(runs) == self.num_envs else self._problems.take(runs)
        positions = scale_to_bounds(uniforms, problems.lower, problems.upper)
        if population is not None:
            positions = task.check_initial_population(population, size, self._problems)[runs]
        started = self.process.start(problems, positions, keys)
        if self._state is None:
            self._state = started
        else:
            put_runs(self._state, runs, started)
        self._ended = np.setdiff1d(self._ended, runs)

    def _one_per_run(self, numbers: object) -> list[object]:
        """Return fixed function numbers, one per run; None where the run draws its own."""
        if not is_several(numbers):
            return [numbers] * self.num_envs
        fixed = listed("function", numbers, "function numbers")
        if len(fixed) != self.num_envs:
            raise ValueError(f"`function` must be one function number or {self.num_envs} of them, got {len(fixed)}.")
        return fixed

    def _restart_some(self, actions: FloatArray, others: IntArray) -> Outcome:
        """Restart the ended runs, which get reward 0, and run one generation of all others."""
        state = self._running_state()
        assert self._problems is not None
        advanced = None
        if others.size:
            some = take_runs(state, others)
            advanced = self.process.advance(some, self._problems.take(others), actions[others])
            put_runs(state, others, some)
        self._restart(self._ended, None, None)
        outcome = self._describe()
        if advanced is None:
            return outcome
        outcome.figures[:, others], outcome.flags[:, others] = advanced.figures, advanced.flags
        return outcome._replace(num_ended=advanced.num_ended)

    def _restart_ended(
        self, final_observations: Float32Array, final_infos: dict[str, Any]
    ) -> tuple[Float32Array, dict[str, Any]]:
        """Restart the ended runs at once and report their last observation and info under Gymnasium's keys."""
        ended = np.zeros(self.num_envs, np.bool_)
        ended[self._ended] = True
        kept: NDArray[np.object_] = np.full(self.num_envs, None, dtype=object)
        for run in self._ended:
            kept[run] = final_observations[run]
        self._restart(self._ended, None, None)
        started = self._describe()
        infos = self._infos(started, np.ones(self.num_envs, np.bool_))
        for key, values in final_infos.items():
            if key not in infos:  # what describes a generation is valid for the runs that go on
                infos[key] = values & ~ended if key.startswith("_") else values
        masked = {key: values & ended if key.startswith("_") else values for key, values in final_infos.items()}
        infos |= {"final_obs": kept, "_final_obs": ended, "final_info": masked, "_final_info": ended.copy()}
        return started.observations, infos

    def _describe(self) -> Outcome:
        """Return a description of all runs, and zeros."""
        state = self._running_state()
        assert self._problems is not None
        return self.process.describe(state, self._problems)

    def _running_state(self) -> State:
        if self._state is None:
            raise ResetNeeded("`step` needs running episodes: call `reset` first.")
        return self._state

    def _infos(self, outcome: Outcome, valid: BoolArray, stepped: BoolArray | None = None) -> dict[str, Any]:
        """Return info arrays, each with a mask: ``valid`` for those of a state, ``stepped`` for those of a generation.

        The latter are left out where there was no generation.
        """
        _, *step_figures, best_error, best_fitness = outcome.figures
        state_figures = best_error, best_fitness, outcome.best_positions, *outcome.counts, self._functions.copy()
        infos: dict[str, Any] = dict(zip(_STATE_KEYS, state_figures, strict=True))
        infos |= dict.fromkeys(_STATE_MASKS, valid)
        if stepped is not None:
            infos |= zip(self.process.step_figures, step_figures, strict=True)
            infos |= dict.fromkeys(self._step_masks, stepped)
        return infos


def _as_autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    """Return the mode as Gymnasium's enumeration, accepting its members, values and names."""
    if isinstance(mode, AutoresetMode):
        return mode
    by_name = {member.value: member for member in AutoresetMode} | {member.name: member for member in AutoresetMode}
    return lookup("autoreset mode", mode, by_name)
