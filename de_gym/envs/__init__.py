"""The decision process of the LDE paper as Gymnasium environments."""

from de_gym.envs.de_param_control import DEParamControlEnv
from de_gym.envs.settings import EnvSettings
from de_gym.envs.vector import DEParamControlVectorEnv

__all__ = ["DEParamControlEnv", "DEParamControlVectorEnv", "EnvSettings"]
