import numpy as np
import pytest

from de_gym.controllers import ConstantController, Controller, RandomController, RandomResiduals, check_population_size


def rngs(*seeds):
    return [np.random.default_rng(seed) for seed in seeds]


def test_constant_controller_gives_scale_factors_first_then_crossover_rates():
    controller = ConstantController(0.25, 0.75, population_size=2)
    controller.reset(rngs(0, 1))
    actions = controller(np.zeros((2, 6), dtype=np.float32))
    np.testing.assert_array_equal(actions, [[0.25, 0.25, 0.75, 0.75]] * 2)


def test_constant_actions_of_one_call_do_not_share_memory_with_the_next():
    controller = ConstantController(population_size=2)
    controller.reset(rngs(0))
    controller(np.zeros((1, 6)))[:] = 0.0
    np.testing.assert_array_equal(controller(np.zeros((1, 6))), [[0.5, 0.5, 0.9, 0.9]])


def test_random_controller_draws_each_run_from_its_own_generator():
    controller = RandomController(population_size=3)
    controller.reset(rngs(4, 5))
    both = [controller(np.zeros((2, 7))) for _ in range(3)]
    alone = np.random.default_rng(5)
    for actions in both:
        np.testing.assert_array_equal(actions[1], alone.random(6))


def test_random_controller_keeps_only_the_runs_it_is_told_to():
    controller = RandomController(population_size=1)
    controller.reset(rngs(0, 1, 2))
    controller.keep(np.array([2, 0]))
    expected = np.stack([np.random.default_rng(seed).random(2) for seed in (2, 0)])
    np.testing.assert_array_equal(controller(np.zeros((2, 5))), expected)


def test_random_actions_fill_the_unit_interval_evenly():
    controller = RandomController(population_size=1000)
    controller.reset(rngs(0))
    actions = controller(np.zeros((1, 1010)))
    assert 0.0 <= actions.min() < 0.01 < 0.99 < actions.max() <= 1.0
    assert abs(actions.mean() - 0.5) < 4 * np.sqrt(1 / 12 / 2000)


@pytest.mark.parametrize("controller", [ConstantController(population_size=4), RandomController(4)])
def test_fixed_controllers_follow_the_protocol(controller):
    assert isinstance(controller, Controller)
    check_population_size(controller, 4)
    with pytest.raises(ValueError, match=r"controls populations of 4 individuals, got `population_size` 7"):
        check_population_size(controller, 7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scale_factor": 1.5, "population_size": 4}, r"`scale_factor` must be a number in \[0, 1\], got 1.5"),
        (
            {"crossover_rate": float("nan"), "population_size": 4},
            r"`crossover_rate` must be a number in \[0, 1\], got nan",
        ),
        ({"population_size": 0}, r"`population_size` must be at least 1, got 0"),
    ],
)
def test_constant_controller_rejects_bad_numbers(arguments, message):
    with pytest.raises(ValueError, match=message):
        ConstantController(**arguments)


def test_random_controller_rejects_an_empty_population():
    with pytest.raises(ValueError, match=r"`population_size` must be at least 1, got -1"):
        RandomController(-1)


def test_random_residuals_of_a_run_are_its_own():
    controller = RandomResiduals(13)
    controller.reset(rngs(0, 1, 2))
    first, second = controller(np.zeros((2, 11)), np.array([0, 2])), controller(np.zeros((1, 11)), np.array([2]))
    alone = RandomResiduals(13)
    alone.reset(rngs(2))
    np.testing.assert_array_equal(alone(np.zeros((1, 11)), np.array([0]))[0], first[1])
    np.testing.assert_array_equal(alone(np.zeros((1, 11)), np.array([0])), second)
    assert first.min() < -0.5
    assert first.max() > 0.5
    controller.keep(np.array([1]))
    other = RandomResiduals(13)
    other.reset(rngs(1))
    np.testing.assert_array_equal(
        controller(np.zeros((1, 11)), np.zeros(1, int)), other(np.zeros((1, 11)), np.zeros(1, int))
    )
