"""Whole episodes of a rollout, and the weight that each of their log-probabilities gets in the policy gradient."""

from __future__ import annotations

from typing import Literal

import numpy as np

from de_gym.arrays import BoolArray, FloatArray, IntArray

ReturnKind = Literal["total", "to_go"]
BaselineKind = Literal["none", "function", "standardised"]


def discounted_returns(rewards: FloatArray, kind: ReturnKind, gamma: float) -> FloatArray:
    """Return the return that weights each step, shape (T, B).

    Args:
        rewards: Rewards r_{t+1} of step t, zero after the end of an episode, shape (T, B).
        kind: "to_go": sum over k >= t of gamma^(k - t) r_{k+1}. "total": the whole episode's sum over k of
            gamma^k r_{k+1}, the same at every step, as in the paper's estimator.
        gamma: Discount factor.

    >>> discounted_returns(np.array([[1.0], [2.0], [4.0]]), "to_go", 0.5).ravel()
    array([3., 4., 4.])
    >>> discounted_returns(np.array([[1.0], [2.0], [4.0]]), "total", 0.5).ravel()
    array([3., 3., 3.])
    """
    to_go = np.zeros_like(rewards)
    following = np.zeros(rewards.shape[1])
    for step in range(len(rewards) - 1, -1, -1):
        following = rewards[step] + gamma * following
        to_go[step] = following
    return to_go if kind == "to_go" else np.broadcast_to(to_go[0], rewards.shape).copy()


def subtract_group_means(returns: FloatArray, active: BoolArray, groups: IntArray) -> FloatArray:
    """Return ``returns`` minus the mean of their step over the active runs of their group, shape (T, B).

    The mean of L runs contains the run itself, which scales the gradient by (L - 1) / L and biases no direction.

    Args:
        returns: Returns of each step and run, shape (T, B).
        active: Whether the run's episode was still going at that step, shape (T, B).
        groups: The group (function) of each run, shape (B,).

    >>> subtract_group_means(np.array([[1.0, 3.0, 9.0]]), np.ones((1, 3), dtype=bool), np.array([5, 5, 6]))
    array([[-1.,  1.,  0.]])
    """
    centred = np.zeros_like(returns)
    for group in np.unique(groups):
        runs = groups == group
        counts = np.maximum(active[:, runs].sum(axis=1, keepdims=True), 1)
        means = (returns[:, runs] * active[:, runs]).sum(axis=1, keepdims=True) / counts
        centred[:, runs] = returns[:, runs] - means
    return centred


def divide_by_group_deviations(centred: FloatArray, active: BoolArray, groups: IntArray) -> FloatArray:
    """Return ``centred`` returns divided by their root mean square over the active steps of their group, (T, B).

    Functions whose returns vary much then pull no harder on the shared policy than those whose returns vary little.

    >>> divide_by_group_deviations(np.array([[-2.0, 2.0, 0.0]]), np.ones((1, 3), dtype=bool), np.array([5, 5, 6]))
    array([[-1.,  1.,  0.]])
    """
    scaled = np.zeros_like(centred)
    for group in np.unique(groups):
        runs = groups == group
        deviation = np.sqrt(np.mean(centred[:, runs][active[:, runs]] ** 2))
        if deviation != 0.0:  # a NaN must reach the update, which refuses it
            scaled[:, runs] = centred[:, runs] / deviation
    return scaled


def policy_gradient_weights(
    rewards: FloatArray, active: BoolArray, groups: IntArray, *, kind: ReturnKind, gamma: float, baseline: BaselineKind
) -> FloatArray:
    """Return the factor of each log-probability in the objective, zero after the end of an episode, shape (T, B)."""
    weights = discounted_returns(np.where(active, rewards, 0.0), kind, gamma)
    if baseline != "none":
        weights = subtract_group_means(weights, active, groups)
    if baseline == "standardised":
        weights = divide_by_group_deviations(weights, active, groups)
    return np.where(active, weights, 0.0)
