from __future__ import annotations

import numpy as np
import pytest

from de_gym.evolution.current_to_pbest import CurrentToPbest
from de_gym.evolution.shell import make_parameters

BOX = np.full((1, 1), 100.0)


def breed(shell, state, draws, *, factor=1.0, weight=None, **plan):
    """Return the coordinates of one run's trials, all of whose coordinates cross."""
    parameters = make_parameters(1, state.capacity)
    parameters.scale_factors[:], parameters.crossover_rates[:] = factor, 1.0
    if weight is not None:
        parameters = parameters._replace(pbest_weights=np.full_like(parameters.scale_factors, weight))
    for name, value in plan.items():
        parameters.plans[name] = value
    return shell.breed(state, parameters, draws, -BOX, BOX).points[:, 0]


def test_trials_are_pulled_to_p_best_and_moved_by_a_difference(settled, drawn):
    shell = CurrentToPbest(4)
    state = settled(shell, [[1.0, 2.0, 4.0, 8.0]], [[3.0, 0.0, 1.0, 2.0]])
    trials = breed(shell, state, drawn(shell, np.zeros((1, 24))), factor=0.5, weight=0.25, num_pbest=1)
    # Zero uniforms: p-best is the second, r1 and r2 the first others: (1, 2), (0, 2), (0, 1), (0, 1).
    assert trials.tolist() == [1.25 + 0.5 * (2 - 4), 2.0 + 0.5 * (1 - 4), 3.5 + 0.5 * (1 - 2), 6.5 + 0.5 * (1 - 2)]


def test_second_difference_reaches_into_the_archive(settled, drawn):
    shell = CurrentToPbest(4, archive_fraction=1.0)
    state = settled(shell, [[0.0] * 4], [[0.0, 1.0, 2.0, 3.0]])
    state.positions[0, 4:] = 50.0
    draws = np.full((1, 24), 0.99)  # r2 is the last row there is
    assert np.all(breed(shell, state, drawn(shell, draws)) == 0.0)
    state.runs["archive_size"] = 2
    assert np.all(breed(shell, state, drawn(shell, draws)) == -50.0)


def test_archive_rows_are_found_behind_the_capacity_when_the_population_has_shrunk(settled, drawn):
    shell = CurrentToPbest(6, archive_fraction=1.0)
    state = settled(shell, [[0.0] * 6], [np.arange(6.0)])
    state.positions[0, 4:6], state.positions[0, 6:8], state.runs["archive_size"] = 77.0, 50.0, 2
    state.runs["size"] = 4
    draws = drawn(shell, np.full((1, 36), 0.99))
    draws.starts = np.array([0, 4])
    assert breed(shell, state, draws).tolist() == [-50.0] * 4


def test_p_best_is_among_the_leading_and_with_other_not_the_individual_itself(settled, drawn, rng):
    shell = CurrentToPbest(6)
    state = settled(shell, [[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]], [[2.0, 0.0, 1.0, 3.0, 4.0, 5.0]])
    seen = {False: np.zeros((6, 6)), True: np.zeros((6, 6))}
    for other, uniform in ((other, (step + 0.5) / 600) for other in seen for step in range(600)):
        uniforms = np.zeros((1, 36))
        uniforms[0, :6] = uniform
        # Without a difference a trial with weight one is its p-best.
        trials = breed(shell, state, drawn(shell, uniforms), factor=0.0, weight=1.0, num_pbest=3, other_pbest=other)
        seen[other][np.arange(6), trials.astype(int) - 1] += 1
    assert seen[False].tolist() == [[200, 200, 200, 0, 0, 0]] * 6
    leading = [[0, 300, 300, 0, 0, 0], [300, 0, 300, 0, 0, 0], [300, 300, 0, 0, 0, 0]]
    assert seen[True].tolist() == leading + [[200, 200, 200, 0, 0, 0]] * 3


@pytest.mark.parametrize("num_pbest", [0, -3, 10**9])
def test_impossible_numbers_of_candidates_are_brought_into_range(settled, drawn, num_pbest):
    shell = CurrentToPbest(4)
    state = settled(shell, [[1.0, 2.0, 3.0, 4.0]], [[0.0, 1.0, 2.0, 3.0]])
    draws = drawn(shell, np.full((1, 24), 0.99))
    trials = breed(shell, state, draws, factor=0.0, weight=1.0, num_pbest=num_pbest)
    assert set(trials) == {4.0 if num_pbest > 4 else 1.0}
