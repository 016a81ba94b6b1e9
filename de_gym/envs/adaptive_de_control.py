"""AdaptiveDEControl-v0: one run of an adaptive Differential Evolution per episode, its rules adjusted by the agent."""

from __future__ import annotations

from typing import Any

from gymnasium.vector import AutoresetMode

from de_gym.envs.adaptive_process import AdaptiveProcess, AdaptiveSettings
from de_gym.envs.run_env import RunEnv
from de_gym.envs.run_vector_env import RunVectorEnv
from de_gym.envs.settings import make_settings
from de_gym.envs.task import make_task


class AdaptiveDEControlEnv(RunEnv):
    """Adjust the rules of an adaptive Differential Evolution run, generation by generation.

    ## Description
    An episode is one run of an algorithm that adapts its own parameters: L-SRTDE, winner of the CEC 2024 competition,
    with its two populations and success-rate rules. Each generation the agent sees what the run looks like, in numbers
    without units, and adjusts the rules: **an action of zeros leaves the algorithm unchanged**. What is learned carries
    over to any number of coordinates, budget, population size and scale of the function.

    >>> import gymnasium as gym, de_gym
    >>> env = gym.make("AdaptiveDEControl-v0", suite="cec2013", functions=[1], dimension=10)
    >>> observation, info = env.reset(seed=0)
    >>> observation.shape, env.action_space.shape, env.unwrapped.controls[0]
    ((11,), (15,), 'mean_scale_factor')
    >>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
    >>> info["evaluations"], info["function"], reward >= 0
    (400, 1, True)

    ## Action Space
    `Box(-1, 1, (15,), float32)`, one number a per control, named in `env.unwrapped.controls`. Values outside the box
    are clipped; NaN is an error. SR is the success rate of the last generation. With `shell="l-srtde"`:

    | Entry | Control | What it becomes |
    |---|---|---|
    | 0 | mean_scale_factor | mean of F: 0.4 + 0.25 tanh(5 SR) + 0.3 a |
    | 1 | scale_factor_spread | deviation of F: 0.02 exp(3 a) |
    | 2 | pbest_share | share of the best that lead: 0.7 exp(-7 SR) exp(1.5 a) |
    | 3 | rank_pressure | how steeply the choice of r1 falls with its rank: 3 exp(1.2 a) |
    | 4 | crossover_shift | added to the remembered CR: 0.3 a |
    | 5 | crossover_spread | deviation of CR: 0.05 exp(2.5 a) |
    | 6 | pbest_weight | factor of F in front of the pull to the leaders: exp(0.6 a) |
    | 7 | size_factor | stretches the plan by which the populations shrink: exp(1.2 a) |
    | 8 | eigenvector_probability | crossover along the axes of the better half: max(0, a) |
    | 9 | triple_probability | trials whose three vectors are put in order: max(0, a) |
    | 10 | noise_probability | Cauchy noise on coordinates that were not crossed: max(0, a) |
    | 11 | sparse_probability | trials that may draw CR from a second memory of small rates: max(0, a) |
    | 12 | midpoint_probability | outside coordinates go halfway to the bound instead of anywhere: max(0, a) |
    | 13 | in_place_probability | successes that replace their target, not the oldest individual: max(0, a) |
    | 14 | restart_probability | where all values are equal, the populations begin anew: max(0, a) |

    With `shell="jso"` there are seven:

    | Entry | Control | What it becomes |
    |---|---|---|
    | 0 | mean_scale_factor | added to every remembered F: 0.3 a |
    | 1 | scale_factor_spread | spread of F: 0.1 exp(3 a), at most 0.5 |
    | 2 | pbest_share | number of leaders: times exp(1.5 a) |
    | 3 | mean_crossover_rate | added to every remembered CR: 0.3 a |
    | 4 | crossover_rate_spread | spread of CR: 0.1 exp(2.5 a), at most 0.5 |
    | 5 | pbest_weight | weight of the pull to the leaders: times exp(0.6 a) |
    | 6 | size_plan | stretches the plan by which the population shrinks: exp(1.2 a), never growing |

    ## Observation Space
    `Box(-3, 3, (11,), float32)`, named in `env.unwrapped.features`: share of the budget spent; success rate and two
    moving averages of it; diversity and spread of values against the start; generations without a new best; remembered
    CR; spread of the one population against that of the other (with `shell="jso"`, which has one population,
    remembered F); number of coordinates; budget. None depends on the units of the function or its box, or on knowing
    its minimum.

    ## Rewards
    As in `DEParamControl-v0`, `"log"` by default: the decades by which the error fell.

    ## Starting State
    N individuals, independent and uniform in the problem's box. The function is drawn with the environment's own
    generator; `reset(options={"function": number, "initial_population": array})` fixes either.

    ## Episode End
    1. Terminated: the error is below `target_error` (where a minimum is known), or the budget is spent: by L-SRTDE to
       the last evaluation, while jSO begins no generation that it cannot end.
    2. Truncated: `max_generations` generations have passed.

    ## Arguments
    | Name | Default | Meaning |
    |---|---|---|
    | `suite` | `"cec2013"` | benchmark suite, `"cec2013"`, `"cec2017"` or `"random"` |
    | `functions` | `None` | numbers of its functions; `None` for the whole suite |
    | `dimension` | `10` | number of coordinates of the suite's functions |
    | `problems` | `None` | a list of `Problem` objects in place of a suite |
    | `shell` | `"l-srtde"` | the adaptive algorithm, `"l-srtde"` or `"jso"` |
    | `population_size` | `None` | N of the first population; the algorithm's own by default: 20 n with 10 000 n \
evaluations, fewer with small budgets, for L-SRTDE; 25 ln(n) sqrt(n) for jSO |
    | `max_evaluations` | `None` | evaluation budget; 10 000 n by default |
    | `max_generations` | `None` | generation limit; `None` for none |
    | `target_error` | `1e-8` | error below which a run is solved |
    | `reward` | `"log"` | also `"relative"`, `"initial_gap"`, a Python function of (e, e', e_0), or what \
`register_reward` named |
    | `observation` | all of them | names of features, in order; also Python functions of a `RunView`, an \
`Observation` of one, or what `register_observation` named, all called run by run, so slower, \
unless `numba.njit` compiled them |
    | `render_mode` | `None` | `"rgb_array"` or `"human"`: error curve, controls over time, populations |

    `info` holds `best_error`, `best_fitness`, `best_position`, `evaluations`, `generation`, `function` and, after a
    step, `success_rate`, `mean_scale_factor` and `mean_crossover_rate`.

    ## Version History
    * v0: Initial version.
    """

    process: AdaptiveProcess

    def __init__(self, *, render_mode: str | None = None, **options: Any) -> None:
        """Build the environment; ``options`` are the Arguments of the class docstring."""
        task = make_task(options)
        super().__init__(task, AdaptiveProcess(make_settings(AdaptiveSettings, task.dimension, options)), render_mode)

    @property
    def controls(self) -> tuple[str, ...]:
        """Name of every entry of an action."""
        return self.process.controls

    @property
    def features(self) -> tuple[str, ...]:
        """Name of every entry of an observation."""
        return self.process.features


class AdaptiveDEControlVectorEnv(RunVectorEnv):
    """R independent runs of ``AdaptiveDEControlEnv`` in one call; run i equals the single environment, bit for bit.

    >>> import gymnasium as gym, de_gym
    >>> envs = gym.make_vec("AdaptiveDEControl-v0", num_envs=4, functions=[1, 2], dimension=10, assignment="in_turn")
    >>> observations, infos = envs.reset(seed=0)
    >>> observations.shape, infos["function"].tolist()
    ((4, 11), [1, 1, 2, 2])

    The arguments beyond those of ``AdaptiveDEControlEnv`` are those of ``DEParamControlVectorEnv``.
    """

    process: AdaptiveProcess

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
        """Build R runs; ``options`` are the Arguments of ``AdaptiveDEControlEnv``."""
        task = make_task(options)
        process = AdaptiveProcess(make_settings(AdaptiveSettings, task.dimension, options))
        super().__init__(num_envs, task, process, autoreset_mode, assignment, shared_start, render_mode)

    @property
    def controls(self) -> tuple[str, ...]:
        """Name of every entry of an action."""
        return self.process.controls

    @property
    def features(self) -> tuple[str, ...]:
        """Name of every entry of an observation."""
        return self.process.features
