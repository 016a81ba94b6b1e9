"""Decision processes of Differential Evolution as Gymnasium environments."""

from de_gym.envs.adaptive_de_control import AdaptiveDEControlEnv, AdaptiveDEControlVectorEnv
from de_gym.envs.de_param_control import DEParamControlEnv, DEParamControlVectorEnv
from de_gym.envs.extensions import Observation, RunView, register_observation, register_reward
from de_gym.envs.settings import EnvSettings

__all__ = [
    "AdaptiveDEControlEnv",
    "AdaptiveDEControlVectorEnv",
    "DEParamControlEnv",
    "DEParamControlVectorEnv",
    "EnvSettings",
    "Observation",
    "RunView",
    "register_observation",
    "register_reward",
]
