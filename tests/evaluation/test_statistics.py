from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from de_gym.evaluation.statistics import (
    accuracy_and_speed_scores,
    average_performance_scores,
    bayesian_signed_rank,
    count_marks,
    friedman,
    half_unit,
    holm,
    pairwise_rank_tests,
    performance_scores,
    rank_sum,
    rank_sum_marks,
    runtime_distribution,
    runtimes,
    summarize,
    superiority,
    u_scores,
    z_scores,
)


def _with_nonzeros(values: list[float]) -> np.ndarray:
    return np.array([*values, *[0.0] * (51 - len(values))])


# Errors behind rows of the paper that its printed mean and deviation determine, as (values of the 51 runs that
# are not 0, printed mean, printed deviation). Each is compared there with an algorithm at 0 in all 51 runs.
PAPER_ROWS = {
    "LDE, CEC'17 F10, n = 10": ([1.98992, 0.994959, 0.994959, 0.994959], 9.75e-2, 3.55e-1),
    "LDE, CEC'17 F19, n = 10": ([0.3121733, 0.3121733], 1.22e-2, 6.06e-2),
    "JADE w/o archive, CEC'17 F8, n = 30": ([0.08953, 0.08953, 0.08953], 5.27e-3, 2.11e-2),
    "JADE with archive, CEC'17 F8, n = 30": ([0.4539] * 3 + [0.08953] * 4, 3.37e-2, 1.08e-1),
}


def test_summary_of_four_hand_computed_numbers():
    summary = summarize([[1.0, 2.0, 3.0, 6.0]])
    assert summary.mean[0] == 3.0
    assert summary.std[0] == pytest.approx(np.sqrt(3.5))  # squares 4, 1, 0, 9 over 4 runs, not over 3
    assert (summary.median[0], summary.best[0], summary.worst[0]) == (2.5, 1.0, 6.0)


@pytest.mark.parametrize("row", PAPER_ROWS)
def test_standard_deviation_is_the_paper_s_population_one(row):
    nonzero, mean, std = PAPER_ROWS[row]
    summary = summarize(_with_nonzeros(nonzero))
    assert summary.mean == pytest.approx(mean, abs=float(half_unit(mean)))
    assert summary.std == pytest.approx(std, abs=float(half_unit(std)))
    assert np.std(_with_nonzeros(nonzero), ddof=1) > summary.std


@pytest.mark.parametrize("row", PAPER_ROWS)
def test_marks_agree_with_the_paper_where_runs_are_tied_at_zero(row):
    errors = _with_nonzeros(PAPER_ROWS[row][0])[None, :]
    assert rank_sum_marks(errors, np.zeros((1, 51))) == ["~"]


def test_a_tie_corrected_test_would_contradict_the_paper():
    lde = _with_nonzeros(PAPER_ROWS["LDE, CEC'17 F10, n = 10"][0])
    tie_corrected = stats.mannwhitneyu(lde, np.zeros(51), method="asymptotic")
    assert tie_corrected.pvalue < 0.05
    assert rank_sum(lde, np.zeros(51))[1] > 0.4


def test_plus_means_that_the_compared_method_is_better_than_the_reference():
    reference = np.arange(20.0)[None, :] + 100.0
    assert rank_sum_marks(reference, reference - 90.0) == ["+"]
    assert rank_sum_marks(reference, reference + 90.0) == ["-"]
    assert rank_sum_marks(reference, reference + 0.1) == ["~"]


def test_direction_of_a_significant_difference_is_that_of_the_means():
    # All but one of the compared errors are smaller, so its ranks are better; the one outlier makes its mean worse.
    reference = np.arange(20.0)[None, :] + 10.0
    compared = np.array([[*np.arange(19.0) / 10, 5000.0]])
    statistic, p_value = rank_sum(reference, compared)
    assert statistic[0] > 0
    assert p_value[0] < 0.05
    assert rank_sum_marks(reference, compared) == ["-"]
    assert performance_scores([reference, compared]).tolist() == [[0.0], [1.0]]


def test_ranks_decide_where_the_means_are_equal():
    reference = np.array([[2.0] * 19 + [0.0]])
    compared = np.array([[1.0] * 19 + [19.0]])
    assert reference.mean() == compared.mean()
    assert rank_sum_marks(reference, compared) == ["+"]
    assert rank_sum_marks(compared, reference) == ["-"]


def test_rank_sum_of_a_hand_worked_case():
    # Ranks of 1, 2, 3 among 1..6 sum to 6; expectation 3*7/2 = 10.5, variance 3*3*7/12 = 5.25.
    statistic, p_value = rank_sum([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])
    assert statistic == pytest.approx(-4.5 / np.sqrt(5.25))
    assert p_value == pytest.approx(2 * stats.norm.sf(4.5 / np.sqrt(5.25)))


def test_rank_sum_without_ties_equals_the_mann_whitney_test():
    rng = np.random.default_rng(3)
    first, second = rng.random((7, 21)), rng.random((7, 30)) * 1.3
    statistic, p_value = rank_sum(first, second)
    other = stats.mannwhitneyu(first, second, axis=-1, method="asymptotic", use_continuity=False)
    np.testing.assert_allclose(p_value, other.pvalue, rtol=1e-12)
    np.testing.assert_array_equal(statistic > 0, other.statistic > 21 * 30 / 2)


def test_rows_in_which_all_runs_are_equal_are_similar():
    zeros = np.zeros((2, 51))
    statistic, p_value = rank_sum(zeros, zeros)
    assert statistic.tolist() == [0.0, 0.0]
    assert p_value.tolist() == [1.0, 1.0]
    assert average_performance_scores([zeros, zeros, zeros]).tolist() == [0.0, 0.0, 0.0]


def test_marks_are_counted_better_similar_worse():
    counts = count_marks(["-", "-", "+", "~", "-"])
    assert (counts.better, counts.similar, counts.worse) == (1, 1, 3)
    assert str(counts) == "1/1/3"


def test_performance_score_counts_the_methods_that_are_better():
    base = np.arange(10.0)
    best, middle, worst = base, base + 50.0, base + 100.0
    scores = performance_scores([[worst, best], [middle, best], [best, worst]])
    assert scores.tolist() == [[2.0, 0.0], [1.0, 0.0], [0.0, 2.0]]
    assert average_performance_scores([[worst, best], [middle, best], [best, worst]]).tolist() == [1.0, 0.5, 1.0]


def test_methods_may_have_different_numbers_of_runs():
    assert performance_scores([np.arange(11.0)[None], np.arange(51.0)[None] + 30.0]).tolist() == [[0.0], [1.0]]


def test_friedman_agrees_with_a_hand_ranked_table_and_scipy():
    values = np.array([[1.0, 1.0, 2.0, 1.0], [2.0, 3.0, 2.0, 4.0], [3.0, 2.0, 5.0, 9.0]])
    result = friedman(values)
    assert result.mean_ranks.tolist() == [1.125, 2.125, 2.75]  # the tie in the third problem shares ranks 1 and 2
    expected = stats.friedmanchisquare(*values)
    assert result.statistic == pytest.approx(expected.statistic)
    assert result.p_value == pytest.approx(expected.pvalue)


def test_friedman_of_identical_methods_finds_nothing():
    result = friedman(np.zeros((4, 6)))
    assert result.p_value == 1.0
    assert result.mean_ranks.tolist() == [2.5] * 4


def test_holm_steps_down_and_never_decreases():
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, 0.04 -> the last is lifted to 0.06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]


def test_pairwise_tests_use_the_standard_error_of_mean_ranks():
    # Demsar's example (2006, section 3.2.2): 4 classifiers, 14 data sets, standard error sqrt(4*5/(6*14)) = 0.488.
    corrected = pairwise_rank_tests([3.143, 2.0, 2.893, 1.964], num_problems=14)
    assert corrected[0, 3] == pytest.approx(6 * 0.016, abs=6 * 5e-4)  # he prints p = 0.016 and 0.019 before correction
    assert corrected[0, 1] == pytest.approx(max(6 * 0.016, 5 * 0.019), abs=6 * 5e-4)
    np.testing.assert_array_equal(corrected, corrected.T)
    assert corrected.diagonal().tolist() == [1.0] * 4


def test_superiority_is_the_share_of_pairs_won_with_ties_as_half():
    # Of 3 x 2 pairs the compared runs win (2, 1), (3, 1), (3, 2) and tie (1, 1), (2, 2).
    assert superiority([[1.0, 2.0, 3.0]], [[1.0, 2.0]]).tolist() == pytest.approx([(3 + 2 * 0.5) / 6])
    first, second = np.random.default_rng(1).random((2, 4, 9))
    u_values = stats.mannwhitneyu(first, second, axis=-1).statistic
    np.testing.assert_allclose(superiority(first, second), u_values / 81)


def test_signed_rank_probabilities_of_equal_differences_are_those_of_a_beta_distribution():
    # With the prior's weight w ~ Beta(0.5, P), "equivalent" has the share w^2 and "better" the rest: it wins for
    # w^2 < 1/2.
    for num_problems in (1, 2, 5):
        chances = bayesian_signed_rank([1.0] * num_problems, rope=0.1)
        expected = stats.beta(0.5, num_problems).cdf(np.sqrt(0.5))
        assert chances.better == pytest.approx(expected, abs=5e-3)
        assert chances.equivalent == pytest.approx(1 - expected, abs=5e-3)
        assert chances.worse == 0.0


def test_signed_rank_probabilities_turn_round_with_the_sign_and_add_up_to_one():
    differences = np.array([0.3, 0.1, -0.05, 0.2, 0.01, -0.2, 0.4])
    chances, mirrored = (bayesian_signed_rank(sign * differences, rope=0.05) for sign in (1, -1))
    assert chances == mirrored[::-1]
    assert sum(chances) == pytest.approx(1.0)
    assert bayesian_signed_rank(differences, rope=1.0) == (0.0, 1.0, 0.0)
    assert bayesian_signed_rank(differences, rope=0.05) == chances  # the seed is fixed


def test_signed_rank_probabilities_are_those_of_counting_pairs_one_by_one():
    differences, rope, rng = [0.3, 0.1, -0.05, 0.2, -0.3], 0.06, np.random.default_rng(5)
    observed, wins = [0.0, *differences], np.zeros(3)
    for weights in rng.dirichlet([0.5, 1, 1, 1, 1, 1], 4000):
        shares = [0.0, 0.0, 0.0]
        for first, one in enumerate(observed):
            for second, other in enumerate(observed):
                mean = (one + other) / 2
                shares[0 if mean > rope else 2 if mean < -rope else 1] += weights[first] * weights[second]
        wins[int(np.argmax(shares))] += 1
    assert bayesian_signed_rank(differences, rope) == pytest.approx(wins / 4000, abs=0.03)


def test_u_score_counts_pairs_won_against_the_runs_of_others():
    # Two problems. On the first, 1 and 2 beat 3 and 3 each, and 4 beats none; on the second all runs are equal.
    scores = u_scores([[[1.0, 2.0, 4.0], [5.0] * 3], [[3.0, 3.0, 9.0], [5.0] * 3]])
    assert scores.tolist() == [[3 + 3 + 1, 4.5], [1 + 1 + 0, 4.5]]


def test_u_score_orders_runs_that_reached_the_target_by_their_evaluations():
    errors = [[[0.0, 0.0, 1.0]], [[0.0, 2.0, 3.0]]]
    assert u_scores(errors).tolist() == [[2 * 2.5 + 2], [2 * 0.5 + 0 + 0 + 1]]
    # The solved run of the second method, at 20, loses to the one at 10 and beats the one at 30.
    assert u_scores(errors, [[[10, 30, 50]], [[20, 50, 50]]]).tolist() == [[3 + 2 + 2], [2]]


def test_u_scores_of_a_problem_add_up_to_all_pairs_of_different_methods():
    rng = np.random.default_rng(2)
    scores = u_scores([rng.integers(0, 4, (5, runs)) for runs in (7, 7, 7)], [rng.integers(1, 9, (5, 7))] * 3)
    np.testing.assert_allclose(scores.sum(axis=0), 3 * 7 * 7)


def test_accuracy_and_speed_of_four_hand_compared_curves():
    # Final errors 1 and 2 against 4 and 1. Levels to reach first: the worse of both final errors of a pair.
    first = np.array([[[5.0, 3.0, 1.0], [5.0, 5.0, 2.0]]])
    second = np.array([[[4.0, 4.0, 4.0], [6.0, 1.0, 1.0]]])
    accuracy, speed = accuracy_and_speed_scores([first, second])
    assert accuracy.tolist() == [[(1 + 1 + 0.5) + 1], [0 + (0.5 + 1 + 1)]]
    assert speed.tolist() == [[0.5 + 0.5], [3 + 2]]


def test_accuracy_and_speed_share_out_a_point_for_every_pair_of_runs():
    curves = -np.sort(-np.random.default_rng(3).integers(0, 5, (3, 4, 6, 9)).astype(float), axis=-1)
    for scores in accuracy_and_speed_scores(list(curves)):
        np.testing.assert_allclose(scores.sum(axis=0), 18 * 17 / 2)


def test_z_score_is_the_difference_over_both_standard_errors():
    errors = np.array([[90.0, 110.0] * 25 + [100.0]])
    summary = summarize(errors)
    standard_error = np.sqrt((summary.std[0] ** 2 + 20.0**2) / 51)
    # 95.0 stands for what lies between 94.95 and 95.05, and 105 for what lies between 104.5 and 105.5.
    assert z_scores(summary, 51, [95.0], [20.0])[0] == pytest.approx((100.0 - 95.05) / standard_error)
    assert z_scores(summary, 51, [105.0], [20.0])[0] == pytest.approx((100.0 - 104.5) / standard_error)


def test_z_score_does_not_jump_at_the_edge_of_the_rounding():
    summary = summarize([[2.3549, 2.3551], [2.3550, 2.3552]])
    assert np.abs(z_scores(summary, 51, [2.35, 2.35], [0.01, 0.01])).max() < 0.1


def test_z_score_is_zero_within_the_rounding_of_three_printed_digits():
    summary = summarize([[2.3549], [2.3551], [0.0]])
    assert z_scores(summary, 51, [2.35, 2.35, 0.0], [0.0, 0.0, 0.0]).tolist() == [0.0, np.inf, 0.0]


def test_fewer_runs_make_a_difference_less_certain():
    summary = summarize([np.tile([90.0, 110.0], 30)])
    assert abs(z_scores(summary, 10, [105.0], [10.0])[0]) < abs(z_scores(summary, 51, [105.0], [10.0])[0])


def test_runtimes_are_the_first_grid_points_below_each_target():
    convergence = np.array([[5.0, 1.0, 0.5, 0.0], [9.0, 9.0, 2.0, 2.0]])
    times = runtimes(convergence, np.array([10, 20, 40, 80]), np.array([5.0, 1.0, 1e-8]))
    assert times.tolist() == [[10.0, 20.0, 80.0], [40.0, np.inf, np.inf]]


def test_runtime_distribution_counts_solved_pairs_up_to_each_budget():
    times = np.array([[10.0, 20.0, 80.0], [40.0, np.inf, np.inf]])
    shares = runtime_distribution(times, np.array([5.0, 10.0, 40.0, 1e9]))
    assert shares.tolist() == pytest.approx([0.0, 1 / 6, 3 / 6, 4 / 6])


def test_runtime_distribution_agrees_with_scipy_s_ecdf():
    rng = np.random.default_rng(0)
    times = rng.integers(1, 100, size=(3, 5, 4)).astype(float)
    expected = stats.ecdf(times.ravel()).cdf.evaluate(np.arange(0.0, 120.0, 7.0))
    np.testing.assert_allclose(runtime_distribution(times, np.arange(0.0, 120.0, 7.0)), expected)


def test_errors_that_are_not_numbers_are_refused():
    with pytest.raises(ValueError, match="Errors must be numbers, got NaN"):
        summarize([1.0, np.nan])
    with pytest.raises(ValueError, match="at least one run in their last axis, got shape"):
        summarize(np.empty((3, 0)))
    with pytest.raises(ValueError, match="errors for the same problems, got shapes"):
        rank_sum(np.zeros((2, 5)), np.zeros((3, 5)))
    with pytest.raises(ValueError, match="at least 3 methods and 2 problems"):
        friedman(np.zeros((2, 5)))
    with pytest.raises(ValueError, match="at least one method, got none"):
        performance_scores([])


def test_errors_closer_than_what_counts_as_none_are_equal():
    rng = np.random.default_rng(8)
    reference = 100.0 + rng.uniform(0.0, 4e-9, (1, 30))
    nearly, apart = reference - 4e-13, reference - 2e-8
    assert rank_sum_marks(reference, nearly) == ["~"]
    assert rank_sum_marks(reference, apart) == ["+"]
    assert superiority(reference, nearly).tolist() == [0.5]
    assert u_scores([reference, nearly]).tolist() == [[450.0], [450.0]]
    assert friedman([reference[0], nearly[0], reference[0] - 1e-10]).mean_ranks.tolist() == [2.0, 2.0, 2.0]
