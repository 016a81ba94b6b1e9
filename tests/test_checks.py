"""Values from outside: one conversion for each kind, and one sentence where it fails."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
import pytest

from de_gym import Optimizer, Problem, ProblemBatch, make_suite, minimize
from de_gym.checks import LARGEST_SIZE, listed, numbers, positive, real, shown, store_plain, truth, whole
from de_gym.controllers import RandomController
from de_gym.controllers.bimodal import BimodalSettings
from de_gym.controllers.jso import JSOSettings
from de_gym.envs.run_env import check_render_mode
from de_gym.envs.settings import EnvSettings
from de_gym.envs.task import make_task
from de_gym.optimizers import METHODS, AdaptiveDE, ControlledDE, make_optimizer, run
from de_gym.optimizers.recipes import CDESettings
from de_gym.problems.own_suites import own_suite, register_suite
from de_gym.registry import known_name


@dataclass(frozen=True)
class Example:
    count: int = 1
    share: float = 0.5
    limit: int | None = None
    flag: bool = False
    pair: tuple[float, float] = (0.0, 1.0)
    many: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        store_plain(self)


def test_fields_become_plain_values():
    example = Example(np.uint8(200), np.float32(0.25), np.int64(3), np.bool_(True), np.array([1, 2]), [3])
    assert example == Example(200, 0.25, 3, True, (1.0, 2.0), (3.0,))
    kinds = [type(getattr(example, field.name)) for field in dataclasses.fields(example)]
    assert kinds == [int, float, int, bool, tuple, tuple]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"count": 1.5}, r"`count` must be a whole number, got 1\.5\."),
        ({"count": True}, "`count` must be a whole number, got True"),
        ({"count": 2**70}, "`count` must be at most"),
        ({"share": "0.5"}, "`share` must be a number, got '0.5'"),
        ({"share": 10**400}, "`share` must be a finite number, got 1000"),
        ({"limit": []}, r"`limit` must be a whole number, got \[\]"),
        ({"flag": 1}, "`flag` must be True or False, got 1"),
        ({"pair": (1.0,)}, r"`pair` must have 2 entries, got \(1\.0,\)"),
        ({"many": ()}, r"`many` must have at least one entry, got \(\)"),
        ({"many": 3}, "`many` must be a sequence of numbers, got 3"),
        ({"many": ["a"]}, "`many` must be a number, got 'a'"),
    ],
)
def test_a_field_of_another_type_is_named(changes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Example(**changes)


@pytest.mark.parametrize("value", ["a", [[1.0], [1.0, 2.0]], 1j, {"a": 1}, object(), [None, object()]])
def test_what_is_not_made_of_numbers_is_refused_in_one_line(value):
    with pytest.raises(TypeError, match=r"^`points` must consist of real numbers, got [^\n]*\.$"):
        numbers("points", value)


def test_numbers_of_all_kinds_are_numbers():
    assert numbers("points", [True, 2, np.float32(0.5)]).tolist() == [1.0, 2.0, 0.5]


def test_sizes_have_an_end():
    with pytest.raises(ValueError, match=f"`population_size` must be at most {LARGEST_SIZE}, got"):
        EnvSettings(population_size=2**40)
    with pytest.raises(ValueError, match="at most"):
        whole("budget", 2**63)


def test_other_checks_say_what_is_allowed():
    with pytest.raises(ValueError, match="`rate` must be a finite number above 0, got 0"):
        positive("rate", 0)
    with pytest.raises(TypeError, match="`flag` must be True or False, got 'yes'"):
        truth("flag", "yes")
    with pytest.raises(TypeError, match="`names` must be a sequence of names, got 'jso'"):
        listed("names", "jso", "names")
    with pytest.raises(ValueError, match="got nan"):
        real("rate", math.nan)


def test_long_values_are_shown_in_part_and_on_one_line():
    assert len(shown("a" * 5000)) < 100
    assert "\n" not in shown(np.zeros((30, 30)))


def test_names_are_found_in_any_case_and_kept_in_their_own():
    settings = EnvSettings(shell="L-SHADE", action="Knots", reward="LOG", histogram="Counts", pbest="LINEAR")
    assert (settings.shell, settings.action, settings.reward) == ("l-shade", "knots", "log")
    assert settings == EnvSettings(shell="l-shade", action="knots", reward="log", histogram="counts")
    assert EnvSettings(observation=["FITNESS"]).observation == ("fitness",)
    with pytest.raises(ValueError, match=r"Unknown reward 5\. Available: relative, log, .*, a callable of"):
        EnvSettings(reward=5)
    with pytest.raises(ValueError, match="Unknown reward 'a callable of"):
        EnvSettings(reward="a callable of (before, after, initial)")
    with pytest.raises(ValueError, match="Did you mean 'relative'"):
        known_name("reward", "RELATIV", ["relative", "log"])


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.package is None])
def test_settings_of_every_method_are_plain(name):
    settings = METHODS[name].default_settings()
    first = dataclasses.fields(settings)[0].name
    with pytest.raises((TypeError, ValueError), match=first):
        dataclasses.replace(settings, **{first: object()})


def test_settings_that_would_leave_the_population_are_refused(sphere):
    with pytest.raises(ValueError, match="`min_population_size` must be at most the 6 individuals of the start, got 9"):
        run(METHODS["jso"](JSOSettings(population_size=6, min_population_size=9)), sphere, 1, max_evaluations=100)
    with pytest.raises(ValueError, match="`scale_factors` must have at least one entry"):
        CDESettings(scale_factors=())
    with pytest.raises(ValueError, match="`spread` must be a finite number of at least 0, got -1"):
        BimodalSettings(spread=-1.0)
    with pytest.raises(ValueError, match="Unknown method 5"):
        make_optimizer(5)


RAGGED = [[1.0], [1.0, 2.0]]
BOX = [(-1.0, 1.0)] * 2
PROBLEM = Problem.from_function(sum, -1.0, 1.0, dimension=2, name="sum")


def tell(**told):
    run = Optimizer(BOX, method="de", seed=0, max_evaluations=100)
    run.tell(run.ask(3), **({"values": [1.0, 2.0, 3.0]} | told))


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: make_suite(7, 10), "name of a suite"),
        (lambda: make_suite(["cec2017"], 10), "name of a suite"),
        (lambda: Problem.from_function(sum, -1.0, 1.0, dimension=2, name=np.zeros((2, 2))), "`name`"),
        (lambda: minimize(sum, BOX, integrality=RAGGED), "`integrality`"),
        (lambda: minimize(sum, BOX, integrality=np.full((2, 2), np.nan)), "`integrality`"),
        (lambda: minimize(sum, BOX, constraints=np.array(0.5)), "`constraints`"),
        (lambda: minimize(sum, BOX, target=np.zeros((2, 1))), "`target`"),
        (lambda: minimize(sum, BOX, x0="a" * 4000), "`x0`"),
        (lambda: minimize(sum, BOX, method="de", controller=np.zeros((2, 2))), "`controller`"),
        (lambda: Optimizer(BOX, seed="one"), "`seed`"),
        (lambda: tell(values=RAGGED), "`values`"),
        (lambda: tell(violations=RAGGED), "`violations`"),
        (lambda: check_render_mode(np.zeros((2, 2)), ["human"]), "render mode"),
        (lambda: own_suite("doors", 2, [True]), "position in suite"),
        (lambda: own_suite("doors", 2, 1), "`functions`"),
        (lambda: own_suite("doors", 2.5), "`dimension`"),
        (lambda: Problem.from_function(sum, -1e308, 1e308, dimension=2), "width of every bound"),
        (lambda: minimize(sum, BOX, method="jso", controller="long-10d"), "`controller` goes with method 'learned'"),
        (lambda: make_task({"problems": [PROBLEM], "suite": "cec2017"}), "`problems` take the place of a suite"),
        (lambda: make_task({"problems": [PROBLEM], "functions": [1]}), "leave out 'functions'"),
        (lambda: make_task({"problems": [PROBLEM], "dimension": 2}), "leave out 'dimension'"),
        (lambda: register_suite("a" * 4000, 5), "`name` must be a word of at most 80 letters"),
        (lambda: register_suite("windows", 5), "list of Problem objects"),
        (lambda: ProblemBatch(5), "`problems` must be a sequence of Problem objects"),
        (lambda: ProblemBatch([PROBLEM, "sum"]), "`problems` must hold Problem objects, got str"),
        (lambda: ProblemBatch([PROBLEM]).evaluate(0.5), "Points of this batch must have shape"),
        (lambda: ProblemBatch([PROBLEM]).evaluate([[[None, "a"]]]), "`points` must consist of real numbers"),
        (lambda: run(make_optimizer("de"), 5), "`problems` must be a sequence"),
        (lambda: run(make_optimizer("de"), ["sum"]), "`problems` must hold Problem objects, got str"),
        (lambda: ControlledDE(np.zeros(3)), "`controller` must be a controller"),
        (lambda: AdaptiveDE(controller=5), "`controller` must be a controller, got 5"),
        (lambda: AdaptiveDE(controller=RandomController(8)), "give it to ControlledDE"),
    ],
)
def test_a_mistake_is_named_in_one_short_line(call, named):
    register_suite("doors", [PROBLEM, PROBLEM])
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    message = str(caught.value)
    assert named in message
    assert "\n" not in message
    assert len(message) < 400
    assert message.endswith(".")
