"""The sampler inside real studies: all kinds of parameters, constraints, failures, threads, and OptunaHub's loader."""

from __future__ import annotations

import math

import pytest

optuna = pytest.importorskip("optuna")
optunahub = pytest.importorskip("optunahub")

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution  # noqa: E402

from de_gym import OptunaSampler  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.WARNING)
SPACE = {"x": FloatDistribution(-3, 5), "rate": FloatDistribution(1e-4, 1.0, log=True), "count": IntDistribution(0, 9)}


def best_of(objective, n_trials, *, direction="minimize", study=None, **options):
    sampler = OptunaSampler(n_trials=n_trials, seed=1, method="l-srtde", **options)
    study = study or optuna.create_study(direction=direction)
    study.sampler = sampler
    study.optimize(objective, n_trials=n_trials, catch=(ZeroDivisionError,))
    return study


def mixed(trial):
    x, rate = trial.suggest_float("x", -3, 5), trial.suggest_float("rate", 1e-4, 1.0, log=True)
    return (x - 1.0) ** 2 + (math.log10(rate) + 2.0) ** 2 + (trial.suggest_int("count", 0, 9) - 7) ** 2


def test_known_space():
    study = best_of(mixed, 400, search_space=SPACE)
    assert study.best_value < 1e-3
    assert study.best_params["count"] == 7
    random = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    random.optimize(mixed, n_trials=400)
    assert study.best_value < 0.1 * random.best_value


def test_space_that_shows_itself_and_every_kind_of_parameter():
    def objective(trial):
        kind = trial.suggest_categorical("kind", ["a", "b", None])
        step = trial.suggest_float("step", -1.0, 1.0, step=0.25)
        even = trial.suggest_int("even", 2, 10, step=2)
        power = trial.suggest_int("power", 1, 1000, log=True)
        fixed = trial.suggest_float("fixed", 2.0, 2.0)
        assert step % 0.25 == 0
        assert even % 2 == 0
        assert fixed == 2.0
        return abs(step - 0.5) + abs(even - 6) + abs(math.log(power / 50)) + (kind != "b")

    study = best_of(objective, 400, direction="minimize")
    assert study.best_params["kind"] == "b"
    assert (study.best_params["step"], study.best_params["even"]) == (0.5, 6)
    assert 45 <= study.best_params["power"] <= 55


def test_maximising_with_failures_pruning_and_constraints():
    def objective(trial):
        x, y = (trial.suggest_float(name, -5, 5) for name in "xy")
        trial.set_constraint("disc", x * x + y * y - 4.0)
        if trial.number % 17 == 3:
            return 1 / 0
        if trial.number % 17 == 5:
            raise optuna.TrialPruned
        return x + y

    space = {"x": FloatDistribution(-5, 5), "y": FloatDistribution(-5, 5)}
    study = best_of(objective, 500, direction="maximize", search_space=space)
    assert study.best_value == pytest.approx(2 * math.sqrt(2), abs=0.02)
    assert sum(trial.state == optuna.trial.TrialState.FAIL for trial in study.trials) > 20


def test_study_that_goes_on_learns_from_what_it_holds():
    study = best_of(mixed, 150, search_space=SPACE)
    before = study.best_value
    best_of(mixed, 60, search_space=SPACE, study=study)
    assert len(study.trials) == 210
    assert study.best_value <= before
    later = [trial.value for trial in study.trials[150:]]
    earlier = [trial.value for trial in study.trials[:60]]
    assert sorted(later)[30] < 0.5 * sorted(earlier)[30]


def test_more_trials_than_planned_and_threads():
    sampler = OptunaSampler(SPACE, n_trials=60, seed=0, method="jade")
    study = optuna.create_study(sampler=sampler)
    study.optimize(mixed, n_trials=150, n_jobs=3)
    assert len(study.trials) == 150
    assert all(trial.state == optuna.trial.TrialState.COMPLETE for trial in study.trials)


def test_same_seed_same_study():
    values = [best_of(mixed, 40, search_space=SPACE).trials_dataframe()["value"].tolist() for _ in range(2)]
    assert values[0] == values[1]


def test_two_objectives_are_refused():
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=OptunaSampler(SPACE))
    with pytest.raises(ValueError, match="multi-objective"):
        study.optimize(lambda trial: (trial.suggest_float("x", -3, 5), 2.0), n_trials=1)


def test_hub_loads_it_as_a_package(tmp_path):
    package = tmp_path / "samplers" / "de_gym_sampler"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "from de_gym.minimizing.optuna_sampler import OptunaSampler\n\n__all__ = ['OptunaSampler']\n"
    )
    module = optunahub.load_local_module("samplers/de_gym_sampler", registry_root=str(tmp_path))
    study = optuna.create_study(sampler=module.OptunaSampler(SPACE, n_trials=30, seed=0))
    study.optimize(mixed, n_trials=30)
    assert len(study.trials) == 30


def test_categories_are_searched_by_number():
    space = {"kind": CategoricalDistribution(["a", "b", "c", "d"])}
    study = best_of(lambda trial: "dacb".index(trial.suggest_categorical("kind", list("abcd"))), 30, search_space=space)
    assert study.best_params == {"kind": "d"}
