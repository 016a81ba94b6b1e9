"""Selection, archives and reduction on populations whose answers are worked out by hand."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from de_gym.evolution.current_to_pbest import CurrentToPbest
from de_gym.evolution.populations import RUN, Trials
from de_gym.evolution.rand_and_best import RandAndBest
from de_gym.evolution.shell import make_parameters

OVERWRITE = {"archive_fraction": 1.0}
LEAVING = {"archive_fraction": 1.0, "archive_rule": "random-leaving", "strictly": True}


def select(shell, state, draws, coordinates, values, next_size=None):
    """Return the feedback of a generation whose trials have the given coordinates and values, both (R, N)."""
    coordinates, values = np.array(coordinates, dtype=np.float64), np.array(values, dtype=np.float64)
    parameters = make_parameters(len(values), state.capacity)
    if next_size is not None:
        parameters.plans["next_size"] = next_size
    trials = Trials(coordinates.reshape(-1, 1), np.arange(len(values) + 1) * values.shape[1])
    return shell.select(state, parameters, draws, trials, values.ravel())


def archive(state, run=0):
    return state.positions[run, state.capacity : state.capacity + state.runs[run]["archive_size"], 0].tolist()


def test_better_and_equal_trials_replace_and_worse_ones_do_not(settled, drawn):
    shell = CurrentToPbest(3)
    state = settled(shell, [[0.0, 0.0, 0.0]], [[1.0, 2.0, 3.0]])
    feedback = select(shell, state, drawn(shell, np.zeros((1, 18))), [[1.0, 1.0, 1.0]], [[2.0, 2.0, 2.0]])
    assert state.positions[0, :3, 0].tolist() == [0.0, 1.0, 1.0]
    assert state.fitness.tolist() == [[1.0, 2.0, 2.0]]
    assert feedback.improvements.tolist() == [[-1.0, 0.0, 1.0]]
    assert state.parent_fitness.tolist() == [[1.0, 2.0, 3.0]]


def test_a_strict_shell_keeps_the_parent_of_an_equal_trial(settled, drawn):
    shell = CurrentToPbest(3, **LEAVING)
    state = settled(shell, [[1.0, 2.0, 3.0]], [[5.0, 5.0, 5.0]])
    select(shell, state, drawn(shell, np.zeros((1, 18))), [[10.0, 20.0, 30.0]], [[4.0, 5.0, 6.0]])
    assert state.positions[0, :3, 0].tolist() == [10.0, 2.0, 3.0]
    assert archive(state) == [1.0]


def test_ties_replace_but_do_not_retire_and_a_full_archive_overwrites_a_random_slot(settled, drawn):
    shell = CurrentToPbest(3, **OVERWRITE)
    state = settled(shell, [[1.0, 2.0, 3.0]], [[5.0, 5.0, 5.0]])
    state.positions[0, 3:, 0], state.runs["archive_size"] = [7.0, 8.0, 9.0], 3
    uniforms = np.zeros((1, 18))
    uniforms[0, 15:] = [0.0, 0.5, 0.99]
    select(shell, state, drawn(shell, uniforms), [[10.0, 20.0, 30.0]], [[5.0, 4.0, 6.0]])
    assert state.positions[0, :3, 0].tolist() == [10.0, 20.0, 3.0]
    assert archive(state) == [7.0, 2.0, 9.0]


def test_members_leave_a_full_archive_at_random_old_and_new_alike(settled, drawn, rng):
    shell, num_runs = CurrentToPbest(4, **LEAVING), 6_000
    state = settled(shell, np.tile([1.0, 2.0, 3.0, 4.0], (num_runs, 1)), np.ones((num_runs, 4)))
    state.positions[:, 4:8, 0], state.runs["archive_size"] = [5.0, 6.0, 7.0, 8.0], 4
    draws = drawn(shell, rng.random((num_runs, 24)))
    select(shell, state, draws, np.full((num_runs, 4), 9.0), np.zeros((num_runs, 4)))
    kept = state.positions[:, 4:8, 0]
    assert np.all(state.runs["archive_size"] == 4)
    shares = [np.mean(np.any(kept == member, axis=1)) for member in range(1, 9)]
    assert shares == pytest.approx([0.5] * 8, abs=0.03)


def test_without_archive_nobody_retires(settled, drawn):
    for rule in ("overwrite", "random-leaving"):
        shell = CurrentToPbest(3, archive_rule=rule)
        state = settled(shell, [[1.0, 2.0, 3.0]], [[5.0, 5.0, 5.0]])
        select(shell, state, drawn(shell, np.full((1, 18), 0.9)), [[10.0, 20.0, 30.0]], [[4.0, 4.0, 4.0]])
        assert state.positions[0, :, 0].tolist() == [10.0, 20.0, 30.0]
        assert state.runs["archive_size"].tolist() == [0]


def test_improvements_of_infinite_values(settled, drawn):
    shell = CurrentToPbest(4)
    state = settled(shell, [[0.0] * 4], [[np.inf, np.inf, 1.0, -np.inf]])
    feedback = select(shell, state, drawn(shell, np.zeros((1, 24))), [[1.0] * 4], [[2.0, np.inf, np.inf, -np.inf]])
    assert feedback.improvements.tolist() == [[np.inf, 0.0, -np.inf, 0.0]]


@pytest.mark.parametrize("share_improved", [0.1, 1.0])
@pytest.mark.parametrize("size", [7, 130, 400])
def test_the_order_is_that_of_a_stable_sort(settled, drawn, rng, size, share_improved):
    shell = CurrentToPbest(size)
    fitness = rng.integers(0, 20, (2, size)).astype(float)
    state = settled(shell, rng.random((2, size)), fitness)
    np.testing.assert_array_equal(state.order, np.argsort(fitness, axis=1, kind="stable"))
    for _ in range(5):
        values = np.where(rng.random((2, size)) < share_improved, fitness - rng.integers(0, 5, (2, size)), 99.0)
        fitness = np.minimum(fitness, values)
        select(shell, state, drawn(shell, np.zeros((2, 6 * size))), rng.random((2, size)), values)
        np.testing.assert_array_equal(state.fitness, fitness)
        np.testing.assert_array_equal(state.order, np.argsort(fitness, axis=1, kind="stable"))


def test_reduction_drops_the_first_of_equal_worst_and_keeps_the_order(settled, drawn):
    shell = CurrentToPbest(5, **OVERWRITE)
    state = settled(shell, [[0.0, 1.0, 2.0, 3.0, 4.0]], [[3.0, 9.0, 1.0, 9.0, 9.0]])
    state.positions[0, 5:, 0], state.runs["archive_size"] = [5.0, 6.0, 7.0, 8.0, 9.0], 5
    select(shell, state, drawn(shell, np.zeros((1, 30))), [[0.0] * 5], [[99.0] * 5], next_size=3)
    assert state.runs["size"].tolist() == [3]
    assert state.positions[0, :3, 0].tolist() == [0.0, 2.0, 4.0]
    assert state.fitness.tolist() == [[3.0, 1.0, 9.0, np.inf, np.inf]]
    assert state.order[0, :3].tolist() == [1, 0, 2]
    assert state.origins[0, :3].tolist() == [0, 2, 4]
    assert archive(state) == [5.0, 6.0, 7.0]  # it loses its tail


def test_runs_are_reduced_each_by_its_own_plan_and_never_grow(settled, drawn):
    shell = CurrentToPbest(4)
    state = settled(shell, [[0.0, 1.0, 2.0, 3.0]] * 3, [[4.0, 3.0, 2.0, 1.0]] * 3)
    select(shell, state, drawn(shell, np.zeros((3, 24))), [[0.0] * 4] * 3, [[9.0] * 4] * 3, next_size=[3, 4, 9])
    assert state.runs["size"].tolist() == [3, 4, 4]
    assert state.positions[0, :3, 0].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("next_size", [2, 0, -30])
def test_fewer_individuals_than_a_trial_is_made_of_are_refused(settled, drawn, next_size):
    shell = CurrentToPbest(4)
    state = settled(shell, [[0.0, 1.0, 2.0, 3.0]], [[4.0, 3.0, 2.0, 1.0]])
    with pytest.raises(ValueError, match="leaves fewer individuals than a trial is made of"):
        select(shell, state, drawn(shell, np.zeros((1, 24))), [[0.0] * 4], [[9.0] * 4], next_size=[next_size])


@pytest.mark.parametrize(
    ("shell", "least"), [(CurrentToPbest, 3), (RandAndBest, 4), (partial(RandAndBest, num_others=4), 5)]
)
def test_shells_have_as_many_individuals_as_a_trial_is_made_of(shell, least):
    assert len(shell(least).start(np.zeros(1, RUN), 1).runs) == 1
    with pytest.raises(ValueError, match=f"`population_size` must be at least {least}, got {least - 1}"):
        shell(least - 1).start(np.zeros(1, RUN), 1)


def test_a_run_without_trials_stays_what_it_was(settled, drawn):
    shell = CurrentToPbest(3)
    state = settled(shell, [[1.0, 2.0, 3.0]] * 2, [[5.0, 6.0, 7.0]] * 2)
    trials = Trials(np.zeros((3, 1)), np.array([0, 0, 3]))
    shell.select(state, make_parameters(2, 3), drawn(shell, np.zeros((2, 18))), trials, np.zeros(3))
    assert state.fitness.tolist() == [[5.0, 6.0, 7.0], [0.0, 0.0, 0.0]]
