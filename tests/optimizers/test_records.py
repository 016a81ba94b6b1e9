from __future__ import annotations

import numpy as np
import pytest

from de_gym.optimizers.records import ConvergenceRecord, evaluation_grid, report_errors


def test_grid_ends_at_the_budget_and_never_repeats():
    assert np.array_equal(evaluation_grid(1000)[[0, 1, -1]], [10, 20, 1000])
    assert np.array_equal(evaluation_grid(3), [1, 2, 3])


def test_record_holds_the_error_of_the_last_generation_within_each_count():
    record = ConvergenceRecord(np.array([10, 20, 30, 40]), 2)
    record.update(np.array([0, 1]), np.array([15, 10]), np.array([5.0, 7.0]), np.array([1.0, np.nan]))
    record.update(np.array([0]), np.array([30]), np.array([2.0]), np.array([1.0]))
    assert np.array_equal(record.convergence, [[np.inf, 4.0, 1.0, 1.0], [7.0, 7.0, 7.0, 7.0]])


def test_small_errors_are_zero_and_unknown_optima_leave_values_alone():
    errors = report_errors(np.array([100.0 + 9e-9, 100.1, 3e-9]), np.array([100.0, 100.0, np.nan]))
    assert errors == pytest.approx([0.0, 0.1, 3e-9])
    assert errors[0] == 0.0


def test_errors_below_a_stated_optimum_stay_negative():
    errors = report_errors(np.array([-3.0, -1e-9, 1e6 - 1e-6]), np.array([0.0, 0.0, 1e6]))
    assert errors.tolist() == [-3.0, 0.0, 0.0]  # the last two by no more than rounding can explain


@pytest.mark.parametrize("grid", [[], [0, 5], [5, 5], [[1, 2]]])
def test_a_grid_that_does_not_ascend_is_an_error(grid):
    with pytest.raises(ValueError, match="ascending list of positive evaluation counts"):
        ConvergenceRecord(np.array(grid), 1)
