"""The optimisers that the LDE paper compares with, and the function that runs them."""

from de_gym.baselines.base import GenerationParameters, Optimizer
from de_gym.baselines.cde import CDE, CDEPCM, CDESettings
from de_gym.baselines.cobide import BimodalSettings, CoBiDE, CoBiDEPCM, CoBiDEPCMSettings, CoBiDESettings
from de_gym.baselines.de import DE, DESettings
from de_gym.baselines.hses import HSES, HSESSettings
from de_gym.baselines.jade import JADE, JADESettings, JADEWithArchive
from de_gym.baselines.jso import JSO, JSOSettings
from de_gym.baselines.runner import run
from de_gym.baselines.stored import StoredResults, load_results

BASELINES: dict[str, type[Optimizer]] = {
    "de": DE,
    "jade": JADE,
    "jade-archive": JADEWithArchive,
    "jso": JSO,
    "cobide": CoBiDE,
    "cobide-pcm": CoBiDEPCM,
    "cde": CDE,
    "cde-pcm": CDEPCM,
    "hses": HSES,
}

__all__ = [
    "BASELINES",
    "CDE",
    "CDEPCM",
    "DE",
    "HSES",
    "JADE",
    "JSO",
    "BimodalSettings",
    "CDESettings",
    "CoBiDE",
    "CoBiDEPCM",
    "CoBiDEPCMSettings",
    "CoBiDESettings",
    "DESettings",
    "GenerationParameters",
    "HSESSettings",
    "JADESettings",
    "JADEWithArchive",
    "JSOSettings",
    "Optimizer",
    "StoredResults",
    "load_results",
    "run",
]
