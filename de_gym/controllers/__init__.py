"""Controllers: what chooses F and CR of every individual, generation after generation."""

from de_gym.controllers.base import Controller, ResidualRule, check_population_size
from de_gym.controllers.fixed import ConstantController, RandomController, RandomResiduals
from de_gym.controllers.policies import PolicyController, from_policy
from de_gym.controllers.pretrained import DEFAULT, available, load
from de_gym.controllers.recurrent import ControllerInfo, RecurrentController
from de_gym.controllers.residual import ResidualController, load_residual_controller, save_residual_controller
from de_gym.controllers.storage import load_controller, save_controller

__all__ = [
    "DEFAULT",
    "ConstantController",
    "Controller",
    "ControllerInfo",
    "PolicyController",
    "RandomController",
    "RandomResiduals",
    "RecurrentController",
    "ResidualController",
    "ResidualRule",
    "available",
    "check_population_size",
    "from_policy",
    "load",
    "load_controller",
    "load_residual_controller",
    "save_controller",
    "save_residual_controller",
]
