from collections.abc import Callable

import numpy as np
import pytest

from de_gym.controllers.recurrent import ControllerInfo, RecurrentController, tensor_shapes

ControllerFactory = Callable[..., RecurrentController]


@pytest.fixture
def make_controller() -> ControllerFactory:
    """Return a factory of controllers with random weights: N = 5, b = 2, so 9 observations and 10 actions."""

    def make(
        policy="sigmoid-constant", cell_size=6, population_size=5, observation_size=9, deterministic=False, knots=None
    ):
        rng = np.random.default_rng(7)
        head_size = None if knots is None else 2 * knots
        shapes = tensor_shapes(policy, observation_size, cell_size, 2 * population_size, head_size)
        tensors = {name: 0.5 * rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
        if "std" in tensors:
            tensors["std"] = np.full_like(tensors["std"], 0.1)
        info = ControllerInfo(
            policy, "quick", {"population_size": population_size, "num_bins": 2}, seed=3, results={"return": 1.5}
        )
        return RecurrentController(tensors, info, deterministic=deterministic)

    return make
