"""One generation of Differential Evolution: operators, random numbers, populations."""

from de_gym.evolution.draws import draw_normals, draw_uniforms
from de_gym.evolution.generation import BOUND_REPAIRS, num_uniforms, propose_trials, survive
from de_gym.evolution.population import Population, initialize, scale_to_bounds

__all__ = [
    "BOUND_REPAIRS",
    "Population",
    "draw_normals",
    "draw_uniforms",
    "initialize",
    "num_uniforms",
    "propose_trials",
    "scale_to_bounds",
    "survive",
]
