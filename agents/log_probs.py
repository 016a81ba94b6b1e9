"""Log-probabilities of Gaussian actions and their gradient, part by part on several cores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import torch
from stable_baselines3.common.distributions import Distribution
from torch import Tensor
from torch.distributions import Normal

from .parts import split_rows


def differentiate_log_probs(distribution: Distribution, actions: Tensor, weights: Tensor, num_parts: int) -> Tensor:
    """Return the log-probability of every row of ``actions``, and back-propagate their weighted sum.

    Rows do not meet before the network's own layers, so the number of parts changes no bit.

    Args:
        distribution: Independent Gaussians, B x A of them.
        actions: Where their densities are taken, shape (B, A).
        weights: Derivative of the loss with respect to each log-probability, shape (B,).
        num_parts: Parts of the rows that are computed side by side.
    """
    learned = learned_moments(distribution)
    log_probs, gradients = moment_gradients(distribution, actions, weights, num_parts)
    torch.autograd.backward(learned, gradients)
    return log_probs


def moments(distribution: Distribution) -> tuple[Tensor, Tensor]:
    """Return means and deviations (B, A) of independent Gaussians."""
    normal = distribution.distribution
    assert isinstance(normal, Normal)
    return normal.loc, normal.scale


def learned_moments(distribution: Distribution) -> list[Tensor]:
    """Return which of means and deviations (B, A) depend on what is trained."""
    return [moment for moment in moments(distribution) if moment.requires_grad]


def moment_gradients(
    distribution: Distribution, actions: Tensor, weights: Tensor, num_parts: int = 1
) -> tuple[Tensor, list[Tensor]]:
    """Return the log-probability of every row, and the gradients of their weighted sum by the learned moments."""
    both = moments(distribution)
    gradients = [torch.empty_like(moment) for moment in both]
    log_probs = torch.empty_like(weights)

    def differentiate(rows: slice) -> None:
        loc, scale = (moment[rows].detach().requires_grad_(moment.requires_grad) for moment in both)
        part = Normal(loc, scale, validate_args=False).log_prob(actions[rows]).sum(dim=1)  # type: ignore[no-untyped-call]  # torch
        part.backward(weights[rows])
        log_probs[rows] = part.detach()
        for gradient, moment in zip(gradients, (loc, scale), strict=True):
            if moment.grad is not None:
                gradient[rows] = moment.grad

    first, *others = split_rows(len(actions), num_parts)
    with ThreadPoolExecutor(max(num_parts - 1, 1)) as pool:  # which starts no thread before it has something to do
        waiting = [pool.submit(differentiate, part) for part in others]
        differentiate(first)
        for future in waiting:
            future.result()
    return log_probs, [gradient for gradient, moment in zip(gradients, both, strict=True) if moment.requires_grad]


def loss_factors(weights: Tensor, num_runs: int) -> Tensor:
    """Return the derivative of the loss by each log-probability, flat, given their weights (T, b) in the objective."""
    return -(torch.ones(()) / num_runs) * weights.flatten()
