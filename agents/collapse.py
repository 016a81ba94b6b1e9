"""Recognising a policy that has stopped learning for ever, so that hours are not spent on it."""

from __future__ import annotations

import math

CLIPPED_SHARE_LIMIT = 0.98  # of all sampled numbers; healthy policies stay below one half


class CollapseError(RuntimeError):
    """Training cannot recover; the message says what was seen."""


class CollapseGuard:
    """Stops training when rewards vanish or all actions leave the box, several updates in a row.

    A linear mean with a large step size drives every action out of [0, 1] within a few updates. All actions are
    then clipped to the same corner, the reward is exactly 0 and so is the gradient.
    """

    def __init__(self, patience: int) -> None:
        """Allow ``patience - 1`` suspicious updates in a row; 0 turns both checks off."""
        if patience < 0:
            raise ValueError(f"`collapse_patience` must be at least 0, got {patience}.")
        self.patience = patience
        self.suspicious_updates = 0

    def check_rollout(self, *, largest_reward: float, clipped_share: float) -> None:
        """Raise a ``CollapseError`` when this rollout is the last of too many suspicious ones.

        Args:
            largest_reward: The largest absolute reward of the rollout.
            clipped_share: The share of sampled numbers outside the action box.
        """
        symptoms = []
        if largest_reward == 0.0:
            symptoms.append("every reward was exactly 0")
        if clipped_share > CLIPPED_SHARE_LIMIT:
            symptoms.append(f"{clipped_share:.1%} of all actions were clipped to the box")
        self.suspicious_updates = self.suspicious_updates + 1 if symptoms else 0
        if self.patience and self.suspicious_updates >= self.patience:
            raise CollapseError(
                f"The policy has collapsed: in each of the last {self.patience} updates {' and '.join(symptoms)}; "
                "use a smaller `learning_rate`, a sigmoid mean or gradient clipping."
            )

    @staticmethod
    def check_update(*, loss: float, gradient_norm: float) -> None:
        """Raise a ``CollapseError`` when an update would fill the weights with NaN."""
        if not (math.isfinite(loss) and math.isfinite(gradient_norm)):
            raise CollapseError(
                f"The update is not finite (loss {loss}, gradient norm {gradient_norm}); the weights of the last "
                "update were kept: use a smaller `learning_rate` or gradient clipping."
            )
