"""Made-up results for tests of reports: errors around the paper's means, convergence curves that end in them."""

from __future__ import annotations

import numpy as np
import pytest

from de_gym.controllers import ControllerInfo, RecurrentController
from de_gym.controllers.recurrent import tensor_shapes
from de_gym.evaluation.paper import paper_column
from de_gym.evaluation.parameters import ParameterTrace
from de_gym.evaluation.protocol import PROTOCOLS, Protocol
from de_gym.evaluation.results import Convergence, MethodResults, Results

RECORDED = {"learned": "lde", "random": "cde", "constant": "de"}


def sample_results(
    protocol: Protocol | None = None, shipped: tuple[str, ...] = ("jade", "jso", "cobide-pcm")
) -> Results:
    """Return three methods with convergence records and some without, seeded, under the CEC'17 protocol by default."""
    protocol = protocol or PROTOCOLS["paper-cec17-10d"].with_runs(11)
    rng = np.random.default_rng(7)
    methods = [_method(name, counterpart, protocol, rng, recorded=True) for name, counterpart in RECORDED.items()]
    methods += [_method(name, name, protocol, rng, recorded=False) for name in shipped]
    return Results(protocol, tuple(methods), reference="learned")


def sample_traces(num_generations: int = 400) -> list[ParameterTrace]:
    """Return two traces, one of a population that shrinks."""
    rng = np.random.default_rng(8)
    sizes = {"learned": [50] * num_generations, "jSO": np.linspace(120, 4, num_generations).astype(int).tolist()}
    return [
        ParameterTrace(
            name,
            fitness=[rng.lognormal(size=size) for size in counts],
            scale_factors=[rng.uniform(0.3, 0.9, size) for size in counts],
            crossover_rates=[rng.uniform(0.5, 1.0, size) for size in counts],
        )
        for name, counts in sizes.items()
    ]


def _method(
    name: str, counterpart: str, protocol: Protocol, rng: np.random.Generator, *, recorded: bool
) -> MethodResults:
    column = paper_column(protocol.table, counterpart, protocol.functions)
    runs = protocol.num_runs
    errors = np.abs(rng.normal(column.mean[:, None], column.std[:, None], size=(len(column.mean), runs)))
    settings = {
        "kind": "controller" if recorded else "baseline",
        **({"paper_counterpart": "lde"} if name == "learned" else {}),
    }
    if not recorded:
        return MethodResults(name, errors, origin="stored", settings=settings)
    grid = np.unique(np.geomspace(1, protocol.budget, 60).astype(np.int64))
    progress = np.linspace(0, 1, len(grid)) ** rng.uniform(0.7, 2.0, (len(errors), runs, 1))
    curves = np.maximum(errors, 1e-9)[..., None] ** progress * 1e9 ** (1 - progress)
    curves[..., -1] = errors
    return MethodResults(
        name, errors, np.full(errors.shape, protocol.budget), Convergence(grid, curves), settings=settings
    )


@pytest.fixture(scope="session", name="sample_results")
def _sample_results():
    return sample_results


@pytest.fixture(scope="session", name="sample_traces")
def _sample_traces():
    return sample_traces


@pytest.fixture(scope="session")
def tiny_controller():
    """Return a function that makes an untrained controller of five LSTM cells for a population size."""

    def make(population_size: int) -> RecurrentController:
        rng = np.random.default_rng(9)
        shapes = tensor_shapes("sigmoid-constant", population_size + 10, 5, 2 * population_size)
        tensors = {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
        tensors["std"] = np.full(2 * population_size, 0.1, np.float32)
        settings = {"num_bins": 5, "history_window": 5, "histogram": "fractions", "dimension": 10}
        return RecurrentController(tensors, ControllerInfo("sigmoid-constant", preset="test", env_settings=settings))

    return make
