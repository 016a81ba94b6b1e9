"""METHODS: every optimiser by name, for ``minimize``, ``evaluate.py``, reports and tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from de_gym.checks import shown
from de_gym.controllers.jso import JSOSettings, make_jso
from de_gym.optimizers import recipes
from de_gym.optimizers.adaptive import AdaptiveDE, AdaptiveDESettings
from de_gym.optimizers.base import ControlledOptimizer, Optimizer, Recipe
from de_gym.optimizers.hses import HSES, HSESSettings
from de_gym.optimizers.peers import PeerOptimizer, PeerSettings
from de_gym.registry import unknown_name_message


@dataclass(frozen=True)
class Method:
    """An entry of ``METHODS``.

    Attributes:
        title: What tables call it.
        default_settings: Makes the settings dataclass with its defaults.
        build: Makes an optimiser of settings.
        package: The package beyond our own dependencies that it needs, or None.
        aliases: Other names it answers to; case never matters.
    """

    title: str
    default_settings: Callable[[], Any]
    build: Callable[[Any], Optimizer]
    package: str | None = None
    aliases: tuple[str, ...] = ()

    def __call__(self, settings: object = None) -> Optimizer:
        """Return an optimiser with the given settings, or the default ones."""
        return self.build(self.default_settings() if settings is None else settings)


def _controlled(name: str, title: str, recipe: Recipe, default_settings: Callable[[], Any], *aliases: str) -> Method:
    return Method(title, default_settings, partial(ControlledOptimizer, name, recipe), None, aliases)


def _peer(name: str, title: str, package: str, algorithm: str, *aliases: str) -> Method:
    return Method(title, partial(PeerSettings, package, algorithm), partial(PeerOptimizer, name), package, aliases)


PAPER_METHODS: dict[str, Method] = {
    "de": _controlled("de", "DE", recipes.de, recipes.DESettings),
    "jade": _controlled("jade", "JADE w/o archive", recipes.jade, recipes.JADESettings),
    "jade-archive": _controlled(
        "jade-archive", "JADE with archive", recipes.jade, partial(recipes.JADESettings, use_archive=True)
    ),
    "jso": _controlled("jso", "jSO", make_jso, JSOSettings),
    "cobide": _controlled("cobide", "CoBiDE", recipes.cobide, recipes.CoBiDESettings),
    "cobide-pcm": _controlled("cobide-pcm", "CoBiDE-PCM", recipes.cobide_pcm, recipes.CoBiDEPCMSettings),
    "cde": _controlled("cde", "cDE", recipes.cde, recipes.CDESettings),
    "cde-pcm": _controlled("cde-pcm", "cDE-PCM", recipes.cde_pcm, recipes.CDESettings),
    "hses": Method("HSES", HSESSettings, HSES),
}
"""The nine algorithms that the LDE paper compares with, in its order."""

METHODS: dict[str, Method] = {
    **PAPER_METHODS,
    "jso-lde-paper": _controlled("jso", "jSO with the LDE paper's constants", make_jso, JSOSettings.lde_paper),
    "l-srtde": Method("L-SRTDE", AdaptiveDESettings, AdaptiveDE, None, ("lsrtde",)),
    "cma": _peer("cma", "CMA-ES (cma)", "cma", "CMA-ES", "cma-es", "cmaes", "pycma"),
    "minion-arrde": _peer("minion-arrde", "ARRDE (minionpy)", "minionpy", "ARRDE", "arrde"),
    "minion-lshade": _peer("minion-lshade", "L-SHADE (minionpy)", "minionpy", "LSHADE", "l-shade", "lshade"),
    "minion-lsrtde": _peer("minion-lsrtde", "L-SRTDE (minionpy)", "minionpy", "LSRTDE"),
    "minion-nlshade-rsp": _peer("minion-nlshade-rsp", "NL-SHADE-RSP (minionpy)", "minionpy", "NLSHADE_RSP"),
    "minion-lshade-cnepsin": _peer("minion-lshade-cnepsin", "LSHADE-cnEpSin (minionpy)", "minionpy", "LSHADE_cnEpSin"),
    "minion-jso": _peer("minion-jso", "jSO (minionpy)", "minionpy", "jSO"),
    "minion-jade": _peer("minion-jade", "JADE (minionpy)", "minionpy", "JADE"),
    "minion-j2020": _peer("minion-j2020", "j2020 (minionpy)", "minionpy", "j2020", "j2020"),
    "minion-agsk": _peer("minion-agsk", "AGSK (minionpy)", "minionpy", "AGSK", "agsk"),
    "minion-bipop-acmaes": _peer(
        "minion-bipop-acmaes", "BIPOP-aCMA-ES (minionpy)", "minionpy", "BIPOP_aCMAES", "bipop-acmaes"
    ),
}
"""All methods; a name or alias is looked up by ``find_method``."""


def find_method(name: str) -> Method:
    """Return the entry of a name or alias in any case, or raise a ``ValueError`` that lists the names."""
    return METHODS[method_name(name)]


def method_name(name: str, *others: str) -> str:
    """Return the name in ``METHODS`` of a name or alias in any case; ``others`` are names to list in the error.

    >>> method_name("jSO"), method_name("L-SHADE")
    ('jso', 'minion-lshade')
    """
    wanted = name.lower() if isinstance(name, str) else None
    for key, method in METHODS.items():
        if wanted in (key, *method.aliases):
            return key
    raise ValueError(unknown_name_message("method", name, [*others, *METHODS]))


def make_optimizer(name: str, *, population_size: int | None = None) -> Optimizer:
    """Return the optimiser of a name or alias.

    Args:
        name: A name of ``METHODS`` or an alias, in any case.
        population_size: Number of individuals at the start, for methods that let one choose.
    """
    method = find_method(name)
    settings = method.default_settings()
    if population_size is None:
        return method(settings)
    if "population_size" not in {option.name for option in dataclasses.fields(settings)}:
        raise ValueError(
            f"Method {name!r} sets its own population sizes, got `population_size` {shown(population_size)}."
        )
    return method(dataclasses.replace(settings, population_size=population_size))
