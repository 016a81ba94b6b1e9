"""DEParamControlEnv: one Differential Evolution run per episode, its parameters set by the agent."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box
from numpy.typing import ArrayLike, NDArray

from de_gym.arrays import Float32Array, FloatArray
from de_gym.envs import process
from de_gym.envs.actions import check_actions
from de_gym.envs.rendering import RunPicture, Window, new_figure, to_pixels
from de_gym.envs.state import RunState, ranked_positions
from de_gym.envs.task import Task, check_options, make_task
from de_gym.evolution import KeyArray, draw_keys, draw_uniforms, scale_to_bounds
from de_gym.problems import ProblemBatch

# What ``info`` says of a generation: the figures of an ``Outcome`` that follow the reward.
STEP_FIGURES = ("success_rate", "mean_scale_factor", "mean_crossover_rate")


class DEParamControlEnv(gym.Env[Float32Array, Float32Array]):
    """Control the scale factor and crossover rate of every individual of a Differential Evolution run.

    ## Description
    An episode is one run of DE/current-to-pbest/1/bin on a function drawn from a set of problems. Each generation the
    agent sees how the population's fitness is distributed and chooses F and CR for every individual, by rank. The
    process is that of Sun, Liu, Bäck and Xu, "Learning Adaptive Differential Evolution Algorithm from Optimization
    Experiences by Policy Gradient" (LDE), whose settings are the defaults.

    >>> import gymnasium as gym, de_gym
    >>> env = gym.make("DEParamControl-v0", suite="cec2013", functions=[1], dimension=10)
    >>> observation, info = env.reset(seed=0)
    >>> observation.shape, env.action_space.shape
    ((60,), (100,))
    >>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
    >>> info["evaluations"], info["function"], reward >= 0
    (100, 1, True)

    ## Action Space
    `Box(0, 1, (2N,), float32)`. Values outside the box are clipped; NaN is an error.

    | Entries | Meaning |
    |---|---|
    | 0 .. N-1 | scale factor F of the individual of rank 1 (best) .. N (worst) |
    | N .. 2N-1 | crossover rate CR of the individual of rank 1 .. N |

    With `action="knots"` the action is F at five ranks from the best to the worst, then CR at five, interpolated in
    between: `Box(0, 1, (10,))`. With `action="mean_and_spread"` it is mean F, spread of F, mean CR and spread of CR,
    and the environment draws the individuals' numbers around them: `Box(0, 1, (4,))`.

    ## Observation Space
    `Box(0, 1, (N + 2b,), float32)`; with `histogram="counts"` the histogram entries reach N.

    | Entries | Name | Meaning |
    |---|---|---|
    | 0 .. N-1 | fitness | values of the population, sorted best first, scaled to [0, 1]; zeros when all are equal |
    | N .. N+b-1 | histogram | share of the population in each of b equal bins of the scaled values |
    | N+b .. N+2b-1 | mean_past_histogram | mean of the last g generations' histograms; uniform before there are any |

    ## Rewards
    With e the error (best value minus the known minimum) before a generation, e' after it, and e_0 at the start:

    | `reward` | Value |
    |---|---|
    | `"relative"` | (e - e') / e, and 0 once e = 0 (the paper's) |
    | `"log"` | log10 e - log10 e', errors below 1e-8 counted as 1e-8 |
    | `"initial_gap"` | (e - e') / e_0 |

    A problem without a known minimum is given a stand-in: as far below the best initial value as the worst initial
    value lies above it.

    ## Starting State
    N individuals, independent and uniform in the problem's box, evaluated and sorted. The function is drawn with the
    environment's own generator; `reset(options={"function": number, "initial_population": array})` fixes either.

    ## Episode End
    1. Terminated: the error is below `target_error` (where a minimum is known), or the evaluation budget
       does not pay for another generation. Evaluations never exceed the budget.
    2. Truncated: `max_generations` generations have passed.

    ## Arguments
    | Name | Default | Meaning |
    |---|---|---|
    | `suite` | `"cec2013"` | benchmark suite, `"cec2013"` or `"cec2017"` |
    | `functions` | `None` | official function numbers; `None` for the whole suite |
    | `dimension` | `10` | number of coordinates of the suite's functions |
    | `problems` | `None` | a list of `Problem` objects in place of a suite |
    | `population_size` | `None` | N; 50 at n = 10, 100 at n = 30, 25 + 2.5 n in general |
    | `num_bins` | `5` | histogram bins b |
    | `history_window` | `5` | generations g in the moving average; `None` for all past ones |
    | `max_generations` | `50` | generation limit T; `None` for none |
    | `max_evaluations` | `None` | evaluation budget; 10 000 n by default |
    | `target_error` | `1e-8` | error below which a run is solved |
    | `shell` | `"pbest"` | `"l-shade"` adds an archive of beaten parents and lets the population shrink linearly to \
4; N is then its first size, and ranks beyond the living have no effect and are observed as 1 |
    | `action` | `"by_rank"` | also `"knots"`, `"mean_and_spread"`: see Action Space |
    | `pbest` | `"linear"` | share of the population that may be p-best: all of it falling to the best two as the \
budget is spent, or a constant fraction |
    | `bound_repair` | `"midpoint"` | also `"clip"`, `"reflect"`, `"resample"` |
    | `reward` | `"relative"` | see Rewards |
    | `histogram` | `"fractions"` | or `"counts"` |
    | `observation` | all three | names of the parts, in order |
    | `render_mode` | `None` | `"rgb_array"` or `"human"`: error curve, F and CR by rank, the population |

    `info` holds `best_error`, `best_fitness`, `best_position`, `evaluations`, `generation`, `function` and, after a
    step, `success_rate`, `mean_scale_factor` and `mean_crossover_rate`.

    ## Version History
    * v0: Initial version.
    """

    metadata = {"render_modes": ["human", "rgb_array"], "render_fps": 10}  # noqa: RUF012  # Gymnasium's declaration

    def __init__(self, *, render_mode: str | None = None, **options: Any) -> None:
        """Build the environment; ``options`` are the Arguments of the class docstring."""
        check_render_mode(render_mode, self.metadata["render_modes"])
        self.task = make_task(**options)
        self.observation_space, self.action_space = make_spaces(self.task)
        self.render_mode = render_mode
        self._problems: ProblemBatch | None = None
        self._state: RunState | None = None
        self._actions = np.empty((1, self.task.settings.action_size))
        self._function = 0
        self._picture: RunPicture | None = None
        self._window: Window | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32Array, dict[str, Any]]:
        """Start a new run; see Starting State."""
        super().reset(seed=seed)
        chosen = check_options(options, ("function", "initial_population"))
        self._state = None
        index, uniforms, keys = draw_start(self.task, self.np_random, chosen.get("function"))
        self._function = int(self.task.numbers[index])
        self._problems = ProblemBatch([self.task.problems[index]])
        if "initial_population" in chosen:
            positions = self.task.check_initial_population(chosen["initial_population"], self._problems)
        else:
            positions = scale_to_bounds(uniforms[None], self._problems.lower, self._problems.upper)
        fitness = self._problems.evaluate(positions)
        state = process.start(positions, fitness, self._problems.optimum, keys, self.task.settings)
        self._state = state
        started = process.describe(state, self.task.settings)
        *_, best_error, best_fitness = started.figures[:, 0].tolist()
        if self.render_mode is not None:
            self._picture = RunPicture(self.task.problems[index], ranked_positions(state)[0], best_error)
            self._render_if_human()
        return started.observations[0], self._info(started, best_error, best_fitness)

    def step(self, action: ArrayLike) -> tuple[Float32Array, float, bool, bool, dict[str, Any]]:
        """Run one generation with the given F and CR."""
        if self._state is None or self._problems is None:
            raise ResetNeeded("`step` needs a running episode: call `reset` first.")
        settings = self.task.settings
        actions = self._actions
        check_actions(action, actions[0])
        state = self._state
        if self._picture is not None:
            self._picture.set_parameters(settings.action_map.expand(actions, state.runs, settings.capacity)[0].copy())
        outcome = process.advance(state, self._problems, actions, settings)
        reward, *step_figures, best_error, best_fitness = outcome.figures[:, 0].tolist()
        terminated, truncated = outcome.flags[:, 0].tolist()
        self._state = None if terminated or truncated else state
        if self._picture is not None:
            self._picture.record(ranked_positions(state)[0], best_error)
            self._render_if_human()
        info = self._info(outcome, best_error, best_fitness)
        info.update(zip(STEP_FIGURES, step_figures, strict=True))
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

    def _info(self, outcome: process.Outcome, best_error: float, best_fitness: float) -> dict[str, Any]:
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
    if render_mode is not None and render_mode not in allowed:
        choices = ", ".join(repr(mode) for mode in allowed) or "none"
        raise ValueError(f"Unknown render mode {render_mode!r}. Available: {choices}.")


def make_spaces(task: Task) -> tuple[Any, Any]:
    """Return the observation and action space of one run, both a ``Box`` of float32."""
    high = process.observation_high(task.settings)
    observation_space = Box(np.zeros_like(high), high, dtype=np.float32)
    return observation_space, Box(0.0, 1.0, (task.settings.action_size,), np.float32)


def draw_start(task: Task, rng: np.random.Generator, number: object | None) -> tuple[int, FloatArray, KeyArray]:
    """Return a problem's position in the task, uniforms (N, D) for its initial population, and the run's key (1,).

    All are drawn whatever is fixed, so that fixing one does not change the others.
    """
    drawn = int(rng.integers(len(task.problems)))
    uniforms = draw_uniforms([rng], task.settings.capacity, task.dimension)[0]
    keys = draw_keys([rng])
    return (drawn if number is None else task.position_of(number)), uniforms, keys
