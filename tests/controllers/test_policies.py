"""Agents of other libraries as controllers: what they do in an optimiser is what they do in their environment."""

from __future__ import annotations

import pickle
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import ClipAction, FrameStackObservation, NormalizeObservation, RescaleAction
from gymnasium.wrappers import vector as vector_wrappers

import de_gym
from de_gym.controllers import ConstantController, from_policy
from de_gym.envs import EnvSettings
from de_gym.envs.adaptive_process import AdaptiveSettings
from de_gym.evaluation import PROTOCOLS, make_methods
from de_gym.optimizers import AdaptiveDE, ControlledDE, find_controller, make_controlled_optimizer, run

torch = pytest.importorskip("torch")
sb3 = pytest.importorskip("stable_baselines3")
sb3_contrib = pytest.importorskip("sb3_contrib")
vec_env = pytest.importorskip("stable_baselines3.common.vec_env")

PARAMETERS, ADAPTIVE = "DEParamControl-v0", "AdaptiveDEControl-v0"
BUDGET = 1500
OPTIONS = {
    PARAMETERS: {
        "functions": [1],
        "population_size": 20,
        "max_evaluations": BUDGET,
        "max_generations": None,
        "target_error": 0.0,
    },
    ADAPTIVE: {"functions": [1], "dimension": 10, "max_evaluations": BUDGET, "target_error": 0.0},
}
BOTH = pytest.mark.parametrize("env_id", [PARAMETERS, ADAPTIVE])


def make(env_id, **changes):
    return gym.make(env_id, **OPTIONS[env_id] | changes)


def act(observations):
    """Return actions that depend on the observations and on the place, all inside both boxes."""
    return 0.5 + 0.4 * np.sin(np.sum(observations, axis=1, keepdims=True) + np.arange(act.size))


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


def assert_equals_environment(controller, env, decide, env_id):
    """Play an episode by ``decide`` and compare it with a run of the controller from the same start, bit for bit."""
    problem = de_gym.make_suite("cec2013", 10)[1]
    optimizer = make_controlled_optimizer(controller)
    optimizer.start(problem.lower[None], problem.upper[None], [np.random.default_rng(5)], BUDGET)
    initial = optimizer.ask().points
    optimizer.tell(problem.evaluate(initial))
    observation, _ = env.reset(seed=0, options={"initial_population": initial})
    inner = env.unwrapped
    if env_id == PARAMETERS:
        inner._state.runs["key"] = optimizer._state.runs["key"]
    else:
        inner._state.shell_runs["key"] = optimizer._state.runs["key"]
    history = {}
    while not optimizer.has_ended[0]:
        optimizer.tell(problem.evaluate(optimizer.ask().points))
        history[int(optimizer.evaluations[0])] = optimizer.best_fitness[0]
    ended, num_steps = False, 0
    while not ended:
        observation, _, terminated, truncated, info = env.step(decide(observation))
        ended = terminated or truncated
        assert history[info["evaluations"]] == info["best_fitness"]
        num_steps += 1
    assert num_steps > 10


@BOTH
def test_function_acts_as_in_its_environment(env_id):
    env = make(env_id)
    act.size = env.action_space.shape[0]
    assert_equals_environment(from_policy(act, env), env, lambda observation: act(observation[None])[0], env_id)


@pytest.mark.parametrize("action", ["knots", "mean_and_spread"])
def test_every_meaning_of_actions_is_kept(action):
    env = make(PARAMETERS, action=action, shell="l-shade")
    act.size = env.action_space.shape[0]
    controller = from_policy(act, env)
    assert controller.env_settings["action"] == action
    assert_equals_environment(controller, env, lambda observation: act(observation[None])[0], PARAMETERS)


@pytest.mark.parametrize(
    ("name", "value"),
    [("pbest", 0.1), ("bound_repair", "clip"), ("histogram", "counts"), ("history_window", None), ("num_bins", 3)],
)
def test_every_setting_of_the_process_is_kept(name, value):
    controller = from_policy(act, make(PARAMETERS, **{name: value}))
    assert controller.env_settings[name] == value
    assert getattr(ControlledDE(controller)._settings, name) == value


@BOTH
def test_observations_of_the_user_are_seen_in_the_optimiser(env_id):
    def worst(view):
        return np.tanh(view.fitness[-1] / 1e4)

    name = "histogram" if env_id == PARAMETERS else "spent"
    env = make(env_id, observation=[worst, name])
    act.size = env.action_space.shape[0]
    assert_equals_environment(from_policy(act, env), env, lambda observation: act(observation[None])[0], env_id)


@BOTH
def test_module_acts_as_in_its_environment_and_keeps_its_mode(env_id):
    env = make(env_id)
    sizes = env.observation_space.shape[0], env.action_space.shape[0]
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(*sizes), torch.nn.Dropout(0.5), torch.nn.Sigmoid()).double().train()

    def decide(observation):
        module.eval()
        with torch.no_grad():
            return module(torch.as_tensor(observation[None]).double()).numpy()[0]

    controller = from_policy(module, env)
    assert_equals_environment(controller, env, decide, env_id)
    module.train()
    controller(np.zeros((2, sizes[0]), np.float32))
    assert module.training


@BOTH
@pytest.mark.parametrize("library", ["PPO", "SAC", "RecurrentPPO"])
def test_model_acts_as_in_its_environment(env_id, library):
    env = make(env_id)
    options = {"seed": 0, "device": "cpu"}
    if library == "PPO":
        model = sb3.PPO("MlpPolicy", env, n_steps=32, batch_size=32, **options)
    elif library == "SAC":
        model = sb3.SAC("MlpPolicy", env, learning_starts=30, **options)
    else:
        model = sb3_contrib.RecurrentPPO(
            "MlpLstmPolicy", env, n_steps=32, batch_size=32, policy_kwargs={"lstm_hidden_size": 8}, **options
        )
    model.learn(40)
    memory = {"state": None, "episode_start": np.array([True])}

    def decide(observation):
        action, memory["state"] = model.predict(observation[None], deterministic=True, **memory)
        memory["episode_start"] = np.array([False])
        return action[0]

    controller = from_policy(model)
    assert_equals_environment(controller, make(env_id), decide, env_id)
    assert pickle.loads(pickle.dumps(controller)).is_residual == (env_id == ADAPTIVE)


def test_model_with_its_environment_is_a_controller_itself():
    model = sb3.PPO("MlpPolicy", make(ADAPTIVE), seed=0, device="cpu")
    options = {"max_evaluations": 1000, "seed": 0}
    results = [
        de_gym.minimize(lambda x: x @ x, [(-1, 1)] * 3, controller=controller, **options).fun
        for controller in (model, from_policy(model))
    ]
    assert results[0] == results[1] != de_gym.minimize(lambda x: x @ x, [(-1, 1)] * 3, method="l-srtde", **options).fun


def last_actions(controller, observations):
    """Return actions of the runs 2 and 1, of which the latter pauses once, after run 0 has been dropped."""
    rng = np.random.default_rng(0)
    controller.reset([rng] * 3)
    controller(observations[0])
    controller(observations[1, [2, 0]], np.array([2, 0]))
    controller.keep(np.array([2, 1]))
    return controller(observations[2, [2, 1]])


def test_memories_of_recurrent_models_stay_with_their_runs():
    env = make(ADAPTIVE)
    model = sb3_contrib.RecurrentPPO("MlpLstmPolicy", env, policy_kwargs={"lstm_hidden_size": 8}, device="cpu", seed=1)
    controller = from_policy(model, env)
    observations, others = np.random.default_rng(0).normal(size=(2, 3, 3, 11)).astype(np.float32)
    expected = last_actions(controller, observations)
    for place, number in enumerate([2, 1]):
        # In batches of the same sizes a run's actions have the same bits, whatever the other runs see.
        alone = others.copy()
        alone[:, number] = observations[:, number]
        np.testing.assert_array_equal(last_actions(controller, alone)[place], expected[place])
        for step in range(3):
            changed = observations.copy()
            changed[step, number] = others[step, number]
            is_seen = (step, number) != (1, 1)
            assert (last_actions(controller, changed)[place] != expected[place]).any() == is_seen


def test_recurrent_model_in_a_batch_acts_as_alone_up_to_rounding():
    env = make(ADAPTIVE)
    model = sb3_contrib.RecurrentPPO("MlpLstmPolicy", env, policy_kwargs={"lstm_hidden_size": 8}, device="cpu", seed=1)
    observations = np.random.default_rng(0).normal(size=(3, 3, 11)).astype(np.float32)
    together = last_actions(from_policy(model, env), observations)
    state, begins = None, np.ones(1, bool)
    for step in range(3):
        expected, state = model.predict(observations[step, [2]], state, begins, deterministic=True)
        begins = np.zeros(1, bool)
    # Products of other batches add up in another order, so that what is left near 0 has the errors of large terms.
    np.testing.assert_allclose(together[0], expected[0], rtol=0, atol=1e-5 * np.abs(expected).max())
    assert not np.allclose(together[0], together[1], rtol=1e-3)


@BOTH
def test_wrappers_of_gymnasium_are_undone(env_id):
    env = NormalizeObservation(ClipAction(RescaleAction(make(env_id), np.float32(-2), np.float32(2))))
    env.reset(seed=1)
    for _ in range(5):
        env.step(np.zeros(env.action_space.shape, np.float32))
    env.update_running_mean = False
    act.size = env.action_space.shape[0]
    assert_equals_environment(from_policy(act, env), env, lambda observation: act(observation[None])[0], env_id)


def test_wrappers_of_vector_environments_are_undone():
    envs = gym.make_vec(PARAMETERS, num_envs=2, vectorization_mode="vector_entry_point", **OPTIONS[PARAMETERS])
    envs = vector_wrappers.NormalizeObservation(vector_wrappers.RescaleAction(envs, -1.0, 1.0))
    envs.reset(seed=1)
    envs.step(np.zeros(envs.action_space.shape, np.float32))
    seen = []

    def middle(observations):
        seen.append(observations)
        return np.zeros((len(observations), 40), np.float32)

    controller = from_policy(middle, envs)
    raw = np.full((3, 30), 0.25, np.float32)
    np.testing.assert_array_equal(controller(raw), np.full((3, 40), 0.5))
    expected = (raw - envs.obs_rms.mean) / np.sqrt(envs.obs_rms.var + envs.epsilon)
    np.testing.assert_allclose(seen[0], expected, rtol=1e-6)


def test_batch_function_of_a_vector_wrapper_gets_the_batch():
    envs = gym.make_vec(PARAMETERS, num_envs=2, vectorization_mode="vector_entry_point", **OPTIONS[PARAMETERS])
    wrapped = vector_wrappers.TransformAction(envs, lambda actions: actions - actions.mean(axis=0) + 0.5)
    controller = from_policy(lambda observations: np.arange(80.0).reshape(2, 40) / 80, wrapped)
    np.testing.assert_allclose(controller(np.zeros((2, 30), np.float32))[:, 0], [0.25, 0.75])


@BOTH
def test_statistics_of_vec_normalize_are_applied(env_id):
    envs = vec_env.VecNormalize(vec_env.VecMonitor(vec_env.DummyVecEnv([lambda: make(env_id)] * 2)), clip_obs=2.0)
    model = sb3.PPO("MlpPolicy", envs, n_steps=16, batch_size=32, seed=0, device="cpu").learn(32)

    def decide(observation):
        return model.predict(envs.normalize_obs(observation[None]), deterministic=True)[0][0]

    assert_equals_environment(from_policy(model), make(env_id), decide, env_id)


@pytest.mark.parametrize("value", [np.nan, np.inf, -7.0, 7.0])
@BOTH
def test_numbers_outside_the_box_are_clipped_and_nan_is_refused(env_id, value):
    env = make(env_id)
    size = env.action_space.shape[0]
    controller = from_policy(lambda observations: np.full((len(observations), size), value), env)
    if np.isnan(value):
        with pytest.raises(ValueError, match="got NaN"):
            de_gym.minimize(lambda x: x @ x, [(-1, 1)] * 3, controller=controller, max_evaluations=200)
    else:
        result = de_gym.minimize(lambda x: x @ x, [(-1, 1)] * 3, controller=controller, max_evaluations=200, seed=0)
        assert result.nfev <= 200


@BOTH
@pytest.mark.parametrize(
    ("actions", "error", "message"),
    [
        (lambda rows, size: np.zeros((rows, size + 1)), ValueError, "must have shape"),
        (lambda rows, size: np.zeros(size), ValueError, "must have shape"),
        (lambda rows, size: np.zeros((rows + 1, size)), ValueError, "must have shape"),
        (lambda rows, size: np.full((rows, size), "a"), TypeError, "must be real numbers"),
        (lambda rows, size: np.full((rows, size), 1j), TypeError, "must be real numbers"),
        (lambda rows, size: None, TypeError, "must be real numbers"),
        (lambda rows, size: [[1.0], [1.0, 2.0]], ValueError, "actions must have shape"),
    ],
)
def test_actions_of_wrong_shape_or_kind_are_refused(env_id, actions, error, message):
    env = make(env_id)
    controller = from_policy(lambda observations: actions(len(observations), env.action_space.shape[0]), env)
    with pytest.raises(error, match=message):
        de_gym.minimize(lambda x: x @ x, [(-1, 1)] * 3, controller=controller, max_evaluations=200)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64, np.bool_])
def test_actions_of_any_real_kind_are_taken(dtype):
    env = make(PARAMETERS)
    results = []
    for kind in (np.float64, dtype):
        ones = from_policy(lambda observations, kind=kind: np.ones((len(observations), 40), kind), env)
        results.append(de_gym.minimize(lambda x: x @ x, [(-1, 1)] * 3, controller=ones, max_evaluations=200, seed=0))
    assert results[0].fun == results[1].fun


def test_what_cannot_be_undone_is_refused():
    with pytest.raises(ValueError, match="wrapper FrameStackObservation"):
        from_policy(act, FrameStackObservation(make(PARAMETERS), 3))
    with pytest.raises(ValueError, match="wrapper VecFrameStack"):
        from_policy(act, vec_env.VecFrameStack(vec_env.DummyVecEnv([lambda: make(PARAMETERS)]), 2))
    with pytest.raises(ValueError, match="statistics of its own"):
        from_policy(act, vec_env.DummyVecEnv([lambda: NormalizeObservation(make(PARAMETERS))] * 2))

    class Mine(gym.Wrapper):
        pass

    with pytest.raises(ValueError, match="wrapper Mine"):
        from_policy(act, Mine(make(PARAMETERS)))


def test_what_is_no_policy_or_environment_is_refused():
    with pytest.raises(TypeError, match="`policy` must be a callable"):
        from_policy(3, make(PARAMETERS))
    for env in (3, gym.make("CartPole-v1")):
        with pytest.raises(TypeError, match="`env` must be an environment of this package"):
            from_policy(act, env)
    with pytest.raises(ValueError, match="the policy has none"):
        from_policy(act)
    with pytest.raises(ValueError, match="must name its `population_size`"):
        from_policy(act, EnvSettings())


def test_model_of_other_spaces_is_refused():
    model = sb3.PPO("MlpPolicy", RescaleAction(make(PARAMETERS), np.float32(-1), np.float32(1)), device="cpu")
    with pytest.raises(ValueError, match="trained with the action_space"):
        from_policy(model, make(PARAMETERS))
    with pytest.raises(ValueError, match="trained with the observation_space"):
        from_policy(model, make(PARAMETERS, population_size=21))


def test_settings_can_stand_for_the_environment():
    controller = from_policy(
        lambda observations: np.full((len(observations), 24), 0.5), EnvSettings(population_size=12)
    )
    assert controller.population_size == 12
    assert isinstance(make_controlled_optimizer(controller), ControlledDE)
    with pytest.raises(ValueError, match="trained for 12 individuals"):
        make_controlled_optimizer(controller, 13)
    with pytest.raises(ValueError, match="give it to ControlledDE"):
        AdaptiveDE(controller=controller)
    residual = from_policy(lambda observations: np.zeros((len(observations), 15)), AdaptiveSettings())
    assert isinstance(make_controlled_optimizer(residual), AdaptiveDE)
    with pytest.raises(ValueError, match="give it to AdaptiveDE"):
        ControlledDE(residual)


def test_population_size_of_an_adaptive_environment_is_kept_where_it_was_chosen():
    zeros = lambda observations: np.zeros((len(observations), 15))  # noqa: E731
    assert from_policy(zeros, make(ADAPTIVE)).population_size is None
    controller = from_policy(zeros, make(ADAPTIVE, population_size=33))
    optimizer = make_controlled_optimizer(controller)
    optimizer.start(np.full((1, 2), -1.0), np.ones((1, 2)), [np.random.default_rng(0)], 500)
    assert optimizer.ask().points.shape == (33, 2)


def test_zeros_leave_the_adaptive_algorithm_alone_and_others_do_not():
    problem = de_gym.make_suite("cec2013", 10)[1]
    results = []
    for number in (0.0, 0.4):
        policy = from_policy(lambda rows, number=number: np.full((len(rows), 15), number), make(ADAPTIVE))
        seeds = np.random.SeedSequence(0).spawn(3)
        results.append(run(make_controlled_optimizer(policy), problem, seeds=seeds, max_evaluations=BUDGET).errors)
    plain = run(AdaptiveDE(), problem, seeds=np.random.SeedSequence(0).spawn(3), max_evaluations=BUDGET).errors
    np.testing.assert_array_equal(results[0], plain)
    assert (results[1] != plain).all()


class Remembering:
    """Counts the decisions of every run and acts by the count."""

    def reset(self, rngs):
        self.counts = np.zeros(len(rngs), int)

    def __call__(self, observations, runs):
        self.counts[runs] += 1
        return np.repeat(0.1 * np.sin(self.counts[runs])[:, None], 15, axis=1)

    def keep(self, runs):
        self.counts = self.counts[runs]


def test_run_of_a_remembering_policy_in_a_batch_equals_the_run_alone():
    problem = de_gym.make_suite("cec2013", 10)[1]
    seeds = np.random.SeedSequence(2).spawn(5)
    options = {"max_evaluations": 4000, "target_error": 1000.0}
    optimizer = make_controlled_optimizer(from_policy(Remembering(), make(ADAPTIVE)))
    together = run(optimizer, problem, seeds=seeds, **options)
    for index in range(5):
        alone = run(optimizer, problem, seeds=seeds[index : index + 1], **options)
        assert alone.errors[0] == together.errors[index]


MODULE = """
import gymnasium as gym, numpy as np, de_gym
from de_gym.controllers import from_policy

def _middle(observations):
    return np.full((len(observations), 40), 0.5)

controller = from_policy(_middle, gym.make("DEParamControl-v0", functions=[1], population_size=20))
number = 3
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "own_agent_of_a_user.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield "own_agent_of_a_user"
    sys.modules.pop("own_agent_of_a_user", None)


def test_a_module_of_another_size_is_refused_with_the_shape():
    env = gym.make("DEParamControl-v0", functions=[1], population_size=8)
    controller = from_policy(torch.nn.Linear(7, 16), env)
    with pytest.raises(ValueError, match=r"The module cannot act on observations of shape \(1, 18\): mat1 and mat2"):
        de_gym.minimize(lambda x: x @ x, [(-5, 5)] * 10, controller=controller, max_evaluations=100, seed=0)


def test_own_code_is_imported_by_name(own_module):
    constant = ConstantController(0.5, 0.5, population_size=20)
    results = [
        de_gym.minimize(lambda x: x @ x, [(-1, 1)] * 3, controller=controller, max_evaluations=400, seed=0).fun
        for controller in (f"{own_module}:controller", constant)
    ]
    assert results[0] == results[1]
    (method,) = make_methods([f"{own_module}:controller"], PROTOCOLS["paper-cec17-10d"])
    assert (method.name, method.settings["population_size"]) == (f"{own_module}.controller", 20)
    assert len(method.settings["source_sha256"]) == 64
    with pytest.raises(ValueError, match="trained for 20 individuals"):
        make_methods([f"{own_module}:controller"], PROTOCOLS["paper-cec17-10d"], population_size=50)


def test_own_code_that_has_no_controller_is_refused(own_module):
    with pytest.raises(ValueError, match="Did you mean 'controller'"):
        find_controller(f"{own_module}:controler")
    with pytest.raises(ValueError, match=r"number' cannot be used: .* got int"):
        find_controller(f"{own_module}:number")
    with pytest.raises(ValueError, match="There is no module 'not_there'"):
        find_controller("not_there:controller")
    with pytest.raises(TypeError, match="from_policy"):
        find_controller(act)


def test_saved_model_is_loaded_on_trust_only(tmp_path):
    env = gym.make(ADAPTIVE, functions=[1], dimension=10, max_evaluations=BUDGET)
    model = sb3.PPO("MlpPolicy", env, n_steps=16, batch_size=16, seed=0, device="cpu").learn(16)
    model.save(tmp_path / "model.zip")
    name = f"PPO:{tmp_path / 'model.zip'}"
    with pytest.raises(ValueError, match="can execute any code"):
        find_controller(name)
    with pytest.raises(ValueError, match="--trust"):
        make_methods([name], PROTOCOLS["paper-cec17-10d"])
    (method,) = make_methods([name], PROTOCOLS["paper-cec17-10d"], trust=True)
    assert (method.name, method.settings["algorithm"]) == ("model", "l-srtde")
    observations = np.random.default_rng(0).normal(size=(4, 11)).astype(np.float32)
    expected, _ = model.predict(observations, deterministic=True)
    np.testing.assert_array_equal(find_controller(name, trust=True)(observations), expected)
    with pytest.raises(ValueError, match="Did you mean 'PPO'"):
        find_controller(name.replace("PPO", "PPOO"), trust=True)
    with pytest.raises(ValueError, match="algorithm's name in front"):
        find_controller(str(tmp_path / "model.zip"), trust=True)
    with pytest.raises(ValueError, match="not a file that a model was saved in"):
        find_controller("PPO:nothing.zip", trust=True)


def test_saved_model_of_unknown_spaces_is_refused_and_of_the_paper_process_taken(tmp_path):
    for wrap, name in ((lambda env: env, "plain"), (lambda env: RescaleAction(env, -1.0, 1.0), "wrapped")):
        sb3.PPO("MlpPolicy", wrap(make(PARAMETERS)), device="cpu").save(tmp_path / f"{name}.zip")
    assert find_controller(f"PPO:{tmp_path / 'plain.zip'}", trust=True).population_size == 20
    with pytest.raises(ValueError, match="those of no environment with default settings"):
        find_controller(f"PPO:{tmp_path / 'wrapped.zip'}", trust=True)
