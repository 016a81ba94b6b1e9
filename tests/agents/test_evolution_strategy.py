"""The evolution strategy: exact resumption, independence of workers, and specialists that are joined."""

from __future__ import annotations

import json
import shlex
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import tyro

from agents import evolution_training
from agents.evolution_strategy import EvolutionStrategy, Stage, draw_tasks, run_tasks, win_shares
from agents.evolution_training import REGIMES, EvolutionConfig, Regime, train_residual_controller
from agents.interruptions import TrainingStopped
from de_gym.controllers import load
from de_gym.controllers.residual import INPUTS, ResidualController, num_numbers
from de_gym.optimizers.adaptive import CONTROL_NAMES, FEATURE_NAMES

SMALL = Stage(3, (2, 3), smallest_budget=40.0, largest_budget=80.0, num_problems=4, cec2013_share=0.5)


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
    assert [t.problem.dimension for t in first] == [2, 3, 2, 3]
    for task in first:
        assert 40 * task.problem.dimension <= task.budget <= 80 * task.problem.dimension


def test_workers_do_not_change_the_errors():

    tasks = draw_tasks(SMALL, 2, 0)
    vectors = np.random.default_rng(1).normal(0.0, 0.3, (3, num_numbers(len(CONTROL_NAMES))))
    controller = ResidualController.from_vectors(FEATURE_NAMES, CONTROL_NAMES, vectors)
    together = run_tasks(tasks, controller)
    np.testing.assert_array_equal(run_tasks(tasks, controller, workers=2), together)
    alone = ResidualController.from_vectors(FEATURE_NAMES, CONTROL_NAMES, vectors[1:2])
    np.testing.assert_array_equal(run_tasks(tasks[2:3], alone)[0], together[1, 2:3])


def test_a_resumed_training_is_the_same_bit_for_bit(tmp_path):
    whole = make_strategy().learn(4)
    half = make_strategy().learn(2)
    half.save(tmp_path / "half.json")
    np.random.default_rng(0).random(3)  # other random numbers in between are no concern of it
    resumed = EvolutionStrategy.load(tmp_path / "half.json").learn(2)
    np.testing.assert_array_equal(resumed.mean, whole.mean)
    assert resumed.scores == whole.scores
    assert resumed.anchor_scores == whole.anchor_scores


def test_the_result_is_the_mean_of_the_last_middles():
    strategy, middles = make_strategy(), []
    for num_more, num_averaged in ((1, 1), (3, 2), (16, 10)):
        strategy.learn(num_more, lambda trained: middles.append(np.array(trained._strategy.mean)))
        np.testing.assert_allclose(strategy.mean, np.mean(middles[-num_averaged:], axis=0))


def test_scales_are_those_of_the_first_steps():
    scales = np.where(np.arange(num_numbers(len(CONTROL_NAMES))) < 50, 0.01, 1.0)
    first = np.array(make_strategy(scales=scales, step_size=0.3, num_candidates=64)._strategy.ask())
    assert first[:, :50].std() == pytest.approx(0.003, rel=0.1)
    assert first[:, 50:].std() == pytest.approx(0.3, rel=0.1)


def test_numbers_that_are_not_free_stay():
    initial = np.random.default_rng(5).normal(size=num_numbers(len(CONTROL_NAMES)))
    trained = make_strategy(initial=initial, free=np.array([0, 7])).learn(2).mean
    assert (trained != initial).nonzero()[0].tolist() == [0, 7]


def test_training_finds_what_helps():
    # The share of wins against the anchor rises when the field is the anchor and candidates that only differ in size.
    strategy = EvolutionStrategy(
        Stage(12, (5,), smallest_budget=60.0, largest_budget=100.0, num_problems=30, cec2013_share=0.0),
        num_candidates=8,
        step_size=0.3,
        seed=0,
    ).learn(12)
    assert np.mean(strategy.anchor_scores[-4:]) > np.mean(strategy.anchor_scores[:4])


@pytest.mark.slow
def test_whole_training_exports_a_controller_and_resumes(tmp_path, monkeypatch):
    small = replace(SMALL, num_problems=2)
    monkeypatch.setattr(
        evolution_training,
        "REGIMES",
        {f"{b}, {d}": Regime(b, d, small, num_candidates=4) for b in (-1.0, 0.0) for d in (0.0, 0.5)},
    )
    config = EvolutionConfig(seed=1, generations=1, output=str(tmp_path))
    folder = train_residual_controller(config)
    controller = load(folder / "controller.safetensors")
    assert set(controller.info["generations"].values()) == {1}
    assert (controller.budgets, controller.dimensions) == ((-1.0, 0.0), (0.0, 0.5))
    assert controller.weights.shape[:2] == (1, 4)
    before = (folder / "controller.safetensors").read_bytes()
    (folder / "controller.safetensors").unlink()
    train_residual_controller(config)
    assert (folder / "controller.safetensors").read_bytes() == before


def test_a_training_goes_on_with_its_own_settings_only(tmp_path, monkeypatch):
    monkeypatch.setattr(evolution_training, "REGIMES", {"one": Regime(0.0, 0.0, SMALL, num_candidates=4)})
    config = EvolutionConfig(seed=1, generations=1, output=str(tmp_path))
    folder = train_residual_controller(config)
    for change, message in (
        ({"seed": 2}, "another `seed`: 1, got 2"),
        ({"step_size": 0.2}, r"another `step_size`: 0\.1, got 0\.2"),
        ({"only_constants": True}, r"another `free`: \["),
        ({"generations": 0}, "`generations` must be at least the 1 of .*, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            train_residual_controller(replace(config, resume=str(folder), **change))


def test_a_stopped_training_names_the_command_that_resumes_it(tmp_path, monkeypatch):
    monkeypatch.setattr(evolution_training, "REGIMES", {"one": Regime(0.0, 0.0, SMALL, num_candidates=4)})
    whole = train_residual_controller(EvolutionConfig(seed=3, generations=2, output=str(tmp_path / "whole")))
    learn, kept = EvolutionStrategy.learn, []

    def interrupted(strategy, num_generations, callback):
        def stop(strategy):
            callback(strategy)
            kept.append(strategy.num_generations)
            raise KeyboardInterrupt

        return learn(strategy, num_generations, stop)

    monkeypatch.setattr(EvolutionStrategy, "learn", interrupted)
    with pytest.raises(TrainingStopped) as caught:
        train_residual_controller(EvolutionConfig(seed=3, generations=2, output=str(tmp_path / "stopped")))
    assert kept == [1]
    monkeypatch.setattr(EvolutionStrategy, "learn", learn)
    command = shlex.split(str(caught.value).partition(" with: ")[2])
    assert command[:2] == ["python", "train.py"]
    folder = train_residual_controller(tyro.cli(EvolutionConfig, args=command[2:]))
    name = "controller.safetensors"
    assert (folder / name).read_bytes() == (whole / name).read_bytes()


def test_maps_of_a_training_form_a_grid():
    budgets, dimensions = {regime.budget for regime in REGIMES.values()}, {r.dimension for r in REGIMES.values()}
    assert len(REGIMES) == len(budgets) * len(dimensions)
    assert {(r.budget, r.dimension) for r in REGIMES.values()} == {(b, d) for b in budgets for d in dimensions}


def test_a_search_begins_where_its_regime_says():
    regime = Regime(
        0.0, 0.0, SMALL, size_weight=0.4, start={"pbest_share": {"spent": 0.5}}, scales={"pbest_share": 0.1}
    )
    place = CONTROL_NAMES.index("pbest_share") * len(INPUTS)
    expected = np.zeros(num_numbers(len(CONTROL_NAMES)))
    expected[place + INPUTS.index("spent")], expected[-2] = 0.5, 0.4
    np.testing.assert_array_equal(regime.initial(), expected)
    np.testing.assert_array_equal(np.flatnonzero(regime.all_scales() == 0.1), place + np.arange(len(INPUTS)))


def test_some_maps_make_a_controller_if_they_are_a_grid(tmp_path, monkeypatch):
    regimes = {f"{b}{d}": Regime(b, d, SMALL, num_candidates=4) for b in (-1.0, 0.0) for d in (0.0, 0.5)}
    monkeypatch.setattr(evolution_training, "REGIMES", regimes)
    config = EvolutionConfig(maps=("0.00.0", "0.00.5"), generations=1, output=str(tmp_path))
    controller = load(train_residual_controller(config) / "controller.safetensors")
    assert (controller.budgets, controller.dimensions) == ((0.0,), (0.0, 0.5))
    assert "--maps 0.00.0 0.00.5" in controller.info["trained_by"]
    for names, message in (
        (("0.00.0", "-1.00.5"), "`maps` must be all maps of some budgets and some dimensions"),
        (("0.00.0", "0.00.0"), "each once"),
        ((), "each once"),
        (("0.00.1",), "Did you mean"),
    ):
        with pytest.raises(ValueError, match=message):
            train_residual_controller(replace(config, maps=names))


def test_actions_are_those_of_the_controller():
    strategy = make_strategy().learn(1)
    observations = np.random.default_rng(0).normal(size=(3, len(FEATURE_NAMES))).astype(np.float32)
    actions, state = strategy.predict(observations)
    np.testing.assert_array_equal(actions, strategy.controller()(observations))
    np.testing.assert_array_equal(strategy.predict(observations[1])[0], actions[1])
    assert state is None


def test_constants_react_to_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(evolution_training, "REGIMES", {"one": Regime(0.0, 0.0, SMALL, num_candidates=4)})
    config = EvolutionConfig(only_constants=True, generations=2, output=str(tmp_path))
    controller = load(train_residual_controller(config) / "controller.safetensors")
    observations = np.random.default_rng(0).normal(size=(2, len(FEATURE_NAMES))).astype(np.float32)
    assert np.abs(controller(observations)).min() > 0.0
    np.testing.assert_array_equal(*controller(observations))


def test_every_damaged_file_of_a_training_is_noticed(tmp_path):
    path = tmp_path / "strategy.json"
    make_strategy().learn(2).save(path)
    content, rng = path.read_bytes(), np.random.default_rng(3)
    for position in rng.choice(8 * len(content), 150, replace=False):
        damaged = bytearray(content)
        damaged[position // 8] ^= 1 << (position % 8)
        path.write_bytes(damaged)
        if json.loads(content) == _parsed(damaged):  # a flip that JSON does not see, as in the blanks
            continue
        with pytest.raises(ValueError, match=r"strategy\.json' (is damaged|is not the file|does not match)"):
            EvolutionStrategy.load(path)


def _parsed(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


@pytest.mark.slow
def test_a_node_of_a_cluster_that_dies_in_the_middle_changes_nothing():
    ray, clusters = pytest.importorskip("ray"), pytest.importorskip("ray.cluster_utils")
    expected = make_strategy().learn(3)
    head = {"num_cpus": 1, "include_dashboard": False}
    cluster = clusters.Cluster(initialize_head=True, head_node_args=head)
    try:
        node = cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        assert sum(known["Alive"] for known in ray.nodes()) == 2
        strategy = make_strategy(backend="ray", workers=-1).learn(1)
        killer = threading.Timer(0.3, lambda: cluster.remove_node(node, allow_graceful=False))
        killer.start()
        strategy.learn(2)
        killer.join()
        deadline = time.monotonic() + 120.0  # the cluster notices late, and the work goes on before
        while sum(known["Alive"] for known in ray.nodes()) > 1:
            assert time.monotonic() < deadline
            time.sleep(0.5)
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert strategy.scores == expected.scores
    np.testing.assert_array_equal(strategy.mean, expected.mean)


def test_rounding_errors_win_nothing():
    np.testing.assert_array_equal(win_shares(np.array([[200.0], [200.0 - 3e-14], [201.0]])), [[0.75], [0.75], [0.0]])


def test_a_training_knows_the_local_search_of_its_runs():
    stages = [replace(SMALL, descent_share=share) for share in (0.0, 0.5)]
    controllers = [EvolutionStrategy(stage, num_candidates=4).controller() for stage in stages]
    assert [controller.descent_shares.tolist() for controller in controllers] == [[[0.0]], [[0.5]]]
    scores = [EvolutionStrategy(stage, num_candidates=4, seed=1).learn(1).scores for stage in stages]
    assert scores[0] != scores[1]
