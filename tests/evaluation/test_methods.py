from __future__ import annotations

import json
import pickle
import sys

import gymnasium as gym
import numpy as np
import pytest

import de_gym
from de_gym.controllers import RandomController, save_controller
from de_gym.evaluation.methods import ALGORITHMS, controller_method, make_methods
from de_gym.evaluation.paper import LABELS
from de_gym.evaluation.protocol import SEED_RULE, Protocol
from de_gym.evaluation.results import load_results
from de_gym.evaluation.runner import run_methods
from de_gym.evaluation.store import ResultStore
from de_gym.evolution.two_population import CONTROLS
from de_gym.optimizers import PAPER_METHODS, ControlledDE, run
from de_gym.problems import make_suite

PROTOCOL = Protocol("cec2017", 10, (1, 5), num_runs=3, max_evaluations=600)
PROBLEM = make_suite("cec2017", 10)[5]
USERS_MODULE = """
import gymnasium as gym, numpy as np
from de_gym.controllers import from_policy
env = gym.make({env_id!r}, functions=[1], **{options!r})
middle = (env.action_space.low + env.action_space.high) / 2
controller = from_policy(lambda observations: np.tile(middle, (len(observations), 1)), env)
"""


def _method(name, **options):
    (method,) = make_methods([name], PROTOCOL, **options)
    return method


@pytest.fixture
def controller_file(tmp_path, tiny_controller):
    folder = tmp_path / "quick-seed3"
    folder.mkdir()
    return str(save_controller(tiny_controller(50), folder / "controller.safetensors"))


def test_every_algorithm_of_the_paper_is_a_method_under_its_own_name():
    assert list(PAPER_METHODS) == [name for name in LABELS if name != "lde"]
    for method in make_methods(list(ALGORITHMS), PROTOCOL):
        assert json.loads(json.dumps(dict(method.settings)))["kind"] == "baseline"
        assert pickle.loads(pickle.dumps(method)).name == method.name


def test_a_run_is_that_of_the_optimizer_with_the_protocol_s_seeds():
    seeds = PROTOCOL.run_seeds(5, range(3))
    record = _method("jade").run(PROBLEM, PROTOCOL.run_seeds(5, range(3)), PROTOCOL)
    expected = run(PAPER_METHODS["jade"](), PROBLEM, seeds=seeds, max_evaluations=600)
    np.testing.assert_array_equal(record.errors, expected.errors)
    np.testing.assert_array_equal(record.grid, PROTOCOL.grid)


@pytest.mark.parametrize("name", ["jso", "random", "constant", "controller"])
def test_a_run_depends_on_its_own_seed_alone(name, controller_file):
    name = controller_file if name == "controller" else name
    together = _method(name).run(PROBLEM, PROTOCOL.run_seeds(5, range(3)), PROTOCOL)
    alone = _method(name).run(PROBLEM, PROTOCOL.run_seeds(5, [2]), PROTOCOL)
    assert together.errors[2:].tobytes() == alone.errors.tobytes()
    assert together.convergence[2:].tobytes() == alone.convergence.tobytes()


def test_a_method_can_run_twice():
    method = _method("random")
    first, second = (method.run(PROBLEM, PROTOCOL.run_seeds(5, range(2)), PROTOCOL) for _ in range(2))
    assert first.errors.tobytes() == second.errors.tobytes()


def test_a_generation_limit_cuts_the_run():
    limited = Protocol("cec2017", 10, (5,), num_runs=1, max_generations=4)
    record = _method("random").run(PROBLEM, limited.run_seeds(5, [0]), limited)
    assert record.evaluations.tolist() == [5 * 50]


def test_constant_control_takes_its_numbers_from_the_name():
    assert _method("constant").settings["crossover_rate"] == 0.9
    method = _method("constant=0.7,.25")
    assert (method.settings["scale_factor"], method.settings["crossover_rate"]) == (0.7, 0.25)
    trace = method.trace(PROBLEM, PROTOCOL.run_seeds(5, [0])[0], PROTOCOL)
    assert {float(factor) for factors in trace.scale_factors for factor in factors} == {0.7}
    with pytest.raises(ValueError, match=r"`scale_factor` must be a number in \[0, 1\], got 7"):
        _method("constant=7,0.5")


def test_a_controller_from_a_file_is_named_after_its_folder_and_known_by_its_weights(controller_file):
    method = _method(controller_file)
    assert method.name == "quick-seed3"
    assert len(method.settings["weights_sha256"]) == 64
    assert method.settings["paper_counterpart"] == "lde"
    assert method.settings["deterministic"] is False


def test_a_controller_acts_by_its_means_when_its_name_says_so(controller_file):
    method = _method(f"{controller_file}:mean")
    assert method.name == "quick-seed3-mean"
    assert method.settings["deterministic"] is True


def test_a_controller_for_another_population_size_is_refused(controller_file):
    with pytest.raises(ValueError, match="trained for populations of 50 individuals, got `population_size` 100"):
        _method(controller_file, population_size=100)
    with pytest.raises(ValueError, match="trained for populations of 50 individuals, got `population_size` 100"):
        make_methods([controller_file], Protocol("cec2017", 30, (5,)))


def test_the_same_weights_under_another_name_give_the_same_numbers(tmp_path, tiny_controller):
    paths = [str(save_controller(tiny_controller(50), tmp_path / f"{name}.safetensors")) for name in ("one", "two")]
    store = ResultStore(tmp_path / "store", PROTOCOL)
    methods = make_methods(paths, PROTOCOL)
    assert [method.name for method in methods] == ["one", "two"]
    run_methods(methods, store, jobs=1, progress=False)
    one, two = load_results(store, ["one", "two"])
    assert one.errors.tobytes() == two.errors.tobytes()
    assert one.convergence.errors.tobytes() == two.convergence.errors.tobytes()
    assert one.making == {"seed": 0, "seed_rule": SEED_RULE, "package_version": de_gym.__version__}


def test_methods_of_one_population_size_begin_with_the_same_points(controller_file):
    seed = PROTOCOL.run_seeds(5, [0])[0]
    methods = make_methods(["de", "random", "constant", controller_file], PROTOCOL)
    starts = [np.sort(method.trace(PROBLEM, seed, PROTOCOL).fitness[0]) for method in methods]
    assert all(start.tobytes() == starts[0].tobytes() for start in starts)


def test_a_controller_of_other_dimensions_is_run_with_a_warning(controller_file):
    with pytest.warns(UserWarning, match="'quick-seed3' was trained in 10 dimensions and is run in 30"):
        make_methods([controller_file], Protocol("cec2017", 30, (5,)), population_size=50)


def test_unknown_names_and_missing_files_are_refused():
    with pytest.raises(ValueError, match=r"Unknown method 'jos'. Did you mean 'jso'\? Available: de, jade"):
        _method("jos")
    with pytest.raises(FileNotFoundError, match=r"no controller file 'nowhere\.safetensors'"):
        _method("nowhere.safetensors")

    class Anything(RandomController):
        population_size = None

    anything = Anything(50)
    anything.population_size = None
    with pytest.raises(ValueError, match="'any' must have a population size to be compared"):
        controller_method("any", anything)


def test_a_trace_holds_what_each_generation_used():
    trace = _method("random").trace(PROBLEM, PROTOCOL.run_seeds(5, [0])[0], PROTOCOL)
    assert len(trace.fitness) == 600 // 50 - 1
    assert all(np.all(np.diff(fitness) >= 0) for fitness in trace.fitness)  # by rank, as the controller acts
    best = [fitness.min() for fitness in trace.fitness]
    assert best == sorted(best, reverse=True)
    record = run(ControlledDE(RandomController(50)), PROBLEM, seeds=PROTOCOL.run_seeds(5, [0]), max_evaluations=600)
    assert record.errors[0] <= best[-1] - PROBLEM.optimum


def test_jso_s_trace_follows_its_shrinking_population_and_hses_has_none():
    shrinking = Protocol("cec2017", 10, (5,), num_runs=1, max_evaluations=3000)
    sizes = [len(fitness) for fitness in _method("jso").trace(PROBLEM, np.random.SeedSequence(1), shrinking).fitness]
    assert sizes[0] > sizes[-1]
    assert _method("hses").trace(PROBLEM, np.random.SeedSequence(1), shrinking) is None


@pytest.mark.slow
def test_a_trace_holds_every_control_of_an_adjusted_algorithm():
    seed = np.random.SeedSequence(1)
    trace = _method("random-residuals").trace(PROBLEM, seed, PROTOCOL)
    assert list(trace.residuals) == [control.name for control in CONTROLS]
    assert all(len(values) == len(trace.fitness) and np.ptp(values) > 0.0 for values in trace.residuals.values())
    assert _method("l-srtde").trace(PROBLEM, seed, PROTOCOL).residuals == {}


def test_random_residuals_are_a_method():
    method = make_methods(["random-residuals"], PROTOCOL)[0]
    record = method.run(PROBLEM, PROTOCOL.run_seeds(5, range(2)), PROTOCOL)
    assert record.evaluations.tolist() == [600, 600]
    alone = method.run(PROBLEM, PROTOCOL.run_seeds(5, [1]), PROTOCOL)
    assert alone.errors[0] == record.errors[1]
    assert record.errors[0] != record.errors[1]


def test_an_sb3_agent_is_compared_through_its_exported_controller():
    agents = pytest.importorskip("agents", reason="the agents need torch and Stable-Baselines3")
    env = agents.GymnasiumVecEnv(
        gym.make_vec(
            "de_gym:DEParamControl-v0",
            num_envs=2,
            vectorization_mode="vector_entry_point",
            autoreset_mode=gym.vector.AutoresetMode.SAME_STEP,
        )
    )
    model = agents.RecurrentPPO(agents.UnitBoxLstmPolicy, env, policy_kwargs={"lstm_hidden_size": 4}, device="cpu")
    settings = {"population_size": 50, "num_bins": 5, "history_window": 5, "histogram": "fractions", "pbest": "linear"}
    controller = agents.export_controller(model.policy, env_settings={**settings, "bound_repair": "midpoint"})
    method = controller_method("agent", controller)
    record = method.run(PROBLEM, PROTOCOL.run_seeds(5, range(2)), PROTOCOL)
    assert record.evaluations.tolist() == [600, 600]
    assert np.isfinite(record.errors).all()


@pytest.mark.parametrize(
    ("env_id", "options", "algorithm"),
    [
        ("de_gym:DEParamControl-v0", {}, "controlled-de"),
        ("de_gym:AdaptiveDEControl-v0", {}, "l-srtde"),
        ("de_gym:AdaptiveDEControl-v0", {"shell": "jso"}, "jso"),
    ],
)
def test_a_policy_is_compared_in_the_algorithm_it_was_trained_in(env_id, options, algorithm, tmp_path, monkeypatch):
    (tmp_path / "users_module.py").write_text(USERS_MODULE.format(env_id=env_id, options=options))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "users_module", raising=False)
    (by_name,) = make_methods(["users_module:controller"], PROTOCOL)
    method = controller_method("mine", sys.modules["users_module"].controller, {"note": "middle of the box"})
    assert (method.name, method.settings["note"]) == ("mine", "middle of the box")
    assert method.settings["algorithm"] == by_name.settings["algorithm"] == algorithm
    errors = method.run(PROBLEM, PROTOCOL.run_seeds(5, range(2)), PROTOCOL).errors
    np.testing.assert_array_equal(by_name.run(PROBLEM, PROTOCOL.run_seeds(5, range(2)), PROTOCOL).errors, errors)


def test_a_model_is_compared_as_it_is_and_what_is_none_is_refused():
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    env = gym.make("de_gym:DEParamControl-v0", functions=[1], population_size=8)
    model = stable_baselines3.PPO("MlpPolicy", env, n_steps=50, batch_size=50, device="cpu", seed=0).learn(50)
    method = controller_method("ppo", model)
    assert method.settings["population_size"] == 8
    assert len(method.settings["policy_sha256"]) == 64
    assert np.isfinite(method.run(PROBLEM, PROTOCOL.run_seeds(5, range(2)), PROTOCOL).errors).all()
    with pytest.raises(TypeError, match=r"A controller must be .*, got function: .*from_policy"):
        controller_method("mine", lambda observations: observations)
