"""Our methods as Nevergrad's optimisers: whole runs, whole numbers, constraints, parallel asks, suggestions."""

from __future__ import annotations

import numpy as np
import pytest

nevergrad = pytest.importorskip("nevergrad")

from de_gym import NevergradOptimizer  # noqa: E402


def make(parametrization, budget, num_workers=1, method="l-srtde"):
    optimizer = NevergradOptimizer(method=method)(parametrization, budget=budget, num_workers=num_workers)
    optimizer.parametrization.random_state.seed(3)
    return optimizer


def bounded(*shape):
    return nevergrad.p.Array(shape=shape).set_bounds(-5.0, 3.0)


def test_registered_and_better_than_random():
    losses = {}
    for name in ("DEGym", "RandomSearch"):
        optimizer = nevergrad.optimizers.registry[name](bounded(4), budget=600)
        optimizer.parametrization.random_state.seed(0)
        found = optimizer.minimize(lambda x: float(np.sum((x - 0.5) ** 2)))
        losses[name] = float(np.sum((found.value - 0.5) ** 2))
    assert losses["DEGym"] < 0.01 * losses["RandomSearch"]


@pytest.mark.parametrize("method", ["l-srtde", "jso", "learned"])
def test_unbounded_parameters(method):
    found = make(3, 900, method=method).minimize(lambda x: float(np.sum((x - 0.5) ** 2)))
    np.testing.assert_allclose(found.value, 0.5, atol=0.05)


def test_whole_numbers_choices_and_keywords():
    parametrization = nevergrad.p.Instrumentation(
        nevergrad.p.Scalar(lower=0, upper=20).set_integer_casting(),
        kind=nevergrad.p.TransitionChoice(["a", "b", "c"]),
        rate=nevergrad.p.Log(lower=1e-3, upper=1.0),
    )

    def loss(count, kind, rate):
        assert isinstance(count, int)
        return abs(count - 13) + (kind != "b") + abs(np.log10(rate) + 1.5)

    found = make(parametrization, 900).minimize(loss)
    assert found.args == (13,)
    assert found.kwargs["kind"] == "b"
    assert found.kwargs["rate"] == pytest.approx(10**-1.5, rel=0.1)


def test_violations_are_compared_by_our_rules():
    optimizer = make(bounded(2), 1500)
    found = optimizer.minimize(lambda x: float(x.sum()), constraint_violation=[lambda x: float(max(x @ x - 4.0, 0.0))])
    assert found.value @ found.value <= 4.0
    assert found.value.sum() == pytest.approx(-2 * np.sqrt(2), abs=1e-2)


def is_right_of_a_half(x):
    return x[0] >= 0.5


def test_cheap_constraints_are_met():
    parametrization = bounded(2)
    parametrization.register_cheap_constraint(is_right_of_a_half)
    found = make(parametrization, 500).minimize(lambda x: float(x @ x))
    assert found.value[0] >= 0.5
    np.testing.assert_allclose(found.value, [0.5, 0.0], atol=0.1)


def test_parallel_asks_any_order_and_points_of_others():
    optimizer = make(bounded(3), 700, num_workers=7)
    own = optimizer.parametrization.spawn_child(new_value=np.full(3, 0.75))
    optimizer.tell(own, float(np.sum((own.value - 0.5) ** 2)))
    optimizer.suggest(np.full(3, 0.7))
    rng, pending = np.random.default_rng(0), []
    for _ in range(700):
        pending.append(optimizer.ask())
        if len(pending) == 7:
            candidate = pending.pop(int(rng.integers(7)))
            optimizer.tell(candidate, float(np.sum((candidate.value - 0.5) ** 2)))
    np.testing.assert_allclose(optimizer.provide_recommendation().value, 0.5, atol=0.01)


def test_goes_on_beyond_its_budget():
    optimizer = make(bounded(2), 30, method="jade")
    for _ in range(100):
        candidate = optimizer.ask()
        optimizer.tell(candidate, float(np.sum(candidate.value**2)))
    assert optimizer.num_tell == 100
