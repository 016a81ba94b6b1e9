"""Observation parts against numpy and hand-worked cases."""

from __future__ import annotations

import numpy as np
import pytest

from de_gym.envs import features
from de_gym.envs.state import RUN


def normalize_fitness(fitness: np.ndarray) -> np.ndarray:
    normalized = np.full_like(fitness, np.nan)
    features.normalize_fitness(fitness, normalized)
    return normalized


def fitness_histogram(normalized: np.ndarray, num_bins: int) -> np.ndarray:
    histogram = np.full((len(normalized), num_bins), np.nan)
    runs = np.zeros(len(normalized), RUN)
    runs["size"] = normalized.shape[1]
    features.fitness_histogram(runs, normalized, histogram)
    return histogram


class History:
    """Past histograms of one run, generation after generation."""

    def __init__(self, num_bins: int, window: int | None) -> None:
        self.rows = features.empty_history(1, num_bins, window)
        self.has_window, self.runs = window is not None, np.zeros(1, RUN)

    def push(self, *row: float) -> None:
        features.push_histogram(self.runs, self.rows, np.array([row]), self.has_window)
        self.runs["generation"] += 1

    def mean(self) -> np.ndarray:
        means = np.full((1, self.rows.shape[2]), np.nan)
        features.mean_past_histogram(self.runs, self.rows, self.has_window, means)
        return means


def test_fitness_is_scaled_to_the_unit_interval_by_run():
    scaled = normalize_fitness(np.array([[-2.0, 0.0, 2.0], [10.0, 10.5, 20.0]]))
    np.testing.assert_allclose(scaled, [[0.0, 0.5, 1.0], [0.0, 0.05, 1.0]])


def test_flat_population_scales_to_zeros():
    np.testing.assert_array_equal(normalize_fitness(np.full((1, 4), 7.0)), np.zeros((1, 4)))


def test_infinite_values_become_one_without_being_the_maximum():
    np.testing.assert_allclose(normalize_fitness(np.array([[0.0, 1.0, 2.0, np.inf]])), [[0.0, 0.5, 1.0, 1.0]])
    np.testing.assert_array_equal(normalize_fitness(np.full((1, 3), np.inf)), np.zeros((1, 3)))
    np.testing.assert_allclose(normalize_fitness(np.array([[-np.inf, 1.0, 2.0, 3.0]])), [[1.0, 0.0, 0.5, 1.0]])


def test_huge_values_do_not_overflow():
    scaled = normalize_fitness(np.array([[-1.7e308, 0.0, 1.7e308]]))
    np.testing.assert_allclose(scaled, [[0.0, 0.5, 1.0]])


@pytest.mark.parametrize("num_bins", [1, 3, 5, 7, 10])
def test_histogram_equals_numpy_on_values_and_edges(rng, num_bins):
    edges = np.linspace(0.0, 1.0, num_bins + 1)
    values = np.concatenate([rng.random(500), edges, np.nextafter(edges, 0)[1:], np.nextafter(edges, 1)[:-1]])
    ours = fitness_histogram(values[None], num_bins)[0]
    np.testing.assert_allclose(ours * len(values), np.histogram(values, num_bins, range=(0.0, 1.0))[0])


def test_flat_population_falls_into_the_first_bin():
    np.testing.assert_array_equal(fitness_histogram(np.zeros((1, 8)), 4), [[1.0, 0.0, 0.0, 0.0]])


def test_windowed_mean_is_uniform_then_the_rows_there_are_then_the_last_ones():
    history = History(2, window=2)
    np.testing.assert_allclose(history.mean(), [[0.5, 0.5]])
    history.push(1.0, 0.0)
    np.testing.assert_allclose(history.mean(), [[1.0, 0.0]])
    history.push(0.0, 1.0)
    np.testing.assert_allclose(history.mean(), [[0.5, 0.5]])
    history.push(0.2, 0.8)
    np.testing.assert_allclose(history.mean(), [[0.1, 0.9]])


def test_mean_over_all_past_keeps_its_uniform_row():
    history = History(2, window=None)
    np.testing.assert_allclose(history.mean(), [[0.5, 0.5]])
    for _ in range(3):
        history.push(1.0, 0.0)
    np.testing.assert_allclose(history.mean(), [[(0.5 + 3.0) / 4.0, 0.5 / 4.0]])
