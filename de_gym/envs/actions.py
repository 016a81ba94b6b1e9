"""What an agent's numbers mean: maps from an action to F and CR of every individual, by rank.

A new one is a function and an entry in ``ACTIONS``. Everything that sets F and CR from outside, an agent through an
environment or a controller in an optimiser, passes ``check_actions`` before compiled code sees it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from de_gym.arrays import Float32Array, FloatArray, RunArray
from de_gym.checks import shown
from de_gym.machine.compiling import compiled
from de_gym.machine.streams import later_uniform

_KINDS = (np.dtype(np.float32), np.dtype(np.float64))
_NUM_KNOTS = 5
# Deviation of F and CR at a spread of 1; many of the numbers then lie on a border of [0, 1].
_LARGEST_SPREAD = 0.5


@dataclass(frozen=True)
class ActionMap:
    """One meaning of actions.

    Attributes:
        size: Numbers of an action, from the population's capacity N.
        expand: Returns F and CR by rank, shape (R, 2N), from actions (R, A) in [0, 1], the runs, and N.
    """

    size: Callable[[int], int]
    expand: Callable[[FloatArray, RunArray, int], FloatArray]


def _by_rank(actions: FloatArray, runs: RunArray, capacity: int) -> FloatArray:
    """Return the actions themselves: F of every rank, then CR of every rank."""
    return actions


@compiled
def _at_knots(actions: FloatArray, runs: RunArray, capacity: int) -> FloatArray:
    """Return F and CR at every rank, on straight lines between a few ranks from the best to the worst."""
    num_runs, num_knots = actions.shape[0], actions.shape[1] // 2
    expanded = np.empty((num_runs, 2 * capacity))
    for run in range(num_runs):
        last = max(runs[run].size - 1, 1)
        for rank in range(capacity):
            place = min(rank / last, 1.0) * (num_knots - 1)
            left = min(int(place), num_knots - 2)
            share = place - left
            for half in range(2):
                first = half * num_knots + left
                between = (1.0 - share) * actions[run, first] + share * actions[run, first + 1]
                expanded[run, half * capacity + rank] = between
    return expanded


@compiled
def _mean_and_spread(actions: FloatArray, runs: RunArray, capacity: int) -> FloatArray:
    """Return F and CR drawn for every individual around two means, clipped to [0, 1].

    An action is mean F, spread of F, mean CR, spread of CR. The draw is the environment's, so that the spread over
    the individuals belongs to the decision, and a policy may be deterministic.
    """
    expanded = np.empty((actions.shape[0], 2 * capacity))
    for run in range(actions.shape[0]):
        key, generation = runs[run].key, runs[run].generation
        for index in range(2 * capacity):
            half = index // capacity
            # Box and Muller's method; the first choices of these uniforms belong to the archive.
            radius = math.sqrt(-2.0 * math.log(1.0 - later_uniform(key, generation, capacity + 2 * index)))
            angle = 2.0 * math.pi * later_uniform(key, generation, capacity + 2 * index + 1)
            spread = _LARGEST_SPREAD * actions[run, 2 * half + 1]
            number = actions[run, 2 * half] + spread * radius * math.cos(angle)
            expanded[run, index] = min(max(number, 0.0), 1.0)
    return expanded


ACTIONS: Mapping[str, ActionMap] = MappingProxyType(
    {
        "by_rank": ActionMap(lambda capacity: 2 * capacity, _by_rank),
        "knots": ActionMap(lambda capacity: 2 * _NUM_KNOTS, _at_knots),
        "mean_and_spread": ActionMap(lambda capacity: 4, _mean_and_spread),
    }
)


def check_actions(actions: ArrayLike, checked: FloatArray, low: float = 0.0, name: str = "Actions") -> FloatArray:
    """Return actions copied to ``checked`` and clipped to [low, 1], or say what is wrong with them.

    Clipped, as documented, because Gaussian policies leave the box all the time.
    """
    try:
        array = np.asarray(actions)
    except ValueError:  # lists of different lengths
        raise ValueError(f"{name} must have shape {checked.shape}, got {shown(actions)}.") from None
    if array.shape != checked.shape:
        raise ValueError(f"{name} must have shape {checked.shape}, got {array.shape}.")
    # The kernel is compiled for these kinds of arrays; anything else, read-only ones included, is copied into one.
    if array.dtype not in _KINDS or not array.flags.carray:
        if array.dtype.kind not in "biuf":
            raise TypeError(f"{name} must be real numbers in [{low:g}, 1], got an array of {array.dtype}.")
        array = np.array(array, dtype=np.float64, order="C")
    if not _clip(array.reshape(-1), checked.reshape(-1), low):
        raise ValueError(f"{name} must be numbers in [{low:g}, 1], got NaN.")
    return checked


@compiled
def _clip(actions: FloatArray | Float32Array, clipped: FloatArray, low: float) -> bool:
    """Write actions clipped to [low, 1] to ``clipped``, both flat, and return whether all of them are numbers."""
    are_numbers = True
    for index in range(clipped.shape[0]):
        action = np.float64(actions[index])
        are_numbers &= action == action
        raised = action if action > low else low
        clipped[index] = raised if raised < 1.0 else 1.0
    return are_numbers
