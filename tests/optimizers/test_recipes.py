"""What each method of the paper is named for happens during its runs."""

from __future__ import annotations

import numpy as np
import pytest

from de_gym import Problem
from de_gym.controllers.jso import JSOSettings
from de_gym.optimizers import METHODS, run
from de_gym.optimizers.recipes import (
    CDESettings,
    CoBiDEPCMSettings,
    CoBiDESettings,
    DESettings,
    JADESettings,
)


@pytest.mark.parametrize(
    ("name", "dimension", "size"),
    [
        ("de", 10, 50), ("de", 30, 150), ("jade", 2, 30), ("jade", 10, 30), ("jade", 30, 100), ("jade", 100, 400),
        ("jso", 1, 25), ("jso", 2, 25), ("jso", 10, 182), ("jso", 30, 466), ("cobide", 10, 60), ("cobide", 30, 60),
        ("cobide-pcm", 10, 50), ("cobide-pcm", 30, 150), ("cde", 10, 20), ("cde", 30, 60), ("cde-pcm", 10, 50),
    ],
)  # fmt: skip
def test_population_sizes_are_the_papers(generations, name, dimension, size):
    points, _ = next(generations(METHODS[name](), num_runs=1, dimension=dimension))
    assert len(points) == size


def test_de_has_constant_parameters(generations):
    optimizer = METHODS["de"](DESettings(scale_factor=0.4, crossover_rate=0.3))
    steps = generations(optimizer)
    _, first = next(steps)
    assert optimizer.last_parameters is None
    next(steps)
    assert np.all(optimizer.last_parameters.scale_factors == 0.4)
    assert np.all(optimizer.last_parameters.crossover_rates == 0.3)
    assert np.array_equal(optimizer.last_parameters.parent_fitness, first.reshape(3, -1))


def test_de_crosses_the_share_of_the_rate_and_one_more(generations):
    steps = generations(METHODS["de"](DESettings(population_size=200)), num_runs=20, dimension=10)
    parents, _ = next(steps)
    trials, _ = next(steps)
    assert np.mean(trials != parents) == pytest.approx(0.8 + 0.2 / 10, abs=0.01)


def test_jades_means_move_from_one_half(generations):
    optimizer = METHODS["jade"]()
    for step, _ in enumerate(generations(optimizer)):
        if step == 30:
            break
    assert np.all(np.abs(optimizer.controller.means - 0.5) > 1e-3)


def archived(optimizer):
    state = optimizer._state
    return state.positions[0, state.capacity : state.capacity + state.runs[0]["archive_size"]]


@pytest.mark.parametrize("name", ["jade-archive", "jso"])
def test_archives_fill_with_beaten_parents_up_to_the_population_size(generations, name):
    optimizer = METHODS[name]()
    parents, full = set(), False
    for step, _ in enumerate(generations(optimizer, num_runs=1, max_evaluations=20_000)):
        size = optimizer._state.runs[0]["size"]
        members = {tuple(row) for row in archived(optimizer)}
        population = {tuple(row) for row in optimizer.population[0][0]}
        assert len(archived(optimizer)) <= size
        assert members <= parents
        assert step != 1 or (members and not members & population)
        parents |= population
        full |= len(archived(optimizer)) == size
    assert full


def test_jade_without_archive_has_none(generations):
    optimizer = METHODS["jade"]()
    for _ in generations(optimizer, max_evaluations=500):
        assert not optimizer._state.runs["archive_size"].any()


def test_jsos_population_follows_the_linear_plan_to_four(generations):
    optimizer = METHODS["jso"]()
    steps = generations(optimizer, num_runs=2, dimension=10, max_evaluations=20_000)
    next(steps)
    for _ in steps:
        planned = int(182 - 178 * optimizer.evaluations[0] / 20_000 + 0.5)
        assert optimizer.population[1].shape == (2, planned)
    assert planned == 4


def test_jsos_memory_moves_in_every_entry_in_turn(generations):
    optimizer = METHODS["jso"]()
    for step, _ in enumerate(generations(optimizer)):
        if step == 1:
            assert np.all(optimizer.controller.memory[:, 0, 1:] == 0.3)
            assert np.all(optimizer.controller.memory[:, 0, 0] != 0.3)
        if step == 7:
            break
    assert not np.any(optimizer.controller.memory[:, 0] == 0.3)
    assert not np.any(optimizer.controller.memory[:, 1] == 0.8)


def test_lde_paper_settings_cap_the_archive_and_start_higher(generations):
    optimizer = METHODS["jso-lde-paper"]()
    largest = 0
    for step, _ in enumerate(generations(optimizer, num_runs=1)):
        assert step > 0 or np.all(optimizer.controller.memory[:, 0] == 0.5)
        largest = max(largest, len(archived(optimizer)))
    assert largest == 20


@pytest.mark.parametrize("name", ["cobide", "cobide-pcm"])
def test_successful_individuals_keep_their_parameters_and_others_do_not(generations, name):
    optimizer = METHODS[name]()
    before, kept, succeeded = None, np.empty(0, bool), 0
    for step, _ in enumerate(generations(optimizer)):
        parameters = optimizer.last_parameters
        if before is not None:
            assert np.array_equal(parameters.scale_factors[kept], before.scale_factors[kept])
            assert np.array_equal(parameters.crossover_rates[kept], before.crossover_rates[kept])
            # Fresh draws repeat only at the ends of the range.
            repeated = parameters.scale_factors[~kept] == before.scale_factors[~kept]
            assert np.all(parameters.scale_factors[~kept][repeated] == 1.0)
        before, kept = parameters, optimizer._state.improvements >= 0.0
        succeeded += kept.sum()
        if step == 10:
            break
    assert succeeded > 0


def test_cobides_covariance_learning_pays_off_on_a_rotated_ellipsoid():
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 6)))[0]
    scales = 10.0 ** np.linspace(0.0, 3.0, 6)

    def ellipsoid(points):
        return np.sum((points @ rotation * scales) ** 2, axis=1)

    problem = Problem.from_function(ellipsoid, -100.0, 100.0, 0.0, dimension=6, vectorized=True)
    with_learning = run(METHODS["cobide"](), problem, num_runs=5, seed=2)
    without = run(METHODS["cobide"](CoBiDESettings(eigen_probability=0.0)), problem, num_runs=5, seed=2)
    assert np.median(with_learning.evaluations) < 0.8 * np.median(without.evaluations)


def test_cobide_pcm_uses_the_best_individual(generations):
    optimizer = METHODS["cobide-pcm"](CoBiDEPCMSettings(population_size=30))
    steps = generations(optimizer, num_runs=1)
    parents, fitness = next(steps)
    trials, _ = next(steps)
    best, factors = parents[fitness.argmin()], optimizer.last_parameters.scale_factors[0]
    # Every changed coordinate inside the box is best + F times a difference of two members.
    differences = parents[:, None, :] - parents[None, :, :]
    checked = 0
    for i in range(30):
        for j in np.flatnonzero(trials[i] != parents[i]):
            donors = best[j] + factors[i] * differences[:, :, j]
            bounds = 0.5 * (parents[i, j] + np.array([-100.0, 100.0]))
            matches = np.isclose(donors, trials[i, j], rtol=0.0, atol=1e-9).any()
            assert matches or np.isclose(trials[i, j], bounds).any()
            checked += matches
    assert checked > 30


def test_cde_adapts_and_resets_its_probabilities(generations):
    optimizer = METHODS["cde"]()
    totals = [optimizer.controller.counts.sum() for _ in generations(optimizer, num_runs=1)]
    drops = np.diff(totals) < 0
    assert max(totals) > 20
    assert 0 < drops.sum() < len(totals)


@pytest.mark.parametrize(("dimension", "strategy"), [(10, 0), (30, 1)])
def test_cde_pcm_has_the_papers_strategy_of_each_dimension(generations, dimension, strategy):
    optimizer = METHODS["cde-pcm"]()
    next(generations(optimizer, dimension=dimension))
    assert set(optimizer.controller.pool_strategies) == {strategy}
    assert len(optimizer.controller.pool_strategies) == 9


def test_cde_with_a_rate_of_zero_changes_exactly_one_coordinate(generations):
    steps = generations(METHODS["cde"](CDESettings(crossover_rates=(0.0,))), dimension=6)
    parents, _ = next(steps)
    trials, _ = next(steps)
    assert np.all(np.sum(trials != parents, axis=1) == 1)


def test_cde_forces_nothing_where_crossover_already_took_something(generations):
    # Share of changed coordinates at CR = 0.5, D = 2: 1/2 plus the forced one when both stay, that is 5/8.
    changed = []
    for reflect in (True, False):
        settings = CDESettings(population_size=400, crossover_rates=(0.5,), reflect=reflect)
        steps = generations(METHODS["cde"](settings), num_runs=10, dimension=2)
        parents, _ = next(steps)
        trials, _ = next(steps)
        changed.append(np.mean(trials != parents))
    assert changed == pytest.approx([0.625, 0.75], abs=0.02)


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        (DESettings, {"population_size": 3}, "`population_size` must be at least 4, got 3"),
        (DESettings, {"crossover_rate": 1.5}, r"`crossover_rate` must be a number in \[0, 1\], got 1.5"),
        (JADESettings, {"population_size": 2}, "`population_size` must be at least 4, got 2"),
        (JADESettings, {"initial_mean": 2.0}, r"`initial_mean` must be a number in \[0, 1\], got 2.0"),
        (JSOSettings, {"max_archive_size": -1}, "`max_archive_size` must be at least 0, got -1"),
        (JSOSettings, {"memory_size": 0}, "`memory_size` must be at least 1, got 0"),
        (CoBiDESettings, {"eigen_probability": 2.0}, r"`eigen_probability` must be a number in \[0, 1\], got 2.0"),
        (CoBiDEPCMSettings, {"population_size": 2}, "`population_size` must be at least 4, got 2"),
        (CDESettings, {"population_size": 4}, "`population_size` must be at least 5, got 4"),
        (CDESettings, {"strategies": ("rand/2",)}, "Unknown strategy 'rand/2'"),
    ],
)
def test_settings_out_of_range_are_errors(settings, options, message):
    with pytest.raises(ValueError, match=message):
        settings(**options)
