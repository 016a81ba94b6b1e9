"""The evolution strategy: exact resumption, independence of workers, and specialists that are joined."""

from __future__ import annotations

import json

import numpy as np
import pytest

from agents.evolution_strategy import Curriculum, EvolutionStrategy, draw_tasks, run_tasks, win_shares
from agents.evolution_training import EvolutionConfig, join_specialists, train_residual_controller
from de_gym.controllers import load
from de_gym.controllers.residual import BASE_INPUTS, INPUTS, ResidualController, num_numbers
from de_gym.optimizers.adaptive import CONTROL_NAMES, FEATURE_NAMES

SMALL = Curriculum(dimensions=(2, 3), smallest_budget=40.0, largest_budget=80.0, num_problems=4, cec2013_share=0.5)


def make_strategy(**options) -> EvolutionStrategy:
    return EvolutionStrategy(SMALL, **({"num_candidates": 4, "seed": 3} | options))


def test_win_shares_count_ties_as_half():
    shares = win_shares(np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 5.0]]))
    np.testing.assert_array_equal(shares, [[1.0, 0.75], [0.5, 0.75], [0.0, 0.0]])
    assert win_shares(np.random.default_rng(0).random((7, 5))).mean() == pytest.approx(0.5)


def test_tasks_follow_from_seed_and_generation():
    first, again, other = draw_tasks(SMALL, 1, 0), draw_tasks(SMALL, 1, 0), draw_tasks(SMALL, 1, 1)
    assert [(t.problem.name, t.budget, t.key) for t in first] == [(t.problem.name, t.budget, t.key) for t in again]
    assert {t.key for t in first}.isdisjoint(t.key for t in other)
    assert {t.problem.dimension for t in draw_tasks(Curriculum(num_problems=50), 0, 0)} == {2, 3, 5, 10, 20}
    for task in first:
        assert 40 * task.problem.dimension <= task.budget <= 80 * task.problem.dimension


def test_workers_do_not_change_the_errors():
    from joblib import Parallel

    tasks = draw_tasks(SMALL, 2, 0)
    vectors = np.random.default_rng(1).normal(0.0, 0.3, (3, num_numbers(len(CONTROL_NAMES))))
    controller = ResidualController.from_vectors(FEATURE_NAMES, CONTROL_NAMES, vectors)
    together = run_tasks(tasks, controller, Parallel(n_jobs=1))
    np.testing.assert_array_equal(run_tasks(tasks, controller, Parallel(n_jobs=2)), together)
    alone = ResidualController.from_vectors(FEATURE_NAMES, CONTROL_NAMES, vectors[1:2])
    np.testing.assert_array_equal(run_tasks(tasks[2:3], alone, Parallel(n_jobs=1))[0], together[1, 2:3])


def test_a_resumed_training_is_the_same_bit_for_bit(tmp_path):
    whole = make_strategy().learn(4)
    half = make_strategy().learn(2)
    half.save(tmp_path / "half.json")
    np.random.default_rng(0).random(3)  # other random numbers in between are no concern of it
    resumed = EvolutionStrategy.load(tmp_path / "half.json").learn(2)
    np.testing.assert_array_equal(resumed.mean, whole.mean)
    assert resumed.scores == whole.scores
    assert resumed.anchor_scores == whole.anchor_scores


def test_numbers_that_are_not_free_stay():
    initial = np.random.default_rng(5).normal(size=num_numbers(len(CONTROL_NAMES)))
    trained = make_strategy(initial=initial, free=np.array([0, 7])).learn(2).mean
    assert (trained != initial).nonzero()[0].tolist() == [0, 7]


def test_training_finds_what_helps():
    # The share of wins against the anchor rises when the field is the anchor and candidates that only differ in size.
    strategy = EvolutionStrategy(
        Curriculum(dimensions=(5,), smallest_budget=60.0, largest_budget=100.0, num_problems=30, cec2013_share=0.0),
        num_candidates=8,
        step_size=0.3,
        seed=0,
    ).learn(12)
    assert np.mean(strategy.anchor_scores[-4:]) > np.mean(strategy.anchor_scores[:4])


def test_joined_specialists_are_themselves_at_their_budgets():
    rng, size = np.random.default_rng(0), num_numbers(len(CONTROL_NAMES))
    num_weights = len(CONTROL_NAMES) * len(INPUTS)
    is_budget = np.zeros(size, bool)
    is_budget[:num_weights].reshape(-1, len(INPUTS))[:, len(BASE_INPUTS) :] = True
    short, long = np.where(is_budget, 0.0, rng.normal(size=(2, size)))
    joined = join_specialists(short, long)

    def residuals(vector: np.ndarray, budget: float) -> np.ndarray:
        features = rng_features.copy()
        features[:, FEATURE_NAMES.index("budget")] = budget
        return ResidualController.from_vectors(FEATURE_NAMES, CONTROL_NAMES, vector[None])(features)

    rng_features = rng.normal(size=(6, len(FEATURE_NAMES))).astype(np.float32)
    np.testing.assert_allclose(residuals(joined, 0.0), residuals(long, 0.0), atol=1e-9)
    np.testing.assert_allclose(residuals(joined, -1.65), residuals(short, -1.65), atol=1e-6)


@pytest.mark.slow
def test_whole_training_exports_a_controller_and_resumes(tmp_path):
    config = EvolutionConfig(seed=1, short_generations=1, long_generations=1, joint_generations=1, output=str(tmp_path))
    folder = train_residual_controller(config)
    controller = load(folder / "controller.safetensors")
    assert controller.info["generations"] == {"short": 1, "long": 1, "joint": 1}
    before = (folder / "controller.safetensors").read_bytes()
    (folder / "controller.safetensors").unlink()
    train_residual_controller(config)
    assert (folder / "controller.safetensors").read_bytes() == before
    stored = json.loads((folder / "short.json").read_text())
    with pytest.raises(ValueError, match="another seed than 2"):
        train_residual_controller(EvolutionConfig(seed=2, resume=str(folder)))
    assert json.loads((folder / "short.json").read_text()) == stored
