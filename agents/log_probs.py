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
    normal = distribution.distribution
    assert isinstance(normal, Normal)
    moments = [normal.loc, normal.scale]
    gradients = [torch.empty_like(moment) for moment in moments]
    log_probs = torch.empty_like(weights)

    def differentiate(rows: slice) -> None:
        loc, scale = (moment[rows].detach().requires_grad_(moment.requires_grad) for moment in moments)
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
    learned = [(moment, grad) for moment, grad in zip(moments, gradients, strict=True) if moment.requires_grad]
    torch.autograd.backward([moment for moment, _ in learned], [grad for _, grad in learned])
    return log_probs
