"""The Differential Evolution methods of the LDE paper: which shell, which controller, which constants.

CoBiDE-PCM and cDE-PCM are the parameter control of CoBiDE and cDE alone, on a plain strategy: Tanabe and Fukunaga,
Reviewing and Benchmarking Parameter Control Methods in Differential Evolution (2020).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from de_gym.checks import LARGEST_SIZE, fraction, optional_whole, real, store_plain
from de_gym.controllers.bimodal import Bimodal, BimodalSettings
from de_gym.controllers.competing import Competing, CompetingSettings
from de_gym.controllers.constant import Constant, ConstantSettings
from de_gym.controllers.parameter_rule import ParameterRule
from de_gym.controllers.success_means import SuccessMeans, SuccessMeansSettings
from de_gym.evolution.current_to_pbest import CurrentToPbest
from de_gym.evolution.rand_and_best import RandAndBest
from de_gym.evolution.shell import Shell

# Below this dimension cDE-PCM is what the LDE paper ran at n = 10, from it on what it ran at n = 30.
_HIGH_DIMENSION = 20


@dataclass(frozen=True)
class DESettings(ConstantSettings):
    """Constants of DE/rand/1/bin as in the LDE paper: Storn and Price, Differential Evolution (1997).

    Attributes:
        population_size: N; None for 5 n.
    """

    population_size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        optional_whole("population_size", self.population_size, 4, LARGEST_SIZE)


def de(settings: DESettings, dimension: int) -> tuple[Shell, ParameterRule]:
    """Return donors x_r1 + F (x_r2 - x_r3) with constant parameters."""
    return RandAndBest(settings.population_size or 5 * dimension), Constant(settings)


@dataclass(frozen=True)
class JADESettings(SuccessMeansSettings):
    """Constants of JADE as in the LDE paper.

    NOTE: the authors' program does not count the initial population's evaluations; we do. It also drops exact
    duplicates from the archive, which occur too rarely to matter; we do not look for them.

    Attributes:
        population_size: N; None for the paper's 30 up to n = 10, 100 at n = 30, 400 at n = 100, linear in
            between and at least that beyond.
        use_archive: Whether beaten parents serve as r2.
        archive_fraction: Capacity of the archive in multiples of N.
    """

    population_size: int | None = None
    use_archive: bool = False
    archive_fraction: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        real("archive_fraction", self.archive_fraction, 0.0, 100.0)
        optional_whole("population_size", self.population_size, 4, LARGEST_SIZE)


def jade(settings: JADESettings, dimension: int) -> tuple[Shell, ParameterRule]:
    """Return current-to-pbest whose means of F and CR follow the successful ones."""
    shell = CurrentToPbest(
        settings.population_size or int(np.interp(dimension, (10, 30, 100), (30, 100, 400))),
        archive_fraction=settings.archive_fraction if settings.use_archive else 0.0,
        archive_rule="random-leaving",
        strictly=True,
    )
    return shell, SuccessMeans(settings)


@dataclass(frozen=True)
class CoBiDESettings:
    """Constants of CoBiDE as in the LDE paper.

    Attributes:
        population_size: N.
        eigen_probability: Probability that a generation crosses over in the eigenvector coordinates.
        covariance_fraction: Share of the best individuals whose covariance is learned.
        bimodal: Distribution of F and CR.
    """

    population_size: int = 60
    eigen_probability: float = 0.4
    covariance_fraction: float = 0.5
    bimodal: BimodalSettings = field(default_factory=BimodalSettings)

    def __post_init__(self) -> None:
        store_plain(self)
        optional_whole("population_size", self.population_size, 4, LARGEST_SIZE)
        fraction("eigen_probability", self.eigen_probability)
        fraction("covariance_fraction", self.covariance_fraction)


def cobide(settings: CoBiDESettings, dimension: int) -> tuple[Shell, ParameterRule]:
    """Return rand/1 that sometimes crosses over along the eigenvectors of the best half's covariance."""
    shell = RandAndBest(
        settings.population_size,
        repair="mirror-once",
        eigen_probability=settings.eigen_probability,
        covariance_fraction=settings.covariance_fraction,
    )
    return shell, Bimodal(settings.bimodal)


@dataclass(frozen=True)
class CoBiDEPCMSettings:
    """Constants of CoBiDE-PCM as in the LDE paper.

    Attributes:
        population_size: N; None for 5 n.
        bimodal: Distribution of F and CR.
    """

    population_size: int | None = None
    bimodal: BimodalSettings = field(default_factory=BimodalSettings)

    def __post_init__(self) -> None:
        store_plain(self)
        optional_whole("population_size", self.population_size, 4, LARGEST_SIZE)


def cobide_pcm(settings: CoBiDEPCMSettings, dimension: int) -> tuple[Shell, ParameterRule]:
    """Return best/1 with CoBiDE's parameter control."""
    return RandAndBest(settings.population_size or 5 * dimension, num_others=2), Bimodal(settings.bimodal, "best/1")


@dataclass(frozen=True)
class CDESettings(CompetingSettings):
    """Constants of cDE and cDE-PCM as in the LDE paper; None leaves a choice to the method and the dimension.

    Attributes:
        population_size: N; None for max(20, 2 n) in cDE and 5 n in cDE-PCM.
        reflect: Whether points are mirrored at the bounds and a coordinate is forced only where crossover takes
            none, as Tvrdik does, or repaired to the midpoint with a coordinate always forced. None for the
            former in cDE, and in cDE-PCM for the former at low and the latter at high dimension, which fit the
            published numbers best.
    """

    population_size: int | None = None
    reflect: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        optional_whole("population_size", self.population_size, 5, LARGEST_SIZE)


def cde(settings: CDESettings, dimension: int) -> tuple[Shell, ParameterRule]:
    """Return rand/1 and best/2 whose settings compete."""
    size = settings.population_size or max(20, 2 * dimension)
    return _competing_shell(size, settings.reflect is not False), Competing(settings, ("rand/1", "best/2"))


def cde_pcm(settings: CDESettings, dimension: int) -> tuple[Shell, ParameterRule]:
    """Return one strategy with cDE's parameter control.

    NOTE: the published account does not say how bounds and crossover were handled; at n = 30 no variant tried
    fits every published number.
    """
    is_low = dimension < _HIGH_DIMENSION
    reflects = is_low if settings.reflect is None else settings.reflect
    strategies = ("rand/1",) if is_low else ("best/1",)
    return _competing_shell(settings.population_size or 5 * dimension, reflects), Competing(settings, strategies)


def _competing_shell(size: int, reflects: bool) -> Shell:
    return RandAndBest(size, num_others=4, repair="mirror" if reflects else "midpoint", forces_only_empty=reflects)
