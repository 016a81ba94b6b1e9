"""Controllers: what chooses F and CR of every individual, generation after generation."""

from de_gym.controllers.base import Controller, check_population_size
from de_gym.controllers.fixed import ConstantController, RandomController
from de_gym.controllers.pretrained import available, default_controller, default_name, load
from de_gym.controllers.recurrent import ControllerInfo, RecurrentController
from de_gym.controllers.storage import load_controller, save_controller

__all__ = [
    "ConstantController",
    "Controller",
    "ControllerInfo",
    "RandomController",
    "RecurrentController",
    "available",
    "check_population_size",
    "default_controller",
    "default_name",
    "load",
    "load_controller",
    "save_controller",
]
