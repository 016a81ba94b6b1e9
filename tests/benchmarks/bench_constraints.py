"""minimize() beside scipy's differential_evolution on constrained engineering problems: evaluations to the best known.

Both polish, and both are judged alike: a point counts once its constraints are evaluated, equalities hold within 1e-6,
and a problem is solved at a feasible value that exceeds the best known by no more than 1e-4 of it. scipy runs as it
comes, ``minimize`` with the median of scipy's evaluations as its budget.

Run: python tests/benchmarks/bench_constraints.py [number of runs, 11 by default] [problem]
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy.optimize import NonlinearConstraint, differential_evolution

from de_gym import minimize

TOLERANCE, EQUALITY_TOLERANCE = 1e-4, 1e-6
MOST_EVALUATIONS = 50_000


@dataclass(frozen=True)
class Design:
    """A problem: inequalities are met at 0 and below, equalities at 0."""

    name: str
    cost: Callable[[np.ndarray], float]
    inequalities: Callable[[np.ndarray], list[float]]
    equalities: Callable[[np.ndarray], list[float]]
    bounds: list[tuple[float, float]]
    integrality: list[bool]
    best_known: float


def pressure_vessel() -> Design:
    """Sandgren (1990); plates come in sixteenths of an inch."""

    def unpack(x):
        return 0.0625 * x[0], 0.0625 * x[1], x[2], x[3]

    def cost(x):
        shell, head, radius, length = unpack(x)
        plates = 0.6224 * shell * radius * length + 1.7781 * head * radius**2
        return plates + 3.1661 * shell**2 * length + 19.84 * shell**2 * radius

    def inequalities(x):
        shell, head, radius, length = unpack(x)
        volume = math.pi * radius**2 * length + 4.0 / 3.0 * math.pi * radius**3
        return [0.0193 * radius - shell, 0.00954 * radius - head, 1_296_000.0 - volume, length - 240.0]

    bounds = [(1, 99), (1, 99), (10.0, 200.0), (10.0, 200.0)]
    return Design("pressure vessel", cost, inequalities, _none, bounds, [True, True, False, False], 6059.714335)


def welded_beam() -> Design:
    """Rao (1996)."""
    load, beam, young, shear = 6000.0, 14.0, 30e6, 12e6

    def cost(x):
        return 1.10471 * x[0] ** 2 * x[1] + 0.04811 * x[2] * x[3] * (14.0 + x[1])

    def inequalities(x):
        weld, length, height, width = x
        direct = load / (math.sqrt(2.0) * weld * length)
        radius = math.sqrt(0.25 * length**2 + 0.25 * (weld + height) ** 2)
        polar = 2.0 * math.sqrt(2.0) * weld * length * (length**2 / 12.0 + 0.25 * (weld + height) ** 2)
        torsion = load * (beam + 0.5 * length) * radius / polar
        stress = math.sqrt(direct**2 + direct * torsion * length / radius + torsion**2)
        bending = 6.0 * load * beam / (width * height**2)
        deflection = 4.0 * load * beam**3 / (young * height**3 * width)
        slender = 4.013 * young * math.sqrt(height**2 * width**6 / 36.0) / beam**2
        buckling = slender * (1.0 - 0.5 * height / beam * math.sqrt(0.25 * young / shear))
        price = 0.10471 * weld**2 + 0.04811 * height * width * (14.0 + length) - 5.0
        return [
            stress - 13_600.0,
            bending - 30_000.0,
            weld - width,
            price,
            0.125 - weld,
            deflection - 0.25,
            load - buckling,
        ]

    bounds = [(0.1, 2.0), (0.1, 10.0), (0.1, 10.0), (0.1, 2.0)]
    return Design("welded beam", cost, inequalities, _none, bounds, [False] * 4, 1.724852309)


def spring() -> Design:
    """Belegundu (1982): wire diameter, coil diameter, number of coils."""

    def cost(x):
        return (x[2] + 2.0) * x[1] * x[0] ** 2

    def inequalities(x):
        wire, coil, number = x
        shear = (4.0 * coil**2 - wire * coil) / (12_566.0 * (coil * wire**3 - wire**4)) + 1.0 / (5108.0 * wire**2)
        return [
            1.0 - coil**3 * number / (71_785.0 * wire**4),
            shear - 1.0,
            1.0 - 140.45 * wire / (coil**2 * number),
            (coil + wire) / 1.5 - 1.0,
        ]

    return Design(
        "spring", cost, inequalities, _none, [(0.05, 2.0), (0.25, 1.3), (2.0, 15.0)], [False] * 3, 0.012665233
    )


def speed_reducer() -> Design:
    """Golinski (1970); the number of teeth is whole."""

    def cost(x):
        b, m, z, l1, l2, d1, d2 = x
        wheels = 0.7854 * b * m**2 * (3.3333 * z**2 + 14.9334 * z - 43.0934)
        return wheels - 1.508 * b * (d1**2 + d2**2) + 7.4777 * (d1**3 + d2**3) + 0.7854 * (l1 * d1**2 + l2 * d2**2)

    def inequalities(x):
        b, m, z, l1, l2, d1, d2 = x
        return [
            27.0 / (b * m**2 * z) - 1.0,
            397.5 / (b * m**2 * z**2) - 1.0,
            1.93 * l1**3 / (m * z * d1**4) - 1.0,
            1.93 * l2**3 / (m * z * d2**4) - 1.0,
            math.sqrt((745.0 * l1 / (m * z)) ** 2 + 16.9e6) / (110.0 * d1**3) - 1.0,
            math.sqrt((745.0 * l2 / (m * z)) ** 2 + 157.5e6) / (85.0 * d2**3) - 1.0,
            m * z / 40.0 - 1.0,
            5.0 * m / b - 1.0,
            b / (12.0 * m) - 1.0,
            (1.5 * d1 + 1.9) / l1 - 1.0,
            (1.1 * d2 + 1.9) / l2 - 1.0,
        ]

    bounds = [(2.6, 3.6), (0.7, 0.8), (17, 28), (7.3, 8.3), (7.3, 8.3), (2.9, 3.9), (5.0, 5.5)]
    return Design("speed reducer", cost, inequalities, _none, bounds, [False, False, True] + [False] * 4, 2994.471066)


def parabola() -> Design:
    """G11 of the CEC 2006 collection: one equality."""

    def cost(x):
        return x[0] ** 2 + (x[1] - 1.0) ** 2

    return Design("G11, one equality", cost, _none, lambda x: [x[1] - x[0] ** 2], [(-1.0, 1.0)] * 2, [False] * 2, 0.75)


def exponential() -> Design:
    """Problem 80 of Hock and Schittkowski (1981), G13 of the CEC 2006 collection: three equalities.

    The collection's 0.053941514 misses them by 1e-4 each; the value here is the one that meets them.
    """

    def cost(x):
        return math.exp(np.prod(x))

    def equalities(x):
        return [x @ x - 10.0, x[1] * x[2] - 5.0 * x[3] * x[4], x[0] ** 3 + x[1] ** 3 + 1.0]

    bounds = [(-2.3, 2.3)] * 2 + [(-3.2, 3.2)] * 3
    return Design("G13, three equalities", cost, _none, equalities, bounds, [False] * 5, 0.0539498478)


def _none(_: np.ndarray) -> list[float]:
    return []


class _Solved(Exception):
    """The best known value is reached."""


class Referee:
    """Counts the points at which a method asks for constraints, and stops it where the problem is solved."""

    def __init__(self, design: Design, num_allowed: float) -> None:
        self.design, self.num_allowed = design, num_allowed
        self.num_points, self.is_solved = 0, False
        self.best = math.inf

    def constraints(self, as_band: bool) -> list[NonlinearConstraint]:
        """Return the constraints, equalities as a band where a method knows no tolerance."""
        width = EQUALITY_TOLERANCE if as_band else 0.0
        middle = np.mean(self.design.bounds, axis=1)
        sizes = len(self.design.inequalities(middle)), len(self.design.equalities(middle))
        lower = np.repeat([-np.inf, -width], sizes)
        upper = np.repeat([0.0, width], sizes)
        return [NonlinearConstraint(self._values, lower, upper)]

    def cost(self, x: np.ndarray) -> float:
        """Return the cost, or end the run at a feasible point that is good enough."""
        value = float(self.design.cost(x))
        if self._is_feasible(x):
            self.best = min(self.best, value)
            if value <= self.design.best_known + TOLERANCE * abs(self.design.best_known):
                self.is_solved = True
                raise _Solved
        return value

    def _values(self, x: np.ndarray) -> list[float]:
        self.num_points += 1
        if self.num_points > self.num_allowed:
            raise _Solved
        return [*self.design.inequalities(x), *self.design.equalities(x)]

    def _is_feasible(self, x: np.ndarray) -> bool:
        equalities = np.abs(self.design.equalities(x)) <= EQUALITY_TOLERANCE
        return bool(np.all(np.asarray(self.design.inequalities(x)) <= 0.0) and np.all(equalities))


def run_scipy(design: Design, seed: int) -> Referee:
    """Let scipy try, with its defaults."""
    referee = Referee(design, MOST_EVALUATIONS)
    with suppress(_Solved):
        differential_evolution(
            referee.cost,
            design.bounds,
            constraints=referee.constraints(as_band=True),
            integrality=design.integrality,
            rng=np.random.default_rng(seed),
        )
    return referee


def run_minimize(design: Design, seed: int, budget: int, method: str) -> Referee:
    """Let ``minimize`` try for as long as its budget lasts: a population that has converged may begin anew."""
    referee = Referee(design, math.inf)
    try:
        minimize(
            referee.cost,
            design.bounds,
            method=method,
            constraints=referee.constraints(as_band=False),
            integrality=design.integrality,
            max_evaluations=budget,
            tol=0.0,
            polish=True,
            seed=seed,
        )
    except RuntimeError as error:
        if not isinstance(error.__cause__, _Solved):
            raise
    return referee


def summary(referees: list[Referee]) -> tuple[float, str]:
    """Return the median of the evaluations, infinite for runs that failed, and it in words."""
    counts = [referee.num_points if referee.is_solved else math.inf for referee in referees]
    median = float(np.median(counts))
    solved = sum(referee.is_solved for referee in referees)
    return median, f"{median:.0f} ({solved} of {len(referees)})"


def main(num_runs: int, chosen: str) -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print("| problem | best known | scipy | budget | learned | l-srtde |\n|---|--:|--:|--:|--:|--:|")
    for make in (pressure_vessel, welded_beam, spring, speed_reducer, parabola, exponential):
        design = make()
        if chosen not in design.name:
            continue
        scipy_runs = [run_scipy(design, seed) for seed in range(num_runs)]
        median, scipys = summary(scipy_runs)
        budget = int(np.median([referee.num_points for referee in scipy_runs]) if math.isinf(median) else median)
        own = [
            summary([run_minimize(design, seed, budget, method) for seed in range(num_runs)])[1]
            for method in ("learned", "l-srtde")
        ]
        print(f"| {design.name} | {design.best_known:g} | {scipys} | {budget} | {' | '.join(own)} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 11, sys.argv[2] if len(sys.argv) > 2 else "")
