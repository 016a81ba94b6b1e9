"""One generation of Differential Evolution: operators, random numbers, populations."""

from de_gym.evolution.draws import draw_normals, draw_uniforms
from de_gym.evolution.population import scale_to_bounds
from de_gym.machine.breeding import BOUND_REPAIRS, Workspace, breed_all, make_workspace
from de_gym.machine.selection import select_better
from de_gym.machine.streams import KeyArray, draw_keys

__all__ = [
    "BOUND_REPAIRS",
    "KeyArray",
    "Workspace",
    "breed_all",
    "draw_keys",
    "draw_normals",
    "draw_uniforms",
    "make_workspace",
    "scale_to_bounds",
    "select_better",
]
