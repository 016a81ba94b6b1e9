"""Differential Evolution's operators, random numbers and initial populations."""

from de_gym.evolution.population import scale_to_bounds
from de_gym.machine.draws import draw_normals, draw_uniforms
from de_gym.machine.streams import KeyArray, draw_keys

__all__ = ["KeyArray", "draw_keys", "draw_normals", "draw_uniforms", "scale_to_bounds"]
