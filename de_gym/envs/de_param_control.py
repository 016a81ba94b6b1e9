"""DEParamControl-v0: one Differential Evolution run per episode, its parameters set by the agent."""

from __future__ import annotations

from typing import Any

from gymnasium.vector import AutoresetMode

from de_gym.envs.parameter_process import ParameterProcess
from de_gym.envs.run_env import RunEnv
from de_gym.envs.run_vector_env import RunVectorEnv
from de_gym.envs.settings import EnvSettings, make_settings
from de_gym.envs.task import make_task


class DEParamControlEnv(RunEnv):
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
    | `reward` | `"relative"` | see Rewards; also a Python function of (e, e', e_0), or what `register_reward` named |
    | `histogram` | `"fractions"` | or `"counts"` |
    | `observation` | all three | names of the parts, in order; also Python functions of a `RunView`, an \
`Observation` of one, or what `register_observation` named, all called run by run, so slower, \
unless `numba.njit` compiled them |
    | `render_mode` | `None` | `"rgb_array"` or `"human"`: error curve, F and CR by rank, the population |

    `info` holds `best_error`, `best_fitness`, `best_position`, `evaluations`, `generation`, `function` and, after a
    step, `success_rate`, `mean_scale_factor` and `mean_crossover_rate`.

    ## Version History
    * v0: Initial version.
    """

    def __init__(self, *, render_mode: str | None = None, **options: Any) -> None:
        """Build the environment; ``options`` are the Arguments of the class docstring."""
        task = make_task(options)
        super().__init__(task, ParameterProcess(make_settings(EnvSettings, task.dimension, options)), render_mode)


class DEParamControlVectorEnv(RunVectorEnv):
    """R independent runs of ``DEParamControlEnv`` in one call; run i equals the single environment, bit for bit.

    An integer seed s gives run i the seed s + i, as in Gymnasium's own vector environments.

    >>> import gymnasium as gym, de_gym
    >>> envs = gym.make_vec("DEParamControl-v0", num_envs=4, functions=[1, 2], dimension=10, assignment="in_turn")
    >>> observations, infos = envs.reset(seed=0)
    >>> observations.shape, infos["function"].tolist()
    ((4, 60), [1, 1, 2, 2])

    Args of the constructor beyond those of ``DEParamControlEnv``:

    * ``autoreset_mode``: NEXT_STEP (default), SAME_STEP or DISABLED, an ``AutoresetMode`` or its value. With DISABLED,
      ``reset(options={"reset_mask": mask})`` restarts the runs where the boolean mask is true.
    * ``assignment``: "random" draws each episode's function; "in_turn" gives the M functions to R / M runs each.
    * ``shared_start``: one initial population for all runs, drawn at each full reset from the first run's generator;
      runs that restart alone in between start from it again.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        assignment: str = "random",
        shared_start: bool = False,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        """Build R runs; ``options`` are the Arguments of ``DEParamControlEnv``."""
        task = make_task(options)
        process = ParameterProcess(make_settings(EnvSettings, task.dimension, options))
        super().__init__(num_envs, task, process, autoreset_mode, assignment, shared_start, render_mode)
