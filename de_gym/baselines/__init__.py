"""The optimisers that the LDE paper compares with, and the function that runs them."""

from de_gym.baselines.base import GenerationParameters, Optimizer
from de_gym.baselines.de import DE, DESettings
from de_gym.baselines.jade import JADE, JADESettings, JADEWithArchive
from de_gym.baselines.jso import JSO, JSOSettings
from de_gym.baselines.runner import run

BASELINES: dict[str, type[Optimizer]] = {
    "de": DE,
    "jade": JADE,
    "jade-archive": JADEWithArchive,
    "jso": JSO,
}

__all__ = [
    "BASELINES",
    "DE",
    "JADE",
    "JSO",
    "DESettings",
    "GenerationParameters",
    "JADESettings",
    "JADEWithArchive",
    "JSOSettings",
    "Optimizer",
    "run",
]
