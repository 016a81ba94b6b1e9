"""RunEnv: one run of a process per episode, as a Gymnasium environment."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box
from numpy.typing import ArrayLike, NDArray

from de_gym.arrays import Float32Array, FloatArray
from de_gym.checks import shown
from de_gym.envs.actions import check_actions
from de_gym.envs.process import Outcome, Process, State
from de_gym.envs.rendering import RunPicture, Window, new_figure, to_pixels
from de_gym.envs.task import Task, check_options
from de_gym.evolution import draw_keys, draw_uniforms, scale_to_bounds
from de_gym.machine.streams import KeyArray
from de_gym.problems import ProblemBatch


class RunEnv(gym.Env[Float32Array, Float32Array]):
    """One run of a process per episode; the environments with ids say which process."""

    metadata = {"render_modes": ["human", "rgb_array"], "render_fps": 10}  # noqa: RUF012  # Gymnasium's declaration

    def __init__(self, task: Task, process: Process, render_mode: str | None) -> None:
        """Build the environment around a process on the task's problems."""
        check_render_mode(render_mode, self.metadata["render_modes"])
        self.task = task
        self.process = process
        self._spec: EnvSpec | None = None
        self.observation_space, self.action_space = make_spaces(process)
        self.render_mode = render_mode
        self._problems: ProblemBatch | None = None
        self._state: State | None = None
        self._actions = np.empty((1, process.action_size))
        self._function = 0
        self._picture: RunPicture | None = None
        self._window: Window | None = None

    @property
    def spec(self) -> EnvSpec | None:
        """What Gymnasium made the environment from; the length of an episode is said where a limit is known."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        if spec is not None and spec.max_episode_steps is None:
            spec.max_episode_steps = self.process.settings.max_generations
        self._spec = spec

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32Array, dict[str, Any]]:
        """Start a new run; see Starting State."""
        super().reset(seed=seed)
        chosen = check_options(options, ("function", "initial_population"))
        self._state = None
        index, uniforms, keys = draw_start(self.task, self.process, self.np_random, chosen.get("function"))
        self._function = int(self.task.numbers[index])
        self._problems = ProblemBatch([self.task.problems[index]])
        if "initial_population" in chosen:
            size = self.process.population_size
            positions = self.task.check_initial_population(chosen["initial_population"], size, self._problems)
        else:
            positions = scale_to_bounds(uniforms[None], self._problems.lower, self._problems.upper)
        self._state = self.process.start(self._problems, positions, keys)
        started = self.process.describe(self._state, self._problems)
        *_, best_error, best_fitness = started.figures[:, 0].tolist()
        if self.render_mode is not None:
            self._picture = RunPicture(self.task.problems[index])
            self._picture.record(self.process.populations(self._state), best_error)
            self._render_if_human()
        return started.observations[0], self._info(started, best_error, best_fitness)

    def step(self, action: ArrayLike) -> tuple[Float32Array, float, bool, bool, dict[str, Any]]:
        """Run one generation with the given action."""
        if self._state is None or self._problems is None:
            raise ResetNeeded("`step` needs a running episode: call `reset` first.")
        actions, state, process = self._actions, self._state, self.process
        check_actions(action, actions[0], process.action_low)
        if self._picture is not None:
            self._picture.set_parameters(process.parameters(state, actions))
        outcome = process.advance(state, self._problems, actions)
        reward, *step_figures, best_error, best_fitness = outcome.figures[:, 0].tolist()
        terminated, truncated = outcome.flags[:, 0].tolist()
        self._state = None if terminated or truncated else state
        if self._picture is not None:
            self._picture.record(process.populations(state), best_error)
            self._render_if_human()
        info = self._info(outcome, best_error, best_fitness)
        info.update(zip(process.step_figures, step_figures, strict=True))
        return outcome.observations[0], reward, terminated, truncated, info

    def render(self) -> NDArray[np.uint8] | None:
        """Return the picture of the run so far, or show it in a window."""
        if self._picture is None:
            if self.render_mode is None:
                gym.logger.warn('`render` needs a render mode: make the environment with render_mode="rgb_array".')
                return None
            raise ResetNeeded("`render` needs a run: call `reset` first.")
        if self.render_mode == "human":
            self._render_if_human()
            return None
        figure = new_figure()
        self._picture.draw(figure)
        return to_pixels(figure)

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def _render_if_human(self) -> None:
        if self.render_mode == "human" and self._picture is not None:
            self._window = self._window or Window()
            self._picture.draw(self._window.figure)
            self._window.show(1 / self.metadata["render_fps"])

    def _info(self, outcome: Outcome, best_error: float, best_fitness: float) -> dict[str, Any]:
        evaluations, generation = outcome.counts[:, 0].tolist()
        return {
            "best_error": best_error,
            "best_fitness": best_fitness,
            "best_position": outcome.best_positions[0],
            "evaluations": evaluations,
            "generation": generation,
            "function": self._function,
        }


def check_render_mode(render_mode: str | None, allowed: list[str]) -> None:
    """Reject a render mode that an environment does not have."""
    if render_mode is not None and not (isinstance(render_mode, str) and render_mode in allowed):
        choices = ", ".join(repr(mode) for mode in allowed) or "none"
        raise ValueError(f"Unknown render mode {shown(render_mode)}. Available: {choices}.")


def make_spaces(process: Process) -> tuple[Any, Any]:
    """Return the observation and action space of one run, both a ``Box`` of float32."""
    observation_space = Box(process.observation_low, process.observation_high, dtype=np.float32)
    return observation_space, Box(process.action_low, 1.0, (process.action_size,), np.float32)


def draw_start(
    task: Task, process: Process, rng: np.random.Generator, number: object | None
) -> tuple[int, FloatArray, KeyArray]:
    """Return a problem's position in the task, uniforms (N, D) for its initial population, and the run's key (1,).

    All are drawn whatever is fixed, so that fixing one does not change the others.
    """
    drawn = int(rng.integers(len(task.problems)))
    uniforms = draw_uniforms([rng], process.population_size, task.dimension)[0]
    keys = draw_keys([rng])
    return (drawn if number is None else task.position_of(number)), uniforms, keys
