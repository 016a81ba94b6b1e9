"""AdaptiveDE: L-SRTDE as it is, or with a residual controller that adjusts its rules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from de_gym.arrays import FloatArray, IntArray
from de_gym.checks import LARGEST_SIZE, optional_whole, shown, store_plain
from de_gym.controllers.base import ResidualRule
from de_gym.controllers.residual import Grid, ResidualController, write_residuals
from de_gym.envs.actions import check_actions
from de_gym.envs.adaptive_process import FEATURE_NAMES, observe
from de_gym.evolution import draw_keys, two_population
from de_gym.evolution.populations import Trials
from de_gym.evolution.residuals import PARAMETERS, follow_rule_in_run, set_parameters
from de_gym.evolution.run_arrays import take_runs
from de_gym.machine.compiling import compiled
from de_gym.machine.front_generations import breed_runs, observe_runs, select_runs
from de_gym.machine.run_features import FEATURES
from de_gym.machine.top_and_front import MAIN, MEMORY_SIZE, TOP, RunArray, find_starts, make_trials
from de_gym.optimizers.base import GenerationParameters, Optimizer
from de_gym.optimizers.local_search import Descents

CONTROL_NAMES = tuple(control.name for control in two_population.CONTROLS)


@dataclass(frozen=True, slots=True)
class AdaptiveDESettings:
    """Constants of L-SRTDE that are open to choice.

    Attributes:
        population_size: Individuals at the start; None for 20 n with 10 000 n evaluations, fewer with small budgets.
    """

    population_size: int | None = None

    def __post_init__(self) -> None:
        store_plain(self)
        optional_whole("population_size", self.population_size, 4, LARGEST_SIZE)


class AdaptiveDE(Optimizer):
    """R runs of the two-population shell under its success-rate rule, adjusted by a controller or not.

    It is the process of ``AdaptiveDEControl-v0``, so a controller meets in use what it met in training; but for the
    local search from the best point that a controller with ``descent_shares`` lets begin late in a run.
    """

    name = "l-srtde"
    settings: AdaptiveDESettings

    def __init__(self, settings: AdaptiveDESettings | None = None, controller: ResidualRule | None = None) -> None:
        """Store the settings and the controller; without one this is L-SRTDE."""
        if controller is not None:
            _check_controller(controller)
        self.settings = settings or AdaptiveDESettings()
        self.controller = controller
        self._observation = getattr(controller, "env_settings", {}).get("observation", FEATURE_NAMES)
        self._remembers = hasattr(controller, "keep")

    def _start(self) -> None:
        budgets = self._runs["max_evaluations"]
        if self.settings.population_size is not None:
            self._runs["size"] = np.minimum(self.settings.population_size, budgets)
        else:
            residuals = self._chosen_at_start("size_residuals", -1.0, "Size residuals")
            self._runs["size"] = initial_sizes(self._dimension, budgets, residuals)
        shares = self._chosen_at_start("find_descent_shares", 0.0, "Descent shares")
        self._descents = Descents(budgets, self._lower, self._upper, shares)
        self.is_searching_locally = False
        self._state: two_population.TwoPopulations | None = None
        self._parameters = np.zeros(self.num_runs, PARAMETERS)
        self._residuals = np.zeros((self.num_runs, len(CONTROL_NAMES)))
        if self.controller is not None and hasattr(self.controller, "reset"):
            self.controller.reset(self._rngs)

    def _chosen_at_start(self, name: str, lowest: float, title: str) -> FloatArray:
        """Return one number for each run, shape (R,), by a method that a controller may have; zeros otherwise."""
        if (choose := getattr(self.controller, name, None)) is None:
            return np.zeros(self.num_runs)
        chosen: FloatArray = choose(self._dimension, self._runs["max_evaluations"])
        # Our own controller is trusted: to check what it says would compile one more kernel.
        is_ours = isinstance(self.controller, ResidualController)
        return chosen if is_ours else check_actions(chosen, np.zeros(self.num_runs), lowest, title)

    def _ask(self, starts: IntArray) -> Trials:
        self.is_searching_locally = self._descents.are_under_way
        if self.is_searching_locally:
            return self._descents.ask(starts)
        if self._state is None:
            points = np.empty((starts[-1], self._dimension))
            for run, rng in enumerate(self._rngs):
                rows = points[starts[run] : starts[run + 1]]
                rng.random(out=rows)
                rows *= self._upper[run] - self._lower[run]
                rows += self._lower[run]
            return Trials(points, starts)
        begin = np.flatnonzero(self._state.runs["part"] == 0)
        if len(begin):
            self._set_parameters(self._state, begin)
        self._trials = make_trials(find_starts(self._state.runs, True), self._dimension)
        breed_runs(self._state, self._parameters, self._lower, self._upper, self._trials)
        return Trials(self._trials.points, self._trials.starts)

    def _set_parameters(self, state: two_population.TwoPopulations, begin: IntArray) -> None:
        """Choose the parameters of the runs that begin a generation."""
        if isinstance(self.controller, ResidualController):
            grid, changed = self.controller.grid, (self._residuals, self._parameters)
            _adjust(state, begin, self._lower, self._upper, grid, *changed)
            return
        residuals = np.zeros((len(state.runs), len(CONTROL_NAMES)))
        if self.controller is not None:
            bounds = self._lower, self._upper
            features = two_population.observe(state, *bounds)
            if self._observation != FEATURE_NAMES:
                features = observe(self._observation, features, state, *bounds)
            seen = features[begin]
            # Runs come to the ends of their generations at different times, which only a memory has to know.
            chosen = self.controller(seen, begin) if self._remembers else self.controller(seen)
            residuals[begin] = check_actions(chosen, np.empty((len(begin), len(CONTROL_NAMES))), -1.0)
        self._parameters[begin] = set_parameters(state.runs, residuals)[begin]
        self._residuals[begin] = residuals[begin]

    def _tell(self, trials: Trials, values: FloatArray) -> None:
        if self.is_searching_locally:
            assert self._state is not None
            ends = self._descents.tell(trials, values, self._runs["evaluations"])
            # What was spent counts for the plan of sizes, too.
            self._state.runs["evaluations"][ends] = self._runs["evaluations"][ends]
        elif self._state is None:
            keys, budgets = draw_keys(self._rngs), self._runs["max_evaluations"].copy()
            self._state = two_population.start(keys, *trials, values, budgets, self._lower, self._upper)
        else:
            select_runs(self._state, self._parameters, self._trials, values)
            if self._state.runs["generation"][0]:
                self.mean_parameters = self._find_means(self._state, 0)
            self._begin_descents(self._state)
        assert self._state is not None
        self._go_on(self._state)

    def _begin_descents(self, state: two_population.TwoPopulations) -> None:
        """Begin what is due, between two generations."""
        descents, anew = self._descents, state.runs["begins_anew"] == 1
        if anew.any():
            descents.begin_anew(anew)
        due = descents.is_due & (self._runs["evaluations"] >= descents.begins) & (state.runs["part"] == 0)
        for run in np.flatnonzero(due).tolist():
            reached, spent = float(self._runs["best_fitness"][run]), int(self._runs["evaluations"][run])
            descents.begin(run, self._best_position[run], reached, spent)

    def _go_on(self, state: two_population.TwoPopulations) -> None:
        """Decide what each run asks for next; while some descend, the others wait."""
        descents, runs = self._descents, self._runs
        # A run uses its budget to the last evaluation; one more is what it cannot pay for.
        runs["size"] = np.maximum(np.diff(find_starts(state.runs, True)), 1)
        self._waits[:] = descents.are_under_way & ~descents.is_under_way
        if descents.are_under_way:
            runs["size"] = np.where(descents.is_under_way, descents.num_points, runs["size"])

    def _keep(self, runs: IntArray) -> None:
        self._descents.keep(runs)
        if self.controller is not None and hasattr(self.controller, "keep"):
            self.controller.keep(runs)
        self._parameters, self._residuals = self._parameters[runs], self._residuals[runs]
        if self._state is not None:
            self._state = take_runs(self._state, runs)

    def _find_means(self, state: two_population.TwoPopulations, run: int) -> tuple[float, float]:
        """Return mean F and CR that the last generation of a run was drawn around."""
        parameter = self._parameters[run]
        # A sum and a quotient, because ``np.mean`` costs more than both.
        rate = np.add.reduce(state.memory[run, MAIN]) / MEMORY_SIZE + parameter["crossover_shift"]
        return min(max(parameter["mean_scale_factor"], 0.0), 1.0), min(max(rate, 0.0), 1.0)

    @property
    def last_parameters(self) -> GenerationParameters | None:
        """Mean F and CR of the last generation, one for the whole population; None before there is one."""
        if self._state is None or not self._state.runs["generation"].any():
            return None
        means = np.array([self._find_means(self._state, run) for run in range(self.num_runs)])
        fitness = self._state.runs["best_fitness"][:, None].copy()
        is_adjusted = self.controller is not None
        residuals = dict(zip(CONTROL_NAMES, self._residuals.T.copy(), strict=True)) if is_adjusted else {}
        return GenerationParameters(means[:, :1], means[:, 1:], fitness, residuals)

    @property
    def population(self) -> tuple[FloatArray, FloatArray] | None:
        """The best points found (R, N, D) and their values (R, N), as many as the run of most individuals has."""
        if self._state is None:
            return None
        size = int(self._state.runs["size"].max())
        rows, runs = self._state.rows[:, TOP, :size], np.arange(self.num_runs)[:, None]
        alive = np.arange(size) < self._state.runs["size"][:, None]
        positions = self._state.positions[runs, TOP, rows]
        positions[~alive] = np.nan
        return positions, np.where(alive, self._state.fitness[:, TOP, :size], np.inf)


@compiled
def _adjust(
    state: two_population.TwoPopulations,
    begin: IntArray,
    lower: FloatArray,
    upper: FloatArray,
    grid: Grid,
    residuals: FloatArray,
    parameters: RunArray,
) -> None:
    """Write residuals (R, A) and parameters (R,) of some runs: in one call, since each costs as much as many trials."""
    features = np.empty((len(state.runs), len(FEATURES)), np.float32)
    observe_runs(state, lower, upper, features)
    for index in begin:
        write_residuals(features[index], 0, grid, residuals[index])
        follow_rule_in_run(state.runs[index], residuals[index], parameters[index])


def _check_controller(controller: ResidualRule) -> None:
    """Refuse a controller of something else than this algorithm."""
    if not callable(controller):
        raise TypeError(f"`controller` must be a controller, got {shown(controller)}.")
    expected = FEATURE_NAMES, CONTROL_NAMES
    got = getattr(controller, "features", FEATURE_NAMES), getattr(controller, "controls", CONTROL_NAMES)
    if got != expected:
        raise ValueError(
            f"A controller of this algorithm has the features {FEATURE_NAMES} and the controls {CONTROL_NAMES}, "
            f"got {got[0]} and {got[1]}."
        )
    # One that has said nothing, but has a number of individuals, sets their F and CR.
    is_sized = getattr(controller, "population_size", None) is not None
    if not getattr(controller, "is_residual", not is_sized):
        raise ValueError("This controller sets F and CR of individuals: give it to ControlledDE.")


def initial_sizes(dimension: int, budgets: IntArray, residuals: FloatArray) -> IntArray:
    """Return how many points each run begins with, shape (R,)."""
    sizes = [
        two_population.initial_size(dimension, int(budget), float(residual))
        for budget, residual in zip(budgets, residuals, strict=True)
    ]
    return np.array(sizes, np.int64)
