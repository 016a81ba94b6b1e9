"""The two-population shell: formulas by hand, mechanisms that move, and runs that depend on themselves alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from de_gym import Problem, ProblemBatch, make_suite
from de_gym.evolution.run_arrays import put_runs, take_runs
from de_gym.evolution.two_population import (
    CONTROLS,
    FEATURES,
    LARGEST_FEATURE,
    PARAMETERS,
    advance,
    breed,
    draw_initial_points,
    has_ended,
    initial_size,
    observe,
    select,
    set_parameters,
    start,
)
from de_gym.machine.principal_axes import turn_axes, turning_size
from de_gym.machine.top_and_front import (
    ALONG_AXES,
    FROM_SPARSE,
    FRONT,
    IN_PLACE,
    MAIN,
    MEMORY_SIZE,
    SMALLEST_SIZE,
    SPARSE,
    TOP,
    Trials,
)

NAMES = [control.name for control in CONTROLS]
SPARSE_WAY, AXES_WAY = 1 << FROM_SPARSE, 1 << ALONG_AXES


def function(fun, low: float, high: float, dimension: int) -> Problem:
    """Return a problem whose function is not compiled."""
    return Problem.from_function(fun, low, high, dimension=dimension, vectorized=True)


def make_keys(num_runs: int, seed: int = 1):
    return np.random.default_rng(seed).integers(0, 2**64, num_runs, dtype=np.uint64)


def begin(problems: ProblemBatch, max_evaluations, sizes=None, seed: int = 1, **settings):
    """Return runs of these problems at generation 0."""
    num_runs = len(problems)
    budgets = np.broadcast_to(max_evaluations, num_runs)
    if sizes is None:
        sizes = np.array([initial_size(problems.dimension, int(budget)) for budget in budgets])
    keys = make_keys(num_runs, seed)
    points, starts = draw_initial_points(keys, np.broadcast_to(sizes, num_runs), problems.lower, problems.upper)
    values = problems.evaluate_ragged(points, starts)
    return start(keys, points, starts, values, budgets, problems.lower, problems.upper, **settings)


def residuals(num_runs: int, **chosen: float):
    """Return residuals that are zero but for the chosen controls."""
    numbers = np.zeros((num_runs, len(CONTROLS)))
    for name, value in chosen.items():
        numbers[:, NAMES.index(name)] = value
    return numbers


def run_to_end(state, problems: ProblemBatch, numbers=None):
    numbers = residuals(len(problems)) if numbers is None else numbers
    while not has_ended(state).all():
        advance(state, problems, numbers)
    return state


def assert_same_runs(one, other):
    """Compare what is alive; rows that nobody lives in may hold anything."""
    assert one.runs.tobytes() == other.runs.tobytes()
    for index, run in enumerate(one.runs):
        alive = slice(run["size"])
        np.testing.assert_array_equal(one.memory[index], other.memory[index])
        np.testing.assert_array_equal(one.ranking[index, alive], other.ranking[index, alive])
        for population in (TOP, FRONT):
            np.testing.assert_array_equal(
                one.fitness[index, population, alive], other.fitness[index, population, alive]
            )
            np.testing.assert_array_equal(living(one, index, population), living(other, index, population))


def living(state, index: int, population: int):
    """Return the positions of a population by rank of top or slot of front."""
    rows = state.rows[index, population, : state.runs["size"][index]]
    return state.positions[index, population, rows]


@pytest.fixture(scope="module")
def suite():
    return make_suite("cec2017", 10)


@pytest.fixture
def problems(suite):
    return ProblemBatch([suite[4], suite[4], suite[10], suite[16]])


class TestPlan:
    def test_starts_with_twenty_individuals_per_dimension(self):
        assert [initial_size(n, 10_000 * n) for n in (10, 30, 50, 100)] == [200, 600, 1000, 2000]

    def test_small_budgets_start_with_fewer(self):
        # 8 n at 200 n, and the cube root of the budget's ratio from there on
        assert initial_size(10, 2_000) == 80
        assert initial_size(10, 16_000) == 160
        assert initial_size(20, 4_000) == 160

    @pytest.mark.parametrize("budget", [1, 3, 7, 10, 50])
    def test_tiny_budgets_leave_some_generations_or_none_at_all(self, budget):
        assert initial_size(10, budget) == min(budget, max(8, budget // 4))

    def test_residual_multiplies(self):
        assert initial_size(10, 100_000, 1.0) == round(200 * math.exp(1.2))
        assert initial_size(10, 100_000, -1.0) == round(200 * math.exp(-1.2))

    def test_population_shrinks_linearly_to_four(self, problems):
        state = begin(problems, 5_000, 60)
        while not has_ended(state).all():
            advance(state, problems, residuals(4))
            evaluations = state.runs["evaluations"]
            np.testing.assert_array_equal(state.runs["size"], ((4 - 60) / 5000 * evaluations + 60).astype(int))
        assert (state.runs["size"] == SMALLEST_SIZE).all()

    def test_size_plan_stretches_what_is_above_the_smallest_size_and_never_grows(self, problems):
        state, small = begin(problems, 5_000, 60), residuals(4, size_factor=-1.0)
        advance(state, problems, small)
        linear = ((4 - 60) / 5000 * state.runs["evaluations"] + 60).astype(int)
        np.testing.assert_array_equal(state.runs["size"], (4 + (linear - 4) * math.exp(-1.2)).astype(int))
        before = state.runs["size"].copy()
        advance(state, problems, residuals(4, size_factor=1.0))
        np.testing.assert_array_equal(state.runs["size"], before)


class TestRule:
    def rule(self, success_rate: float, **chosen: float):
        state = begin(ProblemBatch([function(lambda x: (x**2).sum(1), -1.0, 1.0, 2)]), 100, 8)
        state.runs["success_rate"] = success_rate
        return set_parameters(state.runs, residuals(1, **chosen))[0]

    @pytest.mark.parametrize("rate", [0.0, 0.013, 0.5, 1.0])
    def test_zero_residuals_are_the_published_rule_bit_for_bit(self, rate):
        parameters = self.rule(rate)
        assert parameters["mean_scale_factor"] == 0.4 + 0.25 * math.tanh(5.0 * rate)
        assert parameters["scale_factor_spread"] == 0.02
        assert parameters["pbest_share"] == 0.7 * math.exp(-7.0 * rate)
        assert parameters["rank_pressure"] == 3.0
        assert parameters["crossover_shift"] == 0.0
        assert parameters["crossover_spread"] == 0.05
        assert parameters["pbest_weight"] == parameters["size_factor"] == 1.0
        for name in NAMES[8:]:
            assert parameters[name] == 0.0

    @pytest.mark.parametrize(
        ("name", "residual", "expected"),
        [
            ("mean_scale_factor", 1.0, 0.4 + 0.25 * math.tanh(1.0) + 0.3),
            ("mean_scale_factor", -1.0, 0.4 + 0.25 * math.tanh(1.0) - 0.3),
            ("scale_factor_spread", 0.5, 0.02 * math.exp(1.5)),
            ("pbest_share", 1.0, 0.7 * math.exp(-1.4) * math.exp(1.5)),
            ("rank_pressure", -1.0, 3.0 * math.exp(-1.2)),
            ("crossover_shift", -1.0, -0.3),
            ("crossover_spread", 1.0, 0.05 * math.exp(2.5)),
            ("pbest_weight", -1.0, math.exp(-0.6)),
            ("size_factor", 1.0, math.exp(1.2)),
            ("eigenvector_probability", 0.3, 0.3),
            ("triple_probability", -0.3, 0.0),
            ("noise_probability", 0.3, 0.3),
            ("sparse_probability", 2.0, 1.0),
            ("midpoint_probability", 1.0, 1.0),
            ("in_place_probability", 0.4, 0.4),
            ("restart_probability", 0.4, 0.4),
        ],
    )
    def test_residuals_do_what_the_table_says(self, name, residual, expected):
        parameters, anchor = self.rule(0.2, **{name: residual}), self.rule(0.2)
        assert parameters[name] == pytest.approx(expected, rel=1e-14)
        assert all(parameters[other] == anchor[other] for other in NAMES if other != name)

    def test_every_parameter_has_a_control(self):
        assert PARAMETERS.names == tuple(NAMES)


class Bred:
    """Many trials of one run whose coordinates tell who they were made from."""

    def __init__(self, generations: int, success_rate: float = 0.02, front_handicap: float = 0.0, **chosen: float):
        # Coordinate 0 of an individual is its rank at the start; front and top are told apart by coordinate 1.
        size, lower, upper = 40, np.full((1, 3), -1e9), np.full((1, 3), 1e9)
        points = np.zeros((size, 3))
        points[:, 0] = np.arange(size)
        state = start(make_keys(1), points, np.array([0, size]), points[:, 0], 10**9, lower, upper)
        state.runs["success_rate"] = success_rate
        state.positions[0, FRONT, :, 1] = 1.0
        state.fitness[0, FRONT] += front_handicap
        self.parameters = set_parameters(state.runs, residuals(1, **chosen))
        broods = []
        for generation in range(generations):
            state.runs["generation"] = generation
            broods.append(breed(state, self.parameters, lower, upper))
        self.points = np.concatenate([brood.points for brood in broods])
        self.targets = np.concatenate([brood.targets for brood in broods])
        self.rates = np.concatenate([brood.rates for brood in broods])
        self.ways = np.concatenate([brood.ways for brood in broods])


class TestBreeding:
    def test_targets_are_uniform_over_front(self):
        counts = np.bincount(Bred(generations=800).targets, minlength=40)
        assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 80.0  # chi-square, 39 degrees of freedom

    def test_pbest_is_one_of_the_leading_share_and_r2_anyone_else(self):
        size, picked, opposed = 10, np.zeros(10), np.zeros(10)
        lower, upper = np.full((1, size), -1e9), np.full((1, size), 1e9)
        values = np.arange(size) * 1.0
        state = start(make_keys(1), np.zeros((size, size)), np.array([0, size]), values, 10**9, lower, upper)
        # Front's individuals are zero and top's are unit vectors: v is F at p-best and -F at r2.
        state.positions[0, TOP] = np.eye(size)
        state.runs["success_rate"] = 0.05  # int(10 * 0.7 exp(-0.35)) = 4 ranks
        parameters = set_parameters(state.runs, residuals(1))
        for generation in range(2000):
            state.runs["generation"] = generation
            trials = breed(state, parameters, lower, upper)
            for point, target in zip(trials.points, trials.targets, strict=True):
                assert not point[target] > 0.0
                picked += point > 0.0
                opposed += point < 0.0
        np.testing.assert_allclose(picked[:4] / picked.sum(), 0.25, atol=0.015)
        assert (picked[4:] == 0.0).all()
        assert (opposed > 0.0).all()

    def test_ranks_of_r1_fall_by_the_pressure(self):
        size = 8
        lower, upper = np.full((1, size), -1e9), np.full((1, size), 1e9)
        state = start(
            make_keys(1), np.zeros((size, size)), np.array([0, size]), np.arange(size) * 1.0, 10**9, lower, upper
        )
        # Front's individuals are unit vectors times 1000 and its slots are ranks; top's are zero.
        state.positions[0, FRONT] = 1000.0 * np.eye(size)
        parameters, counts = set_parameters(state.runs, residuals(1)), np.zeros(size)
        for generation in range(4000):
            state.runs["generation"] = generation
            trials = breed(state, parameters, lower, upper)
            for point, target in zip(trials.points, trials.targets, strict=True):
                # v = (1 - F) front[i] + F front[r1]: r1 is the coordinate that is not the target's, if there is one.
                others = [j for j in range(size) if point[j] != 0.0 and j != target]
                if others:
                    counts[others[0]] += 1
        weights = np.exp(-3.0 * np.arange(size) / size)
        # p-best is rank 0 or 1 (or 2 to leave the target out), so these are never r1 as often; ranks beyond are free.
        np.testing.assert_allclose(counts[3:] / counts[3:].sum(), weights[3:] / weights[3:].sum(), atol=0.01)

    def test_crossover_rates_are_remembered_as_they_turned_out(self, problems):
        state = begin(problems, 10_000)
        state.memory[:, MAIN] = 0.5
        trials = breed(state, set_parameters(state.runs, residuals(4)), problems.lower, problems.upper)
        for index in range(4):
            span = slice(trials.starts[index], trials.starts[index + 1])
            parents = living(state, index, FRONT)[trials.targets[span]]
            # A crossed coordinate differs from the parent's, but for coincidences that doubles do not have.
            np.testing.assert_allclose(trials.rates[span], (trials.points[span] != parents).mean(axis=1))
        assert trials.rates.mean() == pytest.approx(0.55, abs=0.05)  # one of ten coordinates is crossed anyway
        assert trials.rates.min() >= 0.1

    def test_memory_of_ones_crosses_nearly_everything(self):
        # Rates above 1 are clipped, the mean of max(0, normal) is 1 / sqrt(2 pi); one of three coordinates is forced.
        expected = 1.0 - 2.0 / 3.0 * 0.05 / math.sqrt(2.0 * math.pi)
        assert Bred(generations=2000).rates.mean() == pytest.approx(expected, abs=0.002)

    def test_scale_factors_have_the_mean_and_spread_of_the_parameters(self):
        for chosen in ({}, {"mean_scale_factor": -0.5, "scale_factor_spread": 0.5}, {"scale_factor_spread": 1.0}):
            factors = self.scale_factors(**chosen)
            parameters = Bred(generations=1, success_rate=1.0, **chosen).parameters[0]
            mean, spread = parameters["mean_scale_factor"], parameters["scale_factor_spread"]
            assert factors.min() >= 0.0
            assert factors.max() <= 1.0
            if spread < 0.1:
                assert factors.mean() == pytest.approx(mean, abs=4 * spread / math.sqrt(len(factors)))
                assert factors.std() == pytest.approx(spread, rel=0.1)

    def scale_factors(self, **chosen: float):
        """Return F of many trials."""
        size = 40
        lower, upper = np.full((1, 2), -1e9), np.full((1, 2), 1e9)
        state = start(make_keys(1), np.zeros((size, 2)), np.array([0, size]), np.zeros(size), 10**9, lower, upper)
        # p-best is one of the first two ranks, where coordinate 1 is -1; elsewhere it is 0, so v = -F unless r2 is the
        # other of the two.
        state.positions[0, TOP, :2, 1] = -1.0
        state.runs["success_rate"] = 1.0
        parameters, factors = set_parameters(state.runs, residuals(1, **chosen)), []
        for generation in range(300):
            state.runs["generation"] = generation
            factors.append(-breed(state, parameters, lower, upper).points[:, 1])
        numbers = np.concatenate(factors)
        return numbers[numbers > 0.0]

    def test_trials_stay_in_the_box(self, problems):
        state = begin(problems, 10_000)
        for chosen in ({}, {"mean_scale_factor": 1.0, "noise_probability": 1.0, "eigenvector_probability": 1.0}):
            for crossover in (0.0, -1.0):
                numbers = residuals(4, crossover_shift=crossover, **chosen)
                trials = breed(state, set_parameters(state.runs, numbers), problems.lower, problems.upper)
                assert (trials.points >= -100.0).all()
                assert (trials.points <= 100.0).all()

    def test_outside_coordinates_are_drawn_anew_or_go_halfway_to_the_bound(self):
        lower, upper = np.zeros((1, 1)), np.ones((1, 1))
        state = start(make_keys(1), np.full((40, 1), 0.9), np.array([0, 40]), np.zeros(40), 10**6, lower, upper)
        # p-best is one of the first two ranks: donors lie far above the bound, unless r2 is the other of the two.
        state.positions[0, TOP] = -50.0
        state.positions[0, TOP, :2] = 50.0
        state.runs["success_rate"] = 1.0
        trials = breed(state, set_parameters(state.runs, residuals(1, midpoint_probability=1.0)), lower, upper)
        is_outside = np.round(trials.points[:, 0], 12) != 0.9
        assert is_outside.sum() > 5
        assert set(np.round(trials.points[is_outside, 0], 12)) == {0.95}
        trials = breed(state, set_parameters(state.runs, residuals(1)), lower, upper)
        assert len(set(trials.points[is_outside, 0])) == is_outside.sum()
        assert 0.0 <= trials.points.min() < 0.5 < trials.points.max() <= 1.0

    def test_pbest_weight_changes_the_pull_alone(self):
        light, heavy = Bred(generations=5, pbest_weight=-1.0), Bred(generations=5, pbest_weight=1.0)
        anchor = Bred(generations=5)
        # Coordinate 1: front[i] = front[r1] = 1 and top = 0, so v = 1 - W + F.
        low, high = 1.0 - light.points[:, 1], 1.0 - heavy.points[:, 1]
        assert anchor.points[:, 1] == pytest.approx(1.0)
        factors = low / (math.exp(-0.6) - 1.0)
        np.testing.assert_allclose(high, factors * (math.exp(0.6) - 1.0))
        assert factors.mean() == pytest.approx(anchor.parameters["mean_scale_factor"][0], abs=0.01)

    def test_ordered_triples_subtract_the_worst(self):
        # All of front is worse than top, so r1 is the worst; coordinate 1 is 1 in front and 0 in top.
        trials = Bred(generations=100, front_handicap=1000.0, triple_probability=1.0)
        crossed = trials.points[:, 1] != 1.0
        # v = 1 + F (0 - 1) + F (0 - 1)
        factors = (1.0 - trials.points[crossed, 1]) / 2.0
        assert crossed.mean() > 0.9
        assert 0.0 < factors.min() < np.quantile(factors, 0.25) < 0.45
        assert np.median(factors) == pytest.approx(0.5, abs=0.02)
        assert np.quantile(factors, 0.75) == pytest.approx(0.6, abs=0.02)  # of a Cauchy number, its scale above
        assert factors.max() <= 1.0

    def test_noise_moves_uncrossed_coordinates_alone(self, problems):
        state = begin(problems, 10_000)
        state.memory[:, MAIN] = 0.5
        quiet = breed(state, set_parameters(state.runs, residuals(4)), problems.lower, problems.upper)
        noisy = breed(
            state, set_parameters(state.runs, residuals(4, noise_probability=1.0)), problems.lower, problems.upper
        )
        np.testing.assert_array_equal(quiet.rates, noisy.rates)
        for index in range(4):
            span = slice(quiet.starts[index], quiet.starts[index + 1])
            parents = living(state, index, FRONT)[quiet.targets[span]]
            uncrossed = quiet.points[span] == parents
            np.testing.assert_array_equal(noisy.points[span][~uncrossed], quiet.points[span][~uncrossed])
            steps = np.abs(noisy.points[span][uncrossed] - parents[uncrossed])
            assert (steps > 0.0).all()
            # The median of |Cauchy(0, s)| is s: here 0.0005 of a box of width 200.
            assert np.median(steps) == pytest.approx(0.1, rel=0.35)

    def test_sparse_memory_is_used_by_a_share_of_the_trials(self):
        assert (Bred(generations=50).ways == 0).all()
        trials = Bred(generations=200, sparse_probability=1.0)
        assert (trials.ways == SPARSE_WAY).mean() == pytest.approx(0.5, abs=0.05)
        assert trials.rates[trials.ways == SPARSE_WAY].mean() < 0.6 < trials.rates[trials.ways == 0].mean()

    def test_share_of_trials_that_would_take_their_targets_place(self):
        trials = Bred(generations=200, in_place_probability=0.3)
        assert (trials.ways >> IN_PLACE).mean() == pytest.approx(0.3, abs=0.03)

    def test_crossover_along_axes_moves_within_the_crossed_ones(self):
        rng = np.random.default_rng(3)
        dimension, size = 5, 40
        lower, upper = np.full((1, dimension), -100.0), np.full((1, dimension), 100.0)
        points = rng.normal(size=(size, dimension))
        state = start(make_keys(1), points, np.array([0, size]), np.arange(size) * 1.0, 10**6, lower, upper)
        state.memory[:, MAIN] = 0.5
        state.runs["shares"] = 1.0
        parameters = set_parameters(state.runs, residuals(1, eigenvector_probability=1.0))
        trials = breed(state, parameters, lower, upper)
        np.testing.assert_array_equal(trials.ways == AXES_WAY, trials.rates < 1.0)
        moves = (trials.points - living(state, 0, FRONT)[trials.targets]) @ state.basis[0].T
        moved = np.abs(moves) > 1e-9
        partial = trials.rates < 1.0
        np.testing.assert_allclose(moved.mean(axis=1)[partial], trials.rates[partial])
        assert partial.mean() > 0.5
        np.testing.assert_allclose(state.basis[0] @ state.basis[0].T, np.eye(dimension), atol=1e-12)


def turn(basis, points, lower, upper):
    """Turn a basis (D, D) towards the axes of points (K, D)."""
    count, dimension = points.shape
    memory = np.full(turning_size(count, dimension), np.nan)
    turn_axes(basis.reshape(-1), points.ravel(), np.arange(count), count, dimension, lower, upper, memory)


class TestAxes:
    def test_axes_are_eigenvectors_of_the_covariance_in_units_of_the_box(self):
        rng, dimension = np.random.default_rng(5), 6
        points = (
            rng.normal(size=(300, dimension)) * np.arange(1, dimension + 1) @ rng.normal(size=(dimension, dimension))
        )
        lower, upper = np.full(dimension, -50.0), np.linspace(10.0, 60.0, dimension)
        basis = np.eye(dimension)
        for _ in range(3):
            turn(basis, points, lower, upper)
        along = (points - lower) / (upper - lower) @ basis.T
        covariance = np.cov(along.T, bias=True)
        scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
        assert (np.abs(covariance - np.diag(np.diag(covariance))) < 1e-5 * scale).all()
        expected = np.linalg.eigvalsh(np.cov(((points - lower) / (upper - lower)).T, bias=True))
        np.testing.assert_allclose(np.sort(np.diag(covariance)), expected, rtol=1e-6)

    def test_axes_of_a_single_point_stay_what_they_are(self):
        basis = np.eye(3)
        turn(basis, np.ones((4, 3)), np.zeros(3), np.full(3, 2.0))
        np.testing.assert_array_equal(basis, np.eye(3))


def nested(points):
    """Two valleys, of which the wrong one, around zero, ends at 1; the right one is narrow."""
    distance = np.abs(points - 0.9).max(axis=1)
    return np.minimum(1.0 + (points**2).sum(axis=1), 20.0 * distance)


def first_points():
    return np.random.default_rng(3).uniform(2.0, 3.0, (16, 2))


class TestRestarts:
    """Populations with nothing left to find begin anew; what was found is kept."""

    def stuck(self, values, stagnation=10, **chosen):
        """Return a run of 16 individuals with these values in [2, 3], and its state after one generation."""
        points, size = first_points(), 16
        bounds = np.full((1, 2), -1.0), np.full((1, 2), 3.0)
        state = start(make_keys(1), points, np.array([0, size]), values, 10**6, *bounds)
        state.runs["stagnation"], state.runs["success_rate"], state.memory[:] = stagnation, 0.1, 0.4
        parameters, made = set_parameters(state.runs, residuals(1, **chosen)), []
        trials = breed(state, parameters, *bounds)
        while len(trials.points):
            made.append(trials.points.copy())
            select(state, parameters, trials, 8.0 + trials.points[:, 0])
            trials = breed(state, parameters, *bounds, begins=False)
        return state, np.concatenate(made)

    def test_new_points_lie_anywhere_and_the_rule_begins_anew(self):
        state, made = self.stuck(np.full(16, 5.0), restart_probability=1.0)
        run = state.runs[0]
        assert made.shape == (16, 2)
        assert made.min() < 0.0
        assert made.max() > 2.0
        assert np.unique(made).size == made.size
        np.testing.assert_array_equal(np.sort(8.0 + made[:, 0])[: run["size"]], state.fitness[0, TOP, : run["size"]])
        assert (run["best_fitness"], run["leading_fitness"]) == (5.0, 8.0 + made[:, 0].min())
        assert (run["stagnation"], run["success_rate"], run["lasting_success_rate"]) == (0, 0.5, 0.5)
        np.testing.assert_array_equal(state.former_best[0], first_points()[0])
        np.testing.assert_array_equal(state.memory[0].T, [[1.0, 0.2]] * MEMORY_SIZE)

    def test_equal_values_are_equal_up_to_rounding_errors(self):
        nearly, apart = 5.0 + 1e-12 * np.arange(16) / 2, 5.0 + 1e-11 * np.arange(16)
        assert self.stuck(nearly, restart_probability=1.0)[0].runs["leading_fitness"][0] > 7.0
        state, made = self.stuck(apart, restart_probability=1.0)
        assert state.runs["leading_fitness"][0] == 5.0
        np.testing.assert_array_equal(made, self.stuck(apart)[1])

    def test_whoever_does_not_ask_stays(self):
        state, _ = self.stuck(np.full(16, 5.0), restart_probability=-1.0)
        assert (state.runs["leading_fitness"][0], state.runs["stagnation"][0]) == (5.0, 11)

    def test_who_improved_a_moment_ago_stays(self):
        state, _ = self.stuck(np.full(16, 5.0), stagnation=9, restart_probability=1.0)
        assert (state.runs["leading_fitness"][0], state.runs["stagnation"][0]) == (5.0, 10)

    def test_restarts_find_what_the_first_population_missed(self):
        problems = ProblemBatch([function(nested, -1.0, 1.0, 2)] * 10)
        ends = [
            run_to_end(begin(problems, 20_000, 30), problems, residuals(10, restart_probability=chosen)).runs
            for chosen in (0.0, 1.0)
        ]
        missed, found = (np.mean(runs["best_fitness"] < 0.9) for runs in ends)
        assert missed < 0.7
        assert found >= 0.9


def selected(front, targets, values, rates=None, ways=None, cursor=0, size_factor=0.0, budget=10**9, share=0.5):
    """Return a run of one coordinate after one generation of hand-made trials; a point's coordinate is its value."""
    size, count = len(front), len(values)
    lower, upper = np.full((1, 1), -1e9), np.full((1, 1), 1e9)
    points = np.array(front, float)[:, None]
    state = start(make_keys(1), points, np.array([0, size]), points[:, 0], budget, lower, upper)
    state.runs["cursor"], state.runs["shares"] = cursor, share
    trials = Trials(
        np.array(values, float)[:, None],
        np.array([0, count]),
        np.array(targets),
        np.ones(count) if rates is None else np.array(rates, float),
        np.zeros(count, np.int64) if ways is None else np.array(ways),
    )
    in_place = float(ways is not None and (np.array(ways) >> IN_PLACE).any())
    parameters = set_parameters(state.runs, residuals(1, size_factor=size_factor, in_place_probability=in_place))
    select(state, parameters, trials, np.array(values, float))
    return state


class TestSelection:
    def test_successes_take_the_slots_of_front_in_turn(self):
        state = selected([1.0, 2.0, 3.0, 4.0], [3, 0, 2, 1], [3.5, 9.0, 2.5, 8.0])
        np.testing.assert_array_equal(state.fitness[0, FRONT, :4], [3.5, 2.5, 3.0, 4.0])
        np.testing.assert_array_equal(living(state, 0, FRONT)[:, 0], [3.5, 2.5, 3.0, 4.0])
        np.testing.assert_array_equal(state.ranking[0, :4], [1, 2, 0, 3])
        assert (state.runs["cursor"][0], state.runs["num_successes"][0]) == (2, 2)
        assert state.runs["success_rate"][0] == 0.5

    def test_slots_are_taken_in_a_circle(self):
        state = selected([1.0, 2.0, 3.0, 4.0], [3, 2, 0, 0], [3.5, 2.5, 9.0, 9.0], cursor=3)
        np.testing.assert_array_equal(state.fitness[0, FRONT, :4], [2.5, 2.0, 3.0, 3.5])
        np.testing.assert_array_equal(living(state, 0, TOP)[:, 0], [1.0, 2.0, 2.5, 3.0])
        assert state.runs["cursor"][0] == 1

    def test_successes_may_take_the_place_of_their_target(self):
        # The first moves 1, the oldest, to where its target was, and the third wins against it there.
        ways = np.array([1, 0, 1, 1]) << IN_PLACE
        state = selected([1.0, 2.0, 3.0, 4.0], [3, 2, 3, 0], [3.5, 9.0, 0.5, 3.2], ways=ways)
        # The last wins against the first, which has entered in this generation and stays.
        np.testing.assert_array_equal(state.fitness[0, FRONT, :4], [3.5, 0.5, 3.2, 2.0])
        np.testing.assert_array_equal(living(state, 0, FRONT)[:, 0], [3.5, 0.5, 3.2, 2.0])
        np.testing.assert_array_equal(state.ranking[0, :4], [1, 3, 2, 0])
        assert state.runs["cursor"][0] == 3

    def test_top_keeps_the_best_of_old_and_new(self):
        # The last competes with slot 1, which the second has just taken.
        state = selected([1.0, 2.0, 3.0, 4.0], [3, 2, 0, 1], [0.5, 2.5, 9.0, 1.0])
        np.testing.assert_array_equal(state.fitness[0, TOP, :4], [0.5, 1.0, 1.0, 2.0])
        np.testing.assert_array_equal(living(state, 0, TOP)[:, 0], [0.5, 1.0, 1.0, 2.0])
        assert state.runs["best_fitness"][0] == 0.5
        assert state.runs["stagnation"][0] == 0

    def test_stagnation_counts_generations_without_a_new_best(self):
        state = selected([1.0, 2.0, 3.0, 4.0], [3, 2, 1, 0], [1.0, 1.0, 1.0, 1.0])
        assert state.runs["stagnation"][0] == 1

    def test_worst_of_front_leave_and_the_others_keep_their_order(self):
        front = np.arange(8.0)
        # Five of eight remain where the plan says 4 + (7 - 4) exp(-1.2) = 4.9.
        state = selected(front, range(8), [7.0] * 6 + [0.5, 6.5], cursor=5, size_factor=-1.0)
        # Slots 5 and 6 were taken by 0.5 and 6.5; then 7, 6.5, 4 and 3 are the worst.
        assert state.runs["size"][0] == 4
        np.testing.assert_array_equal(state.fitness[0, FRONT, :4], [0.0, 1.0, 2.0, 0.5])
        np.testing.assert_array_equal(living(state, 0, FRONT)[:, 0], [0.0, 1.0, 2.0, 0.5])
        np.testing.assert_array_equal(state.ranking[0, :4], [0, 3, 1, 2])
        np.testing.assert_array_equal(state.fitness[0, TOP, :4], [0.0, 0.5, 1.0, 2.0])
        assert 0 <= state.runs["cursor"][0] < 4

    def test_a_stretched_plan_does_not_let_populations_grow(self):
        # The plan says 4 + (7 - 4) exp(1.2) = 13.9.
        assert selected(np.arange(8.0), range(8), [99.0] * 8, size_factor=1.0).runs["size"][0] == 8

    def test_memory_moves_halfway_to_the_weighted_lehmer_mean(self):
        # Gains 1 and 3, of trials crossed in a fifth and a half of their coordinates.
        state = selected([10.0, 20.0, 30.0, 40.0], [3, 2, 0, 0], [39.0, 27.0, 99.0, 99.0], rates=[0.2, 0.5, 1.0, 1.0])
        mean = (1.0 * 0.2**2 + 3.0 * 0.5**2) / (1.0 * 0.2 + 3.0 * 0.5)
        np.testing.assert_allclose(state.memory[0, MAIN], [0.5 * (1.0 + mean), 1.0, 1.0, 1.0, 1.0])
        np.testing.assert_array_equal(state.runs["memory_slots"][0], [1, 0])

    def test_success_that_takes_the_slot_of_its_target_gains_nothing(self):
        # The first success takes slot 0, its own target's.
        state = selected([10.0, 20.0, 30.0, 40.0], [0, 2, 0, 0], [5.0, 27.0, 99.0, 99.0], rates=[0.2, 0.5, 1.0, 1.0])
        np.testing.assert_allclose(state.memory[0, MAIN, 0], 0.5 * (1.0 + 0.5))

    def test_memory_moves_towards_one_where_nothing_was_gained(self):
        front = [10.0, 20.0, 30.0, 40.0]
        state = selected(front, [3, 0, 0, 0], [40.0, 99.0, 99.0, 99.0], rates=[0.2, 1.0, 1.0, 1.0])
        assert state.memory[0, MAIN, 0] == 1.0
        assert state.runs["memory_slots"][0, MAIN] == 1

    def test_memory_stays_where_nobody_succeeded(self):
        state = selected([1.0, 2.0, 3.0, 4.0], [0, 0, 0, 0], [9.0, 9.0, 9.0, 9.0])
        np.testing.assert_array_equal(state.memory[0, MAIN], np.ones(MEMORY_SIZE))
        np.testing.assert_array_equal(state.runs["memory_slots"][0], [0, 0])

    def test_each_memory_learns_from_its_own_successes(self):
        ways, rates = [SPARSE_WAY, 0, 0, SPARSE_WAY], [0.1, 0.9, 1.0, 0.3]
        state = selected([10.0, 20.0, 30.0, 40.0], [3, 2, 0, 3], [39.0, 29.0, 99.0, 36.0], rates, ways)
        # The last is compared with slot 3 as it is then, which nobody has taken: gains 1 and 4.
        mean = (1.0 * 0.1**2 + 4.0 * 0.3**2) / (1.0 * 0.1 + 4.0 * 0.3)
        assert state.memory[0, SPARSE, 0] == pytest.approx(0.5 * (0.2 + mean))
        assert state.memory[0, MAIN, 0] == pytest.approx(0.5 * (1.0 + 0.9))
        # Per trial the sparse ones gained 5 / 2 and the others 1 / 2.
        assert state.runs["shares"][0, FROM_SPARSE] == pytest.approx(0.9 * 0.5 + 0.1 * 2.5 / 3.0)

    @pytest.mark.parametrize(
        ("ways", "before", "after"),
        [
            ([SPARSE_WAY, 0, 0, 0], 0.5, 0.45),
            ([SPARSE_WAY, 0, 0, 0], 0.1, 0.1),
            ([0, SPARSE_WAY, SPARSE_WAY, SPARSE_WAY], 0.5, 0.55),
            ([0, SPARSE_WAY, SPARSE_WAY, SPARSE_WAY], 0.9, 0.9),
        ],
    )
    def test_share_of_the_sparse_memory_stays_between_a_tenth_and_nine_tenths(self, ways, before, after):
        # The second trial is the only one that succeeds.
        state = selected([10.0, 20.0, 30.0, 40.0], [0, 3, 0, 0], [99.0, 29.0, 99.0, 99.0], ways=ways, share=before)
        assert state.runs["shares"][0, FROM_SPARSE] == pytest.approx(after)

    def test_crossover_along_axes_is_compared_with_other_partial_trials_alone(self):
        # Gains 4 of two partial trials along axes, 1 of one other partial trial; whole trials, which gain most, could
        # not have been made along axes.
        front, values = [10.0, 20.0, 30.0, 40.0, 50.0], [46.0, 39.0, 99.0, 5.0, 99.0]
        rates, ways = [0.5, 0.5, 0.5, 1.0, 1.0], [AXES_WAY, 0, AXES_WAY, 0, 0]
        state = selected(front, [4, 3, 0, 2, 2], values, rates, ways)
        assert state.runs["shares"][0, ALONG_AXES] == pytest.approx(0.9 * 0.5 + 0.1 * (4 / 2) / (4 / 2 + 1 / 1))
        assert state.runs["shares"][0, FROM_SPARSE] == 0.5
        assert not state.runs["num_tried"].any()
        assert not state.runs["num_compared"].any()

    def test_infinite_values_and_gains_are_harmless(self):
        state = selected([1.0, np.inf, np.inf, np.inf], [1, 2, 3, 0], [5.0, np.nan, -1e308, 1.0], [0.5, 1.0, 0.5, 0.25])
        assert state.runs["best_fitness"][0] == -1e308
        assert np.isfinite(state.memory).all()
        np.testing.assert_array_equal(state.fitness[0, TOP, :4], [-1e308, 1.0, 1.0, 5.0])

    def test_moving_averages_of_the_success_rate(self):
        state = selected([1.0, 2.0, 3.0, 4.0], [0, 0, 0, 0], [9.0, 9.0, 9.0, 9.0])
        assert state.runs["recent_success_rate"][0] == pytest.approx(0.45)
        assert state.runs["lasting_success_rate"][0] == pytest.approx(0.49)


class TestRuns:
    def test_batch_does_not_matter(self, problems):
        together = begin(problems, 4_000, 60)
        numbers = np.random.default_rng(1).uniform(-1.0, 1.0, (4, len(CONTROLS)))
        initial = take_runs(together, np.arange(4))
        for _ in range(12):
            features = advance(together, problems, numbers)
        for index in range(4):
            rows = np.array([index])
            alone = take_runs(initial, rows)
            for _ in range(12):
                own = advance(alone, problems.take(rows), numbers[rows])
            assert_same_runs(alone, take_runs(together, rows))
            np.testing.assert_array_equal(own[0], features[index])

    def test_runs_of_different_sizes_and_budgets_share_a_batch(self, problems):
        budgets, sizes = np.array([500, 1000, 60, 2000]), np.array([20, 60, 30, 8])
        state = run_to_end(begin(problems, budgets, sizes), problems)
        np.testing.assert_array_equal(state.runs["evaluations"], budgets)
        alone = run_to_end(begin(problems, 2000, 8), problems)
        assert_same_runs(take_runs(alone, np.array([3])), take_runs(state, np.array([3])))

    @pytest.mark.parametrize("chosen", [{}, dict.fromkeys(NAMES, 0.7)])
    def test_python_functions_give_the_same_runs_as_compiled_ones(self, suite, chosen):
        problem = suite[10]
        plain = function(problem.evaluate, -100.0, 100.0, 10)
        compiled, apart = ProblemBatch([problem] * 3), ProblemBatch([plain] * 3)
        assert apart.programs is None
        numbers, one, other = residuals(3, **chosen), begin(compiled, 3_000, 50), begin(apart, 3_000, 50)
        while not has_ended(one).all():
            np.testing.assert_array_equal(advance(one, compiled, numbers), advance(other, apart, numbers))
        assert_same_runs(one, other)

    @pytest.mark.parametrize("budget", [4, 61, 67, 100, 1001])
    def test_budget_is_spent_and_never_exceeded(self, suite, budget):
        counted = []

        def count(points):
            counted.append(len(points))
            return suite[6].evaluate(points)

        problems = ProblemBatch([function(count, -100.0, 100.0, 10)])
        state = run_to_end(begin(problems, budget, min(budget, 60)), problems)
        assert state.runs["evaluations"][0] == budget == sum(counted)

    def test_run_ends_with_the_generation_that_reaches_its_target(self, suite):
        problems = ProblemBatch([suite[1], suite[1]])
        target = np.array([suite[1].optimum + 1e-8, -np.inf])
        state = begin(problems, 30_000, target_fitness=target)
        for _ in range(400):
            advance(state, problems, residuals(2))
        assert state.runs["best_fitness"][0] < target[0]
        assert state.runs["evaluations"][0] < state.runs["evaluations"][1]
        np.testing.assert_array_equal(has_ended(state), [True, state.runs["evaluations"][1] == 30_000])

    def test_ended_run_stays_what_it_is(self, problems):
        state = run_to_end(begin(problems, 300, 30), problems)
        before = take_runs(state, np.arange(4))
        advance(state, problems, residuals(4, mean_scale_factor=1.0))
        assert_same_runs(state, before)

    def test_restarting_one_run_leaves_the_others(self, problems):
        state, other = begin(problems, 3_000, 50), begin(problems, 3_000, 50)
        for _ in range(5):
            advance(state, problems, residuals(4))
            advance(other, problems, residuals(4))
        row = np.array([2])
        fresh = begin(problems.take(row), 1_000, 20, seed=9, capacity=50)
        put_runs(state, row, fresh)
        assert_same_runs(take_runs(state, row), fresh)
        for _ in range(5):
            advance(state, problems, residuals(4))
            advance(other, problems, residuals(4))
        kept = np.array([0, 1, 3])
        assert_same_runs(take_runs(state, kept), take_runs(other, kept))
        assert state.runs["generation"][2] == 5

    def test_best_never_worsens_and_is_the_best_of_all_points(self, suite):
        seen = [np.inf]

        def remember(points):
            values = suite[8].evaluate(points)
            seen.append(values.min())
            return values

        problems = ProblemBatch([function(remember, -100.0, 100.0, 10)])
        state = begin(problems, 3_000, 50)
        while not has_ended(state).all():
            advance(state, problems, residuals(1))
            assert state.runs["best_fitness"][0] == min(seen) == state.fitness[0, TOP, 0]

    @pytest.mark.parametrize("in_place", [0.0, 0.5, 1.0])
    def test_populations_are_what_their_orders_say(self, problems, in_place):
        state = begin(problems, 4_000, 60)
        while not has_ended(state).all():
            advance(state, problems, residuals(4, in_place_probability=in_place))
            for index in range(4):
                size = state.runs["size"][index]
                for population in (TOP, FRONT):
                    assert len(set(state.rows[index, population, :size])) == size
                    points = living(state, index, population)
                    values = problems.take(np.array([index])).evaluate(points[None])[0]
                    np.testing.assert_array_equal(values, state.fitness[index, population, :size])
                assert (np.diff(state.fitness[index, TOP, :size]) >= 0.0).all()
                ranked = state.fitness[index, FRONT, state.ranking[index, :size]]
                assert (np.diff(ranked) >= 0.0).all()
                assert sorted(state.ranking[index, :size]) == list(range(size))

    def test_values_that_are_no_numbers_do_not_stop_a_run(self):
        def broken(points):
            values = (points**2).sum(axis=1)
            values[points[:, 0] > 0.3] = np.nan
            values[points[:, 0] < -0.3] = np.inf
            return values

        problems = ProblemBatch([function(broken, -1.0, 1.0, 4)])
        state = begin(problems, 4_000, 40)
        while not has_ended(state).all():
            features = advance(state, problems, residuals(1, sparse_probability=1.0))
            assert np.isfinite(features).all()
        assert state.runs["best_fitness"][0] < 1e-6
        assert np.isfinite(state.memory).all()

    def test_flat_function_runs_to_its_end(self):
        problems = ProblemBatch([function(lambda x: np.full(len(x), np.inf), -1.0, 1.0, 2)])
        state = run_to_end(begin(problems, 1_000, 40), problems, residuals(1, **dict.fromkeys(NAMES, 1.0)))
        assert state.runs["evaluations"][0] == 1_000

    @pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5, 11])
    def test_any_dimension(self, dimension):
        problems = ProblemBatch([function(lambda x: ((x - 0.3) ** 2).sum(1), -1.0, 1.0, dimension)])
        state = run_to_end(begin(problems, 3000), problems, residuals(1, eigenvector_probability=0.5))
        assert state.runs["best_fitness"][0] < 1e-3

    def test_success_rate_steers_scale_factor_and_memory_moves_from_its_start(self, suite):
        problems = ProblemBatch([suite[10]])
        state, rates = begin(problems, 20_000), []
        while not has_ended(state).all():
            advance(state, problems, residuals(1))
            rates.append(state.runs["success_rate"][0])
        assert max(rates) > 0.3
        assert min(rates) < 0.05
        assert (state.memory[0, MAIN] < 1.0).any()

    def test_solves_what_it_should(self, suite):
        """F1, F3 and F4 of CEC'17 within the competition's budget, as the published runs do."""
        chosen = [suite[1], suite[3], suite[4]] * 2
        problems = ProblemBatch(chosen)
        state = run_to_end(begin(problems, 100_000, target_fitness=problems.optimum + 1e-8), problems)
        assert (state.runs["best_fitness"] - problems.optimum < 1e-8).all()


class TestFeatures:
    def feature(self, features, name):
        return features[:, [feature.name for feature in FEATURES].index(name)]

    def test_at_the_start(self, problems):
        features = observe(begin(problems, 20_000, 60), problems.lower, problems.upper)
        expected = {
            "spent": 60 / 20_000,
            "success_rate": 0.5,
            "recent_success_rate": 0.5,
            "lasting_success_rate": 0.5,
            "diversity": 0.0,
            "spread": 0.0,
            "stagnation": 0.0,
            "crossover_memory": 1.0,
            "front_to_top": 0.0,
            "dimension": 0.0,
            "budget": math.log10(0.2),
        }
        assert [feature.name for feature in FEATURES] == list(expected)
        np.testing.assert_allclose(features, np.tile(list(expected.values()), (4, 1)), rtol=1e-6)

    def test_diversity_and_spread_by_hand(self, problems):
        state = begin(problems, 20_000, 60)
        for _ in range(30):
            features = advance(state, problems, residuals(4))
        for index in range(4):
            run = state.runs[index]
            size = run["size"]
            deviation = math.sqrt(((living(state, index, FRONT) / 200.0).var(axis=0)).mean())
            expected = math.log10(deviation / run["initial_diversity"]) / 4.0
            assert self.feature(features, "diversity")[index] == pytest.approx(expected, rel=1e-5)
            spread = state.fitness[index, TOP, size // 2] - state.fitness[index, TOP, 0]
            expected = math.log10(spread / run["initial_spread"]) / 4.0
            assert self.feature(features, "spread")[index] == pytest.approx(expected, rel=1e-5)
            front = np.sort(state.fitness[index, FRONT, :size])
            expected = math.log10((front[size // 2] - front[0]) / spread)
            assert self.feature(features, "front_to_top")[index] == pytest.approx(expected, rel=1e-4, abs=1e-6)
            expected = math.log10(1.0 + run["stagnation"])
            assert self.feature(features, "stagnation")[index] == pytest.approx(expected)

    def test_units_do_not_matter(self):
        def bowl(points):
            return (np.arange(1, 4) * points**2).sum(axis=1)

        plain = ProblemBatch([function(bowl, -1.0, 1.0, 3)])
        scaled = ProblemBatch([function(lambda x: 1024.0 * bowl(x / 4096.0), -4096.0, 4096.0, 3)])
        one, other = begin(plain, 2_000, 30), begin(scaled, 2_000, 30)
        numbers = residuals(1, eigenvector_probability=0.5, noise_probability=0.5, crossover_shift=-1.0)
        while not has_ended(one).all():
            np.testing.assert_array_equal(advance(one, plain, numbers), advance(other, scaled, numbers))
        assert other.runs["best_fitness"][0] == 1024.0 * one.runs["best_fitness"][0]

    def test_stay_within_their_bounds(self, suite):
        problems = ProblemBatch([suite[1], suite[6], suite[21]])
        state = begin(problems, 100_000)
        while not has_ended(state).all():
            features = advance(state, problems, residuals(3))
            assert (np.abs(features) <= LARGEST_FEATURE).all()


class TestDoor:
    def test_residuals_of_the_wrong_shape_are_refused(self, problems):
        state = begin(problems, 1_000, 30)
        with pytest.raises(ValueError, match=r"`residuals` must have shape \(4, 15\), .* got \(4, 2\)"):
            advance(state, problems, np.zeros((4, 2)))
        with pytest.raises(ValueError, match="`residuals` must be numbers, got NaN"):
            advance(state, problems, np.full((4, 15), np.nan))

    def test_bounds_of_the_wrong_shape_are_refused(self, problems):
        state = begin(problems, 1_000, 30)
        with pytest.raises(ValueError, match=r"Bounds must have shape \(4, 10\)"):
            observe(state, problems.lower[:2], problems.upper[:2])

    def test_parameters_and_values_of_others_are_refused(self, problems):
        state = begin(problems, 1_000, 30)
        parameters = set_parameters(state.runs, residuals(4))
        with pytest.raises(ValueError, match="`parameters` must be what `set_parameters` returns for 4 runs"):
            breed(state, parameters[:2], problems.lower, problems.upper)
        trials = breed(state, parameters, problems.lower, problems.upper)
        with pytest.raises(ValueError, match="one value per trial"):
            select(state, parameters, trials, np.zeros(3))
        select(state, parameters, trials, np.zeros(len(trials.points)))
        outside = trials._replace(targets=trials.targets + 30)
        with pytest.raises(ValueError, match="`trials` must be what `breed` returned"):
            select(state, parameters, outside, np.zeros(len(trials.points)))
        parameters["rank_pressure"] = 0.0
        with pytest.raises(ValueError, match="rank pressure above zero"):
            breed(state, parameters, problems.lower, problems.upper)

    def test_starts_that_make_no_sense_are_refused(self, problems):
        lower, upper, points = problems.lower[:1], problems.upper[:1], np.zeros((8, 10))
        keys, values, starts = make_keys(1), np.zeros(8), np.array([0, 8])
        with pytest.raises(ValueError, match="one value per point"):
            start(keys, points, starts, values[:3], 100, lower, upper)
        with pytest.raises(ValueError, match="`starts` must rise from 0 to 8"):
            start(keys, points, np.array([0, 7]), values, 100, lower, upper)
        with pytest.raises(ValueError, match="at least 4 initial points"):
            start(keys, points[:3], np.array([0, 3]), values[:3], 100, lower, upper)
        with pytest.raises(ValueError, match="no more than its budget of 5"):
            start(keys, points, starts, values, 5, lower, upper)
        with pytest.raises(ValueError, match="`capacity` must be at least 8"):
            start(keys, points, starts, values, 100, lower, upper, capacity=5)
        with pytest.raises(ValueError, match=r"Bounds must have shape \(1, 10\)"):
            start(keys, points, starts, values, 100, lower[:, :3], upper, capacity=8)
