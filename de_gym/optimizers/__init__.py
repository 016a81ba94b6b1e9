"""Optimisers: ask / tell over many runs, the methods by name, and the one loop that runs them."""

from de_gym.optimizers.adaptive import AdaptiveDE, AdaptiveDESettings
from de_gym.optimizers.adaptive_jso import AdaptiveJSO
from de_gym.optimizers.base import ControlledOptimizer, GenerationParameters, Optimizer
from de_gym.optimizers.controlled_de import ControlledDE, process_settings
from de_gym.optimizers.controlling import find_controller, is_model, make_controlled_optimizer
from de_gym.optimizers.hses import HSES, HSESSettings
from de_gym.optimizers.records import RunResult
from de_gym.optimizers.registry import METHODS, PAPER_METHODS, Method, find_method, make_optimizer, method_name
from de_gym.optimizers.running import Observer, Progress, advance, run

__all__ = [
    "HSES",
    "METHODS",
    "PAPER_METHODS",
    "AdaptiveDE",
    "AdaptiveDESettings",
    "AdaptiveJSO",
    "ControlledDE",
    "ControlledOptimizer",
    "GenerationParameters",
    "HSESSettings",
    "Method",
    "Observer",
    "Optimizer",
    "Progress",
    "RunResult",
    "advance",
    "find_controller",
    "find_method",
    "is_model",
    "make_controlled_optimizer",
    "make_optimizer",
    "method_name",
    "process_settings",
    "run",
]
